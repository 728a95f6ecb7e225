//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores what could take the place of a layer by zero-cost proxies: runs the
// network once, then each replacement by itself on what was observed.
// A candidate for one layer is scored without running the network again: the
// scorer keeps the layer's input and the gradient of its output
// (docs/guide/gradients.md, "One layer at a time"). Equal candidates of layers
// of one shape share compiled code, by their text.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Scores/LayerScores.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Support/Bytecode.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

ArrayRef<llvm::StringLiteral> kas::networks::getProxyNames() {
  static constexpr llvm::StringLiteral names[] = {
      "fisher", "snip",   "grad-norm", "synflow",
      "naswot", "params", "flops",     "ensemble"};
  return names;
}

/// `original` is the score of the layer itself, which `ensemble` divides by.
double kas::networks::getProxy(StringRef name, const LayerScore &score,
                               const LayerScore &original) {
  if (name == "fisher")
    return score.fisher;
  if (name == "snip")
    return score.snip;
  if (name == "grad-norm")
    return score.gradNorm;
  if (name == "synflow")
    return score.synflow;
  if (name == "naswot")
    return score.naswot;
  if (name == "params")
    return score.params;
  if (name == "flops")
    return 2 * score.macs;
  assert(name == "ensemble" && "the names are those of getProxyNames");
  // The mean of logarithms: scores of different units are comparable as ratios.
  double sum = 0;
  for (double LayerScore::*member :
       {&LayerScore::fisher, &LayerScore::snip, &LayerScore::gradNorm,
        &LayerScore::synflow})
    sum += std::log(score.*member / original.*member);
  return sum / 4;
}

//===----------------------------------------------------------------------===//
// The network
//===----------------------------------------------------------------------===//

/// One class for each sample, in turn from one that the seed says.
static Tensor makeLabels(ArrayRef<int64_t> shape, uint64_t seed) {
  Tensor labels(shape);
  RandomStream random(seed, "labels");
  for (int64_t sample = 0; sample < shape[0]; ++sample) {
    auto label =
        // `uniform` may round up to 1.
        std::min<int64_t>(random.uniform(sample) * shape[1], shape[1] - 1);
    labels.getValues()[sample * shape[1] + label] = 1;
  }
  return labels;
}

/// What failed where a function reports by diagnostics.
static Error takeDiagnostics(std::string &text, StringRef what) {
  return createStringError(what + (text.empty() ? "" : ": " + text));
}

/// See `eraseUnusedOperands`.
static LogicalResult clean(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  return applyPatternsGreedily(function, std::move(patterns));
}

static CPUPipelineOptions getPipeline(const LayerScoreOptions &options) {
  CPUPipelineOptions pipeline;
  pipeline.threads = options.threads;
  return pipeline;
}

/// Runs the network once with all layers' inputs and gradients as results.
/// SynFlow has inputs and weights of its own, so it takes another run.
Expected<std::vector<LayerScorer::Observed>>
LayerScorer::observe(ModuleOp module, StringRef name, const NamedTensors &given,
                     bool synflow) {
  OwningOpRef<ModuleOp> copy = module.clone();
  auto function = copy->lookupSymbol<func::FuncOp>(name);
  if (!function || function.isDeclaration())
    return createStringError("requires a function with a body, got '" + name +
                             "'");
  std::string text;
  // The functions called report by diagnostics; the last one is the reason.
  ScopedDiagnosticHandler handler(module.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    text = diagnostic.str();
                                    return success();
                                  });
  llvm::SmallVector<CutLayer> cut;
  // Nothing of the caller's module changes: `copy` is ours.
  auto observed = makeObservedFunction(
      function, "observed", {.normalize = options.normalize}, synflow, cut);
  if (failed(observed) || failed(clean(*observed)))
    return takeDiagnostics(text, "cannot score the layers of the network");
  function.erase();
  // LLVM's loop passes take minutes for a function of dozens of layers that
  // runs once; its back end alone takes seconds.
  auto compiled = compileForCPU(*copy, "observed", getPipeline(options),
                                {.optLevel = options.onlyFisher ? 0u : 1u});
  if (!compiled)
    return compiled.takeError();
  NamedTensors all;
  for (const auto &[key, tensor] : given)
    all[key] = tensor.clone();
  const FunctionSignature &signature = compiled->getSignature();
  // Labels by the seed, unless the caller has some.
  if (!synflow && !all.count("labels"))
    all["labels"] = makeLabels(signature.arguments.back().shape, options.seed);
  auto arguments = signature.makeArguments(all, options.seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  if (llvm::Error error = (*compiled)(*arguments, *results))
    return error;
  // Results are the logits, the Fisher Potentials, and the tensors of layers.
  if (!synflow)
    fisher = ArrayRef<float>((*results)[1].getValues()).vec();
  // Layers may share tensors: one copy for all of them.
  auto share = [](SmallVector<Tensor> &tensors) {
    return llvm::map_to_vector(tensors, [](Tensor &tensor) {
      return std::make_shared<Tensor>(std::move(tensor));
    });
  };
  auto taken = share(*arguments), returned = share(*results);
  std::vector<Observed> result;
  for (const CutLayer &layer : cut) {
    auto get = [&](unsigned index) {
      CutLayer::Place place = layer.places[index];
      return (place.isArgument ? taken : returned)[place.index];
    };
    // Data, weight, initial value, gradient.
    result.push_back({get(0), get(1), get(2), get(3)});
  }
  if (!synflow)
    layers = std::move(cut);
  return result;
}

/// Observes the network, then scores every layer as it is, for ratios.
Expected<std::unique_ptr<LayerScorer>>
LayerScorer::create(ModuleOp module, StringRef function,
                    const NamedTensors &given,
                    const LayerScoreOptions &options) {
  std::unique_ptr<LayerScorer> scorer(new LayerScorer(options));
  auto plain = scorer->observe(module, function, given, /*synflow=*/false);
  if (!plain)
    return plain.takeError();
  scorer->plain = std::move(*plain);
  if (!options.onlyFisher) {
    auto flow = scorer->observe(module, function, given, /*synflow=*/true);
    if (!flow)
      return flow.takeError();
    scorer->flow = std::move(*flow);
  }
  for (unsigned layer = 0; layer < scorer->getNumLayers(); ++layer) {
    auto score = scorer->score(layer, *scorer->layers[layer].module);
    if (!score)
      return score.takeError();
    scorer->originals.push_back(*score);
  }
  return scorer;
}

/// A copy of the layer as it is, for making candidates from.
OwningOpRef<ModuleOp> LayerScorer::getModule(unsigned layer) const {
  return OwningOpRef<ModuleOp>(
      cast<ModuleOp>(layers[layer].module.get()->clone()));
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Multiply-adds: points of operations that reduce, and of operators.
static double countMacs(ModuleOp module) {
  double macs = 0;
  module.walk([&](ApplyOp apply) {
    if (FailureOr<Cost> cost = getCost(apply); succeeded(cost))
      macs += cost->macs;
  });
  module.walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() == 0)
      return;
    double points = 1;
    for (int64_t size : op.getStaticLoopRanges())
      points *= size;
    macs += points;
  });
  return macs;
}

unsigned LayerScorer::getNumCompiled() const {
  std::lock_guard<std::mutex> lock(cache->mutex);
  return cache->entries.size();
}

/// A scorer in another context with the same observations and compiled code,
/// for another thread; contexts cannot share operations, so layers go through
/// bytecode.
std::unique_ptr<LayerScorer> LayerScorer::share(MLIRContext &context) const {
  std::unique_ptr<LayerScorer> other(new LayerScorer(options));
  for (const CutLayer &layer : layers)
    other->layers.push_back(
        {layer.name, layer.batch, layer.spatial, layer.places,
         readBytecode(writeBytecode(*layer.module), &context)});
  other->plain = plain;
  other->flow = flow;
  other->fisher = fisher;
  other->originals = originals;
  other->cache = cache;
  return other;
}

/// Not under the lock: compiling takes a second, and others need the cache
/// meanwhile.
Expected<LayerScorer::Compiled *> LayerScorer::compile(unsigned layer,
                                                       ModuleOp candidate) {
  // The text is the same for layers of one shape: it has no names of the
  // network.
  std::string key;
  llvm::raw_string_ostream(key) << candidate;
  {
    std::lock_guard<std::mutex> lock(cache->mutex);
    if (auto found = cache->entries.find(key); found != cache->entries.end())
      return found->second.get();
  }
  auto made = recompile(layer, candidate);
  if (!made)
    return made.takeError();
  // Another thread may have been faster.
  std::lock_guard<std::mutex> lock(cache->mutex);
  return cache->entries.try_emplace(key, std::move(*made)).first->second.get();
}

/// `candidate` has a function of data, weights and the initial value of the
/// result.
Expected<std::unique_ptr<LayerScorer::Compiled>>
LayerScorer::recompile(unsigned layer, ModuleOp candidate) {
  OwningOpRef<ModuleOp> copy = candidate.clone();
  auto function = copy->lookupSymbol<func::FuncOp>(layerFunctionName);
  if (!function || function.getNumArguments() < 2)
    return createStringError("requires a candidate with a function '" +
                             layerFunctionName + "' of data, weights and init");
  double macs = countMacs(candidate), params = 0;
  // Weights are between the data and the initial value.
  for (Type type : function.getArgumentTypes().drop_front().drop_back())
    params += cast<ShapedType>(type).getNumElements();
  std::string text;
  ScopedDiagnosticHandler handler(candidate.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    text = diagnostic.str();
                                    return success();
                                  });
  auto make = [&](StringRef name,
                  bool normalize) -> Expected<CompiledFunction> {
    auto scores = (options.onlyFisher ? makeLayerFisherFunction
                                      : makeLayerScoreFunction)(
        function, name, layers[layer].batch, layers[layer].spatial, normalize);
    if (failed(scores) || failed(clean(*scores)))
      return takeDiagnostics(text, "cannot score the candidate");
    return compileForCPU(*copy, name, getPipeline(options),
                         {.optLevel = options.onlyFisher ? 0u : 1u});
  };
  // With normalization also a function without it, since SynFlow has none.
  auto plain = make("scores", options.normalize);
  if (!plain)
    return plain.takeError();
  auto made = std::make_unique<Compiled>(
      Compiled{std::move(*plain), std::nullopt, params, macs});
  if (options.normalize && !options.onlyFisher) {
    auto bare = make("bare_scores", false);
    if (!bare)
      return bare.takeError();
    made->bare.emplace(std::move(*bare));
  }
  return made;
}

/// The layer's own tensors where the candidate has arguments of these names;
/// other weights are drawn by their initializers.
Expected<SmallVector<Tensor>> LayerScorer::run(const CompiledFunction &function,
                                               unsigned layer,
                                               const Observed &observed,
                                               bool magnitudes) {
  NamedTensors given;
  const FunctionSignature &signature = function.getSignature();
  auto give = [&](StringRef name, const Tensor &tensor) {
    if (llvm::any_of(signature.arguments, [&](const TensorSignature &argument) {
          return argument.name == name;
        }))
      given[name.str()] = tensor.clone();
  };
  give("data", *observed.data);
  give("weight", *observed.weight);
  give("init", *observed.init);
  give("gradient", *observed.gradient);
  // Other weights for each layer.
  auto arguments =
      // A prime far above the number of layers, so that seeds of runs do not
      // meet.
      signature.makeArguments(given, options.seed + 1000003 * (layer + 1));
  if (!arguments)
    return arguments.takeError();
  // SynFlow takes magnitudes of weights: all but the data and, last, the
  // initial value and the gradient.
  if (magnitudes)
    for (Tensor &tensor : MutableArrayRef(*arguments).drop_front().drop_back(2))
      for (float &value : tensor.getValues())
        value = std::abs(value);
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  if (llvm::Error error = function(*arguments, *results))
    return error;
  return std::move(*results);
}

/// The order of values is that of `makeLayerScoreFunction`.
Expected<LayerScore> LayerScorer::score(unsigned layer, ModuleOp candidate) {
  Expected<Compiled *> compiled = compile(layer, candidate);
  if (!compiled)
    return compiled.takeError();
  auto results = run((*compiled)->plain, layer, plain[layer], false);
  if (!results)
    return results.takeError();
  if (options.onlyFisher)
    return LayerScore{.fisher = (*results)[0].getValues()[0],
                      .params = (*compiled)->params,
                      .macs = (*compiled)->macs};
  auto flowed = run((*compiled)->bare ? *(*compiled)->bare : (*compiled)->plain,
                    layer, flow[layer], true);
  if (!flowed)
    return flowed.takeError();
  ArrayRef<float> values = (*results)[0].getValues();
  LayerScore score;
  score.fisher = values[0];
  score.snip = values[1];
  score.gradNorm = std::sqrt(values[2]);
  score.synflow = (*flowed)[0].getValues()[1];
  score.naswot =
      getLogDeterminant((*results)[1].getValues(), (*results)[1].getShape()[0]);
  score.params = (*compiled)->params;
  score.macs = (*compiled)->macs;
  return score;
}
