//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SearchLimits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <functional>

using namespace kas;
using namespace kas::search;
using namespace kas::test;

llvm::StringRef kas::test::getLimitName(SearchLimit limit) {
  static constexpr llvm::StringLiteral names[NumSearchLimits] = {
      "no-weight",
      "weight-takes-none-or-all",
      "weight-over-time",
      "weight-takes-view",
      "rank",
      "weight-by-position",
      "pooling",
      "merge-of-view",
      "merge-of-shift",
      "merge-of-unfold",
      "split-of-stride",
      "shift-of-channel",
      "shift-of-shift",
      "shift-of-split",
      "unfold-of-reduction",
      "unfold-of-view",
      "window-without-weight",
      "nested-windows",
      "stride-of-view",
      "stride-outside-window",
      "expand-of-view"};
  return names[limit];
}

namespace {
/// Looks at one graph.
class LimitFinder {
public:
  LimitFinder(const SearchProblem &problem, const OperatorGraph &original)
      : problem(problem), graph(original), limits(problem.limits) {
    for (llvm::SmallVector<unsigned, 6> &weight : graph.weights)
      weight = takeApart(weight);
  }

  LimitSet find();

private:
  using Kind = CoordKind;
  const GraphCoord &get(unsigned index) const { return graph.coords[index]; }
  Kind kindOf(unsigned index) const { return get(index).kind; }
  bool isLeaf(unsigned index) const {
    return kindOf(index) == Kind::Output || kindOf(index) == Kind::Reduce;
  }
  bool isBinary(unsigned index) const {
    return kindOf(index) == Kind::Split || kindOf(index) == Kind::Unfold;
  }
  bool isOutputPart(unsigned index) const {
    Kind kind = kindOf(index);
    return kind == Kind::Output || kind == Kind::MergeQuotient ||
           kind == Kind::MergeRemainder;
  }
  template <typename Predicate>
  bool anyBelow(unsigned index, Predicate isTrue) const {
    return isTrue(index) ||
           (!isLeaf(index) && anyBelow(get(index).first, isTrue)) ||
           (isBinary(index) && anyBelow(get(index).second, isTrue));
  }
  bool hasOutput(unsigned index) const {
    return anyBelow(index,
                    [&](unsigned i) { return kindOf(i) == Kind::Output; });
  }
  bool isPosition(unsigned index) const {
    return kindOf(index) == Kind::Output &&
           !problem.outputs[get(index).amount].isUnordered;
  }
  /// The coordinates of a weight, each that is merged as its two halves (M1).
  llvm::SmallVector<unsigned, 6>
  takeApart(llvm::ArrayRef<unsigned> weight) const;
  /// A half of an unordered output, or all of it.
  bool isPartOfChannel(unsigned index) const;
  /// A primary symbol of the size occurs in unordered input dimensions only.
  bool hasSizeOfChannel(unsigned index) const;
  unsigned getWeightsOf(unsigned index) const;
  /// Nothing but weights uses it.
  bool isDropped(unsigned index) const;
  template <typename Predicate>
  bool holdsAlways(const Size &size, Predicate isTrue) const {
    return llvm::all_of(problem.bindings, [&](const Binding &binding) {
      return isTrue(*size.evaluate(binding), binding);
    });
  }
  int64_t getMax(const Size &size) const;
  bool isSignatureStride(unsigned index) const;
  bool goesAround(unsigned index) const;

  bool canTakeInOrder(llvm::SmallVector<unsigned> &done) const;
  /// W15: the weights that have a reduction have as many elements as the weight
  /// that they are together, under every binding.
  bool isCostlyRank(unsigned reduction) const;
  void checkWeights();
  void checkPooling();
  void checkMerge(unsigned index);
  void checkShift(unsigned index);
  void checkUnfold(unsigned index);
  void checkStride(unsigned index);

  const SearchProblem &problem;
  OperatorGraph graph;
  const SpaceLimits &limits;
  LimitSet violated;
};
} // namespace

llvm::SmallVector<unsigned, 6>
LimitFinder::takeApart(llvm::ArrayRef<unsigned> weight) const {
  llvm::SmallVector<unsigned, 6> parts;
  for (unsigned index : weight) {
    llvm::SmallVector<unsigned, 6> halves;
    for (unsigned half = 0; half < graph.coords.size(); ++half)
      if ((kindOf(half) == Kind::MergeQuotient ||
           kindOf(half) == Kind::MergeRemainder) &&
          get(half).first == index)
        halves.push_back(half);
    if (halves.size() != 2)
      halves.assign(1, index);
    else
      halves = takeApart(halves);
    for (unsigned half : halves)
      if (!llvm::is_contained(parts, half))
        parts.push_back(half);
  }
  return parts;
}

bool LimitFinder::isPartOfChannel(unsigned index) const {
  while (isOutputPart(index) && !isLeaf(index))
    index = get(index).first;
  return kindOf(index) == Kind::Output &&
         problem.outputs[get(index).amount].isUnordered;
}

bool LimitFinder::hasSizeOfChannel(unsigned index) const {
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol) {
    if (problem.symbols.getKind(symbol) == SymbolKind::Coefficient ||
        get(index).size.getExponent(symbol) == 0)
      continue;
    bool isUnordered = false, isOrdered = false;
    for (const Dimension &input : problem.inputs)
      if (input.size.getExponent(symbol) != 0)
        (input.isUnordered ? isUnordered : isOrdered) = true;
    if (isUnordered && !isOrdered)
      return true;
  }
  return false;
}

unsigned LimitFinder::getWeightsOf(unsigned index) const {
  unsigned mask = 0;
  for (auto [number, weight] : llvm::enumerate(graph.weights))
    if (llvm::is_contained(weight, index))
      mask |= 1 << number;
  return mask;
}

bool LimitFinder::isDropped(unsigned index) const {
  if (llvm::is_contained(graph.data, index) ||
      llvm::is_contained(graph.expanded, index))
    return false;
  for (unsigned user = 0; user < graph.coords.size(); ++user)
    if (!isLeaf(user) && (get(user).first == index ||
                          (isBinary(user) && get(user).second == index)))
      return false;
  return true;
}

int64_t LimitFinder::getMax(const Size &size) const {
  int64_t max = 0;
  for (const Binding &binding : problem.bindings)
    max = std::max(max, size.evaluate(binding).value_or(0));
  return max;
}

/// W2: each weight takes a coordinate, the last of those that have it, and
/// leaves one.
bool LimitFinder::canTakeInOrder(llvm::SmallVector<unsigned> &done) const {
  if (done.size() == graph.weights.size())
    return true;
  unsigned doneMask = 0;
  for (unsigned weight : done)
    doneMask |= 1 << weight;
  for (unsigned weight = 0; weight < graph.weights.size(); ++weight) {
    if (doneMask >> weight & 1)
      continue;
    auto isTaken = [&](unsigned index) {
      return isDropped(index) &&
             (getWeightsOf(index) & ~doneMask) == 1u << weight;
    };
    if ((limits.weightTakes && llvm::none_of(graph.weights[weight], isTaken)) ||
        (limits.weightShares && llvm::all_of(graph.weights[weight], isTaken)))
      continue;
    done.push_back(weight);
    if (canTakeInOrder(done))
      return true;
    done.pop_back();
  }
  return false;
}

bool LimitFinder::isCostlyRank(unsigned reduction) const {
  unsigned owners = getWeightsOf(reduction);
  if (llvm::has_single_bit(owners))
    return false;
  auto isSummed = [&](unsigned index) {
    return kindOf(index) == Kind::Reduce && isDropped(index) &&
           getWeightsOf(index) == owners;
  };
  return llvm::all_of(problem.bindings, [&](const Binding &binding) {
    auto getSize = [&](unsigned index) {
      return double(*get(index).size.evaluate(binding));
    };
    double sum = 0, joined = 1;
    for (auto [number, weight] : llvm::enumerate(graph.weights)) {
      double elements = 1;
      for (unsigned index : weight)
        elements *= getSize(index);
      sum += owners >> number & 1 ? elements : 0;
    }
    for (unsigned index = 0; index < graph.coords.size(); ++index)
      if ((getWeightsOf(index) & owners) && !isSummed(index))
        joined *= getSize(index);
    return sum >= joined;
  });
}

void LimitFinder::checkWeights() {
  llvm::SmallVector<unsigned> done;
  if (!canTakeInOrder(done))
    violated.set(WeightTakesNoneOrAll);
  for (llvm::ArrayRef<unsigned> weight : graph.weights)
    for (unsigned index : weight) {
      if (!limits.weightsByPosition &&
          anyBelow(index, [&](unsigned i) { return isPosition(i); }))
        violated.set(WeightByPosition);
      for (unsigned other : weight)
        if (other != index &&
            anyBelow(index, [&](unsigned i) { return i == other; }))
          violated.set(WeightOverTime);
      if (!isDropped(index))
        continue;
      if (!isOutputPart(index) && kindOf(index) != Kind::Reduce)
        violated.set(WeightTakesView);
      int64_t size = getMax(get(index).size);
      if (kindOf(index) == Kind::Reduce &&
          (size < limits.rankMin || size > limits.rankMax ||
           (limits.rankSaves && isCostlyRank(index))))
        violated.set(Rank);
    }
}

void LimitFinder::checkPooling() {
  Size pooled;
  bool isPooled = false;
  for (unsigned index = 0; index < graph.coords.size(); ++index)
    if (kindOf(index) == Kind::Reduce && !getWeightsOf(index)) {
      isPooled = true;
      pooled = *pooled.multiply(get(index).size);
    }
  if (isPooled && getMax(pooled) > limits.pooling)
    violated.set(Pooling);
}

void LimitFinder::checkMerge(unsigned index) {
  unsigned whole = get(index).first;
  const Size &block = get(index).parameter;
  switch (kindOf(whole)) {
  case Kind::Split:
  case Kind::Stride:
  case Kind::Reduce:
    violated.set(MergeOfView);
    break;
  case Kind::Shift:
    if (getMax(block) > limits.shiftBlock)
      violated.set(MergeOfShift);
    break;
  case Kind::Unfold: {
    const Size &window = get(get(whole).second).size;
    bool isLarge = holdsAlways(block, [&](int64_t value, const Binding &at) {
      return value >= *window.evaluate(at);
    });
    std::optional<Size> quotient = window.divide(block);
    bool hasPrimary = false;
    for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol)
      hasPrimary |= quotient->getExponent(symbol) != 0 &&
                    problem.symbols.getKind(symbol) == SymbolKind::Primary;
    bool isAround = limits.cyclic && kindOf(index) == Kind::MergeQuotient &&
                    llvm::is_contained(graph.expanded, index);
    if (isLarge || !hasPrimary || isAround)
      violated.set(MergeOfUnfold);
    break;
  }
  default:
    break;
  }
}

void LimitFinder::checkShift(unsigned index) {
  unsigned base = get(index).first;
  if (!hasOutput(base) || isPartOfChannel(base) || hasSizeOfChannel(base))
    violated.set(ShiftOfChannel);
  if (kindOf(base) == Kind::Shift)
    violated.set(ShiftOfShift);
  if (kindOf(base) == Kind::Split &&
      getMax(get(get(base).second).size) > limits.shiftBlock)
    violated.set(ShiftOfSplit);
}

void LimitFinder::checkUnfold(unsigned index) {
  unsigned base = get(index).first, window = get(index).second;
  if (!hasOutput(base))
    violated.set(UnfoldOfReduction);
  if (kindOf(base) == Kind::Split || kindOf(base) == Kind::Shift)
    violated.set(UnfoldOfView);
  std::function<bool(unsigned)> isUnweighted = [&](unsigned i) {
    switch (kindOf(i)) {
    case Kind::Reduce:
      return !getWeightsOf(i);
    case Kind::Split:
      return isUnweighted(get(i).first) || isUnweighted(get(i).second);
    case Kind::Shift:
    case Kind::Stride:
      return isUnweighted(get(i).first);
    default:
      return false;
    }
  };
  if (isUnweighted(window))
    violated.set(WindowWithoutWeight);
  if (limits.cyclic && goesAround(index))
    violated.set(NestedWindows);
  if (kindOf(base) == Kind::Unfold &&
      !holdsAlways(get(window).size, [&](int64_t outer, const Binding &at) {
        return outer >= *get(get(base).second).size.evaluate(at);
      }))
    violated.set(NestedWindows);
}

/// Cyclic windows on one base have together as many points as it.
bool LimitFinder::goesAround(unsigned index) const {
  return llvm::any_of(problem.bindings, [&](const Binding &binding) {
    int64_t points = 1;
    for (unsigned at = index; kindOf(at) == Kind::Unfold; at = get(at).first)
      points += *get(get(at).second).size.evaluate(binding) - 1;
    return points >= *get(index).size.evaluate(binding);
  });
}

/// A quotient of an input and an output size, along a position.
bool LimitFinder::isSignatureStride(unsigned index) const {
  if (!isOutputPart(get(index).first) || isPartOfChannel(get(index).first))
    return false;
  for (const Dimension &input : problem.inputs)
    for (const Dimension &output : problem.outputs)
      if (input.size.divide(output.size) == get(index).parameter)
        return true;
  return false;
}

void LimitFinder::checkStride(unsigned index) {
  Kind kind = kindOf(get(index).first);
  if (kind == Kind::Unfold || kind == Kind::Split || kind == Kind::Stride)
    violated.set(StrideOfView);
  if (isSignatureStride(index))
    return;
  bool isWindow = false;
  for (unsigned user = 0; user < graph.coords.size(); ++user) {
    isWindow |= kindOf(user) == Kind::Unfold && get(user).second == index;
    if (kindOf(user) == Kind::Split &&
        (get(user).first == index || get(user).second == index))
      violated.set(SplitOfStride);
  }
  if (!isWindow || getMax(get(index).size) > limits.strideSize ||
      2 * getMax(get(get(index).first).size) > limits.strideSize)
    violated.set(StrideOutsideWindow);
}

LimitSet LimitFinder::find() {
  checkWeights();
  checkPooling();
  for (unsigned index = 0; index < graph.coords.size(); ++index)
    switch (kindOf(index)) {
    case Kind::MergeQuotient:
    case Kind::MergeRemainder:
      checkMerge(index);
      break;
    case Kind::Shift:
      checkShift(index);
      break;
    case Kind::Unfold:
      checkUnfold(index);
      break;
    case Kind::Stride:
      checkStride(index);
      break;
    default:
      break;
    }
  for (unsigned index : graph.expanded)
    if (!isOutputPart(index))
      violated.set(ExpandOfView);
  return violated;
}

LimitSet kas::test::getViolatedLimits(const SearchProblem &problem,
                                      const OperatorGraph &graph,
                                      unsigned numWeights) {
  LimitSet violated = LimitFinder(problem, graph).find();
  if (numWeights == 0 && problem.limits.weights > 0)
    violated.set(NoWeight);
  return violated;
}
