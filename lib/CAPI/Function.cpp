//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to compiled functions: compiling an operator, a gradient or a
// function of a module, its signature, and calls on f32 buffers.
// A handle owns the compiled code and its signature; strings and shapes that
// functions return live as long as it does. Tensors are contiguous, in
// row-major order.
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "Handles.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/ExecutionEngine/CPUFunction.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;

/// The options of the C interface as those of the pipeline and of the JIT.
llvm::Expected<CompiledFunction> kas::compileFunction(ModuleOp module,
                                                      StringRef name,
                                                      KasCompileOptions options,
                                                      KasCallOptions call) {
  CPUPipelineOptions pipeline;
  pipeline.threads = options.threads;
  pipeline.prepackWeights = call.prepackWeights;
  // The size of the first dimension becomes an argument of the code.
  pipeline.anyBatch = call.anyBatch;
  pipeline.precision = call.precision == KasPrecisionBF16
                           ? codegen::ContractionPrecision::BF16
                           : codegen::ContractionPrecision::F32;
  JITOptions jit;
  jit.optLevel = options.optLevel;
  jit.keepCode = call.keepCode;
  auto cache = ObjectCache::openOfUser();
  if (!cache)
    return cache.takeError();
  jit.cache = cache->get();
  return compileForCPU(module, name, pipeline, jit);
}

/// Null after reporting an error; the caller destroys the result.
KasFunction *kas::compile(ModuleAccess &access, ModuleOp module, StringRef name,
                          KasCompileOptions options, KasCallOptions call) {
  auto function = compileFunction(module, name, options, call);
  if (!function) {
    access.report(function.takeError());
    return nullptr;
  }
  return new KasFunction{std::move(*function)};
}

/// The function takes the data and the weights, and returns the output.
KasFunction *kasOperatorCompile(KasModule *module, const char *name,
                                const char *binding, KasCompileOptions options,
                                KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> program = access.makeProgram(name, binding);
  return program ? compile(access, *program, operatorFunctionName, options)
                 : nullptr;
}

KasFunction *kasOperatorCompileGradient(KasModule *module, const char *name,
                                        const char *binding, size_t tensor,
                                        KasGradientStrategy strategy,
                                        KasCompileOptions options,
                                        KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> alone = access.specializeAlone(name, binding);
  if (!alone)
    return nullptr;
  OperatorOp op = *alone->getOps<OperatorOp>().begin();
  // 0 is the data, i the weight i - 1.
  if (tensor > op.getNumWeights()) {
    access.report("expected the number of a tensor of '" + llvm::Twine(name) +
                  "', from 0 to " + llvm::Twine(op.getNumWeights()) + ", got " +
                  llvm::Twine(tensor));
    return nullptr;
  }
  OwningOpRef<ModuleOp> program =
      // Structured forms are parallel by themselves, the loop nest needs
      // the flag.
      createFastGradientModule(op, tensor, strategy, options.threads != 1);
  if (!program) {
    // Only with the strategy that asks for the structured form.
    access.report("the gradient of '" + llvm::Twine(name) +
                  "' has no structured form");
    return nullptr;
  }
  return compile(access, *program, gradientFunctionName, options);
}

/// Of a module on tensors; the module itself is not lowered.
KasFunction *kasModuleCompile(KasModule *module, const char *function,
                              KasCompileOptions options,
                              KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  return compile(access, access.getModule(), function, options);
}

/// With packed weights, any batch or bf16, which the function remembers.
KasFunction *kasModuleCompileWith(KasModule *module, const char *function,
                                  KasCompileOptions options,
                                  KasCallOptions call,
                                  KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  return compile(access, access.getModule(), function, options, call);
}

/// Of what is called without a module, and so without a context.
static void report(llvm::Error error, KasDiagnostics diagnostics) {
  diagnostics.report(KasSeverityError, "",
                     llvm::toString(std::move(error)).c_str(),
                     diagnostics.userData);
}

bool kasFunctionSave(KasFunction *function, const char *path,
                     float *const *weights, KasDiagnostics diagnostics) {
  size_t count = kasFunctionGetNumArguments(function);
  llvm::Error error = function->function.save(
      path, ArrayRef<float *>(const_cast<float **>(weights), count));
  if (!error)
    return true;
  report(std::move(error), diagnostics);
  return false;
}

KasFunction *kasFunctionLoad(const char *path, KasDiagnostics diagnostics) {
  auto function = CompiledFunction::load(path);
  if (function)
    return new KasFunction{std::move(*function)};
  report(function.takeError(), diagnostics);
  return nullptr;
}

void kasFunctionDestroy(KasFunction *function) { delete function; }

size_t kasFunctionGetNumArguments(const KasFunction *function) {
  return function->function.getSignature().arguments.size();
}

size_t kasFunctionGetNumResults(const KasFunction *function) {
  return function->function.getSignature().results.size();
}

/// Tensors are counted through: arguments, then results.
static const TensorSignature &getTensor(const KasFunction *function,
                                        size_t tensor) {
  const FunctionSignature &signature = function->function.getSignature();
  size_t numArguments = signature.arguments.size();
  return tensor < numArguments ? signature.arguments[tensor]
                               : signature.results[tensor - numArguments];
}

size_t kasFunctionGetRank(const KasFunction *function, size_t tensor) {
  return getTensor(function, tensor).shape.size();
}

const int64_t *kasFunctionGetShape(const KasFunction *function, size_t tensor) {
  return getTensor(function, tensor).shape.data();
}

const char *kasFunctionGetName(const KasFunction *function, size_t tensor) {
  return getTensor(function, tensor).name.c_str();
}

const char *kasFunctionGetElementType(const KasFunction *function,
                                      size_t tensor) {
  return getTensor(function, tensor).type.c_str();
}

double kasFunctionGetCompileMilliseconds(const KasFunction *function) {
  return function->function.getCompileMilliseconds();
}

/// One pointer for each argument and each result.
static ArrayRef<float *> getPointers(const KasFunction *function,
                                     float *const *tensors) {
  const FunctionSignature &signature = function->function.getSignature();
  size_t count = signature.arguments.size() + signature.results.size();
  return {const_cast<float **>(tensors), count};
}

/// Null, or the text of the assertion that failed, which lives as long as the
/// function.
const char *kasFunctionCall(const KasFunction *function,
                            float *const *tensors) {
  return function->function.call(getPointers(function, tensors));
}

bool kasFunctionHasAnyBatch(const KasFunction *function) {
  return function->function.hasAnyBatch();
}

/// The first dimension has `samples` elements instead of those compiled for.
const char *kasFunctionCallBatch(const KasFunction *function,
                                 float *const *tensors, int64_t samples) {
  return function->function.call(getPointers(function, tensors), samples);
}

/// Packs the weights that the function keeps; to be called again after they
/// change.
const char *kasFunctionPrepack(KasFunction *function, float *const *arguments) {
  size_t count = function->function.getSignature().arguments.size();
  return function->function.prepack(
      ArrayRef<float *>(const_cast<float **>(arguments), count));
}
