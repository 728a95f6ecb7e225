//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps with two operands.
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"
#include "kas/Solver/ShapeMatch.h"

using namespace kas;
using namespace kas::search;

bool StepMaker::haveSameReorders() const {
  for (unsigned dim = 0; dim < left().shape.rank; ++dim) {
    unsigned role = left().shape.roles[dim];
    if (!isSpatial(role) || !right().shape.hasRole(role))
      continue;
    unsigned place = 2 * (role - Spatial);
    if ((left().reorders >> place & 3) != (right().reorders >> place & 3))
      return false;
  }
  return true;
}

bool StepMaker::isMerged() const {
  bool commutes = node.step != KernelStep::Sub;
  return llvm::any_of(data.getNodes(), [&](const FlatNode &other) {
    return other.step == node.step &&
           ((other.left == node.left && other.right == node.right) ||
            (commutes && other.left == node.right && other.right == node.left &&
             other.isAligned));
  });
}

bool StepMaker::makeMerge() {
  const FlatShape &l = left().shape, &r = right().shape;
  bool commutes = node.step != KernelStep::Sub;
  if (node.left == node.right || !haveSameReorders() || isMerged())
    return false;
  bool isSame = l.hasSameDims(r);
  if (isSame && commutes && node.left > node.right)
    return false;
  solver::CommonDims common = solver::getCommonDims(l.getDims(), r.getDims());
  node.prefix = static_cast<uint8_t>(common.prefix);
  node.suffix = static_cast<uint8_t>(common.suffix);
  take(rules.broadcast(l, r, node.prefix, node.suffix));
  node.reorders = right().reorders;
  node.prefixSize = rules.getProduct(l, {0, node.prefix});
  node.isAligned = isSame;
  SizeId ratio = node.implied[1];
  return ratio != noSize && chooseFactor(ratio);
}

unsigned StepMaker::getVariablesBelow(SizeId size) const {
  unsigned mask = 0, first = space.problem->symbols.size() -
                             space.problem->rules.variables.size();
  if (sizes.getVariables(size) == 0)
    return 0;
  for (unsigned number = 0; number < space.problem->rules.variables.size();
       ++number)
    if (sizes[size].getExponent(first + number) < 0)
      mask |= 1u << number;
  return mask;
}

bool StepMaker::chooseFactor(SizeId ratio) {
  unsigned below = getVariablesBelow(ratio);
  if (below == 0)
    return code == 0 && sizes.isLegal(ratio);
  if (!llvm::has_single_bit(below))
    return false;
  llvm::ArrayRef<SizeId> factors = sizes.getFactors(ratio);
  if (code >= factors.size())
    return false;
  pending.variable = llvm::countr_zero(below);
  pending.value = factors[code];
  return true;
}

bool StepMaker::makeMatMul() {
  struct Variant {
    bool left, right, scaled;
  };
  static constexpr Variant variants[] = {{true, false, true},
                                         {true, false, false},
                                         {false, false, false},
                                         {false, true, true},
                                         {false, true, false}};
  if (code >= std::size(variants) || left().reorders || right().reorders)
    return false;
  const FlatShape &l = left().shape, &r = right().shape;
  bool hasBatch = l.hasRole(DimRole::Group) && r.hasRole(DimRole::Group) &&
                  l.dims[0] == r.dims[0];
  node.amount = hasBatch;
  node.transposesLeft = variants[code].left;
  node.transposesRight = variants[code].right;
  node.isScaled = variants[code].scaled;
  auto [rows, inner] = Rules::getMatrix(l, hasBatch, node.transposesLeft);
  auto [other, columns] = Rules::getMatrix(r, hasBatch, node.transposesRight);
  if (inner.first == inner.second ||
      !equalize(rules.getProduct(l, inner), rules.getProduct(r, other)) ||
      hasBatch + rows.second - rows.first + columns.second - columns.first >
          KernelProblem::maxRank)
    return false;
  take(rules.matMul(l, r, hasBatch, node.transposesLeft, node.transposesRight));
  // What was spatial is so only where it stays on that side.
  unsigned unnamed =
      node.transposesRight ? node.shape.rank : node.shape.numChannels;
  for (unsigned dim = hasBatch; dim < unnamed; ++dim)
    node.shape.roles[dim] = Channel;
  for (unsigned dim = 0; dim < l.rank; ++dim)
    if (isSpatial(l.roles[dim]))
      node.covers |= 1u << (l.roles[dim] - Spatial);
  node.reorders = 0;
  return !isRepeated();
}

bool StepMaker::equalize(SizeId a, SizeId b) {
  SizeId ratio = sizes.divide(b, a);
  if (ratio == oneSize)
    return true;
  if (ratio == noSize)
    return false;
  unsigned below = getVariablesBelow(ratio);
  unsigned above = sizes.getVariables(ratio) & ~below;
  unsigned first =
      space.problem->symbols.size() - space.problem->rules.variables.size();
  auto solve = [&](unsigned mask, SizeId fraction) {
    unsigned variable = llvm::countr_zero(mask);
    if (!llvm::has_single_bit(mask) || fraction == noSize ||
        sizes[fraction].getExponent(first + variable) != -1)
      return false;
    pending.variable = static_cast<int>(variable);
    pending.value =
        sizes.multiply(fraction, sizes.intern(Size::symbol(first + variable)));
    return sizes.isLegal(pending.value);
  };
  return below ? solve(below, ratio) : solve(above, sizes.divide(a, b));
}
