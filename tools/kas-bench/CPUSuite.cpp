//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "Peak.h"
#include "Peer.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Reference/Evaluator.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

namespace {
struct Case {
  StringRef className, op, binding;
};
} // namespace

/// The layers of ResNets at 224, thin and wide groups, and operators that no
/// library knows.
static constexpr Case cases[] = {
    {"dense", "kas.conv2d", "N=1,Cin=64,Cout=64,H=56,W=56,k=3"},
    {"dense", "kas.conv2d", "N=1,Cin=128,Cout=128,H=28,W=28,k=3"},
    {"dense", "kas.conv2d", "N=1,Cin=256,Cout=256,H=14,W=14,k=3"},
    {"dense", "kas.conv2d", "N=1,Cin=512,Cout=512,H=7,W=7,k=3"},
    {"dense", "kas.conv2d_strided", "N=1,Cin=64,Cout=128,H=56,W=56,k=3,s=2"},
    {"dense", "kas.conv2d_strided", "N=1,Cin=3,Cout=64,H=224,W=224,k=7,s=2"},
    {"dense", "kas.conv1x1", "N=1,Cin=64,Cout=256,H=56,W=56"},
    {"dense", "kas.conv1x1", "N=1,Cin=256,Cout=64,H=56,W=56"},
    {"dense", "kas.conv1x1", "N=1,Cin=512,Cout=128,H=28,W=28"},
    {"dense", "kas.conv1x1", "N=1,Cin=1024,Cout=256,H=14,W=14"},
    {"dense", "kas.conv1x1", "N=1,Cin=2048,Cout=512,H=7,W=7"},
    {"dense", "kas.matmul", "M=512,N=512,K=512"},
    {"grouped", "kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2"},
    {"grouped", "kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=4"},
    {"grouped", "kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=8"},
    {"grouped", "kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=16"},
    {"grouped", "kas.conv2d_grouped", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=32"},
    {"grouped", "kas.conv2d_grouped",
     "N=1,Cin=256,Cout=256,H=14,W=14,k=3,g=32"},
    {"grouped", "kas.conv2d_depthwise", "N=1,C=64,H=56,W=56,k=3"},
    {"grouped", "kas.conv2d_depthwise", "N=1,C=256,H=14,W=14,k=3"},
    {"grouped", "kas.conv2d_depthwise", "N=1,C=512,H=7,W=7,k=3"},
    {"grouped", "kas.conv2d_depthwise", "N=1,C=64,H=56,W=56,k=5"},
    {"grouped", "kas.conv2d_depthwise", "N=1,C=64,H=56,W=56,k=7"},
    {"grouped", "kas.conv2d_dilated",
     "N=1,Cin=64,Cout=64,H=56,W=56,k=3,d=2,p=2"},
    {"grouped", "kas.shift_conv2d", "N=1,Cin=64,Cout=64,H=56,W=56"},
    {"new", "kas.syno_operator1", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
    {"new", "kas.syno_operator2", "N=1,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
};

/// What the reference evaluator computes.
static llvm::Expected<Tensor> evaluate(OperatorOp op,
                                       llvm::ArrayRef<Tensor> arguments,
                                       llvm::ArrayRef<int64_t> shape) {
  auto view = [](const Tensor &tensor) {
    return ReferenceTensor{tensor.getShape(), tensor.getValues()};
  };
  llvm::SmallVector<ReferenceTensor> weights;
  for (const Tensor &weight : arguments.drop_front())
    weights.push_back(view(weight));
  Tensor expected(shape);
  if (mlir::failed(evaluateOperator(op, view(arguments.front()), weights,
                                    expected.getValues(),
                                    [&] { return op.emitError(); })))
    return createStringError("the reference rejects the operator");
  return expected;
}

/// The layer that libraries know the case as.
static Layer getLayer(const Case &entry, const FunctionSignature &signature) {
  static constexpr StringRef known[] = {
      "kas.matmul",         "kas.conv2d",         "kas.conv2d_strided",
      "kas.conv1x1",        "kas.conv2d_grouped", "kas.conv2d_depthwise",
      "kas.conv2d_dilated", "kas.conv1x1_strided"};
  Layer layer;
  if (!llvm::is_contained(known, entry.op))
    return layer;
  layer.kind =
      entry.op == "kas.matmul" ? Layer::Kind::Matmul : Layer::Kind::Convolution;
  layer.input = signature.arguments[0].shape;
  layer.weight = signature.arguments[1].shape;
  layer.output = signature.results[0].shape;
  llvm::SmallVector<StringRef> parts;
  entry.binding.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, value] = part.split('=');
    int64_t number = 1;
    value.getAsInteger(10, number);
    if (name == "g")
      layer.groups = number;
    else if (name == "s")
      layer.stride = number;
    else if (name == "d")
      layer.dilation = number;
  }
  if (entry.op == "kas.conv2d_depthwise")
    layer.groups = layer.input[1];
  return layer;
}

namespace {
/// One implementation of the case that is measured.
struct Contender {
  std::string name;
  std::function<void()> run;
  double error = 0;
};
} // namespace

/// Checks the outputs, times all in turn together with the peak of the machine,
/// and prints what they reach. The best of a peer's variants is its own.
static void compare(StringRef name, const Case &entry, int64_t macs,
                    llvm::MutableArrayRef<Contender> contenders,
                    TimedFunction &peak, const BenchSettings &settings,
                    BenchReport &report) {
  TimingOptions options;
  options.seconds = settings.seconds;
  llvm::SmallVector<std::function<void()>> functions =
      llvm::map_to_vector(contenders, [](Contender &c) { return c.run; });
  functions.push_back([&] { peak.run(); });
  llvm::SmallVector<Timing> timings = measureInterleaved(functions, options);
  double peakGflops = 1e-6 * peakFlops / timings.back().min;
  double gflop = 2e-9 * static_cast<double>(macs);
  double best = 0;
  for (auto [contender, timing] :
       llvm::zip_equal(contenders, llvm::ArrayRef(timings).drop_back())) {
    auto print = [&](StringRef metric, double value, StringRef unit,
                     bool isTime = false) {
      BenchLine line{name.str(), metric.str(), value, unit.str()};
      line.implementation = contender.name;
      if (isTime) {
        line.timing = timing;
        line.maxRelativeError = contender.error;
        line.ok = contender.error <= 1e-4;
      }
      report.print(line);
      if (contender.name == "kas")
        report.addToMean(entry.className, line);
    };
    print("time_ms", timing.median, "ms", /*isTime=*/true);
    if (macs != 0) {
      double gflops = 1e3 * gflop / timing.median;
      print("gflops", gflops, "GFLOP/s");
      print("share_of_peak", gflops / (peakGflops * settings.threads), "");
    }
    if (contender.name != "kas")
      best = best == 0 ? timing.median : std::min(best, timing.median);
  }
  if (best == 0)
    return;
  BenchLine ratio{name.str(), "ratio_to_best_peer", best / timings[0].median,
                  ""};
  report.print(ratio);
  report.addToMean(entry.className, ratio);
}

static Error runCase(mlir::MLIRContext &context, const Case &entry,
                     TimedFunction &peak, const BenchSettings &settings,
                     BenchReport &report) {
  std::string name = (entry.op + "<" + entry.binding + ">").str();
  if (!isSelected(settings, name))
    return Error::success();
  auto loaded = BenchOperator::load(context, entry.op, entry.binding);
  if (!loaded)
    return loaded.takeError();
  CPUPipelineOptions pipeline;
  pipeline.threads = settings.threads;
  pipeline.target = settings.target;
  // The others' weights are packed ahead, too.
  pipeline.prepackWeights = true;
  auto function =
      compileForCPU(*loaded->module, operatorFunctionName, pipeline);
  if (!function)
    return function.takeError();
  const FunctionSignature &signature = function->getSignature();
  auto arguments = signature.makeArguments({}, /*seed=*/0);
  if (!arguments)
    return arguments.takeError();
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();

  if (Error error = function->prepack(*arguments))
    return error;
  std::vector<std::unique_ptr<PeerLayer>> peers;
  if (llvm::is_contained(settings.peers, "onednn"))
    peers = makeOneDNNLayers(getLayer(entry, signature), (*arguments)[0],
                             (*arguments)[1], settings.threads, settings.isa);
  llvm::SmallVector<Contender> contenders;
  contenders.push_back(
      {"kas", [&] { llvm::cantFail((*function)(*arguments, *results)); }});
  for (std::unique_ptr<PeerLayer> &peer : peers)
    contenders.push_back({peer->getName().str(),
                          [&results, &peer] { peer->run(results->front()); }});
  auto expected = evaluate(loaded->op, *arguments, results->front().getShape());
  if (!expected)
    return expected.takeError();
  for (Contender &contender : contenders) {
    llvm::fill(results->front().getValues(), 0.0f);
    contender.run();
    contender.error = maxRelativeError(results->front(), *expected);
  }
  compare(name, entry, loaded->existingMacs, contenders, peak, settings,
          report);
  return Error::success();
}

Error kas::runCPUSuite(mlir::MLIRContext &context,
                       const BenchSettings &settings, BenchReport &report) {
  report.setISA(settings.isa);
  auto peak = compilePeak(context, settings.target);
  if (!peak)
    return peak.takeError();
  for (const Case &entry : cases)
    if (Error error = runCase(context, entry, *peak, settings, report))
      return error;
  return Error::success();
}
