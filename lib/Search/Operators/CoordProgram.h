//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of coordinates at one binding, point by point.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_COORDPROGRAM_H
#define LIB_SEARCH_OPERATORS_COORDPROGRAM_H

#include "GraphSpace.h"

namespace kas::search {

/// Expressions as steps over the values of their leaves: outputs, reductions.
class CoordProgram {
public:
  /// `leaves` are at least those of `roots`. With `wraps`, the windows of
  /// unfolds go on at the other end, so that all points exist.
  CoordProgram(const GraphSpace &space, llvm::ArrayRef<ExprId> leaves,
               llvm::ArrayRef<ExprId> roots, unsigned binding,
               bool wraps = false);

  unsigned getNumLeaves() const { return extents.size(); }
  int64_t getExtent(unsigned leaf) const { return extents[leaf]; }
  int64_t getLeaf(unsigned leaf) const { return values[leaf]; }
  /// The value of a leaf is set without a check against its extent.
  void setLeaf(unsigned leaf, int64_t value) { values[leaf] = value; }

  /// Goes to the next values of the leaves from `begin` to `end`, the last one
  /// fastest; false, with all of them 0, after the last ones.
  bool advance(unsigned begin, unsigned end);
  /// Goes back to their first values. The range is that of `advance`.
  void reset(unsigned begin, unsigned end) {
    std::fill(values.begin() + begin, values.begin() + end, 0);
  }

  /// Runs the steps; false when the point does not exist.
  bool evaluate();
  /// Of the point that was evaluated last.
  int64_t getRoot(unsigned root) const { return values[roots[root]]; }

private:
  unsigned add(const GraphSpace &space, ExprId id);

  /// One result each; leaves are not steps.
  struct Step {
    CoordKind kind;
    unsigned first, second;
    /// What is added, multiplied or divided by.
    int64_t parameter, extent;
  };
  /// Kept for `add`; values do not change afterwards.
  unsigned binding;
  bool wraps;
  /// By value: the expression that it is of.
  llvm::SmallVector<ExprId, 16> known;
  llvm::SmallVector<int64_t, 8> extents;
  llvm::SmallVector<Step, 16> steps;
  /// Where the values of the roots are.
  llvm::SmallVector<unsigned, 8> roots;
  /// Of the leaves, then of the steps.
  llvm::SmallVector<int64_t, 24> values;
};

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_COORDPROGRAM_H
