//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts the innermost columns of a contraction where a shift takes them around
// the end of a line, so that vectors can be read on either side.
//
//===----------------------------------------------------------------------===//

#include "StridedContraction.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Finds the segments of the innermost columns.
class Segmenter {
public:
  explicit Segmenter(const StridedContraction &contraction)
      : contraction(contraction), column(contraction.columns.back()) {
    for (const Contraction::Loop &loop : contraction.loops)
      ranges.push_back({0, loop.extent - 1});
  }

  SmallVector<ColumnSegment> run() {
    ColumnSegment whole;
    for (const PackedAccess &access : contraction.vectorInputs)
      whole.addresses.push_back(access.address);
    whole.guards = contraction.guards;
    if (!cut(std::move(whole)))
      segments.clear();
    return std::move(segments);
  }

private:
  static constexpr size_t maxSegments = 4;

  /// Adds `segment`, or the parts of it in which everything is linear. False if
  /// there are none or too many of them.
  bool cut(ColumnSegment segment) {
    SmallVector<AffineExpr *> exprs;
    for (AffineExpr &address : segment.addresses)
      exprs.push_back(&address);
    for (Guard &guard : segment.guards)
      exprs.push_back(&guard.expr);
    for (AffineExpr *expr : exprs)
      if (!getCoefficient(*expr, column))
        return cutPeriods(segment, findQuotient(*expr));
    if (segments.size() == maxSegments)
      return false;
    segments.push_back(std::move(segment));
    return true;
  }

  /// The innermost floordiv or mod of `expr` that depends on the column; its
  /// left side is linear in it.
  AffineExpr findQuotient(AffineExpr expr) const {
    AffineExpr found;
    expr.walk([&](AffineExpr part) {
      if (!found && part.isFunctionOfDim(column) &&
          (part.getKind() == AffineExprKind::FloorDiv ||
           part.getKind() == AffineExprKind::Mod))
        found = part;
    });
    return found;
  }

  /// One segment for each value that `quotient` has as a floordiv.
  bool cutPeriods(const ColumnSegment &segment, AffineExpr quotient) {
    if (!quotient)
      return false;
    auto binary = cast<AffineBinaryOpExpr>(quotient);
    AffineExpr dividend = binary.getLHS();
    int64_t divisor = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    Interval interval = getInterval(dividend, ranges);
    int64_t first = llvm::divideFloorSigned(interval.lower, divisor);
    int64_t last = llvm::divideFloorSigned(interval.upper, divisor);
    if (last - first >= static_cast<int64_t>(maxSegments))
      return false;
    MLIRContext *context = quotient.getContext();
    for (int64_t period = first; period <= last; ++period) {
      AffineExpr rest = dividend - period * divisor;
      AffineExpr value = quotient.getKind() == AffineExprKind::Mod
                             ? rest
                             : getAffineConstantExpr(period, context);
      auto replace = [&](AffineExpr expr) {
        return expr.replace(quotient, value);
      };
      ColumnSegment part;
      for (AffineExpr address : segment.addresses)
        part.addresses.push_back(replace(address));
      for (const Guard &guard : segment.guards)
        part.guards.push_back({replace(guard.expr), guard.extent});
      if (first != last)
        part.guards.push_back({rest, divisor});
      if (!cut(std::move(part)))
        return false;
    }
    return true;
  }

  const StridedContraction &contraction;
  unsigned column;
  SmallVector<Interval> ranges;
  SmallVector<ColumnSegment> segments;
};

} // namespace

void StridedContraction::findSegments() { segments = Segmenter(*this).run(); }

bool StridedContraction::hasSteps(ArrayRef<int64_t> allowed) const {
  return !segments.empty() &&
         llvm::all_of(segments, [&](const ColumnSegment &segment) {
           return llvm::all_of(segment.addresses, [&](AffineExpr address) {
             return llvm::is_contained(
                 allowed, *getCoefficient(address, columns.back()));
           });
         });
}
