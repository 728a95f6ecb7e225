//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Points that no other point dominates, and the volume that they dominate.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/ParetoFront.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace kas;
using namespace kas::search;

/// Equal points do not dominate each other. NaN must not occur: it compares
/// false both ways and would count as equal.
bool kas::search::dominates(llvm::ArrayRef<double> a,
                            llvm::ArrayRef<double> b) {
  bool isBetter = false;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    if (x > y)
      return false;
    isBetter |= x < y;
  }
  return isBetter;
}

/// O(front). A new point can remove several members, but only if none dominates
/// it.
bool ParetoFront::insert(uint64_t id, llvm::ArrayRef<double> point) {
  for (const Member &member : members)
    if (dominates(member.point, point))
      return false;
  llvm::erase_if(members, [&](const Member &member) {
    return dominates(point, member.point);
  });
  members.push_back({id, ObjectivePoint(point)});
  return true;
}

/// Sorted, so that reports do not depend on the order in which candidates were
/// evaluated.
std::vector<ParetoFront::Member> ParetoFront::getMembers() const {
  std::vector<Member> sorted = members;
  llvm::sort(sorted, [](const Member &a, const Member &b) {
    return std::tie(a.point, a.id) < std::tie(b.point, b.id);
  });
  return sorted;
}

bool ParetoFront::contains(uint64_t id) const {
  return llvm::any_of(members,
                      [&](const Member &member) { return member.id == id; });
}

/// The volume in the first `axes` dimensions. Hypervolume by slicing
/// objectives: sort by the last axis, cut at each value, and multiply the
/// thickness of each slice by the volume, one dimension lower, of the points
/// that reach it. Each axis more costs a factor of the number of points; 2 or 3
/// are usual. All points are below `reference` in all axes.
static double getVolume(std::vector<llvm::ArrayRef<double>> points,
                        llvm::ArrayRef<double> reference, size_t axes) {
  if (points.empty())
    return 0;
  // The volume in no dimensions is that of a single point.
  if (axes == 0)
    return 1;
  size_t last = axes - 1;
  llvm::sort(points, [&](llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
    return a[last] < b[last];
  });
  // One axis: the interval from the least point to the reference.
  if (axes == 1)
    return reference[0] - points.front()[0];
  // Between two values of the last axis, all points below them count.
  double volume = 0;
  // The points of the current slice, without those that others cover in the
  // axes that are left: covered ones add no volume but cost time.
  std::vector<llvm::ArrayRef<double>> below;
  for (size_t index = 0; index < points.size(); ++index) {
    llvm::ArrayRef<double> point = points[index];
    // Coordinates without the last axis.
    auto head = point.take_front(last);
    auto covers = [&](llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
      return llvm::all_of(llvm::zip_equal(a, b), [](auto pair) {
        return std::get<0>(pair) <= std::get<1>(pair);
      });
    };
    if (llvm::none_of(below, [&](llvm::ArrayRef<double> other) {
          return covers(other.take_front(last), head);
        })) {
      llvm::erase_if(below, [&](llvm::ArrayRef<double> other) {
        return covers(head, other.take_front(last));
      });
      below.push_back(point);
    }
    // The last slice ends at the reference.
    double next =
        index + 1 < points.size() ? points[index + 1][last] : reference[last];
    // Equal values in the last axis make an empty slice.
    if (next > point[last])
      volume += (next - point[last]) * getVolume(below, reference, last);
  }
  return volume;
}

double kas::search::getHypervolume(llvm::ArrayRef<ObjectivePoint> points,
                                   llvm::ArrayRef<double> reference) {
  std::vector<llvm::ArrayRef<double>> inside;
  // A point on or beyond the border of the box dominates nothing inside.
  for (const ObjectivePoint &point : points)
    if (llvm::all_of(llvm::zip_equal(point, reference), [](auto pair) {
          return std::get<0>(pair) < std::get<1>(pair);
        }))
      inside.push_back(point);
  return getVolume(std::move(inside), reference, reference.size());
}

/// Scale-free: each axis is mapped to [0, 1] by the best and worst finite
/// value, so fronts with units as different as FLOPs and accuracy give
/// comparable numbers. It depends on all points, not only on the front, so
/// numbers of different searches are comparable only over the same candidates.
double
kas::search::getNormalizedHypervolume(llvm::ArrayRef<ObjectivePoint> points) {
  std::vector<ObjectivePoint> finite;
  for (const ObjectivePoint &point : points)
    if (llvm::all_of(point, [](double value) { return std::isfinite(value); }))
      finite.push_back(point);
  if (finite.empty())
    return 0;
  // The ideal point and the nadir over all points.
  ObjectivePoint best = finite.front(), worst = finite.front();
  for (const ObjectivePoint &point : finite)
    for (size_t axis = 0; axis < point.size(); ++axis) {
      best[axis] = std::min(best[axis], point[axis]);
      worst[axis] = std::max(worst[axis], point[axis]);
    }
  // Only the front contributes, and slicing is cheaper on fewer points.
  ParetoFront front;
  for (ObjectivePoint &point : finite) {
    for (size_t axis = 0; axis < point.size(); ++axis)
      // An axis with one value has no extent: all points have reached its best.
      point[axis] = worst[axis] > best[axis] ? (point[axis] - best[axis]) /
                                                   (worst[axis] - best[axis])
                                             : 0;
    // The number of a member is of no use here.
    front.insert(0, point);
  }
  std::vector<ObjectivePoint> shares;
  for (const ParetoFront::Member &member : front.getMembers())
    shares.push_back(member.point);
  return getHypervolume(shares, ObjectivePoint(best.size(), 1));
}
