//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the instructions of a SPIR-V module in one pass. The runtime must know
// what each kernel binds before it makes a pipeline: with a layout of fewer
// buffers, or more workgroup memory than the device has, Vulkan's behaviour is
// undefined. Numbers of instructions, decorations and storage classes are those
// of the SPIR-V specification, version 1.3, section 3.
// Of this module
//    OpEntryPoint GLCompute %f "conv"       OpDecorate %v Binding 2
//    OpExecutionMode %f LocalSize 32 1 1    %w = OpVariable %p Workgroup
// it reads a kernel "conv" with blocks of 32 threads; if %f or what it calls
// uses %v and %w, it has three buffers (0 to 2) and the workgroup memory of %w.
//
//===----------------------------------------------------------------------===//

#include "SpirvModule.h"
#include <algorithm>
#include <cstring>

using namespace kas::rt;

namespace {

constexpr uint32_t magicNumber = 0x07230203;
enum Instruction : uint32_t {
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpTypeBool = 20,
  OpTypeInt = 21,
  OpTypeFloat = 22,
  OpTypeVector = 23,
  OpTypeMatrix = 24,
  OpTypeArray = 28,
  OpTypeStruct = 30,
  OpTypePointer = 32,
  OpConstant = 43,
  OpFunction = 54,
  OpFunctionEnd = 56,
  OpFunctionCall = 57,
  OpVariable = 59,
  OpLoad = 61,
  OpStore = 62,
  OpCopyMemory = 63,
  OpAccessChain = 65,
  OpInBoundsAccessChain = 66,
  OpPtrAccessChain = 67,
  OpArrayLength = 68,
  OpDecorate = 71,
  OpCopyObject = 83,
  OpAtomicLoad = 227,
  OpAtomicStore = 228,
  OpAtomicXor = 242,
};
enum : uint32_t { ModelGLCompute = 5, ModeLocalSize = 17 };
enum : uint32_t {
  DecorationNonWritable = 24,
  DecorationBinding = 33,
  DecorationDescriptorSet = 34
};
enum : uint32_t { ClassWorkgroup = 4 };

/// A function: what it calls, and every id that it may use as a pointer.
struct Function {
  std::vector<uint32_t> callees;
  std::set<uint32_t> pointers;
};

/// Collects what the module declares, then resolves each entry point.
class Reader {
public:
  explicit Reader(SpirvModule &module) : module(module) {}
  Status read();

private:
  /// Takes one instruction with its operands; an error where it is too short.
  Status visit(uint32_t opcode, const uint32_t *operands, uint32_t count);
  /// An instruction of a function: which ids it uses as pointers.
  void visitBody(uint32_t opcode, const uint32_t *operands, uint32_t count);
  /// Fills `module.kernels` from all that was collected.
  Status finish();
  /// Adds the pointers of `function` and of all that it calls.
  void reach(uint32_t function, std::set<uint32_t> &seen,
             std::set<uint32_t> &pointers) const;
  /// Bytes of a type of workgroup memory, packed; 0 when it is unknown.
  uint64_t sizeOf(uint32_t type, unsigned depth = 0) const;

  SpirvModule &module;
  /// The function of each kernel, and by id what the module says: sizes of
  /// workgroups, bindings and descriptor sets of variables, values of constants
  /// (the low word), types of variables of workgroup memory, operands of types.
  std::vector<uint32_t> entryFunctions;
  std::map<uint32_t, std::array<uint32_t, 3>> localSizes;
  std::map<uint32_t, uint32_t> bindings, sets, constants, workgroupVariables;
  std::map<uint32_t, std::vector<uint32_t>> types;
  std::set<uint32_t> nonWritable;
  std::map<uint32_t, Function> functions;
  /// The function whose body is being read.
  Function *current = nullptr;
};

} // namespace

static Status invalid(const std::string &got) {
  return {KAS_RT_ERROR_INVALID_MODULE, "expected a SPIR-V module, got " + got};
}

/// The text that starts at `operands`, closed by a null within `count` words.
static bool readText(const uint32_t *operands, uint32_t count,
                     std::string &text) {
  const char *start = reinterpret_cast<const char *>(operands);
  // A text without an end must not be read beyond the instruction.
  size_t length = strnlen(start, size_t(count) * 4);
  text.assign(start, length);
  return length < size_t(count) * 4;
}

Status Reader::visit(uint32_t opcode, const uint32_t *operands,
                     uint32_t count) {
  auto needs = [&](uint32_t least) {
    return count >= least
               ? Status()
               : invalid("an instruction " + std::to_string(opcode) + " with " +
                         std::to_string(count) + " operands");
  };
  Status status;
  switch (opcode) {
  case OpEntryPoint: {
    SpirvKernel kernel;
    if (status = needs(3); status.isError())
      return status;
    // Operands: execution model, function, name, interface.
    if (!readText(operands + 2, count - 2, kernel.name))
      return invalid("a kernel with a name that does not end");
    if (operands[0] != ModelGLCompute)
      return invalid("an entry point '" + kernel.name +
                     "' of execution model " + std::to_string(operands[0]));
    module.kernels.push_back(kernel);
    entryFunctions.push_back(operands[1]);
    return {};
  }
  case OpExecutionMode:
    if (status = needs(2); status.isError())
      return status;
    // Other modes do not matter here.
    if (operands[1] != ModeLocalSize)
      return {};
    if (status = needs(5); !status.isError())
      localSizes[operands[0]] = {operands[2], operands[3], operands[4]};
    return status;
  case OpDecorate:
    if (status = needs(2); status.isError())
      return status;
    if (operands[1] == DecorationNonWritable)
      nonWritable.insert(operands[0]);
    if (operands[1] != DecorationBinding &&
        operands[1] != DecorationDescriptorSet)
      return {};
    if (status = needs(3); !status.isError())
      (operands[1] == DecorationBinding ? bindings : sets)[operands[0]] =
          operands[2];
    return status;
  case OpTypeBool:
  case OpTypeInt:
  case OpTypeFloat:
  case OpTypeVector:
  case OpTypeMatrix:
  case OpTypeArray:
  case OpTypeStruct:
  case OpTypePointer:
    if (status = needs(opcode == OpTypeBool || opcode == OpTypeStruct ? 1
                       : opcode == OpTypeInt || opcode == OpTypeFloat ? 2
                                                                      : 3);
        status.isError())
      return status;
    // Without the result id: the opcode, then what it is made of.
    types[operands[0]] = {opcode};
    // Sizes are computed later (`sizeOf`), when all types and constants are
    // known.
    types[operands[0]].insert(types[operands[0]].end(), operands + 1,
                              operands + count);
    return {};
  case OpConstant:
    if (status = needs(3); !status.isError())
      // Operands: type, result, value. Extents of arrays are at most 32 bits.
      constants[operands[1]] = operands[2];
    return status;
  case OpVariable:
    // Operands: type, result, storage class.
    if (status = needs(3); status.isError())
      return status;
    if (operands[2] == ClassWorkgroup)
      workgroupVariables[operands[1]] = operands[0];
    return {};
  case OpFunction:
    if (status = needs(4); !status.isError())
      current = &functions[operands[1]];
    return status;
  case OpFunctionEnd:
    current = nullptr;
    return {};
  default:
    visitBody(opcode, operands, count);
    return {};
  }
}

void Reader::visitBody(uint32_t opcode, const uint32_t *operands,
                       uint32_t count) {
  if (!current)
    return;
  auto use = [&](uint32_t position) {
    if (position < count)
      current->pointers.insert(operands[position]);
  };
  // The position of the pointer differs: first operand of a store, third of
  // what has a type and a result. Ids that are no variables do no harm, as only
  // variables are looked up later.
  if (opcode == OpFunctionCall) {
    if (count > 2)
      current->callees.push_back(operands[2]);
    for (uint32_t i = 3; i < count; ++i)
      use(i);
  } else if (opcode == OpStore || opcode == OpAtomicStore) {
    use(0);
  } else if (opcode == OpCopyMemory) {
    use(0);
    use(1);
  } else if (opcode == OpLoad || opcode == OpCopyObject ||
             (opcode >= OpAccessChain && opcode <= OpArrayLength) ||
             (opcode >= OpAtomicLoad && opcode <= OpAtomicXor)) {
    use(2);
  }
}

// Packed: layout rules do not apply to the Workgroup class in Vulkan 1.1, so
// this is a lower bound of what a driver allocates.
uint64_t Reader::sizeOf(uint32_t type, unsigned depth) const {
  auto found = types.find(type);
  // A module whose types contain themselves is for spirv-val to refuse.
  if (found == types.end() || depth > 16)
    return 0;
  const std::vector<uint32_t> &words = found->second;
  switch (words[0]) {
  case OpTypeBool:
    return 4;
  case OpTypeInt:
  case OpTypeFloat:
    return words[1] / 8;
  case OpTypeVector:
  case OpTypeMatrix:
    return sizeOf(words[1], depth + 1) * words[2];
  case OpTypeArray: {
    auto extent = constants.find(words[2]);
    return extent == constants.end()
               ? 0
               : sizeOf(words[1], depth + 1) * extent->second;
  }
  case OpTypeStruct: {
    uint64_t size = 0;
    for (size_t i = 1; i < words.size(); ++i)
      size += sizeOf(words[i], depth + 1);
    return size;
  }
  // A variable's type is a pointer to its value.
  case OpTypePointer:
    return sizeOf(words[2], depth + 1);
  default:
    return 0;
  }
}

void Reader::reach(uint32_t function, std::set<uint32_t> &seen,
                   std::set<uint32_t> &pointers) const {
  // A worklist; `seen` also ends recursion, which SPIR-V forbids for shaders
  // but a broken file may have.
  std::vector<uint32_t> open = {function};
  while (!open.empty()) {
    uint32_t id = open.back();
    open.pop_back();
    auto found = functions.find(id);
    if (found == functions.end() || !seen.insert(id).second)
      continue;
    pointers.insert(found->second.pointers.begin(),
                    found->second.pointers.end());
    open.insert(open.end(), found->second.callees.begin(),
                found->second.callees.end());
  }
}

Status Reader::finish() {
  if (module.kernels.empty())
    return invalid("one without an entry point");
  for (size_t i = 0; i < module.kernels.size(); ++i) {
    SpirvKernel &kernel = module.kernels[i];
    if (!functions.count(entryFunctions[i]))
      return invalid("an entry point '" + kernel.name + "' without a function");
    // Without the mode the sizes stay 0: the launch decides, and is not
    // compared.
    if (auto found = localSizes.find(entryFunctions[i]);
        found != localSizes.end())
      kernel.block = found->second;
    // All that the entry point uses, also in functions that it calls.
    std::set<uint32_t> seen, pointers, written;
    reach(entryFunctions[i], seen, pointers);
    for (uint32_t id : pointers) {
      if (auto shared = workgroupVariables.find(id);
          shared != workgroupVariables.end())
        kernel.sharedBytes += sizeOf(shared->second);
      auto binding = bindings.find(id);
      if (binding == bindings.end())
        continue;
      auto set = sets.find(id);
      // The layout that kernels get has the one set 0.
      if ((set != sets.end() && set->second != 0) ||
          binding->second == UINT32_MAX)
        return invalid("a kernel '" + kernel.name +
                       "' with buffers outside of descriptor set 0");
      // Bindings may have gaps; the layout has all of them.
      kernel.bufferCount = std::max(kernel.bufferCount, binding->second + 1);
      (nonWritable.count(id) ? kernel.readOnly : written)
          .insert(binding->second);
    }
    // Of two variables for one buffer either may write it.
    for (uint32_t binding : written)
      kernel.readOnly.erase(binding);
  }
  return {};
}

Status Reader::read() {
  const std::vector<uint32_t> &words = module.words;
  // The header has five words: magic number, version, generator, bound, schema.
  // A module of the other byte order is not one for this machine.
  if (words.size() < 5 || words[0] != magicNumber)
    return invalid("bytes of another format");
  for (size_t position = 5; position < words.size();) {
    // Each instruction begins with its length in words and its opcode.
    uint32_t count = words[position] >> 16, opcode = words[position] & 0xffff;
    if (count == 0 || count > words.size() - position)
      return invalid("one that is cut off");
    if (Status status = visit(opcode, &words[position] + 1, count - 1);
        status.isError())
      return status;
    position += count;
  }
  return finish();
}

Status SpirvModule::read(const void *data, size_t bytes) {
  if (bytes % 4)
    return invalid(std::to_string(bytes) + " bytes, not a multiple of 4");
  // Copied, as `data` need not be aligned to words.
  words.resize(bytes / 4);
  if (bytes)
    std::memcpy(words.data(), data, bytes);
  return Reader(*this).read();
}

const SpirvKernel *SpirvModule::find(const std::string &name) const {
  for (const SpirvKernel &kernel : kernels)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}
