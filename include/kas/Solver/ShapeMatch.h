//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which values of the free variables let one tensor be broadcast to another, or
// be the output of a kernel: all legal substitutions, for the whole kernel at
// once. Plain data, no ops.
//
// Source: Canvas, section 6.2 (dynamic variable solver by shape matching). The
// model is written out in docs/reference/tensor-level.md.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SOLVER_SHAPEMATCH_H
#define KAS_SOLVER_SHAPEMATCH_H

#include "kas/Solver/SizeRules.h"

namespace kas::solver {

/// The dimensions that a broadcast leaves alone: as many at the front and at
/// the back of both shapes. What is between is the block; the left one is
/// repeated over the right one.
struct CommonDims {
  unsigned prefix = 0, suffix = 0;

  bool operator==(const CommonDims &other) const = default;
};

/// The longest common suffix of both shapes, then the longest common prefix of
/// what is left; sizes are compared as symbols. Dimensions of size 1 count.
template <typename Size>
CommonDims getCommonDims(llvm::ArrayRef<Size> left,
                         llvm::ArrayRef<Size> right) {
  CommonDims common;
  while (!left.empty() && !right.empty() && left.back() == right.back()) {
    ++common.suffix;
    left = left.drop_back();
    right = right.drop_back();
  }
  while (!left.empty() && !right.empty() && left.front() == right.front()) {
    ++common.prefix;
    left = left.drop_front();
    right = right.drop_front();
  }
  return common;
}

/// The left tensor fits the right one when the ratio of their blocks (right to
/// left) is an integer. That of an output is 1.
struct ShapeMatchProblem {
  SizeRules rules;
  llvm::SmallVector<Size, 6> left, right;
  /// Given, or else found by `getCommonDims`. The dimensions named here must be
  /// equal in both shapes.
  std::optional<CommonDims> common;
  /// The ratio must be 1: a tensor that becomes the output of a kernel.
  bool isOutput = false;

  /// The rest of the kernel: its tensors, and sizes that are not dimensions
  /// (the ratio of another broadcast, channels per group). All must stay legal.
  llvm::SmallVector<TensorShape, 0> shapes;
  llvm::SmallVector<Size, 0> sizes;
  /// No tensor in `shapes` may break Theorem 1.
  bool requiresTheorem = false;

  /// At most this many candidates are tried; see `ShapeMatches::isComplete`.
  unsigned maxCandidates = 1u << 16;

  /// Reports rules and given common dimensions that make no sense.
  llvm::Error check() const;
};

struct ShapeMatch {
  /// By variable, ascending; empty when the shapes fit as they are.
  llvm::SmallVector<Substitution, 2> substitutions;
  CommonDims common;
  /// The size of the left block and the ratio, both after the substitution.
  Size leftBlock, ratio;

  bool operator==(const ShapeMatch &other) const = default;
};

struct ShapeMatches {
  /// All of them, in the order of their substitutions.
  llvm::SmallVector<ShapeMatch, 0> matches;
  /// The ratio before any substitution; nothing when it does not fit a `Size`.
  std::optional<Size> ratio;
  /// How many candidates made the ratio legal but not the rest of the kernel.
  unsigned numRejected = 0;
  /// False when `maxCandidates` ended the enumeration.
  bool isComplete = true;
};

/// All matches of a problem that passes `check`. A variable in the denominator
/// of the ratio takes each factor of its numerator (of several, one after the
/// other; the last one of an output is what remains). A variable in the
/// numerator stays free; that of an output is solved when none is in the
/// denominator.
ShapeMatches matchShapes(const ShapeMatchProblem &problem);

/// Reports why `match` is no match of `problem`. Shares no code with the
/// enumeration but the arithmetic of sizes and rules.
llvm::Error verify(const ShapeMatchProblem &problem, const ShapeMatch &match);

} // namespace kas::solver

#endif // KAS_SOLVER_SHAPEMATCH_H
