//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pareto fronts and their hypervolume.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_PARETOFRONT_H
#define KAS_SEARCH_CORE_PARETOFRONT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace kas::search {

/// One value for each objective; less is better. Infinity where it is unknown.
using ObjectivePoint = llvm::SmallVector<double, 4>;

/// `a` is nowhere worse than `b`, and better somewhere.
bool dominates(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b);

/// The points that no other point dominates, each with a number. Of equal
/// points all are kept.
class ParetoFront {
public:
  struct Member {
    uint64_t id = 0;
    ObjectivePoint point;
  };

  /// Adds a point, of the same size as all others, and removes those that it
  /// dominates; false when one dominates it.
  bool insert(uint64_t id, llvm::ArrayRef<double> point);

  /// By point, then by number.
  std::vector<Member> getMembers() const;
  size_t size() const { return members.size(); }
  bool contains(uint64_t id) const;

private:
  std::vector<Member> members;
};

/// The volume that `points` dominate within the box below `reference`: the
/// measure of the set of all x <= reference with a point <= x (Zitzler,
/// Thiele: "Multiobjective Evolutionary Algorithms: A Comparative Case Study
/// and the Strength Pareto Approach", 1999, section 3). Exact, by slices along
/// the last axis; made for fronts of some hundred points in a few dimensions.
double getHypervolume(llvm::ArrayRef<ObjectivePoint> points,
                      llvm::ArrayRef<double> reference);

/// The share of the box between the componentwise best and worst of all
/// `points` that they dominate, in [0, 1]. Axes on which all points are equal
/// count as reached; points with an infinity are left out.
double getNormalizedHypervolume(llvm::ArrayRef<ObjectivePoint> points);

} // namespace kas::search

#endif // KAS_SEARCH_CORE_PARETOFRONT_H
