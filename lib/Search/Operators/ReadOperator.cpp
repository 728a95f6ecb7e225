//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads an operator from IR as a graph of the search.
//
// Unlike Membership.cpp, nothing is compared with a space: any operator that
// the evaluators can handle becomes a graph with a problem of its own.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/ReadOperator.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"
#include <map>
#include <set>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

namespace {
/// Symbols are those of the layers, by name.
class GraphReader {
public:
  GraphReader(OperatorOp op, const SymbolSet &symbols)
      : op(op), symbols(symbols) {}

  Expected<std::shared_ptr<OperatorGraph>> read() {
    for (mlir::Value output : op.getOutputs())
      add(output, CoordKind::Output).amount =
          llvm::cast<mlir::BlockArgument>(output).getArgNumber();
    // Reductions come before all that is made of them.
    for (auto reduce : op.getBody().getOps<ReduceOp>())
      add(reduce.getResult(), CoordKind::Reduce);
    for (mlir::Operation &step : op.getBody().front().without_terminator())
      if (Error error = readStep(step))
        return std::move(error);
    readYield();
    return std::move(graph);
  }

private:
  /// All symbols are known: `checkSymbols` came first.
  Size convert(SizeAttr size) const { return *size.toSize(symbols); }

  /// The node of a value; `first` and `second` are nodes.
  GraphCoord &add(mlir::Value value, CoordKind kind, unsigned first = 0,
                  unsigned second = 0) {
    indices[value] = graph->coords.size();
    GraphCoord &coord = graph->coords.emplace_back();
    coord.kind = kind;
    coord.size = convert(getSize(value));
    coord.first = first;
    coord.second = second;
    return coord;
  }

  /// Names what is required and the operation.
  Error fail(mlir::Operation *step, const llvm::Twine &wanted) {
    return createStringError("requires " + wanted + " for a search, got " +
                             step->getName().getStringRef());
  }

  Error readStep(mlir::Operation &step);
  void readYield();
  void orderWeights();

  OperatorOp op;
  const SymbolSet &symbols;
  std::shared_ptr<OperatorGraph> graph = std::make_shared<OperatorGraph>();
  llvm::DenseMap<mlir::Value, unsigned> indices;
  /// The weight sides of shares, those nearest to the output first.
  llvm::SmallVector<mlir::Value> shared;
  /// By coordinate: the place in `shared` and the number of each weight that
  /// has it.
  std::map<unsigned, llvm::SmallVector<std::pair<size_t, unsigned>, 2>> users;
};
} // namespace

/// Shares make no node: both results are the coordinate itself.
Error GraphReader::readStep(mlir::Operation &step) {
  return llvm::TypeSwitch<mlir::Operation *, Error>(&step)
      .Case([&](ReduceOp reduce) -> Error {
        if (reduce.getKind() != ReduceKind::Sum)
          return fail(reduce, "sums as reductions");
        return Error::success();
      })
      .Case([&](ShareOp share) {
        unsigned index = indices.at(share.getCoord());
        indices[share.getData()] = indices[share.getWeight()] = index;
        shared.push_back(share.getWeight());
        return Error::success();
      })
      .Case([&](SplitOp split) {
        add(split.getResult(), CoordKind::Split, indices.at(split.getOuter()),
            indices.at(split.getInner()));
        return Error::success();
      })
      .Case([&](UnfoldOp unfold) -> Error {
        if (unfold.getLow() && !unfold.isCausal())
          return fail(unfold, "windows that are centred or causal");
        add(unfold.getResult(), CoordKind::Unfold,
            indices.at(unfold.getCoord()), indices.at(unfold.getWindow()))
            .isCausal = unfold.isCausal();
        return Error::success();
      })
      .Case([&](MergeOp merge) {
        unsigned whole = indices.at(merge.getCoord());
        Size block = convert(merge.getBlock());
        add(merge.getQuotient(), CoordKind::MergeQuotient, whole).parameter =
            block;
        add(merge.getRemainder(), CoordKind::MergeRemainder, whole).parameter =
            block;
        return Error::success();
      })
      .Case([&](StrideOp stride) {
        add(stride.getResult(), CoordKind::Stride,
            indices.at(stride.getCoord()))
            .parameter = convert(stride.getFactor());
        return Error::success();
      })
      .Case([&](ShiftOp shift) {
        add(shift.getResult(), CoordKind::Shift, indices.at(shift.getCoord()))
            .amount = shift.getAmount();
        return Error::success();
      })
      .Case([&](ExpandOp expand) {
        graph->expanded.push_back(indices.at(expand.getCoord()));
        return Error::success();
      })
      .Default([&](mlir::Operation *other) {
        return fail(other, "primitives that it knows");
      });
}

/// Also finds the order in which stages take the weights.
void GraphReader::readYield() {
  YieldOp yield = op.getYield();
  for (mlir::Value value : yield.getData())
    graph->data.push_back(indices.at(value));
  for (auto [number, weight] : llvm::enumerate(yield.getWeights())) {
    llvm::SmallVector<unsigned, 6> &coords = graph->weights.emplace_back();
    for (mlir::Value value : weight) {
      unsigned index = indices.at(value);
      coords.push_back(index);
      users[index].emplace_back(llvm::find(shared, value) - shared.begin(),
                                number);
    }
  }
  orderWeights();
}

// Of the weights that share a coordinate, the one whose share is the nearest to
// the output is taken last.
void GraphReader::orderWeights() {
  size_t count = graph->weights.size();
  // By weight: those that are taken after it. Chains of shares are orders
  // between weights; together they should be acyclic.
  std::vector<std::set<unsigned>> later(count);
  for (auto &[index, chain] : users) {
    llvm::sort(chain);
    for (size_t place = 1; place < chain.size(); ++place)
      later[chain[place].second].insert(chain[place - 1].second);
  }
  graph->stageOfWeights.assign(count, 0);
  llvm::SmallVector<bool> isTaken(count, false);
  // From the last stage to the first: a weight is taken when all those that
  // come after it are.
  for (unsigned stage = count; stage-- > 0;) {
    // Where people wrote shares in a circle, the first that is left.
    unsigned chosen = count;
    for (unsigned weight = 0; weight < count; ++weight) {
      if (isTaken[weight])
        continue;
      if (chosen == count)
        chosen = weight;
      if (llvm::all_of(later[weight],
                       [&](unsigned other) { return isTaken[other]; })) {
        chosen = weight;
        break;
      }
    }
    isTaken[chosen] = true;
    graph->stageOfWeights[chosen] = stage;
  }
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// The symbols of `op` are symbols of the layers.
static Error checkSymbols(OperatorOp op, const SymbolSet &wanted) {
  SymbolSet own = op.getSymbolSet();
  for (unsigned symbol = 0; symbol < own.size(); ++symbol) {
    llvm::StringRef name = own.getName(symbol);
    std::optional<unsigned> found = wanted.lookup(name);
    if (!found)
      return createStringError("requires the symbol '" + name + "' of @" +
                               op.getSymName() +
                               " in the space, got none of that name");
    if (wanted.getKind(*found) != own.getKind(symbol))
      return createStringError("requires the symbol '" + name + "' of @" +
                               op.getSymName() +
                               " to be primary in both it and the space, or a "
                               "coefficient in both");
  }
  return Error::success();
}

/// Every size is legal at the bindings of the layers. With the diagnostics of
/// the verifier as the reason.
static Error checkBindings(OperatorOp op, const SearchProblem &layers) {
  std::string reason;
  mlir::ScopedDiagnosticHandler handler(op.getContext(),
                                        [&](mlir::Diagnostic &diagnostic) {
                                          if (reason.empty())
                                            reason = diagnostic.str();
                                          return mlir::success();
                                        });
  SymbolSet own = op.getSymbolSet();
  for (const Binding &binding : layers.bindings) {
    Binding values;
    for (unsigned symbol = 0; symbol < own.size(); ++symbol)
      values.push_back(binding[*layers.symbols.lookup(own.getName(symbol))]);
    if (mlir::failed(verifyBinding(op, values, [&] { return op.emitError(); })))
      return createStringError(
          "@" + op.getSymName() +
          " cannot be at a binding of the space: " + reason);
  }
  return Error::success();
}

/// `sizes`, unordered where the layers are. The dimension is unordered if the
/// layer's is: sameness is the layer's matter.
static llvm::SmallVector<Dimension> getShape(llvm::ArrayRef<SizeAttr> sizes,
                                             llvm::ArrayRef<bool> unordered,
                                             llvm::ArrayRef<Dimension> ofLayers,
                                             const SymbolSet &symbols) {
  llvm::SmallVector<Dimension> shape;
  for (auto [index, size] : llvm::enumerate(sizes))
    shape.push_back({*size.toSize(symbols), index < ofLayers.size()
                                                ? ofLayers[index].isUnordered
                                                : unordered[index]});
  return shape;
}

/// The dimensions are the same numbers at each binding of `layers`.
static bool areSame(llvm::ArrayRef<Dimension> shape,
                    llvm::ArrayRef<Dimension> wanted,
                    const SearchProblem &layers) {
  return llvm::all_of(layers.bindings, [&](const Binding &binding) {
    return llvm::equal(
        shape, wanted, [&](const Dimension &a, const Dimension &b) {
          return a.size.evaluate(binding) == b.size.evaluate(binding);
        });
  });
}

/// As the search counts them, see `GraphCost`.
static Expected<GraphCost> getCost(const SearchProblem &problem,
                                   const OperatorGraph &graph) {
  GraphCost cost;
  std::optional<uint64_t> flops =
      getFlops(problem, graph, schedule::StageCost::Prepared);
  for (auto [binding, multiplicity] :
       llvm::zip_equal(problem.bindings, problem.multiplicities))
    for (llvm::ArrayRef<unsigned> weight : graph.weights) {
      auto elements = static_cast<uint64_t>(multiplicity);
      for (unsigned index : weight)
        elements = llvm::SaturatingMultiply(
            elements,
            static_cast<uint64_t>(
                graph.coords[index].size.evaluate(binding).value_or(1)));
      cost.params = llvm::SaturatingAdd(cost.params, elements);
    }
  if (!flops || cost.params > INT64_MAX)
    return createStringError("requires costs of 63 bits, got more");
  cost.flops = *flops;
  return cost;
}

/// What the costs of a search can hold: sets of coordinates are words, and all
/// sets of reductions and weights are tried.
static Error checkSize(const OperatorGraph &graph) {
  constexpr size_t maxCoords = 64;
  if (graph.coords.size() > maxCoords)
    return createStringError(
        "requires at most 64 coordinates for a search, got " +
        llvm::Twine(graph.coords.size()));
  size_t choices = graph.weights.size() +
                   llvm::count_if(graph.coords, [](const GraphCoord &coord) {
                     return coord.kind == CoordKind::Reduce;
                   });
  if (choices > schedule::StageGraph::maxChoices)
    return createStringError(
        "requires at most " + llvm::Twine(schedule::StageGraph::maxChoices) +
        " reductions and weights together for a search, got " +
        llvm::Twine(choices));
  return Error::success();
}

/// Without regard to the shapes of the layers. For operators and for the stages
/// of sequences, whose inner shapes are free.
static Expected<GivenOperator> readPart(OperatorOp op,
                                        const SearchProblem &layers) {
  if (Error error = checkSymbols(op, layers.symbols))
    return error;
  if (Error error = checkBindings(op, layers))
    return error;
  auto graph = GraphReader(op, layers.symbols).read();
  if (!graph)
    return graph.takeError();
  if (Error error = checkSize(**graph))
    return error;
  // The layers with the operator's own shapes.
  auto problem = std::make_shared<SearchProblem>(layers);
  problem->outputs = getShape(op.getOutputSizes(), op.getOutputUnordered(),
                              layers.outputs, layers.symbols);
  problem->inputs = getShape(op.getDataSizes(), op.getInputUnordered(),
                             layers.inputs, layers.symbols);
  Expected<GraphCost> cost = getCost(*problem, **graph);
  if (!cost)
    return cost.takeError();
  (*graph)->cost = *cost;
  // No search compares this key with others, so the text will do.
  std::string text;
  llvm::raw_string_ostream(text) << op;
  (*graph)->hash = llvm::xxh3_64bits(text);
  return GivenOperator{std::move(problem), std::move(*graph)};
}

/// Sizes may be written differently but must be equal numbers.
static Error makeShapeError(llvm::StringRef name) {
  return createStringError("requires @" + name +
                           " to have the shapes of the space, got others");
}

Expected<GivenOperator> kas::search::readOperator(OperatorOp op,
                                                  const SearchProblem &layers) {
  Expected<GivenOperator> given = readPart(op, layers);
  if (given && (!areSame(given->problem->inputs, layers.inputs, layers) ||
                !areSame(given->problem->outputs, layers.outputs, layers)))
    return makeShapeError(op.getSymName());
  return given;
}

/// For questions about one operator, such as its predicted time.
Expected<GivenOperator> kas::search::readOperator(OperatorOp op,
                                                  const Binding &binding) {
  SearchProblem layers;
  layers.symbols = op.getSymbolSet();
  layers.bindings.push_back(binding);
  layers.multiplicities.push_back(1);
  // Costs look for strides where some may be.
  layers.limits.stride = 1;
  return readPart(op, layers);
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// Parts alternate between operators and steps, as in the search's own
/// solutions.
Expected<GivenSequence> kas::search::readSequence(SequenceOp op,
                                                  const SearchProblem &layers) {
  auto problem = std::make_shared<SequenceProblem>();
  auto solution = std::make_shared<SequenceSolution>();
  problem->layers = layers;
  SequenceProblem::Variant &variant = problem->variants.emplace_back();
  for (auto [number, stage] : llvm::enumerate(op.getOperators())) {
    Expected<GivenOperator> given = readPart(stage, layers);
    if (!given)
      return given.takeError();
    // The step before this stage, as the number of a choice.
    if (number && op.getStep(number - 1) == SequenceStep::Join)
      return createStringError("requires a sequence without 'join', got '" +
                               op.getSymName() + "'");
    if (number) {
      problem->steps.push_back(op.getStep(number - 1));
      solution->parts.push_back(std::make_shared<Choice>(number - 1));
    }
    variant.stages.push_back(given->problem);
    solution->parts.push_back(given->graph);
    solution->hash = mixBits(solution->hash ^ given->graph->key());
  }
  // Only the outer shapes must be those of the layers.
  if (!areSame(variant.stages.front()->inputs, layers.inputs, layers) ||
      !areSame(variant.stages.back()->outputs, layers.outputs, layers))
    return makeShapeError(op.getSymName());
  return GivenSequence{std::move(problem), std::move(solution)};
}
