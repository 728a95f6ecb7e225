//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

/// The arguments that are given, by their names.
static Expected<NamedTensors> copyArrays(const FunctionSignature &signature,
                                         ArrayRef<KasArray> arrays) {
  if (arrays.size() > signature.arguments.size())
    return llvm::createStringError(
        "expected at most " + Twine(signature.arguments.size()) +
        " arguments of '" + signature.name + "', got " + Twine(arrays.size()));
  NamedTensors tensors;
  for (auto [array, argument] : llvm::zip(arrays, signature.arguments)) {
    ArrayRef<int64_t> shape(array.shape, array.rank);
    if (shape != ArrayRef<int64_t>(argument.shape))
      return llvm::createStringError(
          "'" + argument.name + "' must have the shape " +
          shapeToString(argument.shape) + ", got " + shapeToString(shape));
    auto tensor = Tensor::create(shape);
    if (!tensor)
      return tensor.takeError();
    std::copy_n(array.data, tensor->getNumElements(), tensor->data());
    tensors[argument.name] = std::move(*tensor);
  }
  return tensors;
}

static Expected<Profile> profile(ModuleOp module, StringRef name,
                                 ArrayRef<KasArray> arrays,
                                 KasProfileOptions options) {
  auto signature = FunctionSignature::get(module, name);
  if (!signature)
    return signature.takeError();
  auto given = copyArrays(*signature, arrays);
  if (!given)
    return given.takeError();
  auto arguments = signature->makeArguments(*given, options.seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature->makeResults();
  if (!results)
    return results.takeError();
  CPUPipelineOptions pipeline;
  pipeline.threads = options.compile.threads;
  JITOptions jit;
  jit.optLevel = options.compile.optLevel;
  TimingOptions timing;
  if (options.runs) {
    timing.minRuns = timing.maxRuns = options.runs;
    timing.seconds = 0;
  }
  return profileOnCPU(module, name, *arguments, *results, pipeline, jit,
                      timing);
}

bool kasModuleProfile(KasModule *module, const char *name, const char *binding,
                      const KasArray *arguments, size_t numArguments,
                      KasProfileOptions options, KasStream json,
                      KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> program;
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
  std::string table, trace;
  llvm::raw_string_ostream tableStream(table), traceStream(trace);
  result->print(tableStream);
  result->writeTrace(traceStream);
  CallbackStream stream(json);
  stream << llvm::json::Value(llvm::json::Object{
      {"profile", result->toJSON()}, {"table", table}, {"trace", trace}});
  return true;
}
