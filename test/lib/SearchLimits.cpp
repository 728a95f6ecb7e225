//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SearchLimits.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>

using namespace kas;
using namespace kas::test;

llvm::StringRef kas::test::getLimitName(SearchLimit limit) {
  static constexpr llvm::StringLiteral names[NumSearchLimits] = {
      "weight-without-reduction",
      "weight-without-data",
      "weight-of-unfold",
      "high-rank",
      "pooling",
      "merge-of-view",
      "shift-of-view",
      "shift-of-channel",
      "unfold-of-channel",
      "unfold-of-view",
      "window-of-position",
      "window-without-weight",
      "nested-windows",
      "stride-of-view",
      "stride-of-position",
      "expand-of-view"};
  return names[limit];
}

namespace {
/// Looks at one graph.
class LimitFinder {
public:
  LimitFinder(const SearchProblem &problem, const OperatorGraph &graph)
      : problem(problem), graph(graph) {}

  LimitSet find();

private:
  using Kind = CoordKind;
  Kind kindOf(unsigned index) const { return graph.coords[index].kind; }
  bool isAtom(unsigned index) const {
    Kind kind = kindOf(index);
    return kind == Kind::Output || kind == Kind::Reduce ||
           kind == Kind::MergeQuotient || kind == Kind::MergeRemainder;
  }
  /// Outputs and reductions below.
  llvm::SmallVector<unsigned> getLeaves(unsigned index) const;
  /// An ordered output is below.
  bool isPosition(unsigned index) const;
  unsigned getWeightsOf(unsigned index) const;
  /// A weight sees the value of `index`, or of all it is made of.
  bool isInWeight(unsigned index) const;
  /// Only weights use it.
  bool isDropped(unsigned index) const;
  int64_t getMax(const Size &size) const;
  bool isHighRank(unsigned reduction) const;

  void checkWeights();
  void checkCoord(unsigned index);
  void checkWindow(unsigned base, unsigned window);

  const SearchProblem &problem;
  const OperatorGraph &graph;
  LimitSet limits;
};
} // namespace

llvm::SmallVector<unsigned> LimitFinder::getLeaves(unsigned index) const {
  const GraphCoord &coord = graph.coords[index];
  switch (coord.kind) {
  case Kind::Output:
  case Kind::Reduce:
    return {index};
  case Kind::Split:
  case Kind::Unfold: {
    llvm::SmallVector<unsigned> leaves = getLeaves(coord.first);
    llvm::append_range(leaves, getLeaves(coord.second));
    return leaves;
  }
  default:
    return getLeaves(coord.first);
  }
}

bool LimitFinder::isPosition(unsigned index) const {
  return llvm::any_of(getLeaves(index), [&](unsigned leaf) {
    return kindOf(leaf) == Kind::Output &&
           !problem.outputs[graph.coords[leaf].amount].isUnordered;
  });
}

unsigned LimitFinder::getWeightsOf(unsigned index) const {
  unsigned mask = 0;
  for (auto [number, weight] : llvm::enumerate(graph.weights))
    if (llvm::is_contained(weight, index))
      mask |= 1 << number;
  return mask;
}

bool LimitFinder::isInWeight(unsigned index) const {
  if (getWeightsOf(index))
    return true;
  const GraphCoord &coord = graph.coords[index];
  switch (coord.kind) {
  case Kind::Output:
  case Kind::Reduce:
    return false;
  case Kind::Split:
    return isInWeight(coord.first) && isInWeight(coord.second);
  default:
    return isInWeight(coord.first);
  }
}

bool LimitFinder::isDropped(unsigned index) const {
  return !llvm::is_contained(graph.data, index) &&
         !llvm::is_contained(graph.expanded, index) &&
         llvm::none_of(graph.coords, [&](const GraphCoord &coord) {
           bool isLeaf =
               coord.kind == Kind::Output || coord.kind == Kind::Reduce;
           bool isBinary =
               coord.kind == Kind::Split || coord.kind == Kind::Unfold;
           return !isLeaf &&
                  (coord.first == index || (isBinary && coord.second == index));
         });
}

int64_t LimitFinder::getMax(const Size &size) const {
  int64_t max = 0;
  for (const Binding &binding : problem.bindings)
    max = std::max(max, size.evaluate(binding).value_or(0));
  return max;
}

/// A reduction that only weights see is at least as large as the rest of one of
/// them.
bool LimitFinder::isHighRank(unsigned reduction) const {
  return llvm::any_of(graph.weights, [&](llvm::ArrayRef<unsigned> weight) {
    return llvm::is_contained(weight, reduction) &&
           llvm::any_of(problem.bindings, [&](const Binding &binding) {
             int64_t others = 1;
             for (unsigned index : weight)
               if (index != reduction)
                 others *= *graph.coords[index].size.evaluate(binding);
             return *graph.coords[reduction].size.evaluate(binding) >= others;
           });
  });
}

void LimitFinder::checkWeights() {
  for (llvm::ArrayRef<unsigned> weight : graph.weights) {
    bool hasReduction = false, hasData = false;
    for (unsigned index : weight) {
      hasReduction |= llvm::any_of(getLeaves(index), [&](unsigned leaf) {
        return kindOf(leaf) == Kind::Reduce;
      });
      hasData |= !isDropped(index);
      limits[WeightOfUnfold] =
          limits[WeightOfUnfold] || kindOf(index) == Kind::Unfold;
    }
    if (!hasReduction)
      limits.set(WeightWithoutReduction);
    if (!hasData)
      limits.set(WeightWithoutData);
  }
  int64_t pooling = 1;
  for (auto [index, coord] : llvm::enumerate(graph.coords)) {
    if (coord.kind != Kind::Reduce)
      continue;
    if (isDropped(index) && isHighRank(index))
      limits.set(HighRank);
    if (!getWeightsOf(index))
      pooling *= getMax(coord.size);
  }
  if (pooling > 8)
    limits.set(Pooling);
}

void LimitFinder::checkWindow(unsigned base, unsigned window) {
  Kind kind = kindOf(base);
  if (!isPosition(base))
    limits.set(UnfoldOfChannel);
  if (!isAtom(base) && kind != Kind::Stride && kind != Kind::Unfold)
    limits.set(UnfoldOfView);
  if (isPosition(window) || kindOf(window) == Kind::Unfold ||
      kindOf(window) == Kind::Shift)
    limits.set(WindowOfPosition);
  for (unsigned leaf : getLeaves(window))
    if (!isInWeight(leaf) && !isInWeight(window))
      limits.set(WindowWithoutWeight);
  if (kind == Kind::Unfold)
    for (unsigned a : getLeaves(base))
      for (unsigned b : getLeaves(window))
        if (kindOf(a) == Kind::Reduce && kindOf(b) == Kind::Reduce &&
            getWeightsOf(a) == getWeightsOf(b))
          limits.set(NestedWindows);
}

void LimitFinder::checkCoord(unsigned index) {
  const GraphCoord &coord = graph.coords[index];
  switch (coord.kind) {
  case Kind::Output:
  case Kind::Reduce:
    break;
  case Kind::MergeQuotient:
  case Kind::MergeRemainder:
    if (!isAtom(coord.first))
      limits.set(MergeOfView);
    break;
  case Kind::Split:
    break;
  case Kind::Shift:
    if (!isAtom(coord.first) && kindOf(coord.first) != Kind::Unfold)
      limits.set(ShiftOfView);
    if (!isPosition(coord.first))
      limits.set(ShiftOfChannel);
    break;
  case Kind::Unfold:
    checkWindow(coord.first, coord.second);
    break;
  case Kind::Stride:
    if (!isAtom(coord.first))
      limits.set(StrideOfView);
    if (isPosition(coord.first))
      limits.set(StrideOfPosition);
    break;
  }
}

LimitSet LimitFinder::find() {
  checkWeights();
  for (unsigned index = 0; index < graph.coords.size(); ++index)
    checkCoord(index);
  for (unsigned index : graph.expanded)
    if (!isAtom(index))
      limits.set(ExpandOfView);
  return limits;
}

LimitSet kas::test::getViolatedLimits(const SearchProblem &problem,
                                      const OperatorGraph &graph) {
  return LimitFinder(problem, graph).find();
}
