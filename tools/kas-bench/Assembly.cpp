//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Source of rates: CUDA C++ Programming Guide, "Arithmetic Instructions" (f32),
// and NVIDIA, "A100 Tensor Core GPU Architecture", 2020, and "H100 Tensor Core
// GPU Architecture", 2022 (products per cycle of a processor); of occupancy,
// CUDA C++ Programming Guide, "Compute Capabilities".
//
//===----------------------------------------------------------------------===//

#include "Assembly.h"
#include "kas/Codegen/GPU/Toolkit.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::codegen;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallString;
using llvm::StringRef;

double KernelLoop::getBound() const {
  double longest = std::max({productCycles, issueCycles, memoryCycles});
  return longest > 0 ? productCycles / longest : 0;
}

double KernelAssembly::getOccupancy(int64_t threads) const {
  // Registers are given to warps in pieces of 256; a block takes 1 KiB of
  // workgroup memory for the system.
  constexpr int64_t allThreads = 2048, allRegisters = 65536,
                    allBytes = 228 << 10, mostBlocks = 32;
  int64_t warps = llvm::divideCeil(threads, 32);
  int64_t warpRegisters =
      llvm::alignTo(std::max<int64_t>(registers, 1) * 32, 256);
  int64_t blocks = std::min({allThreads / (warps * 32),
                             allRegisters / (warpRegisters * warps),
                             allBytes / (sharedBytes + 1024), mostBlocks});
  return static_cast<double>(blocks * warps * 32) / allThreads;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

struct Instruction {
  StringRef opcode;
  /// The label it jumps to; empty: none.
  StringRef target;
};

/// Reads what nvdisasm prints of one function.
class CodeReader {
public:
  explicit CodeReader(StringRef chip) : isAmpere(chip.starts_with("sm_8")) {}

  void add(StringRef line);
  KernelLoop getLoop() const;
  NarrowAccesses getNarrowAccesses() const;

private:
  void count(const Instruction &instruction, KernelLoop &loop) const;

  bool isAmpere;
  std::vector<Instruction> instructions;
  /// Where each label is.
  llvm::StringMap<size_t> labels;
};

} // namespace

void CodeReader::add(StringRef line) {
  line = line.trim();
  if (line.starts_with(".L") && line.ends_with(":")) {
    labels[line.drop_back()] = instructions.size();
    return;
  }
  // `/*0010*/  @!P0 BRA `(.L_x_1) ;`
  if (!line.consume_front("/*"))
    return;
  StringRef rest = line.split("*/").second.trim();
  if (rest.starts_with("@"))
    rest = rest.split(' ').second.trim();
  auto [opcode, operands] = rest.split(' ');
  if (opcode.empty() || opcode.starts_with("/*"))
    return;
  Instruction instruction{opcode.rtrim(';'), ""};
  if (opcode.starts_with("BRA")) {
    size_t begin = operands.find(".L");
    if (begin != StringRef::npos)
      instruction.target = operands.substr(begin).take_until(
          [](char c) { return c == ')' || c == ' ' || c == ';'; });
  }
  instructions.push_back(instruction);
}

void CodeReader::count(const Instruction &instruction, KernelLoop &loop) const {
  StringRef opcode = instruction.opcode;
  if (opcode == "NOP")
    return;
  ++loop.instructions;
  loop.issueCycles += 0.25;
  auto multiply = [&](double products, double perCycle) {
    ++loop.products;
    loop.productCycles += products / perCycle;
  };
  if (opcode.starts_with("FFMA"))
    return multiply(32, isAmpere ? 64 : 128);
  bool isShort = opcode.contains("1688");
  if (opcode.starts_with("HMMA")) {
    ++loop.matrixProducts;
    double perCycle =
        (isAmpere ? 1024 : 2048) * (opcode.contains("TF32") ? 0.5 : 1);
    return multiply(16 * 8 * (isShort ? 8 : 16), perCycle);
  }
  // Of a warpgroup: a quarter of 64 rows, of N columns and of 16 steps, which
  // are read from workgroup memory.
  if (StringRef shape = opcode; shape.consume_front("HGMMA.64x")) {
    int64_t columns = 0;
    shape.consumeInteger(10, columns);
    ++loop.matrixProducts;
    loop.memoryCycles += static_cast<double>((64 + columns) * 16 * 2) / 128 / 4;
    return multiply(static_cast<double>(16 * columns * 16), 2048);
  }
  bool isMatrixLoad = opcode.starts_with("LDSM");
  if (!isMatrixLoad && !opcode.starts_with("LDS") &&
      !opcode.starts_with("STS") && !opcode.starts_with("LDGSTS"))
    return;
  // A warp moves 128 bytes for each 4 of a lane.
  double words = opcode.contains("128")                   ? 4
                 : opcode.contains(".64")                 ? 2
                 : isMatrixLoad && opcode.ends_with(".4") ? 4
                 : isMatrixLoad && opcode.ends_with(".2") ? 2
                                                          : 1;
  loop.memoryCycles += words;
}

KernelLoop CodeReader::getLoop() const {
  KernelLoop best;
  for (auto [end, jump] : llvm::enumerate(instructions)) {
    auto label = labels.find(jump.target);
    if (jump.target.empty() || label == labels.end() || label->second > end)
      continue;
    KernelLoop loop;
    for (size_t i = label->second; i <= end; ++i)
      count(instructions[i], loop);
    // The innermost of those with the same products.
    if (loop.products > best.products ||
        (loop.products == best.products && best.products != 0 &&
         loop.instructions < best.instructions))
      best = loop;
  }
  return best;
}

NarrowAccesses CodeReader::getNarrowAccesses() const {
  NarrowAccesses narrow;
  for (const Instruction &instruction : instructions) {
    StringRef opcode = instruction.opcode;
    if (!opcode.contains(".U16") && !opcode.contains(".S16") &&
        !opcode.contains(".U8") && !opcode.contains(".S8"))
      continue;
    narrow.loads += opcode.starts_with("LDG");
    narrow.stores += opcode.starts_with("STG");
  }
  return narrow;
}

llvm::StringMap<NarrowAccesses> kas::readNarrowAccesses(StringRef ptx) {
  llvm::StringMap<NarrowAccesses> kernels;
  NarrowAccesses *current = nullptr;
  llvm::SmallVector<StringRef> lines;
  ptx.split(lines, '\n');
  llvm::Regex entry("\\.entry ([A-Za-z0-9_$.]+)\\(");
  // `@%p1 ld.global.nc.b16 %rs1, [%rd2];`; a vector has `.v2` or `.v4`.
  llvm::Regex access("(ld|st)\\.global[.a-zA-Z0-9:_]*\\.[bus](16|8)[ \t]");
  llvm::SmallVector<StringRef> parts;
  for (StringRef line : lines) {
    if (entry.match(line, &parts))
      current = &kernels[parts[1]];
    else if (current && access.match(line, &parts) && !parts[0].contains(".v"))
      ++(parts[1] == "ld" ? current->loads : current->stores);
  }
  return kernels;
}

//===----------------------------------------------------------------------===//
// Tools
//===----------------------------------------------------------------------===//

/// Runs a tool; what it prints, on both streams.
static Expected<std::string> runTool(StringRef program,
                                     llvm::ArrayRef<StringRef> arguments) {
  SmallString<128> output;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("kas-bench", "txt", output))
    return llvm::errorCodeToError(error);
  auto remove = llvm::scope_exit([&] { llvm::sys::fs::remove(output); });
  llvm::SmallVector<StringRef> words{program};
  words.append(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(output),
                                          StringRef(output)};
  std::string message;
  int code = llvm::sys::ExecuteAndWait(program, words, std::nullopt, redirects,
                                       0, 0, &message);
  auto text = llvm::MemoryBuffer::getFile(output);
  std::string printed = text ? (*text)->getBuffer().str() : "";
  if (code != 0)
    return createStringError(program + " failed: " + message + printed);
  return printed;
}

static void readResources(StringRef text,
                          std::vector<KernelAssembly> &kernels) {
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  llvm::Regex name("Compiling entry function '([^']*)'");
  llvm::Regex spills("([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  llvm::Regex used("Used ([0-9]+) registers");
  llvm::Regex shared("([0-9]+) bytes smem");
  llvm::SmallVector<StringRef> parts, serialized;
  auto get = [&](unsigned i) {
    int64_t value = 0;
    parts[i].getAsInteger(10, value);
    return value;
  };
  for (StringRef line : lines) {
    if (name.match(line, &parts)) {
      kernels.emplace_back().name = parts[1].str();
      continue;
    }
    // The warning names its function, and comes before or after the resources.
    if (line.contains("instructions are serialized"))
      serialized.push_back(line);
    if (kernels.empty())
      continue;
    if (spills.match(line, &parts))
      kernels.back().spilledBytes = get(1) + get(2);
    if (used.match(line, &parts))
      kernels.back().registers = get(1);
    if (shared.match(line, &parts))
      kernels.back().sharedBytes = get(1);
  }
  for (KernelAssembly &kernel : kernels)
    kernel.isSerialized = llvm::any_of(serialized, [&](StringRef line) {
      return line.contains("'" + kernel.name + "'");
    });
}

static void readLoops(StringRef text, StringRef chip,
                      std::vector<KernelAssembly> &kernels) {
  for (KernelAssembly &kernel : kernels) {
    std::string begin = ".text." + kernel.name + ":";
    size_t position = text.find(begin);
    if (position == StringRef::npos)
      continue;
    StringRef body = text.substr(position + begin.size());
    body = body.substr(0, body.find("\n.text."));
    CodeReader reader(chip);
    llvm::SmallVector<StringRef> lines;
    body.split(lines, '\n');
    for (StringRef line : lines)
      reader.add(line);
    kernel.loop = reader.getLoop();
    kernel.narrow = reader.getNarrowAccesses();
  }
}

static std::string findDisassembler(StringRef toolkit, StringRef given) {
  if (!given.empty())
    return given.str();
  SmallString<128> beside(toolkit);
  llvm::sys::path::append(beside, "bin", "nvdisasm");
  if (llvm::sys::fs::can_execute(beside))
    return beside.str().str();
  auto found = llvm::sys::findProgramByName("nvdisasm");
  return found ? *found : "";
}

Expected<std::vector<KernelAssembly>>
kas::readAssembly(StringRef ptx, StringRef chip, StringRef disassembler) {
  Expected<std::string> toolkit = findCUDAToolkit();
  if (!toolkit)
    return toolkit.takeError();
  SmallString<128> assembler(*toolkit), source, code;
  llvm::sys::path::append(assembler, "bin", "ptxas");
  int file = 0;
  if (auto error =
          llvm::sys::fs::createTemporaryFile("kas-bench", "ptx", file, source))
    return llvm::errorCodeToError(error);
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << ptx;
  if (auto error =
          llvm::sys::fs::createTemporaryFile("kas-bench", "cubin", code))
    return llvm::errorCodeToError(error);
  auto remove = llvm::scope_exit([&] {
    llvm::sys::fs::remove(source);
    llvm::sys::fs::remove(code);
  });
  std::string architecture = ("-arch=" + chip).str();
  Expected<std::string> resources =
      runTool(assembler, {"-v", architecture, source, "-o", code});
  if (!resources)
    return resources.takeError();
  std::vector<KernelAssembly> kernels;
  readResources(*resources, kernels);
  std::string reader = findDisassembler(*toolkit, disassembler);
  if (reader.empty())
    return kernels;
  Expected<std::string> text = runTool(reader, {"-c", code});
  if (!text)
    return text.takeError();
  readLoops(*text, chip, kernels);
  return kernels;
}
