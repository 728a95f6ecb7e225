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
// The codes of a merge choose the factor that a variable takes; shapes are
// matched as in docs/reference/tensor-level.md, section 4.
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"
#include "kas/Solver/ShapeMatch.h"

using namespace kas;
using namespace kas::search;

/// Merging two tensors of which one is reordered along a dimension would add up
/// different positions. `reorders` has two bits per spatial dimension.
bool KernelStepBuilder::haveSameReorders() const {
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

/// Also with swapped operands, where the step commutes and the shapes are the
/// same.
bool KernelStepBuilder::isMerged() const {
  bool commutes = node.step != KernelStep::Sub;
  return llvm::any_of(data.getNodes(), [&](const FlatNode &other) {
    return other.step == node.step &&
           ((other.left == node.left && other.right == node.right) ||
            (commutes && other.left == node.right && other.right == node.left &&
             other.isAligned));
  });
}

/// Element-wise `left op right`, where the left one is repeated along what only
/// the right one has. Of two tensors of one shape each unordered pair is tried
/// once.
bool KernelStepBuilder::makeMerge() {
  const FlatShape &l = left().shape, &r = right().shape;
  bool commutes = node.step != KernelStep::Sub;
  if (node.left == node.right || !haveSameReorders() || isMerged())
    return false;
  // Both orders would be the same kernel.
  bool isSame = l.hasSameDims(r);
  if (isSame && commutes && node.left > node.right)
    return false;
  // The prefix and the suffix that both shapes share are stripped; the ratio of
  // the rest is how often the left operand is repeated.
  solver::CommonDims common = solver::getCommonDims(l.getDims(), r.getDims());
  node.prefix = static_cast<uint8_t>(common.prefix);
  node.suffix = static_cast<uint8_t>(common.suffix);
  take(rules.broadcast(l, r, node.prefix, node.suffix));
  // The result has the dimensions of the right operand.
  node.reorders = right().reorders;
  node.prefixSize = rules.getProduct(l, {0, node.prefix});
  node.isAligned = isSame;
  // The second implied size is this ratio: it must be an integer, or become one
  // by a substitution.
  SizeId ratio = node.implied[1];
  return ratio != noSize && chooseFactor(ratio);
}

/// Bit i: variable i has a negative exponent.
unsigned KernelStepBuilder::getVariablesBelow(SizeId size) const {
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

/// `right / left = numerator / (x * ...)`: x may be any factor of the
/// numerator. `code` says which one; without such a variable there is one
/// choice, and the ratio must be legal.
bool KernelStepBuilder::chooseFactor(SizeId ratio) {
  unsigned below = getVariablesBelow(ratio);
  if (below == 0)
    return code == 0 && sizes.isLegal(ratio);
  // Two variables in the denominator would have to be solved together.
  if (!llvm::has_single_bit(below))
    return false;
  llvm::ArrayRef<SizeId> factors = sizes.getFactors(ratio);
  if (code >= factors.size())
    return false;
  // The substitution is made for the whole kernel when the step is added.
  pending.variable = llvm::countr_zero(below);
  pending.value = factors[code];
  return true;
}

/// The variants are those that named kernels use: A^T B (scaled or not), A B, A
/// B^T (scaled or not), where a scaled product is divided by the square root of
/// the inner size, as in attention.
bool KernelStepBuilder::makeMatMul() {
  struct Variant {
    bool left, right, scaled;
  };
  static constexpr Variant variants[] = {{true, false, true},
                                         {true, false, false},
                                         {false, false, false},
                                         {false, true, true},
                                         {false, true, false}};
  // Reordered positions would be mixed up, see `haveSameReorders`.
  if (code >= std::size(variants) || left().reorders || right().reorders)
    return false;
  const FlatShape &l = left().shape, &r = right().shape;
  // A leading group dimension of equal size is a batch.
  bool hasBatch = l.hasRole(DimRole::Group) && r.hasRole(DimRole::Group) &&
                  l.dims[0] == r.dims[0];
  node.amount = hasBatch;
  node.transposesLeft = variants[code].left;
  node.transposesRight = variants[code].right;
  node.isScaled = variants[code].scaled;
  auto [rows, inner] = Rules::getMatrix(l, hasBatch, node.transposesLeft);
  auto [other, columns] = Rules::getMatrix(r, hasBatch, node.transposesRight);
  // There must be something to sum over, of equal size on both sides.
  if (inner.first == inner.second ||
      !equalize(rules.getProduct(l, inner), rules.getProduct(r, other)) ||
      hasBatch + rows.second - rows.first + columns.second - columns.first >
          KernelProblem::maxRank)
    return false;
  take(rules.matMul(l, r, hasBatch, node.transposesLeft, node.transposesRight));
  // What was spatial is so only where it stays on that side. The columns come
  // from the right operand; of a transposed one they are its channels.
  unsigned unnamed =
      node.transposesRight ? node.shape.rank : node.shape.numChannels;
  for (unsigned dim = hasBatch; dim < unnamed; ++dim)
    node.shape.roles[dim] = Channel;
  // The product reads all positions of what it sums over.
  for (unsigned dim = 0; dim < l.rank; ++dim)
    if (isSpatial(l.roles[dim]))
      node.covers |= 1u << (l.roles[dim] - Spatial);
  // The inner dimensions are gone, and the others were not reordered.
  node.reorders = 0;
  return !isRepeated();
}

/// Solves a = b for one variable: either one in the denominator of b / a, or
/// one in its numerator, to the first power.
bool KernelStepBuilder::equalize(SizeId a, SizeId b) {
  SizeId ratio = sizes.divide(b, a);
  if (ratio == oneSize)
    return true;
  if (ratio == noSize)
    return false;
  unsigned below = getVariablesBelow(ratio);
  unsigned above = sizes.getVariables(ratio) & ~below;
  unsigned first =
      space.problem->symbols.size() - space.problem->rules.variables.size();
  // `fraction` = (something) / x, so x = something makes it 1.
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
