//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts the points of a loop nest at which all guards hold.
// Exponential in the axes of one guard in the worst case, but intervals cut
// most of it: for a window only the values near the two borders are fixed one
// by one.
//
//===----------------------------------------------------------------------===//
#include "kas/Dialect/Kas/Analysis/IterationCount.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace kas;

namespace {
/// Counts the values of axes at which guards hold, one axis fixed after the
/// other; not further where bounds decide.
class PointCounter {
public:
  explicit PointCounter(ArrayRef<Axis> axes)
      : ranges(llvm::map_to_vector(axes, [](const Axis &axis) {
          return Interval{0, axis.extent - 1};
        })) {}

  /// Points of `axes` (the others are fixed, or do not matter).
  int64_t count(ArrayRef<Guard> guards, const llvm::SmallBitVector &axes) {
    SmallVector<Guard> open;
    for (const Guard &guard : guards) {
      Interval values = getInterval(guard.expr, ranges);
      // Never holds here.
      if (values.upper < 0 || values.lower >= guard.extent)
        return 0;
      // Neither always nor never: still open.
      if (values.lower < 0 || values.upper >= guard.extent)
        open.push_back(guard);
    }
    if (open.empty()) {
      int64_t points = 1;
      for (unsigned axis : axes.set_bits())
        points *= getExtent(axis);
      return points;
    }
    // One axis is fixed to each of its values.
    unsigned fixed = findAxis(open);
    llvm::SmallBitVector rest = axes;
    rest.reset(fixed);
    int64_t points = 0;
    const Interval all = ranges[fixed];
    for (int64_t value = all.lower; value <= all.upper; ++value) {
      ranges[fixed] = {value, value};
      points += count(open, rest);
    }
    ranges[fixed] = all;
    return points;
  }

private:
  int64_t getExtent(unsigned axis) const {
    return ranges[axis].upper - ranges[axis].lower + 1;
  }

  /// The shortest axis that a guard still depends on. (Bounds are those of the
  /// values once all of them are fixed.)
  unsigned findAxis(ArrayRef<Guard> guards) const {
    std::optional<unsigned> best;
    guards.front().expr.walk([&](AffineExpr part) {
      auto dim = dyn_cast<AffineDimExpr>(part);
      if (dim && getExtent(dim.getPosition()) > 1 &&
          (!best || getExtent(dim.getPosition()) < getExtent(*best)))
        best = dim.getPosition();
    });
    assert(best && "an expression of fixed axes has one value");
    return *best;
  }

  SmallVector<Interval> ranges;
};
} // namespace

static llvm::SmallBitVector getAxes(const Guard &guard, unsigned numAxes) {
  llvm::SmallBitVector used(numAxes);
  guard.expr.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      used.set(dim.getPosition());
  });
  return used;
}

/// Example: a 3x3 window over 56x56 positions. Height and width are two classes
/// of (56, 3) axes; each has 56 * 3 - 2 points, and channels multiply.
int64_t kas::countIterations(ArrayRef<Axis> axes, ArrayRef<Guard> guards) {
  // Guards on different axes are independent of each other.
  llvm::IntEqClasses classes(axes.size());
  for (const Guard &guard : guards) {
    llvm::SmallBitVector used = getAxes(guard, axes.size());
    // Axes that a guard has together are one class; classes multiply.
    for (unsigned axis : used.set_bits())
      classes.join(used.find_first(), axis);
  }
  PointCounter counter(axes);
  int64_t points = 1;
  for (unsigned leader = 0; leader < axes.size(); ++leader) {
    if (classes.findLeader(leader) != leader)
      continue;
    llvm::SmallBitVector members(axes.size());
    for (unsigned axis = leader; axis < axes.size(); ++axis)
      members[axis] = classes.findLeader(axis) == leader;
    SmallVector<Guard> own;
    for (const Guard &guard : guards)
      if (getAxes(guard, axes.size()).anyCommon(members))
        own.push_back(guard);
    points *= counter.count(own, members);
  }
  // What depends on no axis holds everywhere or nowhere.
  for (const Guard &guard : guards)
    if (getAxes(guard, axes.size()).none())
      points *= counter.count(guard, llvm::SmallBitVector(axes.size()));
  return points;
}
