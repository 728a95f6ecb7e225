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

void MatrixView::orderSteps(const Coordinates &coordinates, int64_t depth) {
  auto best = steps.end();
  for (auto it = steps.begin(); it != steps.end(); ++it) {
    int64_t extent = coordinates.axes[*it].extent;
    if (extent % depth == 0 &&
        (best == steps.end() || coordinates.axes[*best].extent <= extent))
      best = it;
  }
  if (best != steps.end())
    std::rotate(best, best + 1, steps.end());
}
