//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits a large LLVM module into parts that are compiled in parallel; the
// split depends on the module alone.
//
// LLVM optimizes a module, and generates its code, on one thread. Parts see one
// another's functions as declarations, so that nothing is inlined across them.
//
//===----------------------------------------------------------------------===//

#include "ModuleParts.h"
#include "kas/ExecutionEngine/Timing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace kas;
using namespace kas::execution;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;

unsigned kas::execution::getNumParts(const llvm::Module &module) {
  // Fixed numbers, not those of this machine: code and cache keys must not
  // depend on it.
  constexpr unsigned mostFunctions = 32, numParts = 8;
  auto count = llvm::count_if(module, [](const llvm::Function &function) {
    return !function.isDeclaration();
  });
  return count > mostFunctions ? numParts : 1;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Constants that nothing outside knows are in each part, which may fold what
/// it reads of them; all other symbols become visible to the parts.
static bool isCopied(const llvm::GlobalValue &value) {
  const auto *variable = llvm::dyn_cast<llvm::GlobalVariable>(&value);
  return variable && variable->isConstant() && variable->hasLocalLinkage();
}

/// Under another name: a function that is called `floor` must not be taken for
/// that of the C library in other parts.
static void makeVisible(llvm::Module &module) {
  for (llvm::GlobalValue &value : module.global_values())
    if (value.hasLocalLinkage() && !isCopied(value)) {
      value.setName("_kas_part_" + value.getName());
      value.setLinkage(llvm::GlobalValue::ExternalLinkage);
      // Hidden: not in the symbol table of what they are linked into.
      value.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
}

/// The number of the part of each definition, by sizes: the largest ones first,
/// each to the smallest part.
static llvm::DenseMap<const llvm::GlobalValue *, unsigned>
distribute(const llvm::Module &module, unsigned numParts) {
  llvm::DenseMap<const llvm::GlobalValue *, unsigned> parts;
  // Equal sizes in the order of the module.
  SmallVector<std::tuple<uint64_t, unsigned, const llvm::Function *>> functions;
  // Complemented, so that sorting upwards puts the largest first.
  for (const llvm::Function &function : module)
    if (!function.isDeclaration())
      functions.emplace_back(~uint64_t(function.getInstructionCount()),
                             functions.size(), &function);
  llvm::sort(functions);
  SmallVector<uint64_t> sizes(numParts);
  for (auto [size, order, function] : functions) {
    auto *smallest = llvm::min_element(sizes);
    *smallest += ~size + 1;
    parts[function] = smallest - sizes.begin();
  }
  // Variables that are written must exist once.
  for (const llvm::GlobalVariable &variable : module.globals())
    if (!variable.isDeclaration() && !isCopied(variable))
      parts[&variable] = 0;
  return parts;
}

namespace {
/// From bitcode, so that each has a context of its own, to machine code.
struct Part {
  llvm::SmallString<0> bitcode;
  std::unique_ptr<llvm::MemoryBuffer> object;
  std::string error;
  double optimize = 0, codegen = 0;
};
} // namespace

/// Optimizes and compiles one part; notes how long each took, in seconds.
static Error compile(llvm::Module &module, const Target &target,
                     const JITOptions &options, Part &part) {
  auto machine = createTargetMachine(target, options.optLevel, /*jit=*/true);
  if (!machine)
    return machine.takeError();
  double start = monotonicSeconds();
  optimize(module, **machine, options.optLevel);
  double optimized = monotonicSeconds();
  auto object = generateCode(module, **machine);
  if (!object)
    return object.takeError();
  part.object = std::move(*object);
  part.optimize = optimized - start;
  part.codegen = monotonicSeconds() - optimized;
  return Error::success();
}

static Error compileBitcode(const Target &target, const JITOptions &options,
                            Part &part) {
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(part.bitcode, "part"), context);
  if (!module)
    return module.takeError();
  return compile(**module, target, options, part);
}

Expected<SmallVector<std::unique_ptr<llvm::MemoryBuffer>>>
kas::execution::compileParts(llvm::Module &module, unsigned numParts,
                             const Target &target, const JITOptions &options,
                             CompileTimes &times) {
  double start = monotonicSeconds();
  std::vector<Part> parts;
  if (numParts == 1) {
    if (Error error = compile(module, target, options, parts.emplace_back()))
      return error;
  } else {
    makeVisible(module);
    auto places = distribute(module, numParts);
    for (unsigned number = 0; number < numParts; ++number) {
      llvm::ValueToValueMapTy mapping;
      std::unique_ptr<llvm::Module> some = llvm::CloneModule(
          module, mapping, [&](const llvm::GlobalValue *value) {
            // What has no part, a copied constant, is defined in each.
            auto place = places.find(value);
            return place == places.end() || place->second == number;
          });
      llvm::raw_svector_ostream stream(parts.emplace_back().bitcode);
      llvm::WriteBitcodeToFile(*some, stream);
    }
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
    for (Part &part : parts)
      pool.async([&] {
        if (Error error = compileBitcode(target, options, part))
          part.error = llvm::toString(std::move(error));
      });
    pool.wait();
  }
  SmallVector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  double optimize = 0, codegen = 0;
  for (Part &part : parts) {
    if (!part.error.empty())
      return llvm::createStringError(part.error);
    objects.push_back(std::move(part.object));
    optimize += part.optimize;
    codegen += part.codegen;
  }
  // Parts run at the same time: the time that passed is divided in the ratio of
  // the steps' own times.
  double passed = (monotonicSeconds() - start) * 1e3;
  double share = optimize / std::max(optimize + codegen, 1e-9);
  times.optimize += passed * share;
  times.codegen += passed * (1 - share);
  return objects;
}
