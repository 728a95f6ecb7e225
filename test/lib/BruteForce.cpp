//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BruteForce.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <functional>
#include <map>
#include <set>

using namespace kas;
using namespace kas::search;
using namespace kas::test;

namespace {

using Id = uint32_t;

/// A coordinate; equal ones are one. Reductions of one size count from 0.
struct Node {
  CoordKind kind;
  Size size;
  Id first = 0, second = 0;
  int64_t amount = 0;
  Size parameter;

  auto operator<=>(const Node &) const = default;
};

enum Step { Split, Merge, Shift, Expand, Unfold, Stride, NumSteps };

/// A set of coordinates that nothing uses yet.
struct Interface {
  /// Sorted. They determine all the rest.
  std::vector<Id> live, expanded;
  std::array<uint8_t, NumSteps> counts = {};

  auto operator<=>(const Interface &) const = default;
  unsigned getSteps() const {
    unsigned steps = 0;
    for (uint8_t count : counts)
      steps += count;
    return steps;
  }
};

class BruteForce {
public:
  BruteForce(const SearchProblem &problem, const BruteForceOptions &options,
             llvm::function_ref<void(const OperatorGraph &, unsigned)> visit);

  void run() { chooseReductions(0); }

  BruteForceStatistics statistics;

private:
  Id intern(const Node &node);
  bool isLegal(const Size &size) const;
  bool isOneEverywhere(const Size &size) const;
  bool isWindow(const Size &base, const Size &window) const;
  void addReduceSizes(Size size, unsigned symbol);
  void addBlocks(const Size &size, Size block, unsigned symbol,
                 std::vector<Size> &blocks) const;
  bool areReductionsFew() const;

  void chooseReductions(size_t firstSize);
  void visitInterfaces();
  void expand(const Interface &state);
  void add(const Interface &state, Step step, llvm::ArrayRef<Id> used,
           llvm::ArrayRef<Id> made);
  bool canFinish(const Interface &state) const;

  void finish(const Interface &state);
  void chooseData(const Interface &state, std::vector<Id> rest);
  void chooseWeights(const Interface &state, llvm::ArrayRef<Id> rest);
  void emit(const Interface &state);
  std::vector<Id> getCoords(const Interface &state) const;
  bool follows(Id id, const std::set<Id> &known) const;
  bool isRedundant(llvm::ArrayRef<Id> weight, llvm::ArrayRef<Id> rest) const;
  bool areOccurrencesAllowed() const;
  bool areReductionsReached() const;

  const SearchProblem &problem;
  const BruteForceOptions &options;
  llvm::function_ref<void(const OperatorGraph &, unsigned)> visit;
  unsigned numUntouched;
  std::vector<Size> reduceSizes, strideFactors;

  std::vector<Node> nodes;
  std::map<Node, Id> ids;
  std::map<Size, std::vector<Size>> blocks;
  /// What is chosen so far.
  std::vector<Id> reductions, data;
  std::vector<std::vector<Id>> weights;
  std::set<Interface> next;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

BruteForce::BruteForce(
    const SearchProblem &problem, const BruteForceOptions &options,
    llvm::function_ref<void(const OperatorGraph &, unsigned)> visit)
    : problem(problem), options(options), visit(visit),
      numUntouched(problem.hasBatch()) {
  const SearchBudget &budget = problem.budget;
  if (budget.minFlops || budget.maxFlops || budget.maxParams)
    llvm::report_fatal_error("brute force knows no budgets",
                             /*gen_crash_diag=*/false);
  addReduceSizes(Size(), 0);
  std::set<Size> factors;
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
    if (problem.symbols.getKind(symbol) == SymbolKind::Coefficient)
      for (int power : {1, 2})
        factors.insert(Size::symbol(symbol, power));
  for (const Dimension &input : problem.inputs)
    for (const Dimension &output : problem.outputs)
      if (std::optional<Size> factor = input.size.divide(output.size))
        factors.insert(*factor);
  for (const Size &factor : factors) {
    bool hasPrimary = false;
    for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
      hasPrimary |= problem.symbols.getKind(symbol) == SymbolKind::Primary &&
                    factor.getExponent(symbol) != 0;
    if (!hasPrimary && !factor.isOne() && isLegal(factor))
      strideFactors.push_back(factor);
  }
}

/// Primary symbols up to the fourth power, coefficients from -2 to 2, as
/// occurrences allow.
void BruteForce::addReduceSizes(Size size, unsigned symbol) {
  if (symbol == problem.symbols.size()) {
    if (isLegal(size) && !isOneEverywhere(size))
      reduceSizes.push_back(size);
    return;
  }
  bool isPrimary = problem.symbols.getKind(symbol) == SymbolKind::Primary;
  int allowed = problem.occurrences[symbol];
  int least = isPrimary ? 0 : -std::min(allowed, 2);
  int most = std::min(allowed, isPrimary ? 4 : 2);
  for (int power = least; power <= most; ++power)
    addReduceSizes(*size.multiply(Size::symbol(symbol, power)), symbol + 1);
}

/// An integer of at least 1 under every binding, as few symbols as the problem
/// allows, and coefficients below the line only with a primary one above it.
bool BruteForce::isLegal(const Size &size) const {
  unsigned numSymbols = 0, numPowers = 0;
  bool hasPrimary = false, hasCoefficientBelow = false;
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol) {
    int power = size.getExponent(symbol);
    bool isPrimary = problem.symbols.getKind(symbol) == SymbolKind::Primary;
    if (isPrimary && power < 0)
      return false;
    hasPrimary |= isPrimary && power > 0;
    hasCoefficientBelow |= power < 0;
    numSymbols += power != 0;
    numPowers += std::abs(power);
  }
  if (!size.hasIntegerConstant() || (hasCoefficientBelow && !hasPrimary) ||
      numSymbols > problem.limits.sizeSymbols ||
      numPowers > problem.limits.sizePowers)
    return false;
  return llvm::all_of(problem.bindings, [&](const Binding &binding) {
    return size.evaluate(binding).value_or(0) >= 1;
  });
}

bool BruteForce::isOneEverywhere(const Size &size) const {
  return llvm::all_of(problem.bindings, [&](const Binding &binding) {
    return size.evaluate(binding) == 1;
  });
}

/// Powers of primary symbols from those of 1 to those of `size`; coefficients
/// may go beyond by as much as the reductions leave of the occurrences; all
/// within 2 of the middle.
void BruteForce::addBlocks(const Size &size, Size block, unsigned symbol,
                           std::vector<Size> &blocks) const {
  if (symbol == problem.symbols.size()) {
    std::optional<Size> quotient = size.divide(block);
    if (quotient && isLegal(block) && isLegal(*quotient) &&
        !isOneEverywhere(block) && !isOneEverywhere(*quotient))
      blocks.push_back(block);
    return;
  }
  int whole = size.getExponent(symbol), beyond = 0;
  if (problem.symbols.getKind(symbol) == SymbolKind::Coefficient) {
    beyond = problem.occurrences[symbol];
    for (Id id : reductions)
      beyond -= std::abs(nodes[id].size.getExponent(symbol));
  }
  int least = std::max(std::min(0, whole) - beyond, whole / 2 - 2);
  int most = std::min(std::max(0, whole) + beyond, whole / 2 + 2);
  for (int power = least; power <= most; ++power)
    addBlocks(size, *block.multiply(Size::symbol(symbol, power)), symbol + 1,
              blocks);
}

/// All reductions together have few points for each element of the input.
bool BruteForce::areReductionsFew() const {
  return llvm::all_of(problem.bindings, [&](const Binding &binding) {
    double points = 1, elements = problem.limits.reduceRatio;
    for (Id id : reductions)
      points *= static_cast<double>(*nodes[id].size.evaluate(binding));
    for (const Dimension &input :
         llvm::ArrayRef(problem.inputs).drop_front(numUntouched))
      elements *= static_cast<double>(*input.size.evaluate(binding));
    return points <= elements;
  });
}

/// Odd, and as large as the problem allows.
bool BruteForce::isWindow(const Size &base, const Size &window) const {
  return llvm::all_of(problem.bindings, [&](const Binding &binding) {
    int64_t extent = *window.evaluate(binding);
    return extent % 2 == 1 && extent >= 3 && extent <= problem.limits.window &&
           static_cast<double>(*base.evaluate(binding)) >=
               problem.limits.unfoldRatio * static_cast<double>(extent) &&
           (!problem.limits.cyclic || *base.evaluate(binding) > extent);
  });
}

//===----------------------------------------------------------------------===//
// Primitives
//===----------------------------------------------------------------------===//

Id BruteForce::intern(const Node &node) {
  auto [entry, isNew] = ids.try_emplace(node, nodes.size());
  if (isNew)
    nodes.push_back(node);
  return entry->second;
}

void BruteForce::chooseReductions(size_t firstSize) {
  visitInterfaces();
  if (reductions.size() == problem.limits.reduce ||
      reductions.size() == problem.limits.depth)
    return;
  for (size_t index = firstSize; index < reduceSizes.size(); ++index) {
    const Size &size = reduceSizes[index];
    auto equal = llvm::count_if(reductions,
                                [&](Id id) { return nodes[id].size == size; });
    reductions.push_back(
        intern({CoordKind::Reduce, size, static_cast<Id>(equal), 0, 0, {}}));
    if (areOccurrencesAllowed() && areReductionsFew())
      chooseReductions(index);
    reductions.pop_back();
  }
}

/// All interfaces over the chosen reductions, by the number of steps.
void BruteForce::visitInterfaces() {
  Interface root;
  blocks.clear();
  for (unsigned index = numUntouched; index < problem.outputs.size(); ++index)
    root.live.push_back(intern(
        {CoordKind::Output, problem.outputs[index].size, 0, 0, index, {}}));
  llvm::append_range(root.live, reductions);
  llvm::sort(root.live);
  std::set<Interface> level = {root};
  while (!level.empty()) {
    next.clear();
    for (const Interface &state : level) {
      ++statistics.states;
      finish(state);
      if (reductions.size() + state.getSteps() < problem.limits.depth)
        expand(state);
    }
    level.swap(next);
  }
}

/// The steps that are left can make the input's dimensions that are not there
/// yet: a step makes one coordinate, a merge two; a weight none.
bool BruteForce::canFinish(const Interface &state) const {
  unsigned steps = reductions.size() + state.getSteps();
  unsigned needed = problem.limits.weights > 0;
  if (steps + needed > problem.limits.depth)
    return false;
  unsigned left = problem.limits.depth - steps - needed;
  std::vector<Id> rest = state.live;
  unsigned missing = 0;
  for (const Dimension &input :
       llvm::ArrayRef(problem.inputs).drop_front(numUntouched)) {
    auto match = llvm::find_if(
        rest, [&](Id id) { return nodes[id].size == input.size; });
    if (match == rest.end())
      ++missing;
    else
      rest.erase(match);
  }
  unsigned merges = problem.limits.merge - state.counts[Merge];
  return missing <= left + std::min(left, merges);
}

void BruteForce::add(const Interface &state, Step step, llvm::ArrayRef<Id> used,
                     llvm::ArrayRef<Id> made) {
  Interface result = state;
  ++result.counts[step];
  for (Id id : used)
    llvm::erase(result.live, id);
  llvm::append_range(step == Expand ? result.expanded : result.live,
                     step == Expand ? used : made);
  llvm::sort(result.live);
  llvm::sort(result.expanded);
  if (canFinish(result))
    next.insert(std::move(result));
}

void BruteForce::expand(const Interface &state) {
  const SpaceLimits &limits = problem.limits;
  auto isLeft = [&](Step step, unsigned limit) {
    return state.counts[step] < limit;
  };
  for (Id a : state.live) {
    const Size size = nodes[a].size;
    if (isLeft(Merge, limits.merge)) {
      auto [list, isNew] = blocks.try_emplace(size);
      if (isNew)
        addBlocks(size, Size(), 0, list->second);
      for (const Size &block : list->second)
        add(state, Merge, a,
            {intern({CoordKind::MergeQuotient, *size.divide(block), a, 0, 0,
                     block}),
             intern({CoordKind::MergeRemainder, block, a, 0, 0, block})});
    }
    if (isLeft(Shift, limits.shift))
      for (int64_t amount : {1, -1})
        add(state, Shift, a,
            intern({CoordKind::Shift, size, a, 0, amount, {}}));
    if (isLeft(Expand, limits.expand))
      add(state, Expand, a, {});
    if (isLeft(Stride, limits.stride))
      for (const Size &factor : strideFactors)
        if (std::optional<Size> result = size.multiply(factor);
            result && isLegal(*result))
          add(state, Stride, a,
              intern({CoordKind::Stride, *result, a, 0, 0, factor}));
    for (Id b : state.live) {
      if (a == b)
        continue;
      std::optional<Size> product = size.multiply(nodes[b].size);
      if (isLeft(Split, limits.split) && product && isLegal(*product))
        add(state, Split, {a, b},
            intern({CoordKind::Split, *product, a, b, 0, {}}));
      if (isLeft(Unfold, limits.unfold) && isWindow(size, nodes[b].size))
        add(state, Unfold, {a, b},
            intern({CoordKind::Unfold, size, a, b, 0, {}}));
    }
  }
}

//===----------------------------------------------------------------------===//
// Complete operators
//===----------------------------------------------------------------------===//

void BruteForce::finish(const Interface &state) {
  data.clear();
  chooseData(state, state.live);
}

void BruteForce::chooseData(const Interface &state, std::vector<Id> rest) {
  if (data.size() + numUntouched == problem.inputs.size()) {
    weights.clear();
    chooseWeights(state, rest);
    return;
  }
  const Size &size = problem.inputs[numUntouched + data.size()].size;
  for (Id id : rest) {
    if (nodes[id].size != size)
      continue;
    std::vector<Id> others = rest;
    llvm::erase(others, id);
    data.push_back(id);
    chooseData(state, std::move(others));
    data.pop_back();
  }
}

/// All coordinates below those of `state`, which are among them.
std::vector<Id> BruteForce::getCoords(const Interface &state) const {
  std::set<Id> coords;
  std::function<void(Id)> addAll = [&](Id id) {
    const Node &node = nodes[id];
    if (!coords.insert(id).second || node.kind == CoordKind::Output ||
        node.kind == CoordKind::Reduce)
      return;
    addAll(node.first);
    if (node.kind == CoordKind::Split || node.kind == CoordKind::Unfold)
      addAll(node.second);
  };
  for (Id id : state.live)
    addAll(id);
  for (Id id : state.expanded)
    addAll(id);
  return {coords.begin(), coords.end()};
}

/// Whether the value of `id` follows from those of `known`.
bool BruteForce::follows(Id id, const std::set<Id> &known) const {
  if (known.contains(id))
    return true;
  const Node &node = nodes[id];
  switch (node.kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
    return false;
  case CoordKind::Split:
  case CoordKind::Unfold:
    return follows(node.first, known) && follows(node.second, known);
  default:
    return follows(node.first, known);
  }
}

/// A coordinate follows from the others, and the data does not need the weight
/// to take it.
bool BruteForce::isRedundant(llvm::ArrayRef<Id> weight,
                             llvm::ArrayRef<Id> rest) const {
  return llvm::any_of(weight, [&](Id id) {
    std::set<Id> others(weight.begin(), weight.end());
    others.erase(id);
    return !llvm::is_contained(rest, id) && follows(id, others);
  });
}

/// Reductions count with all their symbols, weights with primary ones.
bool BruteForce::areOccurrencesAllowed() const {
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol) {
    unsigned count = 0;
    auto addCount = [&](Id id) {
      count += std::abs(nodes[id].size.getExponent(symbol));
    };
    llvm::for_each(reductions, addCount);
    if (problem.symbols.getKind(symbol) == SymbolKind::Primary)
      for (llvm::ArrayRef<Id> weight : weights)
        llvm::for_each(weight, addCount);
    if (count > problem.occurrences[symbol])
      return false;
  }
  return true;
}

/// `rest` are the coordinates that the data does not have: weights must.
void BruteForce::chooseWeights(const Interface &state,
                               llvm::ArrayRef<Id> rest) {
  bool areAllIn = llvm::all_of(rest, [&](Id id) {
    return llvm::any_of(weights, [&](llvm::ArrayRef<Id> weight) {
      return llvm::is_contained(weight, id);
    });
  });
  if (areAllIn && (!weights.empty() || problem.limits.weights == 0))
    emit(state);
  unsigned steps = reductions.size() + state.getSteps() + weights.size();
  if (weights.size() == problem.limits.weights || steps == problem.limits.depth)
    return;
  std::vector<Id> coords = getCoords(state);
  if (!options.weightsIndexAll)
    llvm::erase_if(coords, [&](Id id) {
      CoordKind kind = nodes[id].kind;
      bool isOneToOne = kind == CoordKind::Split || kind == CoordKind::Shift ||
                        kind == CoordKind::Stride;
      return isOneToOne && !llvm::is_contained(rest, id);
    });
  // Expanded ones are free for weights, too; a number per subset.
  for (uint64_t subset = 1; subset < uint64_t(1) << coords.size(); ++subset) {
    std::vector<Id> weight;
    for (size_t i = 0; i < coords.size(); ++i)
      if (subset >> i & 1)
        weight.push_back(coords[i]);
    // Any order of weights will do: this one is ascending.
    if (!weights.empty() && weight < weights.back())
      continue;
    if (options.skipsRedundantWeights &&
        (isRedundant(weight, rest) ||
         llvm::any_of(weights, [&](llvm::ArrayRef<Id> other) {
           return llvm::includes(weight, other) ||
                  llvm::includes(other, weight);
         })))
      continue;
    weights.push_back(weight);
    if (areOccurrencesAllowed())
      chooseWeights(state, rest);
    weights.pop_back();
  }
}

/// C11.
bool BruteForce::areReductionsReached() const {
  std::set<Id> reached;
  std::function<void(Id)> addAll = [&](Id id) {
    const Node &node = nodes[id];
    if (!reached.insert(id).second || node.kind == CoordKind::Output ||
        node.kind == CoordKind::Reduce)
      return;
    addAll(node.first);
    if (node.kind == CoordKind::Split || node.kind == CoordKind::Unfold)
      addAll(node.second);
  };
  llvm::for_each(data, addAll);
  for (llvm::ArrayRef<Id> weight : weights)
    llvm::for_each(weight, addAll);
  return llvm::all_of(reductions, [&](Id id) { return reached.contains(id); });
}

void BruteForce::emit(const Interface &state) {
  if (!areReductionsReached())
    return;
  ++statistics.operators;
  OperatorGraph graph;
  for (auto [index, output] : llvm::enumerate(problem.outputs))
    graph.coords.push_back({CoordKind::Output,
                            output.size,
                            0,
                            0,
                            static_cast<int64_t>(index),
                            {}});
  std::map<Id, unsigned> indices;
  for (Id id : reductions) {
    indices[id] = graph.coords.size();
    graph.coords.push_back({CoordKind::Reduce, nodes[id].size, 0, 0, 0, {}});
  }
  std::function<unsigned(Id)> write = [&](Id id) -> unsigned {
    const Node &node = nodes[id];
    if (node.kind == CoordKind::Output)
      return node.amount;
    if (auto known = indices.find(id); known != indices.end())
      return known->second;
    GraphCoord coord{node.kind, node.size, 0, 0, node.amount, node.parameter};
    coord.first = write(node.first);
    if (node.kind == CoordKind::Split || node.kind == CoordKind::Unfold)
      coord.second = write(node.second);
    coord.isCausal = node.kind == CoordKind::Unfold && problem.limits.lookBack;
    graph.coords.push_back(coord);
    return indices[id] = graph.coords.size() - 1;
  };
  if (numUntouched)
    graph.data.push_back(0);
  for (Id id : data)
    graph.data.push_back(write(id));
  for (llvm::ArrayRef<Id> weight : weights) {
    llvm::SmallVector<unsigned, 6> &dimensions = graph.weights.emplace_back();
    for (Id id : weight)
      dimensions.push_back(write(id));
  }
  for (Id id : state.expanded)
    graph.expanded.push_back(write(id));
  visit(graph, reductions.size() + state.getSteps() + weights.size());
}

BruteForceStatistics kas::test::enumerateByBruteForce(
    const SearchProblem &problem, const BruteForceOptions &options,
    llvm::function_ref<void(const OperatorGraph &, unsigned)> visit) {
  BruteForce bruteForce(problem, options, visit);
  bruteForce.run();
  return bruteForce.statistics;
}
