//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Transfer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace kas;
using namespace kas::codegen;
using namespace kas::tuning;

namespace {
enum Number { Rows, Columns, Vectors, Tile, Depth };
} // namespace

/// The iterations that a number of `strategy` cuts, when `chosen` holds the
/// numbers before it.
static int64_t getExtent(Number number, CPUStrategy strategy,
                         const ScheduleSpace &space,
                         const ScheduleNumbers &chosen) {
  switch (number) {
  case Rows:
    return space.innermostRows;
  case Columns:
    return strategy == CPUStrategy::Direct
               ? space.columns / space.innermostColumns
               : space.columns;
  case Vectors: {
    int64_t elements = strategy == CPUStrategy::RowVectors ? space.rows
                       : strategy == CPUStrategy::Panels
                           ? chosen[Tile]
                           : space.innermostColumns;
    return llvm::divideCeil(elements, space.lanes);
  }
  case Tile:
    return space.columns;
  case Depth:
    return space.outermostReduction;
  }
  llvm_unreachable("all numbers are handled");
}

/// One of `allowed` for `recorded`, and how it fits; 0 if there is none.
static std::pair<int64_t, ScheduleFit>
choose(int64_t recorded, const std::set<int64_t> &allowed, int64_t extent) {
  if (recorded == 0)
    return {0, ScheduleFit::Exact};
  bool isAllowed = allowed.count(recorded);
  if (isAllowed && extent % recorded == 0)
    return {recorded, ScheduleFit::Exact};
  for (int64_t number : llvm::reverse(allowed))
    if (number < recorded && number * 2 > recorded && extent % number == 0)
      return {number, ScheduleFit::Divisors};
  if (isAllowed)
    return {recorded, ScheduleFit::Masked};
  for (int64_t number : llvm::reverse(allowed))
    if (number < recorded)
      return {number, extent % number == 0 ? ScheduleFit::Divisors
                                           : ScheduleFit::Masked};
  return {0, ScheduleFit::Invalid};
}

AdaptedSchedule kas::tuning::adaptSchedule(CPUScheduleAttr recorded,
                                           const ScheduleSpace &space) {
  std::vector<ScheduleNumbers> left;
  for (const PlannedSchedule &point : space.points)
    if (point.schedule.getStrategy() == recorded.getStrategy())
      left.push_back(getNumbers(point.schedule));
  if (left.empty())
    return {};
  AdaptedSchedule result{ScheduleFit::Exact, nullptr};
  ScheduleNumbers wanted = getNumbers(recorded), chosen = {};
  for (Number number : {Tile, Depth, Vectors, Columns, Rows}) {
    std::set<int64_t> allowed;
    for (const ScheduleNumbers &point : left)
      allowed.insert(point[number]);
    auto [value, fit] =
        choose(wanted[number], allowed,
               getExtent(number, recorded.getStrategy(), space, chosen));
    if (fit == ScheduleFit::Invalid)
      return {};
    if (wanted[number] == 0 && allowed.size() == 1)
      value = *allowed.begin();
    result.fit = std::max(result.fit, fit);
    chosen[number] = value;
    llvm::erase_if(left, [&, number = number,
                          value = value](const ScheduleNumbers &point) {
      return value != 0 && point[number] != value;
    });
    if (left.empty())
      return {};
  }
  // What a schedule does not say is what the first one that suits has.
  result.schedule =
      getSchedule(recorded.getContext(), recorded.getStrategy(), left.front());
  return result;
}
