//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "kas/Pipelines/OperatorModule.h"
#include "kas/Reference/Evaluator.h"

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

namespace {
struct Case {
  StringRef className, op, binding;
};
} // namespace

/// The layers of ResNet-18 at 224 and the operators found for them.
static constexpr Case cases[] = {
    {"dense", "kas.conv2d", "N=1,Cin=64,Cout=64,H=56,W=56,k=3"},
    {"dense", "kas.conv2d", "N=1,Cin=128,Cout=128,H=28,W=28,k=3"},
    {"dense", "kas.conv2d", "N=1,Cin=512,Cout=512,H=7,W=7,k=3"},
    {"dense", "kas.conv1x1", "N=1,Cin=256,Cout=256,H=14,W=14"},
    {"dense", "kas.matmul", "M=512,N=512,K=512"},
    {"grouped", "kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=8"},
    {"grouped", "kas.conv2d_depthwise", "N=1,C=64,H=56,W=56,k=3"},
    {"new", "kas.syno_operator1", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
    {"new", "kas.syno_operator2", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
};

/// The largest error relative to the reference evaluator.
static llvm::Expected<double>
check(OperatorOp op, llvm::ArrayRef<Tensor> arguments, const Tensor &result) {
  auto view = [](const Tensor &tensor) {
    return ReferenceTensor{tensor.getShape(), tensor.getValues()};
  };
  llvm::SmallVector<ReferenceTensor> weights;
  for (const Tensor &weight : arguments.drop_front())
    weights.push_back(view(weight));
  Tensor expected(result.getShape());
  if (mlir::failed(evaluateOperator(op, view(arguments.front()), weights,
                                    expected.getValues(),
                                    [&] { return op.emitError(); })))
    return createStringError("the reference rejects the operator");
  return maxRelativeError(result, expected);
}

static Error runCase(mlir::MLIRContext &context, const Case &entry,
                     const BenchSettings &settings, BenchReport &report) {
  std::string name = (entry.op + "<" + entry.binding + ">").str();
  if (!isSelected(settings, name))
    return Error::success();
  auto loaded = BenchOperator::load(context, entry.op, entry.binding);
  if (!loaded)
    return loaded.takeError();
  CPUPipelineOptions pipeline;
  pipeline.threads = settings.threads;
  auto function =
      compileForCPU(*loaded->module, operatorFunctionName, pipeline);
  if (!function)
    return function.takeError();
  auto arguments = function->getSignature().makeArguments({}, /*seed=*/0);
  if (!arguments)
    return arguments.takeError();
  auto results = function->getSignature().makeResults();
  if (!results)
    return results.takeError();
  (*function)(*arguments, *results);
  auto error = check(loaded->op, *arguments, results->front());
  if (!error)
    return error.takeError();

  TimingOptions timing;
  timing.seconds = settings.seconds;
  BenchLine time{name,   "time_ms",     0, "ms", std::nullopt,
                 *error, *error <= 1e-4};
  time.timing = measure([&] { (*function)(*arguments, *results); }, timing);
  time.value = time.timing->median;
  report.print(time);
  report.addToMean(entry.className, time);
  if (loaded->macs == 0)
    return Error::success();
  BenchLine speed{name,        "gflops",     2e-6 * loaded->macs / time.value,
                  "GFLOP/s",   std::nullopt, std::nullopt,
                  std::nullopt};
  report.print(speed);
  report.addToMean(entry.className, speed);
  return Error::success();
}

Error kas::runCPUSuite(mlir::MLIRContext &context,
                       const BenchSettings &settings, BenchReport &report) {
  for (const Case &entry : cases)
    if (Error error = runCase(context, entry, settings, report))
      return error;
  return Error::success();
}
