//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopMisses.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas::solver;

/// Units of `unit` elements that `access` touches within the loops `order`.
static double countUnits(const StageNest &nest, const StageNest::Access &access,
                         llvm::ArrayRef<unsigned> order, int64_t unit) {
  double distinct = 1;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 12> steps;
  for (unsigned loop : order) {
    if (!access.dependsOn(loop))
      continue;
    distinct *= nest.loops[loop].extent;
    steps.emplace_back(std::abs(access.strides[loop]), nest.loops[loop].extent);
  }
  llvm::sort(steps);
  // What lies together shares units.
  int64_t reach = 1;
  double perUnit = 1;
  for (auto [stride, extent] : steps) {
    if (stride == 0 || stride >= unit || stride > 2 * reach)
      break;
    int64_t next = stride * (extent - 1) + reach;
    perUnit *= extent;
    reach = next;
    if (reach >= unit) {
      perUnit *= static_cast<double>(unit) / reach;
      break;
    }
  }
  return std::min(distinct / std::max(perUnit, 1.0),
                  static_cast<double>(access.elements));
}

double kas::solver::countMisses(const StageNest &nest,
                                llvm::ArrayRef<unsigned> order, int64_t unit,
                                double capacity) {
  auto count = [&](llvm::ArrayRef<unsigned> inner) {
    double units = countUnits(nest, nest.data, inner, unit) +
                   countUnits(nest, nest.output, inner, unit);
    return nest.hasWeight ? units + countUnits(nest, nest.weight, inner, unit)
                          : units;
  };
  // The largest set of inner loops that fits.
  size_t fitting = 0;
  while (fitting < order.size() &&
         count(order.take_back(fitting + 1)) <= capacity)
    ++fitting;
  if (fitting == order.size())
    return 0;
  double repeats = 1;
  for (unsigned loop : order.drop_back(fitting))
    repeats *= nest.loops[loop].extent;
  auto missesOf = [&](const StageNest::Access &access) {
    // What does not step with the next loop stays.
    double own = repeats;
    for (unsigned loop : llvm::reverse(order.drop_back(fitting))) {
      if (access.dependsOn(loop))
        break;
      own /= nest.loops[loop].extent;
    }
    // Neighbouring iterations of the next loop may share units.
    llvm::ArrayRef<unsigned> wider = order.take_back(fitting + 1);
    double next = nest.loops[wider.front()].extent;
    double shared = access.dependsOn(wider.front())
                        ? countUnits(nest, access, wider, unit) / next
                        : countUnits(nest, access, wider, unit);
    return own *
           std::min(countUnits(nest, access, order.take_back(fitting), unit),
                    std::max(shared, 0.0));
  };
  double misses = missesOf(nest.data) + missesOf(nest.output);
  return nest.hasWeight ? misses + missesOf(nest.weight) : misses;
}
