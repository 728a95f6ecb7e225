//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator as a batched matrix product, where it is one: which axes number
// rows, columns and steps. An output axis of weights alone is a row (`Cout` of
// a convolution), of the data alone a column (`N`, `H`, `W`), of both a batch
// (the group of a grouped convolution). Reductions are the steps. A depthwise
// convolution has one row per batch: the cost model leaves it to direct
// kernels.
//
//===----------------------------------------------------------------------===//

#include "MatrixView.h"
#include "ResultSide.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

static bool dependsOn(ArrayRef<AffineExpr> exprs, unsigned axis) {
  return llvm::any_of(
      exprs, [&](AffineExpr expr) { return expr.isFunctionOfDim(axis); });
}

std::optional<MatrixView> MatrixView::get(const Coordinates &coordinates) {
  // Maxima do not distribute over products.
  if (coordinates.hasMax())
    return std::nullopt;
  MatrixView view;
  // Whether the data, or that a term exists, depends on an output axis.
  SmallVector<bool> isRight, isLeft(coordinates.numOutputs, false);
  for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis)
    isRight.push_back(dependsOn(coordinates.data, axis) ||
                      llvm::any_of(coordinates.guards, [&](const Guard &guard) {
                        return guard.expr.isFunctionOfDim(axis);
                      }));
  view.right.push_back(0);
  for (auto [i, weight] : llvm::enumerate(coordinates.weights)) {
    bool hasRow = false, hasColumn = false;
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis)
      if (dependsOn(weight, axis))
        (isRight[axis] ? hasColumn : hasRow) = true;
    // A weight that steps with columns alone is multiplied on the right, with
    // the data: a scale per pixel, for example.
    if (hasColumn && !hasRow) {
      view.right.push_back(i + 1);
      continue;
    }
    view.left.push_back(i + 1);
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis)
      isLeft[axis] = isLeft[axis] || dependsOn(weight, axis);
  }
  if (view.left.empty())
    return std::nullopt;
  for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis)
    (isLeft[axis] ? isRight[axis] ? view.batches : view.rows : view.columns)
        .push_back(axis);
  for (unsigned axis = coordinates.numOutputs; axis < coordinates.axes.size();
       ++axis)
    view.steps.push_back(axis);
  return view;
}

bool MatrixView::areRowsInner(const Coordinates &coordinates) const {
  for (unsigned axis = coordinates.numOutputs; axis-- > 0;)
    if (coordinates.axes[axis].extent != 1)
      return llvm::is_contained(rows, axis);
  return false;
}

// Of a result [8, 512, 7, 7] with rows of 512 channels, an image is 49 columns:
// a part of a row begins at any address, all of 16 rows at multiples of 16.
bool MatrixView::keepLinesWhole(const Coordinates &coordinates, Type inputType,
                                ArrayRef<int64_t> block) {
  if (!inputType || inputType.getIntOrFloatBitWidth() != 16)
    return false;
  bool areExchanged = areRowsInner(coordinates);
  ArrayRef<unsigned> lines = areExchanged ? columns : rows;
  SmallVector<unsigned> &across = areExchanged ? rows : columns;
  auto getSide = [&](ArrayRef<unsigned> axes) {
    return ResultSide::get(coordinates, axes);
  };
  // The last axes across that number neighbours through, from `first` on.
  size_t first = across.size();
  auto isLine = [&](ArrayRef<unsigned> axes) {
    return getSide(axes).isWhole() || getExtent(coordinates, axes) == 1;
  };
  while (first > 0 && isLine(ArrayRef(across).drop_front(first - 1)))
    --first;
  ArrayRef<unsigned> line = ArrayRef(across).drop_front(first);
  int64_t extent = getExtent(coordinates, line);
  // Even ones have vectors of two at least.
  if (extent % 2 == 0 || extent == 1 || extent > block[1])
    return false;
  // No vector may be in two blocks.
  SmallVector<unsigned> both(lines);
  llvm::append_range(both, line);
  SmallVector<unsigned> outer(batches);
  outer.append(across.begin(), across.begin() + first);
  if (!getSide(both).isWhole() || getExtent(coordinates, both) % 2 != 0 ||
      getSide(outer).getAlignment(2) != 2)
    return false;
  // Numbered in the order of the result.
  batches = outer;
  llvm::sort(batches);
  across.erase(across.begin(), across.begin() + first);
  return true;
}

void MatrixView::orderSteps(const Coordinates &coordinates, int64_t depth) {
  auto *best = steps.end();
  for (auto *it = steps.begin(); it != steps.end(); ++it) {
    int64_t extent = coordinates.axes[*it].extent;
    if (extent % depth == 0 &&
        (best == steps.end() || coordinates.axes[*best].extent <= extent))
      best = it;
  }
  if (best != steps.end())
    std::rotate(best, best + 1, steps.end());
}
