//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts the innermost columns of a nest where a shift takes them around the end
// of a line, so that vectors can be read on either side.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/LoopNest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas::schedule;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Finds the segments of the innermost columns.
class Segmenter {
public:
  explicit Segmenter(const TileNest &nest)
      : nest(nest), column(nest.columns.back()) {
    for (const Loop &loop : nest.loops)
      ranges.push_back({0, loop.extent - 1});
  }

  SmallVector<ColumnSegment, 1> run() {
    ColumnSegment whole;
    for (const IndexedTensor &input : nest.vectorInputs)
      whole.addresses.push_back(input.address);
    whole.guards = nest.guards;
    if (!cut(std::move(whole)))
      segments.clear();
    return std::move(segments);
  }

private:
  static constexpr size_t maxSegments = 4;

  /// Adds `segment`, or the parts of it in which everything is linear. False if
  /// there are none or too many of them.
  bool cut(ColumnSegment segment) {
    const IndexTerm *quotient = nullptr;
    for (const IndexExpr &address : segment.addresses)
      quotient = quotient ? quotient : findQuotient(address);
    for (const Guard &guard : segment.guards)
      quotient = quotient ? quotient : findQuotient(guard.expr);
    if (quotient)
      return cutPeriods(segment, *quotient);
    if (segments.size() == maxSegments)
      return false;
    segments.push_back(std::move(segment));
    return true;
  }

  /// The innermost quotient or remainder in `expr` that depends on the column,
  /// or null: what it divides is linear in the column.
  const IndexTerm *findQuotient(const IndexExpr &expr) const {
    for (const IndexTerm &term : expr.terms) {
      if (!term.dividend || !term.dependsOn(column))
        continue;
      const IndexTerm *inner = findQuotient(*term.dividend);
      return inner ? inner : &term;
    }
    return nullptr;
  }

  /// `expr` with `value` in the place of `quotient`.
  static IndexExpr replace(const IndexExpr &expr, const IndexTerm &quotient,
                           const IndexExpr &value) {
    IndexExpr result = IndexExpr::getConstant(expr.constant);
    for (const IndexTerm &term : expr.terms) {
      if (term.isSame(quotient)) {
        result.add(value, term.factor);
        continue;
      }
      IndexTerm copy = term;
      if (term.dividend)
        copy.dividend = std::make_shared<const IndexExpr>(
            replace(*term.dividend, quotient, value));
      result.add(copy, 1);
    }
    return result;
  }

  /// One segment for each value that `quotient` has as a quotient.
  bool cutPeriods(const ColumnSegment &segment, const IndexTerm &quotient) {
    const IndexExpr &dividend = *quotient.dividend;
    int64_t divisor = quotient.divisor;
    Interval interval = dividend.getInterval(ranges);
    int64_t first = llvm::divideFloorSigned(interval.lower, divisor);
    int64_t last = llvm::divideFloorSigned(interval.upper, divisor);
    if (last - first >= static_cast<int64_t>(maxSegments))
      return false;
    for (int64_t period = first; period <= last; ++period) {
      IndexExpr rest = dividend;
      rest.constant -= period * divisor;
      IndexExpr value = quotient.kind == IndexTerm::Kind::Remainder
                            ? rest
                            : IndexExpr::getConstant(period);
      ColumnSegment part;
      for (const IndexExpr &address : segment.addresses)
        part.addresses.push_back(replace(address, quotient, value));
      for (const Guard &guard : segment.guards)
        part.guards.push_back(
            {replace(guard.expr, quotient, value), guard.extent});
      if (first != last)
        part.guards.push_back({rest, divisor});
      if (!cut(std::move(part)))
        return false;
    }
    return true;
  }

  const TileNest &nest;
  unsigned column;
  SmallVector<Interval, 12> ranges;
  SmallVector<ColumnSegment, 1> segments;
};

} // namespace

void TileNest::findSegments() { segments = Segmenter(*this).run(); }

bool TileNest::hasStrides(ArrayRef<int64_t> allowed) const {
  return !segments.empty() &&
         llvm::all_of(segments, [&](const ColumnSegment &segment) {
           return llvm::all_of(
               segment.addresses, [&](const IndexExpr &address) {
                 return llvm::is_contained(
                     allowed, *address.getCoefficient(columns.back()));
               });
         });
}
