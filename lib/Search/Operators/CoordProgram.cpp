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
//===----------------------------------------------------------------------===//

#include "CoordProgram.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

CoordProgram::CoordProgram(const GraphSpace &space,
                           llvm::ArrayRef<ExprId> leaves,
                           llvm::ArrayRef<ExprId> roots, unsigned binding,
                           bool wraps)
    : binding(binding), wraps(wraps), known(leaves) {
  for (ExprId leaf : leaves)
    extents.push_back(space.sizes[space.getExpr(leaf).size].values[binding]);
  for (ExprId root : roots)
    this->roots.push_back(add(space, root));
  values.assign(known.size(), 0);
}

unsigned CoordProgram::add(const GraphSpace &space, ExprId id) {
  auto found = llvm::find(known, id);
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
    // U5
    step.parameter = -space.problem->limits.getReach(
        getValue(space.getExpr(expr.second).size));
    break;
  case CoordKind::Shift:
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

bool CoordProgram::advance(unsigned begin, unsigned end) {
  for (unsigned leaf = end; leaf-- > begin;) {
    if (++values[leaf] < extents[leaf])
      return true;
    values[leaf] = 0;
  }
  return false;
}

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
