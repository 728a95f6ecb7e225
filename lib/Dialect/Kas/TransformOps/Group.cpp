//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Grouping: the diagonal blocks of two iterators.
//
// Iterators i and j become (g, i') and (g, j') with one common g: of the tiling
// by G only the blocks on the diagonal are computed (Turner et al., section
// 4.2). On the channels of a convolution this is a grouped convolution.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

/// Output channel and input channel of what upstream recognizes; of a matrix
/// product n and k.
FailureOr<std::pair<int64_t, int64_t>>
kas::inferChannelIterators(linalg::LinalgOp op, std::string &reason) {
  if (auto dims = linalg::inferConvolutionDims(op);
      succeeded(dims) && dims->outputChannel.size() == 1 &&
      dims->inputChannel.size() == 1)
    return std::pair<int64_t, int64_t>(dims->outputChannel.front(),
                                       dims->inputChannel.front());
  if (auto dims = linalg::inferContractionDims(op);
      succeeded(dims) && dims->n.size() == 1 && dims->k.size() == 1)
    return std::pair<int64_t, int64_t>(dims->n.front(), dims->k.front());
  return miss(reason, "requires iterators, or a convolution or matrix product "
                      "with one iterator each over output and input channels");
}

namespace {

/// Which iterators of the new nest stand for those of the old one.
/// `first` and `second` share the iterator `group`, which comes where `first`
/// was; inner iterators of one point are left out.
class GroupedIterators {
public:
  GroupedIterators(const LoopNest &nest, unsigned first, unsigned second,
                   int64_t groups);

  int64_t getInnerSize(unsigned iterator) const {
    return nest.sizes[iterator] / groups;
  }
  /// What replaces the old iterator in a map: (group, inner) or (group), or
  /// without the group.
  void append(unsigned iterator, bool withGroup,
              SmallVectorImpl<AffineExpr> &exprs) const;
  AffineMap getMap(ArrayRef<AffineExpr> exprs) const {
    return AffineMap::get(types.size(), 0, exprs, context);
  }

  bool isGrouped(unsigned iterator) const {
    return iterator == first || iterator == second;
  }

  /// Of the new nest.
  SmallVector<utils::IteratorType> types;

private:
  MLIRContext *context;
  const LoopNest &nest;
  unsigned first, second;
  int64_t groups;
  unsigned group = 0;
  /// The new iterator for each old one, the inner one for those in groups.
  SmallVector<std::optional<unsigned>> positions;
};

/// Reads and writes the diagonal blocks.
class Grouping {
public:
  Grouping(RewriterBase &rewriter, LoopNest &nest, unsigned first,
           unsigned second, int64_t groups)
      : rewriter(rewriter), nest(nest), first(first), second(second),
        groups(groups), iterators(nest, first, second, groups) {}

  linalg::LinalgOp rewrite();

private:
  /// Splits the dimensions of an operand that the grouped iterators index, and
  /// gives it the map over the new iterators.
  void splitOperand(unsigned operand);
  /// Copies the diagonal blocks of an operand that both iterators index.
  void gatherBlocks(unsigned operand);

  RewriterBase &rewriter;
  LoopNest &nest;
  unsigned first, second;
  int64_t groups;
  GroupedIterators iterators;
};

} // namespace

GroupedIterators::GroupedIterators(const LoopNest &nest, unsigned first,
                                   unsigned second, int64_t groups)
    : context(nest.op->getContext()), nest(nest), first(first), second(second),
      groups(groups), positions(nest.sizes.size()) {
  // The group is a reduction only where both are: else each group writes
  // outputs of its own.
  bool isParallel = nest.isParallel(first) || nest.isParallel(second);
  for (auto [iterator, type] : llvm::enumerate(nest.iterators)) {
    if (iterator == first) {
      group = types.size();
      types.push_back(isParallel ? utils::IteratorType::parallel
                                 : utils::IteratorType::reduction);
    }
    // One point per group (depthwise): the group alone is the index.
    if (isGrouped(iterator) && getInnerSize(iterator) == 1)
      continue;
    positions[iterator] = types.size();
    types.push_back(type);
  }
}

void GroupedIterators::append(unsigned iterator, bool withGroup,
                              SmallVectorImpl<AffineExpr> &exprs) const {
  if (isGrouped(iterator) && withGroup)
    exprs.push_back(getAffineDimExpr(group, context));
  if (positions[iterator])
    exprs.push_back(getAffineDimExpr(*positions[iterator], context));
}

/// [Co, Ci] indexed by both -> [G, Co/G, G, Ci/G].
void Grouping::splitOperand(unsigned operand) {
  Value value = nest.operands[operand];
  SmallVector<AffineExpr> exprs, dims;
  // Iterators in groups are alone where they occur, so what replaces them in
  // other results does not matter.
  for (unsigned iterator = 0; iterator < nest.sizes.size(); ++iterator) {
    SmallVector<AffineExpr> parts;
    iterators.append(iterator, /*withGroup=*/false, parts);
    dims.push_back(parts.empty() ? rewriter.getAffineConstantExpr(0)
                                 : parts.front());
  }
  for (AffineExpr expr : nest.maps[operand].getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || !iterators.isGrouped(dim.getPosition())) {
      exprs.push_back(expr.replaceDims(dims));
      continue;
    }
    if (iterators.getInnerSize(dim.getPosition()) != 1)
      value = splitDimension(rewriter, nest.op->getLoc(), value, exprs.size(),
                             groups);
    iterators.append(dim.getPosition(), /*withGroup=*/true, exprs);
  }
  nest.operands[operand] = value;
  nest.maps[operand] = iterators.getMap(exprs);
}

/// [G, Co/G, G, Ci/G] -> [G, Co/G, Ci/G]: the weight of the diagonal blocks.
void Grouping::gatherBlocks(unsigned operand) {
  AffineMap map = nest.maps[operand];
  auto [value, kept] =
      gatherDiagonal(rewriter, nest.op->getLoc(), nest.operands[operand], map);
  nest.operands[operand] = value;
  nest.maps[operand] =
      AffineMap::get(map.getNumDims(), 0, kept, rewriter.getContext());
}

/// The result, split as well, is joined again at the end.
linalg::LinalgOp Grouping::rewrite() {
  unsigned numOperands = nest.operands.size();
  std::optional<unsigned> resultDimension = nest.getDimension(
      numOperands - 1, nest.isParallel(first) ? first : second);
  unsigned parallel = nest.isParallel(first) ? first : second;
  for (unsigned operand = 0; operand < numOperands; ++operand) {
    // Asked before the split, which changes the maps.
    bool hasBoth =
        nest.getDimension(operand, first) && nest.getDimension(operand, second);
    splitOperand(operand);
    if (hasBoth)
      gatherBlocks(operand);
  }
  nest.iterators = iterators.types;
  linalg::LinalgOp result = nest.build(rewriter);
  Value value = result->getResult(0);
  if (resultDimension && iterators.getInnerSize(parallel) != 1)
    value =
        joinDimensions(rewriter, nest.op->getLoc(), value, *resultDimension);
  rewriter.replaceOp(nest.op, value);
  return result;
}

FailureOr<linalg::LinalgOp>
kas::groupIterators(RewriterBase &rewriter, linalg::LinalgOp op, int64_t first,
                    int64_t second, int64_t groups, std::string &reason) {
  FailureOr<LoopNest> nest = LoopNest::get(op, reason);
  if (failed(nest) || failed(nest->checkIterator(first, reason)) ||
      failed(nest->checkIterator(second, reason)))
    return failure();
  if (first == second) // T2
    return miss(reason, "requires two iterators, got ", first, " twice");
  if (nest->isParallel(first) && nest->isParallel(second)) // T3
    return miss(reason, "requires a reduction among the iterators, got "
                        "parallel ones alone");
  if (groups < 1) // T4
    return miss(reason, "requires at least 1 group, got ", groups);
  for (int64_t iterator : {first, second})
    if (nest->sizes[iterator] % groups != 0) // T4
      return miss(reason, "requires a number of groups that divides the ",
                  nest->sizes[iterator], " points of iterator ", iterator,
                  ", got ", groups);
  if (failed(nest->checkPlain(first, reason)) ||
      failed(nest->checkPlain(second, reason)))
    return failure();
  rewriter.setInsertionPoint(op);
  // Also a new operation, so that callers always get one of their own.
  if (groups == 1) {
    linalg::LinalgOp result = nest->build(rewriter);
    rewriter.replaceOp(op, result->getResults());
    return result;
  }
  return Grouping(rewriter, *nest, first, second, groups).rewrite();
}

FailureOr<linalg::LinalgOp>
kas::depthwiseIterators(RewriterBase &rewriter, linalg::LinalgOp op,
                        int64_t first, int64_t second, std::string &reason) {
  FailureOr<LoopNest> nest = LoopNest::get(op, reason);
  if (failed(nest) || failed(nest->checkIterator(first, reason)) ||
      failed(nest->checkIterator(second, reason)))
    return failure();
  // One pair of points per group.
  if (nest->sizes[first] != nest->sizes[second]) // T6
    return miss(reason, "requires as many points of iterator ", first,
                " as of iterator ", second, " (", nest->sizes[second],
                "), got ", nest->sizes[first]);
  return groupIterators(rewriter, op, first, second, nest->sizes[first],
                        reason);
}
