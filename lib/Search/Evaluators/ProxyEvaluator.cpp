//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluators `fisher` and `proxy`: zero-cost proxies of a candidate in each
// layer of the network that the space was extracted from.
//
// The network runs once, unchanged, to record the inputs and the gradients of
// each layer; a candidate is then scored layer by layer on these records,
// without running the rest of the network again.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/ProxyEvaluator.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Analysis/FanIn.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Networks/Scores/LayerScores.h"
#include "kas/Networks/Sites/Site.h"
#include "kas/Support/Bytecode.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <map>
#include <mutex>

using namespace kas;
using namespace kas::networks;
using namespace kas::search;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

/// A layer of the space, and the symbols' values there.
struct Place {
  unsigned layer;
  Binding binding;
};

/// A network, run once for all evaluators of a search. Each candidate is scored
/// once for all proxies.
class ProxyNetwork {
public:
  /// Threads are disabled: a search has threads of its own.
  ProxyNetwork(const DialectRegistry &registry,
               std::shared_ptr<const SearchProblem> problem)
      : context(registry, MLIRContext::Threading::DISABLED), problem(problem) {
    context.loadAllAvailableDialects();
  }

  /// Runs the network of the module `bytecode`. Must be called once before
  /// `evaluate`. Errors are those of the options.
  Error observe(StringRef bytecode, StringRef space);
  /// The proxy, summed or averaged over the layers. From any thread.
  Expected<double> evaluate(StringRef proxy, const OperatorGraph &graph);

private:
  /// `@layer` with `op` in the place of the layer.
  Expected<OwningOpRef<ModuleOp>> makeCandidate(const OperatorGraph &graph,
                                                const Place &place);
  /// `op` without symbols, in the place of `op`.
  Expected<OperatorOp> makeConcrete(OperatorOp op, const Place &place);
  /// Scores `graph` in all layers and keeps the result in `scores`. Under the
  /// lock.
  Error score(const OperatorGraph &graph);

  /// Of its own: the one of a pass may not allow what compiling needs.
  MLIRContext context;
  std::shared_ptr<const SearchProblem> problem;
  /// Not safe for threads, hence the lock.
  std::unique_ptr<LayerScorer> scorer;
  std::vector<Place> places;
  std::mutex mutex;
  /// By the key of the graph, what has been scored: the evaluators ask one
  /// after the other. Grows with the number of candidates: a few numbers for
  /// each.
  std::map<uint64_t, std::vector<LayerScore>> scores;
};

/// One proxy of a shared network.
class ProxyEvaluator final : public Evaluator {
public:
  ProxyEvaluator(StringRef name, StringRef proxy,
                 std::shared_ptr<ProxyNetwork> network)
      : name(name), proxy(proxy), network(std::move(network)) {}

  llvm::StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }
  Expected<Metrics> evaluate(const Solution &solution) override;

private:
  std::string name, proxy;
  std::shared_ptr<ProxyNetwork> network;
};

} // namespace

/// The binding of the space that the convolution of `layer` is marked with.
/// -kas-extract writes the mark; nothing for a layer of another space or
/// without a mark.
static std::optional<int64_t> findBinding(ModuleOp layer, StringRef space) {
  std::optional<int64_t> found;
  layer.walk([&](Operation *op) {
    auto mark = op->getAttrOfType<DictionaryAttr>(KasDialect::siteAttrName);
    auto symbol = mark ? mark.getAs<FlatSymbolRefAttr>("space") : nullptr;
    auto index = mark ? mark.getAs<IntegerAttr>("binding") : nullptr;
    if (symbol && index && symbol.getValue() == space)
      found = index.getInt();
  });
  return found;
}

/// Layers are those that `LayerScorer` finds in `@forward`.
Error ProxyNetwork::observe(StringRef bytecode, StringRef space) {
  // The module crosses to the context of this object as bytecode: contexts
  // share nothing.
  OwningOpRef<ModuleOp> module = readBytecode(bytecode, &context);
  auto made = LayerScorer::create(*module, "forward", {}, {});
  if (!made)
    return createStringError("cannot run the network for zero-cost proxies: " +
                             llvm::toString(made.takeError()));
  scorer = std::move(*made);
  for (unsigned layer = 0; layer < scorer->getNumLayers(); ++layer)
    if (auto index = findBinding(*scorer->getModule(layer), space);
        // A binding outside of the space belongs to an edited module and is
        // ignored.
        index && *index >= 0 && *index < int64_t(problem->bindings.size()))
      places.push_back({layer, problem->bindings[*index]});
  if (places.empty())
    return createStringError(
        "requires convolutions of '@forward' that are marked as layers of @" +
        space + " (-kas-extract) for zero-cost proxies, got none");
  return Error::success();
}

/// The names of the symbols are those of the problem, as the operator was built
/// from it.
Expected<OperatorOp> ProxyNetwork::makeConcrete(OperatorOp op,
                                                const Place &place) {
  SymbolSet symbols = op.getSymbolSet();
  Binding own;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    own.push_back(
        place.binding[*problem->symbols.lookup(symbols.getName(symbol))]);
  OpBuilder builder(op);
  std::string reason;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  auto concrete =
      specialize(builder, op, own, "concrete", [&] { return op.emitError(); });
  if (failed(concrete))
    return createStringError(reason);
  // Only the concrete one is compiled.
  op.erase();
  return *concrete;
}

/// As `-kas-substitute` writes it. The initializer is `kaiming(f)`, with
/// variance 2 / f per weight. With n weights the product of their variances
/// must be that of a single weight with the operator's fan-in F: each has f = 2
/// (F / 2)^(1/n).
static std::string getInitializer(OperatorOp op) {
  std::string text;
  double fanIn = 2 * std::pow(getFanIn(op, {}) / 2,
                              1.0 / std::max(op.getNumWeights(), 1u));
  llvm::raw_string_ostream(text)
      << "kaiming(" << llvm::format("%.6g", fanIn) << ")";
  return text;
}

/// Sizes are constants here.
static RankedTensorType getTensorType(ArrayRef<SizeAttr> sizes, Type element) {
  return RankedTensorType::get(
      llvm::map_to_vector(
          sizes, [](SizeAttr size) { return *size.getConstantValue(); }),
      element);
}

/// The function has the signature that layers have: (data, weights..., init) ->
/// init + op(data, weights...).
Expected<OwningOpRef<ModuleOp>>
ProxyNetwork::makeCandidate(const OperatorGraph &graph, const Place &place) {
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  // Built symbolically, then specialized to the layer.
  Expected<OperatorOp> op = makeConcrete(
      buildOperator(builder, loc, "candidate", *problem, graph), place);
  if (!op)
    return op.takeError();
  OwningOpRef<ModuleOp> layer = scorer->getModule(place.layer);
  FunctionType old =
      layer->lookupSymbol<func::FuncOp>(layerFunctionName).getFunctionType();
  // The type of the layer that the candidate replaces decides the element type.
  Type element = cast<ShapedType>(old.getInput(0)).getElementType();
  SmallVector<Type> types{getTensorType(op->getDataSizes(), element)};
  for (ArrayRef<SizeAttr> sizes : op->getWeightSizes())
    types.push_back(getTensorType(sizes, element));
  Type result = getTensorType(op->getOutputSizes(), element);
  types.push_back(result);
  // Data and result must fit the network; weights are the candidate's own.
  if (types.front() != old.getInput(0) || result != old.getResult(0))
    return createStringError("requires operators of the shapes of layer '" +
                             scorer->getName(place.layer) + "'");
  auto function = func::FuncOp::create(builder, loc, layerFunctionName,
                                       builder.getFunctionType(types, result));
  Block *block = function.addEntryBlock();
  unsigned last = types.size() - 1;
  // Names and initializers of arguments tell the scorer what to fill in.
  for (unsigned index = 0; index <= last; ++index) {
    std::string argument = index == 0 ? "data"
                           : index == last
                               ? "init"
                               : "weight" + std::to_string(index - 1);
    function.setArgAttr(index, KasDialect::argumentNameAttrName,
                        builder.getStringAttr(argument));
    if (index != 0 && index != last)
      function.setArgAttr(index, KasDialect::initializerAttrName,
                          builder.getStringAttr(getInitializer(*op)));
  }
  builder.setInsertionPointToEnd(block);
  // A `kas.apply` of the operator without symbols, so the binding is empty.
  Value applied = ApplyOp::create(
      builder, loc, result, op->getSymName(),
      BindingAttr::getNormal(&context, {}), block->getArgument(0),
      ValueRange(block->getArguments()).drop_front().drop_back());
  // Layers accumulate into `init`, which holds the bias.
  Value init = block->getArgument(last);
  Value sum =
      linalg::AddOp::create(builder, loc, ValueRange{applied, init}, init)
          .getResult(0);
  func::ReturnOp::create(builder, loc, sum);
  // The scorer takes linalg. The operator itself is not needed once it is
  // inlined.
  PassManager manager(&context);
  manager.addPass(createKasToLinalgPass());
  manager.addPass(createKasEraseOperatorsPass());
  if (failed(manager.run(*module)))
    return createStringError("cannot be lowered to linalg");
  return module;
}

/// All layers or none: a failure in one layer fails the candidate.
Error ProxyNetwork::score(const OperatorGraph &graph) {
  std::vector<LayerScore> found;
  for (const Place &place : places) {
    Expected<OwningOpRef<ModuleOp>> candidate = makeCandidate(graph, place);
    if (!candidate)
      return candidate.takeError();
    Expected<LayerScore> score = scorer->score(place.layer, **candidate);
    if (!score)
      return score.takeError();
    found.push_back(*score);
  }
  scores[graph.key()] = std::move(found);
  return Error::success();
}

Expected<double> ProxyNetwork::evaluate(StringRef proxy,
                                        const OperatorGraph &graph) {
  std::lock_guard<std::mutex> lock(mutex);
  // Proxies of one candidate come one after the other, so most calls find it.
  if (!scores.count(graph.key()))
    if (Error error = score(graph))
      return error;
  double sum = 0;
  for (auto [place, score] : llvm::zip_equal(places, scores[graph.key()]))
    sum += getProxy(proxy, score, scorer->getOriginal(place.layer));
  // These two are scores per layer that do not add up.
  if (proxy == "ensemble" || proxy == "naswot")
    sum /= places.size();
  // A layer with zero variance can give NaN, which would break comparisons.
  if (!std::isfinite(sum))
    return createStringError("requires a finite score, got %g", sum);
  return sum;
}

Expected<Metrics> ProxyEvaluator::evaluate(const Solution &solution) {
  Expected<double> value =
      network->evaluate(proxy, static_cast<const OperatorGraph &>(solution));
  if (!value)
    return value.takeError();
  return Metrics{{proxy == "fisher" ? "fisher" : "proxy_" + proxy, *value}};
}

/// The network around `space`, shared by all evaluators that are alive. Keyed
/// by the space and the whole module. Weak references: the network goes with
/// the last evaluator that uses it.
static Expected<std::shared_ptr<ProxyNetwork>>
getNetwork(SpaceOp space, std::shared_ptr<const SearchProblem> problem) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<ProxyNetwork>> known;
  std::string bytecode = writeBytecode(space->getParentOfType<ModuleOp>());
  // Held while the network runs: a second evaluator waits instead of running it
  // again.
  std::lock_guard<std::mutex> lock(mutex);
  // Keys are whole modules: those of networks that are gone go as well.
  for (auto entry = known.begin(); entry != known.end();)
    entry = entry->second.expired() ? known.erase(entry) : std::next(entry);
  std::string key = space.getSymName().str() + "\n" + bytecode;
  auto entry = known.find(key);
  if (entry != known.end())
    // The last evaluator may just have gone.
    if (std::shared_ptr<ProxyNetwork> network = entry->second.lock())
      return network;
  auto network = std::make_shared<ProxyNetwork>(
      space->getContext()->getDialectRegistry(), std::move(problem));
  if (Error error = network->observe(bytecode, space.getSymName()))
    return error;
  known[key] = network;
  return network;
}

/// `fisher` is short for `proxy=fisher`; both give the metric `fisher`.
void kas::search::registerProxyEvaluators() {
  auto add = [](const std::string &name, StringRef proxy) {
    registerEvaluator(
        name,
        [name, proxy](const EvaluatorSettings &settings)
            -> Expected<std::unique_ptr<Evaluator>> {
          if (!settings.problem || !settings.space)
            return createStringError(
                "requires a kas.space for the evaluator '" + name + "'");
          auto network = getNetwork(settings.space, settings.problem);
          if (!network)
            return network.takeError();
          return std::make_unique<ProxyEvaluator>(name, proxy,
                                                  std::move(*network));
        });
  };
  add("fisher", "fisher");
  for (StringRef proxy : getProxyNames())
    add(("proxy=" + proxy).str(), proxy);
}
