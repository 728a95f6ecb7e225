//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to profiles of a function: compiles it with timestamps, runs
// it, and writes the time of each operation as JSON.
// docs/guide/profiling.md explains the numbers. The function is compiled for
// this one call: timestamps are in the code, so a profiled function is another
// one.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Profile.h"
#include "Handles.h"
#include "kas-c/Measure.h"
#include "kas/Conversion/OperatorModule.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

/// Checks what is given for an argument.
/// Shape and element type must be those of the argument.
static Error checkArray(const KasArray &array,
                        const TensorSignature &argument) {
  ArrayRef<int64_t> shape(array.shape, array.rank);
  if (shape != ArrayRef<int64_t>(argument.shape))
    return llvm::createStringError(
        "'" + argument.name + "' must have the shape " +
        shapeToString(argument.shape) + ", got " + shapeToString(shape));
  StringRef type = array.type ? array.type : "f32";
  // Integers without a mark have no sign.
  if (type != argument.type &&
      (!type.consume_front("u") || type != argument.type))
    return llvm::createStringError("'" + argument.name +
                                   "' must have elements of " + argument.type +
                                   ", got " + type);
  return Error::success();
}

/// Memory for a tensor that nobody gives: zeros.
/// Integers and narrow floats lie in the memory of f32 elements, rounded up.
static Expected<Tensor> makeTensor(const TensorSignature &signature) {
  if (signature.type == "f32")
    return Tensor::create(signature.shape);
  auto count = numElements(signature.shape);
  if (!count)
    return count.takeError();
  int64_t bytes = *count * signature.getElementBytes();
  return Tensor::create(llvm::divideCeil(bytes, sizeof(float)));
}

/// `arrays` are the first arguments; the others are made by their initializers
/// and the seed, results are thrown away.
static Expected<Profile> profile(ModuleOp module, StringRef name,
                                 ArrayRef<KasArray> arrays,
                                 KasProfileOptions options) {
  auto signature = FunctionSignature::get(module, name, ElementTypes::Any);
  if (!signature)
    return signature.takeError();
  // Fewer are allowed: a profile does not need the trained weights.
  if (arrays.size() > signature->arguments.size())
    return llvm::createStringError(
        "expected at most " + Twine(signature->arguments.size()) +
        " arguments of '" + name + "', got " + Twine(arrays.size()));
  SmallVector<float *> tensors;
  // Keeps those alive that are made here.
  std::vector<Tensor> made;
  for (auto [index, argument] : llvm::enumerate(signature->arguments)) {
    if (index < arrays.size()) {
      if (Error error = checkArray(arrays[index], argument))
        return error;
      // Functions do not write to their arguments.
      tensors.push_back(
          static_cast<float *>(const_cast<void *>(arrays[index].data)));
      continue;
    }
    auto tensor = makeTensor(argument);
    if (!tensor)
      return tensor.takeError();
    // Zeros are valid numbers of tokens; random bits would not be.
    if (argument.type == "f32")
      argument.initializer.fill(tensor->getValues(), argument.shape,
                                RandomStream(options.seed, argument.name));
    tensors.push_back(tensor->data());
    made.push_back(std::move(*tensor));
  }
  for (const TensorSignature &result : signature->results) {
    auto tensor = makeTensor(result);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(tensor->data());
    made.push_back(std::move(*tensor));
  }
  CPUPipelineOptions pipeline;
  pipeline.threads = options.compile.threads;
  JITOptions jit;
  // As the function would be compiled for use, but for the timestamps.
  jit.optLevel = options.compile.optLevel;
  TimingOptions timing;
  // Exactly as many runs; else as many as fit in the usual time.
  if (options.runs) {
    timing.minRuns = timing.maxRuns = options.runs;
    timing.seconds = 0;
  }
  return profileOnCPU(module, name, tensors, pipeline, jit, timing);
}

/// `arguments` has `numArguments` entries; memory stays the caller's.
bool kasModuleProfile(KasModule *module, const char *name, const char *binding,
                      const KasArray *arguments, size_t numArguments,
                      KasProfileOptions options, KasStream json,
                      KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> program;
  // With a binding `name` is an operator, without one a function.
  if (binding) {
    program = access.makeProgram(name, binding);
    if (!program)
      return false;
  }
  auto result =
      profile(program ? *program : access.getModule(),
              program ? StringRef(operatorFunctionName) : StringRef(name),
              ArrayRef(arguments, numArguments), options);
  if (!result) {
    access.report(result.takeError());
    return false;
  }
  // The three forms of one result: for programs, for people, for trace viewers.
  std::string table, trace;
  llvm::raw_string_ostream tableStream(table), traceStream(trace);
  result->print(tableStream);
  result->writeTrace(traceStream);
  CallbackStream stream(json);
  stream << llvm::json::Value(llvm::json::Object{
      {"profile", result->toJSON()}, {"table", table}, {"trace", trace}});
  return true;
}
