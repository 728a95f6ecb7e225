//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a function of a module for the CPU and calls it on tensors.
//
// Compilation runs in two halves around the outlining of kernels, so that
// kernels which the cache knows are never lowered
// (docs/internals/code-generation.md, "Large functions"); functions which it
// knows are not lowered at all. A call passes one array of pointers, since the
// number of tensors is known at run time only.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CPUFunction.h"
#include "KernelObjects.h"
#include "kas/Codegen/CPU/OutlineKernels.h"
#include "kas/ExecutionEngine/Profile.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Support/RunPasses.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

// The same on tensors.
Error CompiledFunction::prepack(llvm::ArrayRef<Tensor> arguments) {
  SmallVector<float *> pointers;
  for (const Tensor &argument : arguments)
    pointers.push_back(const_cast<float *>(argument.data()));
  const char *message = prepack(pointers);
  return message ? llvm::createStringError(message) : Error::success();
}

// Prepacks the weights once, before the first call: calls read them from
// `packed`. Null, or what an assertion says.
const char *CompiledFunction::prepack(llvm::ArrayRef<float *> arguments) {
  if (!prepackFunction)
    return nullptr;
  // Prepared again, with other weights: the memory is reused.
  if (packed.getNumElements() != numPrepacked)
    packed = Tensor({numPrepacked});
  SmallVector<void *> pointers;
  for (auto [argument, pointer] :
       llvm::zip_equal(signature.arguments, arguments))
    if (!argument.isData)
      pointers.push_back(pointer);
  // Weights in order, then what is filled.
  packedWeights = packed.data();
  pointers.push_back(packedWeights);
  return prepackFunction(pointers.data());
}

Error CompiledFunction::operator()(
    llvm::ArrayRef<Tensor> arguments,
    llvm::MutableArrayRef<Tensor> results) const {
  assert(arguments.size() == signature.arguments.size() &&
         results.size() == signature.results.size() && "wrong signature");
  SmallVector<float *> pointers;
  for (const Tensor &argument : arguments)
    pointers.push_back(const_cast<float *>(argument.data()));
  for (Tensor &result : results)
    pointers.push_back(result.data());
  if (!anyBatch)
    return (*this)(pointers);
  int64_t numSamples = arguments.front().getShape().front();
  assert(llvm::all_of(results,
                      [&](const Tensor &result) {
                        return result.getShape().front() == numSamples;
                      }) &&
         "results for another number of samples");
  return (*this)(pointers, numSamples);
}

Error CompiledFunction::operator()(llvm::ArrayRef<float *> tensors,
                                   std::optional<int64_t> numSamples) const {
  const char *message = call(tensors, numSamples);
  return message ? llvm::createStringError(message) : Error::success();
}

SmallVector<void *>
CompiledFunction::getPointers(llvm::ArrayRef<float *> tensors) const {
  SmallVector<void *> pointers;
  for (std::optional<float *> weight : weights) {
    pointers.push_back(weight ? *weight : tensors.front());
    if (!weight)
      tensors = tensors.drop_front();
  }
  llvm::append_range(pointers, tensors);
  return pointers;
}

const char *CompiledFunction::call(llvm::ArrayRef<float *> tensors,
                                   std::optional<int64_t> numSamples) const {
  assert(tensors.size() ==
             signature.arguments.size() + signature.results.size() &&
         "wrong signature");
  if (numSamples && !anyBatch)
    return "requires a function for batches of any size";
  if (numPrepacked && !packedWeights)
    return "requires weights that were prepacked before the first call";
  // Arguments, results, prepacked weights, number of samples: the order in
  // which the passes add parameters.
  SmallVector<void *> pointers = getPointers(tensors);
  if (numPrepacked)
    pointers.push_back(packedWeights);
  // The last slot holds the number itself.
  if (anyBatch)
    pointers.push_back(reinterpret_cast<void *>(
        numSamples.value_or(signature.arguments.front().shape.front())));
  return function(pointers.data());
}

// The lowered module has a function that returns the number, so that callers of
// an object file can ask for it, too; here its constant is read.
int64_t kas::execution::getNumPrepackedElements(ModuleOp module,
                                                llvm::StringRef name) {
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(
      (name + "_prepacked_elements").str());
  if (!function)
    return 0;
  APInt count;
  bool isConstant =
      matchPattern(function.getBody().front().getTerminator()->getOperand(0),
                   m_ConstantInt(&count));
  assert(isConstant && "kas-prepack-weights returns a constant");
  return isConstant ? count.getSExtValue() : 0;
}

// A lowered function of static shapes takes pointers; only `any-batch` adds an
// integer, the last argument.
bool kas::execution::takesNumSamples(ModuleOp module, llvm::StringRef name) {
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  return function && function.getNumArguments() > 0 &&
         function.getArgumentTypes().back().isInteger(64);
}

/// Which arguments of a lowered function have any use.
static std::vector<bool> findRead(ModuleOp module, llvm::StringRef name,
                                  size_t numArguments) {
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  std::vector<bool> areRead;
  for (size_t number : llvm::seq(numArguments))
    areRead.push_back(!function || !function.getArgument(number).use_empty());
  return areRead;
}

Error CompiledFunction::link(CompiledCode code, const JITOptions &jit) {
  auto linked = CompiledModule::link(std::move(code), jit);
  if (!linked)
    return linked.takeError();
  module = std::move(*linked);
  auto found = module->lookup(signature.name);
  if (!found)
    return found.takeError();
  function = *found;
  // A function without weights has nothing to prepack.
  if (!numPrepacked)
    return Error::success();
  auto prepack = module->lookup(signature.name + "_prepack");
  if (!prepack)
    return prepack.takeError();
  prepackFunction = *prepack;
  return Error::success();
}

Expected<CompiledFunction>
kas::execution::compileForCPU(ModuleOp module, llvm::StringRef name,
                              const CPUPipelineOptions &pipeline,
                              const JITOptions &jit, CompileRecord *record) {
  double start = monotonicSeconds();
  auto signature = FunctionSignature::get(module, name, ElementTypes::Any);
  if (!signature)
    return signature.takeError();
  std::optional<std::string> key;
  if (jit.cache && !record)
    key = getFunctionKey(module, name, pipeline, jit);
  auto known = key ? jit.cache->load(*key) : nullptr;
  if (known) {
    auto file = CompiledFile::read(std::move(known));
    auto found = file ? CompiledFunction::fromFile(std::move(*file), jit)
                      : file.takeError();
    if (found) {
      // With initializers, which files do not have.
      found->signature = std::move(*signature);
      found->compileMilliseconds = (monotonicSeconds() - start) * 1e3;
      return found;
    }
    // Compiled again, and stored in its place.
    llvm::consumeError(found.takeError());
  }
  auto compiled = CompiledFunction::compile(module, std::move(*signature),
                                            pipeline, jit, record, key);
  if (compiled)
    compiled->compileMilliseconds = (monotonicSeconds() - start) * 1e3;
  return compiled;
}

Expected<CompiledFunction>
CompiledFunction::compile(ModuleOp module, FunctionSignature signature,
                          const CPUPipelineOptions &pipeline,
                          const JITOptions &jit, CompileRecord *record,
                          const std::optional<std::string> &key) {
  CompiledFunction compiled;
  llvm::StringRef name = signature.name;
  // The caller's module stays as it is.
  OwningOpRef<ModuleOp> clone = module.clone();
  // Only what the function needs: everything else is dead then.
  for (auto function : clone->getOps<func::FuncOp>())
    function.setVisibility(function.getName() == name
                               ? SymbolTable::Visibility::Public
                               : SymbolTable::Visibility::Private);
  PassTimes *times = record ? &record->passes : nullptr;
  auto run = [&](auto build) {
    return runPasses(
        *clone, "the function cannot be compiled for the CPU",
        [&](OpPassManager &manager) { build(manager, pipeline); }, times);
  };
  if (record)
    record->begin(*clone, name);
  Error error = run(buildCPUBufferPipeline);
  if (record)
    record->finish(*clone, name);
  if (error)
    return error;
  // From here on the module has calls of kernels, which other objects define.
  auto kernels = codegen::outlineKernels(*clone, pipeline.minKernels);
  auto objects = compileKernels(*clone, kernels, pipeline, jit, times);
  if (!objects)
    return objects.takeError();
  if (Error error = run(buildCPUKernelPipeline))
    return error;
  // Read before the module is translated and consumed.
  compiled.numPrepacked = execution::getNumPrepackedElements(*clone, name);
  compiled.anyBatch = pipeline.anyBatch && takesNumSamples(*clone, name);
  compiled.areRead = findRead(*clone, name, signature.arguments.size());
  compiled.signature = std::move(signature);
  double loading = monotonicSeconds();
  auto code = compileCode(*clone, jit, std::move(*objects));
  if (!code)
    return code.takeError();
  if (key || jit.keepCode) {
    std::string content = compiled.makeFile(*code);
    if (key)
      jit.cache->store(*key, content);
    if (jit.keepCode)
      compiled.file = llvm::MemoryBuffer::getMemBufferCopy(content);
  }
  if (Error error = compiled.link(std::move(*code), jit))
    return error;
  if (record)
    record->addSteps(compiled.module->getTimes(), loading);
  return compiled;
}
