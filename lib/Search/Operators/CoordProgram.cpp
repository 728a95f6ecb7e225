//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Coordinates of an operator as a program that is run over all values of its
// outputs and reductions.
//
// Properties are statements about the elements that the points of an operator
// read (GraphPropertyChecks.cpp): they are decided by running this program over
// all points, which must be fast. Steps are in topological order and share
// common subexpressions.
//
//===----------------------------------------------------------------------===//

#include "CoordProgram.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// Values of sizes are taken at one binding; a program for another binding is
/// another object.
CoordProgram::CoordProgram(const GraphSpace &space,
                           llvm::ArrayRef<ExprId> leaves,
                           llvm::ArrayRef<ExprId> roots, unsigned binding,
                           bool wraps)
    : binding(binding), wraps(wraps || space.problem->limits.cyclic),
      known(leaves) {
  for (ExprId leaf : leaves)
    extents.push_back(space.sizes[space.getExpr(leaf).size].values[binding]);
  // Steps append to `values` after the leaves, one value each.
  for (ExprId root : roots)
    this->roots.push_back(add(space, root));
  values.assign(known.size(), 0);
}

/// Adds the steps of an expression and returns the index of its value. A common
/// subexpression is added once.
unsigned CoordProgram::add(const GraphSpace &space, ExprId id) {
  auto *found = llvm::find(known, id);
  if (found != known.end())
    return found - known.begin();
  const Expr &expr = space.getExpr(id);
  auto getValue = [&](SizeId size) {
    return space.sizes[size].values[binding];
  };
  Step step{expr.kind, add(space, expr.first), 0, 0, getValue(expr.size)};
  switch (expr.kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
    llvm_unreachable("all leaves are given");
  case CoordKind::Split:
    step.second = add(space, expr.second);
    step.parameter = getValue(space.getExpr(expr.second).size);
    break;
  case CoordKind::Unfold:
    step.second = add(space, expr.second);
    // U5. The window's lower end relative to the base: the base is in the
    // middle, or at the end with `look_back`.
    step.parameter = -space.problem->limits.getReach(
        getValue(space.getExpr(expr.second).size));
    break;
  case CoordKind::Shift:
    // A shift by -1 as one by extent - 1, so that `evaluate` needs no negative
    // remainder.
    step.parameter = expr.second ? step.extent - 1 : 1;
    break;
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
  case CoordKind::Stride:
    step.parameter = getValue(expr.second);
    break;
  }
  steps.push_back(step);
  known.push_back(id);
  return known.size() - 1;
}

/// Counts like an odometer; the leaves outside of the range stay.
bool CoordProgram::advance(unsigned begin, unsigned end) {
  for (unsigned leaf = end; leaf-- > begin;) {
    if (++values[leaf] < extents[leaf])
      return true;
    values[leaf] = 0;
  }
  return false;
}

/// The order of `steps` is the order of `values`, so `result` just moves on.
/// Unfolds are the only steps that can leave their range.
bool CoordProgram::evaluate() {
  int64_t *result = values.begin() + extents.size();
  for (const Step &step : steps) {
    int64_t first = values[step.first];
    switch (step.kind) {
    case CoordKind::Output:
    case CoordKind::Reduce:
      llvm_unreachable("leaves are no steps");
    case CoordKind::Split:
      *result = first * step.parameter + values[step.second];
      break;
    case CoordKind::Unfold:
      *result = first + values[step.second] + step.parameter;
      if (*result < 0 || *result >= step.extent) {
        if (!wraps)
          return false;
        // The first remainder is negative where the position is; one extent
        // more makes it positive.
        *result = (*result % step.extent + step.extent) % step.extent;
      }
      break;
    case CoordKind::Shift:
      *result = (first + step.parameter) % step.extent;
      break;
    case CoordKind::MergeQuotient:
      *result = first / step.parameter;
      break;
    case CoordKind::MergeRemainder:
      *result = first % step.parameter;
      break;
    case CoordKind::Stride:
      *result = first * step.parameter;
      break;
    }
    ++result;
  }
  return true;
}
