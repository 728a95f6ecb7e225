//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the states of one search share: sizes, expressions, sets of weights.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_GRAPHSEARCH_GRAPHSPACE_H
#define KAS_LIB_GRAPHSEARCH_GRAPHSPACE_H

#include "kas/GraphSearch/GraphState.h"
#include "kas/GraphSearch/ShapeDistance.h"
#include <array>

namespace kas {

/// The number of an expression in a `GraphSpace`.
using ExprId = uint32_t;

/// A coordinate as an expression; equal ones are one.
struct Expr {
  CoordKind kind = CoordKind::Output;
  SizeId size = SizeTable::one;
  /// Output: its index. Reduce: how many equal ones came before. Else operands.
  uint32_t first = 0;
  /// Split, unfold: the other operand. Merge, stride: the size. Shift: whether
  /// it is by -1.
  uint32_t second = 0;

  auto operator<=>(const Expr &) const = default;
};

/// A coordinate that nothing uses yet, but for weights.
struct LiveCoord {
  enum : uint8_t {
    /// An ordered output is below: it is a position.
    Position = 1,
    /// A stride is below that no unfold has taken in.
    Strided = 2,
    /// Something below is indexed by no weight.
    Unweighted = 4,
  };
  ExprId expr = 0;
  SizeId size = SizeTable::one;
  uint8_t flags = 0;
  /// The weights that index it, one bit each.
  uint8_t weights = 0;
};

/// Tables of one search. Not safe to be used by two threads at once.
class GraphSpace {
public:
  GraphSpace(std::shared_ptr<const SearchProblem> problem,
             const GraphStateOptions &options);

  static constexpr unsigned maxLive = 12;
  static constexpr unsigned maxWeights = 4;

  ExprId intern(const Expr &expr);
  const Expr &getExpr(ExprId id) const { return exprs[id]; }
  /// A hash of the expression that does not depend on the order of interning.
  uint64_t getHash(ExprId id) const { return hashes[id]; }
  /// The same with reductions renamed: `labels` gives the new number by `first`
  /// for those of one size.
  uint64_t getHash(ExprId id,
                   const llvm::DenseMap<ExprId, unsigned> &labels) const;

  uint32_t internWeight(llvm::SmallVector<ExprId, 6> coords);
  llvm::ArrayRef<ExprId> getWeight(uint32_t id) const { return weights[id]; }

  /// The leaves of the split that `id` is, from left to right; itself if none.
  void getFactors(ExprId id, llvm::SmallVectorImpl<ExprId> &factors) const;
  /// The reductions below.
  void getReductions(ExprId id,
                     llvm::SmallVectorImpl<ExprId> &reductions) const;

  /// The size has a primary symbol that only unordered input dimensions have,
  /// so the coordinate can only end in such a one.
  bool isChannel(SizeId size) const;

  const std::shared_ptr<const SearchProblem> problem;
  const GraphStateOptions options;
  SizeTable sizes;
  /// The dimensions that take part: all but a batch.
  llvm::SmallVector<SizeId, 4> targets;
  unsigned firstOutput = 0;
  ShapeDistance distance;
  /// What a reduction may be, in a fixed order.
  llvm::SmallVector<SizeId> reduceSizes;
  /// By multiset of reductions: whether the input can be reached with them or
  /// with more.
  llvm::DenseMap<uint64_t, bool> areReductionsAlive;

private:
  void addReduceSizes(Size size, unsigned symbol, unsigned powers);

  std::deque<Expr> exprs;
  std::deque<uint64_t> hashes;
  llvm::DenseMap<uint64_t, llvm::SmallVector<ExprId, 1>> exprsByHash;
  std::deque<llvm::SmallVector<ExprId, 6>> weights;
  llvm::DenseMap<uint64_t, llvm::SmallVector<uint32_t, 1>> weightsByHash;
};

/// Mixes a value into a hash; the order matters.
constexpr uint64_t combineHash(uint64_t hash, uint64_t value) {
  value += 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  value = (value ^ hash ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

} // namespace kas

#endif // KAS_LIB_GRAPHSEARCH_GRAPHSPACE_H
