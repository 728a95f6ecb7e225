//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules of all devices alike: what a tuner may choose from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_SCHEDULEINTERFACE_H
#define KAS_DIALECT_KAS_IR_SCHEDULEINTERFACE_H

#include "mlir/IR/Attributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>
#include <vector>

namespace kas {

struct ScheduleSpace;

/// A name and a number.
using ScheduleKnob = std::pair<llvm::StringRef, int64_t>;

/// What a cost model says a schedule takes, in the units of its device: halves
/// of a cycle on CPUs, cycles on GPUs. Of equal ones the second decides: on
/// CPUs what panels take for one step of all rows of a tile.
using ScheduleCost = std::pair<double, double>;

/// How a schedule of another operation got to suit.
enum class ScheduleFit {
  /// All its numbers divide the loops here, too.
  Exact,
  /// Some number became the largest that divides and is smaller.
  Divisors,
  /// Some number does not divide: the last tile is narrower or masked; or the
  /// nearest schedule differs.
  Masked,
  /// No schedule of this strategy suits.
  Invalid
};

struct AdaptedPoint {
  ScheduleFit fit = ScheduleFit::Invalid;
  /// A position in the space, unless it is invalid.
  size_t point = 0;
};

} // namespace kas

#include "kas/Dialect/Kas/IR/ScheduleInterface.h.inc"

namespace kas {

/// A schedule that suits an operation.
struct SchedulePoint {
  ScheduleAttrInterface schedule;
  ScheduleCost cost;
  unsigned strategy = 0;
  llvm::SmallVector<ScheduleKnob> knobs;
  std::vector<float> features;
};

/// Every schedule that suits one operation on one device.
struct ScheduleSpace {
  /// Each once. Never empty.
  std::vector<SchedulePoint> points;
  /// Iterations of a contraction's loops, by what steps with them; where the
  /// device's schedules depend on them.
  int64_t batches = 1, rows = 1, columns = 1, reductions = 1;
  /// Iterations of the innermost of these loops; 1 where there is none.
  int64_t innermostRows = 1, innermostColumns = 1, outermostReduction = 1;
  /// Elements of a vector, and vector registers.
  int64_t lanes = 1, registers = 1;
  /// The least first cost of all points.
  double leastCost = 0;
  /// A point that stands for code without a cost model and without a tuner;
  /// none where nothing like that suits.
  std::optional<size_t> fixed;

  void add(ScheduleAttrInterface schedule, ScheduleCost cost = {});
  /// Sets `leastCost` and the features, when all else is known.
  void computeFeatures();
  /// The space as a search sees it that has no cost model: all points are alike
  /// to it.
  ScheduleSpace forgetCosts() const;

  /// The point that is nearest to a schedule of another operation; invalid for
  /// a null one and for one of another device.
  AdaptedPoint adapt(ScheduleAttrInterface recorded) const;
  /// How far the loops of this operation are from those of another one, by the
  /// features of a schedule of it: the distance of the logarithms of their
  /// iterations.
  double getLoopDistance(llvm::ArrayRef<float> features) const;
};

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_SCHEDULEINTERFACE_H
