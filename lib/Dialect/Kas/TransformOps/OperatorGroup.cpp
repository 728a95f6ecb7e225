//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Grouping of operators.
//
// Grouping of `kas.apply`: an output coordinate is merged into (group, rest), a
// reduction becomes one over the rest, or two; the group is shared by the
// weights and the data, which gets split(group, rest) (Turner et al., section
// 4.2).
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "OperatorNest.h"
#include "kas/Dialect/Kas/TransformOps/OperatorDomain.h"

using namespace mlir;
using namespace kas;

/// An output channel indexes weights alone, an input channel weights and one
/// dimension of the data. Nothing else may look like them.
FailureOr<std::pair<int64_t, int64_t>>
kas::inferChannelIterators(ApplyOp apply, std::string &reason) {
  // Uses are the same before sizes are numbers.
  OperatorOp op = apply.getOperator();
  std::optional<int64_t> output, reduction;
  // Two candidates are none: the caller has to name iterators.
  bool isUnique = true;
  auto set = [&](std::optional<int64_t> &found, int64_t iterator) {
    isUnique &= !found;
    found = iterator;
  };
  IRRewriter rewriter(apply.getContext());
  auto nest = OperatorNest::get(rewriter, apply, reason);
  if (failed(nest))
    return failure();
  int64_t numOutputs = op.getOutputs().size();
  for (int64_t iterator = 0; iterator < (*nest)->getNumIterators();
       ++iterator) {
    CoordinateUses uses = (*nest)->getUses((*nest)->getCoordinate(iterator));
    if (uses.weights.empty())
      continue;
    if (iterator < numOutputs && !uses.data)
      set(output, iterator);
    if (iterator >= numOutputs && (*nest)->getDataDimension(uses))
      set(reduction, iterator);
  }
  if (output && reduction && isUnique)
    return std::pair(*output, *reduction);
  return miss(reason, "requires iterators, or an operator with one output "
                      "coordinate that indexes weights alone and one reduction "
                      "that indexes weights and a dimension of the data");
}

namespace {

/// A group and the rest in place of two coordinates.
/// Example, y[o] = sum over c of x[c] * w[o, c] in G groups:
///   g, o' = merge o by O/G;  c' : [C/G];  x is indexed by split(g, c')
///   w [O, C] -> [G, O/G, G, C/G] -> its diagonal [G, O/G, C/G]
/// With O = C = G nothing is left of either: a depthwise layer.
class OperatorGrouping {
public:
  OperatorGrouping(OperatorNest &nest, unsigned first, unsigned second,
                   int64_t groups)
      : nest(nest), iterators{first, second}, groups(groups) {
    for (unsigned index : {0, 1})
      uses[index] = nest.getUses(nest.getCoordinate(iterators[index]));
  }

  LogicalResult check(std::string &reason) const;
  void rewrite();

private:
  bool isIn(unsigned weight) const {
    return uses[0].isIn(weight) || uses[1].isIn(weight);
  }
  /// Makes the group, and what is left of the iterator with an output
  /// coordinate, where there is one.
  void makeGroup();
  /// What is left of a reduction.
  Value makeRest(unsigned index);
  /// The coordinates that replace those of a weight, and its diagonal blocks.
  void regroupWeight(unsigned weight);

  OperatorNest &nest;
  /// By index 0 and 1, as all arrays below.
  unsigned iterators[2];
  int64_t groups;
  CoordinateUses uses[2];
  /// Copies of the group, in the order of the weights, then the data's; and
  /// copies of the rest of each iterator. Taken from the front.
  SmallVector<Value> group, rest[2];
};

} // namespace

/// T17: what one operator can express. The data has one place for the group.
LogicalResult OperatorGrouping::check(std::string &reason) const {
  if (uses[0].data && uses[1].data) // T17
    return miss(reason,
                "requires an operator whose data one of the iterators indexes, "
                "got one whose data both index");
  for (unsigned index : {0, 1})
    for (unsigned weight = 0; weight < nest.weights.size(); ++weight)
      if (llvm::count_if(uses[index].weights, [&](const auto &use) {
            return use.weight == weight;
          }) > 1) // T17
        return miss(reason, "requires weights that iterator ", iterators[index],
                    " indexes once, got weight ", weight);
  ReduceOp first = nest.getReduction(iterators[0]);
  ReduceOp second = nest.getReduction(iterators[1]);
  if (first && second && first.getKind() != second.getKind()) // T17
    return miss(reason, "requires reductions of one kind");
  return success();
}

/// Of two reductions the group is a third one; else it is the quotient of the
/// output, and the reduction loses its part of the domain.
void OperatorGrouping::makeGroup() {
  Location loc = nest.op.getLoc();
  ReduceOp reductions[2] = {nest.getReduction(iterators[0]),
                            nest.getReduction(iterators[1])};
  // One copy for the data, if it has either iterator, and one per weight.
  unsigned numGroups = uses[0].data || uses[1].data;
  for (unsigned weight = 0; weight < nest.weights.size(); ++weight)
    numGroups += isIn(weight);
  Value coordinate;
  if (reductions[0] && reductions[1]) {
    // Outermost, so that kinds nest as before.
    ReduceOp outer = reductions[0]->isBeforeInBlock(reductions[1])
                         ? reductions[0]
                         : reductions[1];
    nest.body.setInsertionPoint(outer);
    coordinate =
        ReduceOp::create(nest.body, loc, outer.getKind(),
                         SizeAttr::getConstant(nest.op.getContext(), groups));
  } else {
    unsigned index = reductions[0] ? 1 : 0;
    coordinate = nest.getCoordinate(iterators[index]);
    nest.body.setInsertionPointToStart(&nest.op.getBody().front());
    int64_t left = nest.getSize(iterators[index]) / groups;
    if (left != 1) {
      auto merge =
          MergeOp::create(nest.body, loc, coordinate,
                          SizeAttr::getConstant(nest.op.getContext(), left));
      coordinate = merge.getQuotient();
      rest[index] =
          nest.fanOut(merge.getRemainder(),
                      uses[index].weights.size() + (uses[index].data ? 1 : 0));
    }
  }
  group = nest.fanOut(coordinate, numGroups);
}

/// Null where nothing is left, and for outputs, whose rest `makeGroup` has
/// made.
Value OperatorGrouping::makeRest(unsigned index) {
  ReduceOp reduce = nest.getReduction(iterators[index]);
  int64_t left = nest.getSize(iterators[index]) / groups;
  if (!reduce || left == 1)
    return nullptr;
  nest.body.setInsertionPoint(reduce);
  return ReduceOp::create(nest.body, reduce.getLoc(), reduce.getKind(),
                          SizeAttr::getConstant(nest.op.getContext(), left));
}

/// Splits the dimensions of both iterators, keeps one group before them,
/// and gathers the diagonal where the weight has both.
void OperatorGrouping::regroupWeight(unsigned weight) {
  Value groupCopy = group.front();
  group.erase(group.begin());
  Value &value = nest.weightValues[weight];
  SmallVector<Value> coordinates;
  SmallVector<AffineExpr> exprs;
  Location loc = nest.apply.getLoc();
  // Dimension 0 of the map of the gather is the group; all others are counted
  // on.
  unsigned numNames = 1;
  // The group was met once, twice.
  bool hasGroup = false, hasBoth = false;
  for (auto [dimension, coordinate] : llvm::enumerate(nest.weights[weight])) {
    std::optional<unsigned> index;
    for (unsigned candidate : {0, 1})
      for (const auto &use : uses[candidate].weights)
        if (use.weight == weight && use.dimension == dimension)
          index = candidate;
    if (!index) {
      coordinates.push_back(coordinate);
      exprs.push_back(nest.rewriter.getAffineDimExpr(numNames++));
      continue;
    }
    bool hasRest = nest.getSize(iterators[*index]) != groups;
    if (hasRest)
      value = splitDimension(nest.rewriter, loc, value, exprs.size(), groups);
    exprs.push_back(nest.rewriter.getAffineDimExpr(0));
    hasBoth |= hasGroup;
    if (!hasGroup)
      coordinates.push_back(groupCopy);
    hasGroup = true;
    if (!hasRest)
      continue;
    exprs.push_back(nest.rewriter.getAffineDimExpr(numNames++));
    coordinates.push_back(rest[*index].front());
    rest[*index].erase(rest[*index].begin());
  }
  if (hasBoth)
    value = gatherDiagonal(
                nest.rewriter, loc, value,
                AffineMap::get(numNames, 0, exprs, nest.rewriter.getContext()))
                .first;
  nest.weights[weight] = coordinates;
}

/// Order matters: weights take their copies from the front, the data the last.
void OperatorGrouping::rewrite() {
  makeGroup();
  Value reductions[2] = {makeRest(0), makeRest(1)};
  for (unsigned index : {0, 1}) {
    if (Value reduction = reductions[index]) {
      nest.body.setInsertionPointAfterValue(reduction);
      rest[index] = nest.fanOut(reduction, uses[index].weights.size() +
                                               (uses[index].data ? 1 : 0));
    }
  }
  for (unsigned weight = 0; weight < nest.weights.size(); ++weight)
    if (isIn(weight))
      regroupWeight(weight);
  for (unsigned index : {0, 1}) {
    // At most one of the two has one (T17).
    OpOperand *data = uses[index].data;
    if (!data)
      continue;
    nest.body.setInsertionPoint(data->getOwner());
    Value joined = group.back();
    if (!rest[index].empty())
      joined = SplitOp::create(nest.body, nest.op.getLoc(), joined,
                               rest[index].back());
    if (auto dimension = nest.getDataDimension(uses[index]))
      nest.data[*dimension] = joined;
    data->set(joined);
  }
  for (unsigned index : {0, 1})
    if (ReduceOp reduce = nest.getReduction(iterators[index])) {
      nest.dropShares(uses[index]);
      // Only the old yield is left.
      reduce.getResult().replaceAllUsesWith(nest.op.getOutputs().front());
      reduce.erase();
    } else {
      nest.dropShares(uses[index]);
    }
}

FailureOr<ApplyOp> kas::groupIterators(RewriterBase &rewriter, ApplyOp apply,
                                       int64_t first, int64_t second,
                                       int64_t groups, std::string &reason) {
  auto nest = OperatorNest::get(rewriter, apply, reason);
  if (failed(nest) || failed((*nest)->checkIterator(first, reason)) ||
      failed((*nest)->checkIterator(second, reason)))
    return failure();
  if (first == second) // T2
    return miss(reason, "requires two iterators, got ", first, " twice");
  if (!(*nest)->getReduction(first) && !(*nest)->getReduction(second)) // T3
    return miss(reason, "requires a reduction among the iterators, got "
                        "parallel ones alone");
  if (groups < 1) // T4
    return miss(reason, "requires at least 1 group, got ", groups);
  for (int64_t iterator : {first, second})
    if ((*nest)->getSize(iterator) % groups != 0) // T4
      return miss(reason, "requires a number of groups that divides the ",
                  (*nest)->getSize(iterator), " points of iterator ", iterator,
                  ", got ", groups);
  OperatorGrouping grouping(**nest, first, second, groups);
  if (failed(grouping.check(reason)))
    return failure();
  rewriter.setInsertionPoint(apply);
  if (groups != 1)
    grouping.rewrite();
  return (*nest)->finish("group" + std::to_string(groups));
}

/// As many groups as points, so that nothing is left of either iterator.
FailureOr<ApplyOp> kas::depthwiseIterators(RewriterBase &rewriter,
                                           ApplyOp apply, int64_t first,
                                           int64_t second,
                                           std::string &reason) {
  // The nest here only gives sizes; its copy goes at the end of the
  // scope.
  int64_t sizes[2];
  {
    auto nest = OperatorNest::get(rewriter, apply, reason);
    if (failed(nest) || failed((*nest)->checkIterator(first, reason)) ||
        failed((*nest)->checkIterator(second, reason)))
      return failure();
    sizes[0] = (*nest)->getSize(first);
    sizes[1] = (*nest)->getSize(second);
  }
  if (sizes[0] != sizes[1]) // T6
    return miss(reason, "requires as many points of iterator ", first,
                " as of iterator ", second, " (", sizes[1], "), got ",
                sizes[0]);
  return groupIterators(rewriter, apply, first, second, sizes[0], reason);
}
