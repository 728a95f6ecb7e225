//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by schedules of all devices: their text, spaces with costs,
// and adapting a recorded schedule to another operation.
// Each device's attribute implements the interface (CPUSchedule.cpp,
// GPUSchedule.cpp); the tuner and its database see only this
// (docs/guide/tuning.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/ScheduleInterface.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace kas;

#include "kas/Dialect/Kas/IR/ScheduleInterface.cpp.inc"

std::string ScheduleAttrInterface::getText() const {
  std::string text;
  if (*this)
    llvm::raw_string_ostream(text) << *this;
  return text;
}

void ScheduleSpace::add(ScheduleAttrInterface schedule, ScheduleCost cost) {
  points.push_back(
      {schedule, cost, schedule.getStrategyNumber(), schedule.getKnobs(), {}});
}

/// Last, since features may depend on the least cost.
void ScheduleSpace::computeFeatures() {
  leastCost = points.front().cost.first;
  for (const SchedulePoint &point : points)
    leastCost = std::min(leastCost, point.cost.first);
  for (SchedulePoint &point : points)
    point.features = point.schedule.getFeatures(*this, point.cost);
}

/// For measuring how much a cost model helps a search.
ScheduleSpace ScheduleSpace::forgetCosts() const {
  ScheduleSpace alike = *this;
  for (SchedulePoint &point : alike.points)
    point.cost = {1, 0};
  alike.computeFeatures();
  return alike;
}

AdaptedPoint ScheduleSpace::adapt(ScheduleAttrInterface recorded) const {
  // Schedules of one kind are for one device.
  ScheduleAttrInterface here = points.front().schedule;
  if (!recorded || recorded.getTypeID() != here.getTypeID())
    return {};
  return recorded.adapt(*this);
}

/// Euclidean, over logarithms: twice the rows is as far from here as half.
double ScheduleSpace::getLoopDistance(llvm::ArrayRef<float> features) const {
  const SchedulePoint &here = points.front();
  double sum = 0;
  for (auto [a, b] :
       llvm::zip_equal(here.schedule.getLoopFeatures(features),
                       here.schedule.getLoopFeatures(here.features)))
    sum += std::pow(static_cast<double>(a) - b, 2);
  return std::sqrt(sum);
}
