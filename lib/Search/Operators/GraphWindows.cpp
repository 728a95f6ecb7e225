//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which coordinates can be part of a window that sees neighbours (rule Q1 of
// docs/internals/canonical-form.md).
//
//===----------------------------------------------------------------------===//

#include "CoordProgram.h"
#include "GraphProperties.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// Without an unfold, and without a merge of what has a
/// reduction, a factor of a dimension of the input is one-to-one in digits of
/// the output and in reductions. Positions that differ in such a digit are read
/// by different outputs. So windows that overlap have the same one, all of them
/// do at a stride of 1 or 2, and they are more than half of the image: no digit
/// has two values. A window that is the whole axis is that of all outputs. See
/// docs/internals/search-algorithms.md, "States that cannot see". Decided once
/// per space; `hasDigits` excludes outputs of one point, which have no digits.
bool GraphProperties::needsWindows(const Axis &axis) const {
  bool hasDigits = llvm::all_of(
      llvm::seq<unsigned>(space.firstOutput, space.problem->outputs.size()),
      [&](unsigned index) {
        return space.sizes[space.getExpr(space.getOutput(index)).size].max > 1;
      });
  return hasDigits &&
         llvm::all_of(
             llvm::seq<unsigned>(0, getNumBindings()), [&](unsigned binding) {
               return hasInterior[binding] && axis.windows[binding] > 1 &&
                      (axis.isWhole || axis.strides[binding] <= 2);
             });
}

/// There is such a digit when the dimension has a symbol that no reduction may
/// have. Then the symbol comes from an output, and its digits have to see
/// through an unfold or a merge.
bool GraphProperties::needsUnfold(const Axis &axis) const {
  const SizeInfo &info = space.sizes[space.targets[axis.target]];
  bool isOfOutputs = false;
  for (unsigned index = 0; index < space.sizes.getNumPowers(); ++index)
    isOfOutputs |= space.sizes.getPrimaryMask().get(index) &&
                   info.powers.get(index) > 0 &&
                   space.sizes.getOccurrences().get(index) == 0;
  return isOfOutputs && axis.needsWindows;
}

/// Coordinates with more points than this are taken to see. 2^18 points, for
/// the time that deciding takes. To see is the answer that loses nothing.
static constexpr double maxPoints = 1 << 18;

/// Only coordinates with a window below come into question; the answer is kept
/// with the expression.
bool GraphProperties::canSee(const LiveCoord &coord) {
  if (!(coord.flags & LiveCoord::HasWindow))
    return false;
  (void)getFacts(coord.expr);
  int8_t &known = facts[coord.expr].canSee;
  if (known < 0) {
    Component component = getAlone(coord.expr, -1);
    known = llvm::any_of(axes, [&](const Axis &axis) {
      return axis.needsWindows &&
             llvm::all_of(axis.bySize, [&](unsigned binding) {
               return canSee(component, axis, binding);
             });
    });
  }
  return known;
}

/// Whether the coordinate may be a factor of the dimension of the axis: a place
/// is the product of the factors to the right of it, and the digits there of
/// all positions in the window of an output are values that the coordinate has
/// for this output. Shifts, of it or of splits with it, add one at most. Brute
/// force over the points of this coordinate alone; `values` are those that it
/// has for one output.
bool GraphProperties::canSee(const Component &component, const Axis &axis,
                             unsigned binding) const {
  llvm::SmallVector<ExprId, 8> leaves = component.getLeaves();
  unsigned numOutputs = component.outputs.size();
  unsigned own =
      llvm::find(component.outputs, axis.output) - component.outputs.begin();
  // The output of the axis itself may not be below the coordinate; its position
  // is needed anyway.
  if (own == numOutputs)
    leaves.insert(leaves.begin() + numOutputs++, axis.output);
  CoordProgram program(space, leaves, component.roots, binding);
  int64_t extent =
      space.sizes[space.getExpr(component.roots[0]).size].values[binding];
  double points = 1;
  for (unsigned leaf = 0; leaf < leaves.size(); ++leaf)
    points *= static_cast<double>(program.getExtent(leaf));
  if (points > maxPoints)
    return true;
  // The values of `place` that are still possible; each output excludes some.
  llvm::SmallVector<int64_t, 8> places;
  for (int64_t place = 1; place * extent <= axis.size[binding]; ++place)
    if (axis.size[binding] % (place * extent) == 0)
      places.push_back(place);
  // Shifts that may come later could move the values by up to so much.
  int64_t forward = limits.shift, backward = limits.shiftBackward ? forward : 0;
  llvm::BitVector values(extent);
  // Outputs at the border may see less.
  auto isOutside = [&](unsigned leaf) {
    const Axis *other = getAxisOfOutput(leaves[leaf]);
    return other && !isInterior(*other, binding, program.getLeaf(leaf));
  };
  do {
    if (llvm::any_of(llvm::seq(0u, numOutputs), isOutside))
      continue;
    // All values for this output, and their neighbours by shifts.
    values.reset();
    do {
      if (!program.evaluate())
        continue;
      for (int64_t shift = -backward; shift <= forward; ++shift)
        values.set((program.getRoot(0) + shift + limits.shift * extent) %
                   extent);
    } while (program.advance(numOutputs, program.getNumLeaves()));
    // The window of the output, and the digit of each of its positions.
    int64_t begin = getBegin(axis, binding, program.getLeaf(own));
    llvm::erase_if(places, [&](int64_t place) {
      return llvm::any_of(
          llvm::seq(begin, begin + axis.windows[binding]),
          [&](int64_t position) { return !values[position / place % extent]; });
    });
    if (places.empty())
      return false;
  } while (program.advance(0, numOutputs));
  return true;
}
