//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times of transformed layers, measured once for each shape and program.
//
// Timing a layer alone ignores what neighbours leave in the caches, but there
// are far fewer different layers than configurations: after a while nearly
// every configuration is a sum of known times.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Networks/LayerTimes.h"
#include "kas/Networks/Scores/Proxies.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Bytecode.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::search;
using namespace mlir;
using llvm::createStringError;
using llvm::Expected;

namespace {

/// A layer as an evaluator takes it. Evaluators take solutions, so the text is
/// wrapped as one.
struct LayerText final : Solution {
  explicit LayerText(StringRef text) : text(text) {}

  std::string text;

  /// Never used: no searcher sees this solution.
  uint64_t key() const override { return 0; }
};

} // namespace

/// What makes texts, one at a time. MLIR contexts are not safe to be used by
/// several threads; `mutex` guards this one. Texts are made quickly compared to
/// measuring.
struct LayerTimes::Builder {
  explicit Builder(const DialectRegistry &registry)
      : context(registry, MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  std::mutex mutex;
  MLIRContext context;
  /// By shape. Modules with `@layer`, with a bias, not transformed.
  std::vector<OwningOpRef<ModuleOp>> modules;
};

LayerTimes::LayerTimes(std::shared_ptr<const NetworkProblem> problem)
    : problem(std::move(problem)) {}

LayerTimes::~LayerTimes() = default;

/// Lets `@layer(data, weight, init)` add to a value per channel, as networks
/// do, instead of to a tensor. A tensor as `init` would be read from memory in
/// full, which costs time that the layer in the network does not take: there
/// the bias is broadcast and usually becomes part of the stage.
static void makeBias(ModuleOp module) {
  auto layer = module.lookupSymbol<func::FuncOp>(layerFunctionName);
  Block &block = layer.getBody().front();
  unsigned index = layer.getNumArguments() - 1;
  BlockArgument init = block.getArgument(index);
  auto type = cast<RankedTensorType>(init.getType());
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  Location loc = layer.getLoc();
  // One value per channel, dimension 1 of NCHW.
  auto biasType =
      RankedTensorType::get(type.getDimSize(1), type.getElementType());
  Value bias = block.addArgument(biasType, loc);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  // All dimensions but the channel are broadcast.
  SmallVector<int64_t> dimensions;
  for (int64_t dimension = 0; dimension < type.getRank(); ++dimension)
    if (dimension != 1)
      dimensions.push_back(dimension);
  Value filled =
      linalg::BroadcastOp::create(builder, loc, bias, empty, dimensions)
          ->getResult(0);
  init.replaceAllUsesWith(filled);
  // The old argument has no uses left.
  block.eraseArgument(index);
  layer.setFunctionType(builder.getFunctionType(
      block.getArgumentTypes(), layer.getFunctionType().getResults()));
}

/// The layers as they are come first: without their times no ratio can be
/// given, so a failure here is an error of the search.
Expected<std::unique_ptr<LayerTimes>>
LayerTimes::create(std::shared_ptr<const NetworkProblem> problem,
                   const DialectRegistry &registry,
                   const EvaluatorSettings &settings,
                   const EvaluatorFactory &factory) {
  std::unique_ptr<LayerTimes> times(new LayerTimes(problem));
  times->builder = std::make_unique<Builder>(registry);
  for (const std::string &bytecode : problem->modules) {
    auto module = readBytecode(bytecode, &times->builder->context);
    assert(module && "a layer was written before");
    makeBias(*module);
    times->builder->modules.push_back(std::move(module));
  }
  // The evaluator gets functions instead of operators.
  EvaluatorSettings own = settings;
  own.describe = [](const Solution &solution) -> Expected<CandidateText> {
    return CandidateText{
        "function", static_cast<const LayerText &>(solution).text, {}, {}};
  };
  auto evaluator = factory(own);
  if (!evaluator)
    return evaluator.takeError();
  times->evaluator = std::move(*evaluator);
  // Empty programs: the layers as they are.
  NetworkConfiguration dense;
  dense.programs.resize(problem->layers.size());
  Expected<double> original = times->getTime(dense);
  if (!original)
    return createStringError("cannot time the layers of the network: " +
                             llvm::toString(original.takeError()));
  times->original = *original;
  return times;
}

/// The module with the transformed layer, as text. `program` must qualify.
Expected<std::string> LayerTimes::print(unsigned shape,
                                        ArrayRef<ProgramStep> program) {
  std::lock_guard<std::mutex> lock(builder->mutex);
  // Steps change their operands, so they work on a clone.
  OwningOpRef<ModuleOp> module =
      cast<ModuleOp>(ModuleOp(*builder->modules[shape])->clone());
  auto layer = module->lookupSymbol<func::FuncOp>(layerFunctionName);
  IRRewriter rewriter(&builder->context);
  std::string reason;
  if (failed(applyProgram(rewriter, findConvolutions(layer).front(), program,
                          reason)))
    return createStringError(reason);
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}

/// Any failure becomes part of the outcome, so that it is remembered as well.
LayerTimes::Outcome LayerTimes::measure(const std::string &text) {
  Expected<Metrics> metrics = evaluator->evaluate(LayerText(text));
  if (!metrics)
    return {0, llvm::toString(metrics.takeError())};
  auto latency = metrics->find("latency_ms");
  if (latency == metrics->end())
    return {0, "the runner reports no latency_ms"};
  return {latency->second, {}};
}

/// Two caches: by shape and program, to avoid making the text, and by text,
/// since different programs may lead to the same loops. Threads that come to a
/// text that is being measured wait for it.
LayerTimes::Outcome LayerTimes::getOutcome(unsigned shape,
                                           ArrayRef<ProgramStep> program) {
  auto key = std::pair(shape, toString(program));
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto found = known.find(key); found != known.end())
      return found->second;
  }
  Expected<std::string> text = print(shape, program);
  if (!text)
    return {0, llvm::toString(text.takeError())};
  // The first thread to come measures and fulfills the promise.
  std::promise<Outcome> promise;
  std::shared_future<Outcome> future;
  bool isFirst = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto [entry, isNew] = timed.try_emplace(*text);
    if (isNew)
      entry->second = promise.get_future().share();
    future = entry->second;
    isFirst = isNew;
  }
  // Outside of the lock: measuring takes seconds.
  if (isFirst)
    promise.set_value(measure(*text));
  Outcome outcome = future.get();
  std::lock_guard<std::mutex> lock(mutex);
  known[key] = outcome;
  return outcome;
}

/// Stops at the first layer without a time.
Expected<double>
LayerTimes::getTime(const NetworkConfiguration &configuration) {
  double sum = 0;
  for (auto [layer, program] :
       llvm::zip_equal(problem->layers, configuration.programs)) {
    Outcome outcome = getOutcome(layer.shape, program);
    if (!outcome.failure.empty())
      return createStringError("layer '" + layer.name + "' by '" +
                               toString(program) + "': " + outcome.failure);
    sum += outcome.milliseconds;
  }
  return sum;
}

/// Distinct texts, including failures and those under way.
uint64_t LayerTimes::getNumTimed() const {
  std::lock_guard<std::mutex> lock(mutex);
  return timed.size();
}
