//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An index of a tensor as a function of loops, as plain data.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_INDEXEXPR_H
#define KAS_SCHEDULE_INDEXEXPR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <optional>

namespace kas::schedule {

/// The values that an expression may take, both included.
struct Interval {
  int64_t lower = 0, upper = 0;
};

struct IndexExpr;

/// A loop, or the floored quotient of an expression by a positive constant, or
/// its remainder; times a factor.
struct IndexTerm {
  enum class Kind : uint8_t { Loop, Quotient, Remainder };

  Kind kind = Kind::Loop;
  unsigned loop = 0;
  int64_t factor = 1, divisor = 1;
  std::shared_ptr<const IndexExpr> dividend;

  bool dependsOn(unsigned other) const;
  /// But for the factor.
  bool isSame(const IndexTerm &other) const;
};

/// A constant and a sum of terms. The normal form: no two of them differ in
/// their factors only, so that differences cancel. Terms are in the order of
/// insertion, which makes what is printed of them deterministic.
struct IndexExpr {
  llvm::SmallVector<IndexTerm, 4> terms;
  int64_t constant = 0;

  static IndexExpr getConstant(int64_t value);
  static IndexExpr getLoop(unsigned loop);

  /// Adds `factor` times `term`, or times `other`.
  void add(const IndexTerm &term, int64_t factor);
  void add(const IndexExpr &other, int64_t factor);

  bool dependsOn(unsigned loop) const;
  bool isLinear() const;
  /// What it steps by with each iteration of `loop`, if it is linear in it.
  std::optional<int64_t> getCoefficient(unsigned loop) const;
  /// Bounds where loop i is in `ranges[i]`. Sound; tight for sums in which each
  /// loop occurs once.
  Interval getInterval(llvm::ArrayRef<Interval> ranges) const;
  /// The same of what `loops[i]` stands for in the place of loop i.
  IndexExpr replaceLoops(llvm::ArrayRef<IndexExpr> loops) const;
  /// Without the terms whose value is the same in all of `ranges`; quotients
  /// and remainders that cannot matter go away, and a quotient with its
  /// remainder becomes what was divided.
  IndexExpr simplify(llvm::ArrayRef<Interval> ranges) const;
  /// The floored quotient by a positive `divisor`, or the remainder,
  /// simplified.
  IndexExpr divide(int64_t divisor, bool isRemainder,
                   llvm::ArrayRef<Interval> ranges) const;

  friend bool operator==(const IndexExpr &a, const IndexExpr &b);
};

} // namespace kas::schedule

#endif // KAS_SCHEDULE_INDEXEXPR_H
