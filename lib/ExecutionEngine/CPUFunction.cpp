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
// (docs/internals/code-generation.md, "Large functions"). A call passes one
// array of pointers, since the number of tensors is known at run time only.
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
  pointers.push_back(packed.data());
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

const char *CompiledFunction::call(llvm::ArrayRef<float *> tensors,
                                   std::optional<int64_t> numSamples) const {
  assert(tensors.size() ==
             signature.arguments.size() + signature.results.size() &&
         "wrong signature");
  if (numSamples && !anyBatch)
    return "requires a function for batches of any size";
  if (prepackFunction && packed.getNumElements() != numPrepacked)
    return "requires weights that were prepacked before the first call";
  // Arguments, results, prepacked weights, number of samples: the order in
  // which the passes add parameters.
  SmallVector<void *> pointers(tensors.begin(), tensors.end());
  if (prepackFunction)
    pointers.push_back(const_cast<float *>(packed.data()));
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

Expected<CompiledFunction>
kas::execution::compileForCPU(ModuleOp module, llvm::StringRef name,
                              const CPUPipelineOptions &pipeline,
                              const JITOptions &jit, CompileRecord *record) {
  double start = monotonicSeconds();
  CompiledFunction compiled;
  auto signature = FunctionSignature::get(module, name, ElementTypes::Any);
  if (!signature)
    return signature.takeError();
  compiled.signature = std::move(*signature);

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
  compiled.numPrepacked = getNumPrepackedElements(*clone, name);
  compiled.anyBatch = pipeline.anyBatch && takesNumSamples(*clone, name);
  double loading = monotonicSeconds();
  auto compiledModule =
      CompiledModule::compile(*clone, jit, std::move(*objects));
  if (!compiledModule)
    return compiledModule.takeError();
  compiled.module = std::move(*compiledModule);
  if (record)
    record->addSteps(compiled.module->getTimes(), loading);
  auto function = compiled.module->lookup(name);
  if (!function)
    return function.takeError();
  compiled.function = *function;
  // A function without weights has nothing to prepack.
  if (compiled.numPrepacked) {
    auto prepack = compiled.module->lookup((name + "_prepack").str());
    if (!prepack)
      return prepack.takeError();
    compiled.prepackFunction = *prepack;
  }
  compiled.compileMilliseconds = (monotonicSeconds() - start) * 1e3;
  return compiled;
}
