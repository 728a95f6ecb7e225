//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUPrograms.h"
#include "kas/Codegen/GPU/Toolkit.h"
#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
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
  Regex spilling("properties for ([A-Za-z0-9_]+)[ \n]*[0-9]+ bytes stack "
                 "frame, [1-9][0-9]* bytes spill");
  if (SmallVector<StringRef> groups; spilling.match(text, &groups))
    assembly.firstSpilling = groups[1].str();
  assembly.registers =
      addMatches(text, "Used ([0-9]+) registers", /*takeLargest=*/true);
  assembly.isSerialized =
      StringRef(text).contains("instructions are serialized");
  return assembly;
}

//===----------------------------------------------------------------------===//
// Vulkan
//===----------------------------------------------------------------------===//

/// Opened once per process: that takes longer than most kernels.
static std::optional<Device> vulkanDevice;

static Expected<const Device &> getVulkanDevice() {
  if (!vulkanDevice) {
    auto opened = Device::open("vulkan");
    if (!opened)
      return opened.takeError();
    vulkanDevice.emplace(std::move(*opened));
  }
  return *vulkanDevice;
}

Error kas::test::closeVulkanDevice() {
  if (!vulkanDevice)
    return Error::success();
  Error error = vulkanDevice->close();
  vulkanDevice.reset();
  return error;
}

Expected<std::vector<std::vector<float>>>
kas::test::runOnVulkan(const GPUProgram &program, unsigned number,
                       ArrayRef<ArrayRef<float>> arguments) {
  using Kind = DeviceManifest::BufferKind;
  auto device = getVulkanDevice();
  if (!device)
    return device.takeError();
  auto manifest = DeviceManifest::fromJSON(program.manifest);
  if (!manifest)
    return manifest.takeError();
  const DeviceManifest::Function &function = manifest->functions[number];
  auto loaded =
      DeviceFunction::load(*device, *manifest, program.binary, function.name);
  if (!loaded)
    return loaded.takeError();
  std::vector<Tensor> inputs, outputs;
  for (const DeviceManifest::Buffer &buffer : function.buffers) {
    if (buffer.kind == Kind::Argument)
      inputs.emplace_back(buffer.shape);
    else if (buffer.kind == Kind::Result)
      outputs.emplace_back(buffer.shape);
  }
  for (auto [values, input] : zip_equal(arguments, inputs))
    copy(values, input.getValues().begin());
  if (Error error = (*loaded)->run(inputs, outputs))
    return error;
  std::vector<std::vector<float>> results;
  for (const Tensor &output : outputs)
    results.push_back(output.getValues().vec());
  return results;
}
