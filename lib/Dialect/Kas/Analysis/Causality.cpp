//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks for an output that reads a later position of a sequence, exactly, with
// MLIR's Presburger library.
// The question "may `read > own * stride` hold while all guards do?" is one
// system of integer constraints; no solution proves causality for all points.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Causality.h"
#include "Lowering/Terms.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"

using namespace kas;
using namespace mlir;

std::optional<Lookahead> kas::findLookahead(OperatorOp op, unsigned output,
                                            unsigned input, int64_t stride) {
  Coordinates coordinates = getCoordinates(op);
  lowering::Dims dims;
  for (const Axis &axis : coordinates.axes)
    dims.add(axis.extent);
  AffineExpr own = getAffineDimExpr(output, op.getContext());
  AffineExpr read = coordinates.data[input];
  lowering::Conditions later;
  // read - own * stride >= 1. False: the ranges of the axes alone exclude it.
  if (!lowering::addConstraint(later, {read - own * stride - 1}, dims))
    return std::nullopt;
  for (const Guard &guard : coordinates.guards)
    if (!lowering::addBounds(later, guard.expr, guard.extent, dims))
      return std::nullopt;
  std::optional<SmallVector<int64_t>> point = lowering::findPoint(later, dims);
  if (!point)
    return std::nullopt;
  // A witness, for the diagnostic.
  return Lookahead{(*point)[output], lowering::evaluateAt(read, *point)};
}
