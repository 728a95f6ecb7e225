//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUPrograms.h"
#include "kas-rt/kas-rt.h"
#include "kas/GPU/Toolkit.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

using namespace kas;
using namespace kas::test;
using namespace llvm;

//===----------------------------------------------------------------------===//
// Tools
//===----------------------------------------------------------------------===//

namespace {
/// A file that is removed again.
struct TemporaryFile {
  explicit TemporaryFile(StringRef contents = "") {
    int descriptor;
    if (sys::fs::createTemporaryFile("kas", "tmp", descriptor, path))
      return;
    raw_fd_ostream(descriptor, /*shouldClose=*/true) << contents;
  }
  ~TemporaryFile() { sys::fs::remove(path); }

  std::string read() const {
    auto buffer = MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

  SmallString<128> path;
};
} // namespace

/// Runs a program; what it says, and whether it succeeded.
static std::pair<bool, std::string> execute(StringRef program,
                                            ArrayRef<StringRef> arguments) {
  TemporaryFile output;
  SmallVector<StringRef> all{program};
  all.append(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), output.path.str(),
                                          output.path.str()};
  std::string error;
  int status =
      sys::ExecuteAndWait(program, all, std::nullopt, redirects, 0, 0, &error);
  return {status == 0, error + output.read()};
}

std::string kas::test::validateSPIRV(const GPUProgram &program) {
  auto tool = sys::findProgramByName("spirv-val");
  if (!tool)
    return "expected the program spirv-val (package spirv-tools), got none";
  TemporaryFile file(program.binary);
  auto [success, text] =
      execute(*tool, {"--target-env", "vulkan1.1", file.path});
  return success || !text.empty() ? text : "spirv-val failed";
}

static int64_t addMatches(StringRef text, StringRef pattern, bool takeLargest) {
  Regex regex(pattern);
  int64_t result = 0;
  SmallVector<StringRef> groups;
  while (regex.match(text, &groups)) {
    int64_t number = 0;
    groups[1].getAsInteger(10, number);
    result = takeLargest ? std::max(result, number) : result + number;
    text = text.drop_front(groups[0].end() - text.begin());
  }
  return result;
}

Expected<std::optional<Assembly>>
kas::test::assemblePTX(const GPUProgram &program, StringRef chip) {
  auto toolkit = findCUDAToolkit();
  if (!toolkit) {
    consumeError(toolkit.takeError());
    return std::nullopt;
  }
  TemporaryFile input(program.binary), output;
  auto [success, text] =
      execute(*toolkit + "/bin/ptxas",
              {"-v", ("-arch=" + chip).str(), input.path, "-o", output.path});
  if (!success)
    return createStringError(text);
  Assembly assembly;
  assembly.spilledBytes =
      addMatches(text, "([0-9]+) bytes spill stores", /*takeLargest=*/false);
  assembly.stackBytes =
      addMatches(text, "([0-9]+) bytes stack frame", /*takeLargest=*/false);
  assembly.registers =
      addMatches(text, "Used ([0-9]+) registers", /*takeLargest=*/true);
  return assembly;
}

//===----------------------------------------------------------------------===//
// Vulkan
//===----------------------------------------------------------------------===//

namespace {

/// Opens the device once per process: that takes longer than most kernels.
class VulkanRunner {
public:
  ~VulkanRunner() {
    // In a static object; the process ends.
    if (device)
      kasRtDeviceClose(device);
  }

  Expected<std::vector<std::vector<float>>>
  run(const GPUProgram &program, unsigned function,
      ArrayRef<ArrayRef<float>> arguments);

private:
  static Error check(KasRtStatus status) {
    if (status == KAS_RT_SUCCESS)
      return Error::success();
    return createStringError(kasRtErrorText());
  }
  Error open() {
    return device ? Error::success()
                  : check(kasRtDeviceOpen("vulkan", &device));
  }
  Error createBuffers(const GPUManifest::Function &function,
                      ArrayRef<ArrayRef<float>> arguments);
  Error launch(const GPUProgram &program, const GPUManifest::Function &function,
               KasRtModule module);

  KasRtDevice device = nullptr;
  /// One for each buffer of the function; slices of the scratch buffer share
  /// theirs.
  std::vector<KasRtBuffer> buffers;
  std::vector<KasRtBuffer> owned;
};

} // namespace

Error VulkanRunner::createBuffers(const GPUManifest::Function &function,
                                  ArrayRef<ArrayRef<float>> arguments) {
  using Kind = GPUManifest::Buffer::Kind;
  auto create = [&](int64_t bytes) -> Expected<KasRtBuffer> {
    KasRtBuffer buffer = nullptr;
    if (Error error = check(kasRtBufferCreate(device, bytes, &buffer)))
      return error;
    owned.push_back(buffer);
    // What no kernel writes is found out.
    if (Error error = check(kasRtBufferFill(buffer, 0x7fc00000)))
      return error;
    return buffer;
  };
  KasRtBuffer scratch = nullptr;
  if (function.scratchBytes) {
    auto buffer = create(alignTo(function.scratchBytes, 4));
    if (!buffer)
      return buffer.takeError();
    scratch = *buffer;
  }
  size_t next = 0;
  for (const GPUManifest::Buffer &entry : function.buffers) {
    if (entry.kind == Kind::Scratch) {
      buffers.push_back(scratch);
      continue;
    }
    auto buffer = create(entry.getBytes());
    if (!buffer)
      return buffer.takeError();
    buffers.push_back(*buffer);
    if (entry.kind == Kind::Argument) {
      ArrayRef<float> values = arguments[next++];
      if (Error error = check(kasRtBufferWrite(*buffer, 0, values.data(),
                                               values.size() * sizeof(float))))
        return error;
    }
  }
  return Error::success();
}

Error VulkanRunner::launch(const GPUProgram &program,
                           const GPUManifest::Function &function,
                           KasRtModule module) {
  for (const GPUManifest::Launch &launch : function.launches) {
    const GPUManifest::Kernel &kernel = program.manifest.kernels[launch.kernel];
    KasRtKernel handle = nullptr;
    if (Error error = check(kasRtModuleGetKernel(
            module, kernel.name.c_str(), kernel.arguments.size(), &handle)))
      return error;
    KasRtLaunchSize size = {};
    for (unsigned i = 0; i < 3; ++i) {
      size.grid[i] = kernel.grid[i];
      size.block[i] = kernel.block[i];
    }
    SmallVector<KasRtArgument> arguments;
    for (unsigned number : launch.arguments) {
      const GPUManifest::Buffer &buffer = function.buffers[number];
      arguments.push_back({buffers[number],
                           static_cast<uint64_t>(buffer.offset),
                           static_cast<uint64_t>(buffer.getBytes())});
    }
    if (Error error = check(
            kasRtLaunch(handle, &size, arguments.data(), arguments.size())))
      return error;
  }
  return Error::success();
}

Expected<std::vector<std::vector<float>>>
VulkanRunner::run(const GPUProgram &program, unsigned number,
                  ArrayRef<ArrayRef<float>> arguments) {
  const GPUManifest::Function &function = program.manifest.functions[number];
  if (Error error = open())
    return error;
  KasRtModule module = nullptr;
  buffers.clear();
  owned.clear();
  scope_exit release([&] {
    for (KasRtBuffer buffer : owned)
      kasRtBufferDestroy(buffer);
    kasRtModuleUnload(module);
  });
  if (Error error = check(kasRtModuleLoad(device, program.binary.data(),
                                          program.binary.size(), &module)))
    return error;
  if (Error error = createBuffers(function, arguments))
    return error;
  if (Error error = launch(program, function, module))
    return error;
  std::vector<std::vector<float>> results;
  for (auto [buffer, entry] : zip_equal(buffers, function.buffers)) {
    if (entry.kind != GPUManifest::Buffer::Kind::Result)
      continue;
    std::vector<float> &values =
        results.emplace_back(entry.getBytes() / sizeof(float));
    if (Error error =
            check(kasRtBufferRead(buffer, 0, values.data(), entry.getBytes())))
      return error;
  }
  return results;
}

Expected<std::vector<std::vector<float>>>
kas::test::runOnVulkan(const GPUProgram &program, unsigned function,
                       ArrayRef<ArrayRef<float>> arguments) {
  static VulkanRunner runner;
  return runner.run(program, function, arguments);
}
