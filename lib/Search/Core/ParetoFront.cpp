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

/// The volume in the first `axes` dimensions.
static double getVolume(std::vector<llvm::ArrayRef<double>> points,
                        llvm::ArrayRef<double> reference, size_t axes) {
  if (points.empty())
    return 0;
  if (axes == 0)
    return 1;
  size_t last = axes - 1;
  llvm::sort(points, [&](llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
    return a[last] < b[last];
  });
  if (axes == 1)
    return reference[0] - points.front()[0];
  // Between two values of the last axis, all points below them count.
  double volume = 0;
  std::vector<llvm::ArrayRef<double>> below;
  for (size_t index = 0; index < points.size(); ++index) {
    llvm::ArrayRef<double> point = points[index];
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
    double next =
        index + 1 < points.size() ? points[index + 1][last] : reference[last];
    if (next > point[last])
      volume += (next - point[last]) * getVolume(below, reference, last);
  }
  return volume;
}

double kas::search::getHypervolume(llvm::ArrayRef<ObjectivePoint> points,
                                   llvm::ArrayRef<double> reference) {
  std::vector<llvm::ArrayRef<double>> inside;
  for (const ObjectivePoint &point : points)
    if (llvm::all_of(llvm::zip_equal(point, reference), [](auto pair) {
          return std::get<0>(pair) < std::get<1>(pair);
        }))
      inside.push_back(point);
  return getVolume(std::move(inside), reference, reference.size());
}

double
kas::search::getNormalizedHypervolume(llvm::ArrayRef<ObjectivePoint> points) {
  std::vector<ObjectivePoint> finite;
  for (const ObjectivePoint &point : points)
    if (llvm::all_of(point, [](double value) { return std::isfinite(value); }))
      finite.push_back(point);
  if (finite.empty())
    return 0;
  ObjectivePoint best = finite.front(), worst = finite.front();
  for (const ObjectivePoint &point : finite)
    for (size_t axis = 0; axis < point.size(); ++axis) {
      best[axis] = std::min(best[axis], point[axis]);
      worst[axis] = std::max(worst[axis], point[axis]);
    }
  ParetoFront front;
  for (ObjectivePoint &point : finite) {
    for (size_t axis = 0; axis < point.size(); ++axis)
      point[axis] = worst[axis] > best[axis] ? (point[axis] - best[axis]) /
                                                   (worst[axis] - best[axis])
                                             : 0;
    front.insert(0, point);
  }
  std::vector<ObjectivePoint> shares;
  for (const ParetoFront::Member &member : front.getMembers())
    shares.push_back(member.point);
  return getHypervolume(shares, ObjectivePoint(best.size(), 1));
}
