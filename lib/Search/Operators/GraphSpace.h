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

#ifndef LIB_SEARCH_OPERATORS_GRAPHSPACE_H
#define LIB_SEARCH_OPERATORS_GRAPHSPACE_H

#include "StagedCost.h"
#include "kas/Search/Operators/GraphState.h"
#include "kas/Search/Operators/ShapeDistance.h"
#include "kas/Support/FlatMap.h"
#include <chrono>

namespace kas::search {

/// The number of an expression in a `GraphSpace`.
using ExprId = uint32_t;

/// A coordinate as an expression; equal ones are one. 16 bytes, compared and
/// hashed by content.
struct Expr {
  CoordKind kind = CoordKind::Output;
  SizeId size = SizeTable::one;
  /// Output: its index. Reduce: how many equal ones came before. Else operands.
  uint32_t first = 0;
  /// Split, unfold: the other operand. Merge, stride: the size. Shift: whether
  /// it is by -1.
  uint32_t second = 0;

  bool operator==(const Expr &) const = default;
};

/// Mixes a value into a hash; the order matters.
constexpr uint64_t combineHash(uint64_t hash, uint64_t value) {
  return mixBits(hash * 0x9e3779b97f4a7c15ull + value + 0x7f4a7c15f39cc060ull);
}

/// Counts questions to the distance and times some of them. One in 64 is timed:
/// reading the clock costs about as much as an answer.
struct QueryTimer {
  using Clock = std::chrono::steady_clock;
  uint64_t count = 0, numTimed = 0;
  double nanoseconds = 0;

  template <typename Function>
  auto measure(Function ask) {
    if (count++ % 64 != 0)
      return ask();
    Clock::time_point begin = Clock::now();
    auto answer = ask();
    nanoseconds +=
        std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    ++numTimed;
    return answer;
  }
  double getAverage() const {
    return numTimed ? nanoseconds / static_cast<double>(numTimed) : 0;
  }
};

class GraphProperties;

/// Tables of one search. Not safe to be used by two threads at once. Numbers of
/// sizes, expressions and weights depend on the order of first use; nothing
/// that is visible outside does.
class GraphSpace {
public:
  GraphSpace(std::shared_ptr<const SearchProblem> problem,
             const GraphStateOptions &options);
  ~GraphSpace();

  /// Enough for the output's dimensions, reductions and merges together; codes
  /// have 2 bits for each in 32 bits.
  static constexpr unsigned maxLive = 16;
  /// Codes and masks have a bit for each.
  static constexpr unsigned maxWeights = 4;

  ExprId intern(const Expr &expr);
  const Expr &getExpr(ExprId id) const { return exprs[id].expr; }
  /// A hash of the expression that does not depend on the order of interning.
  uint64_t getHash(ExprId id) const { return exprs[id].hash; }
  /// The same for expressions that differ only in which of equal reductions
  /// they hold (and, when axes may be swapped, which of equal outputs).
  uint64_t getShapeHash(ExprId id) const { return exprs[id].shapeHash; }

  /// A sum over the parts of the expression on which the sizes of intermediate
  /// tensors depend: splits, shifts and strides count as what they are made of.
  uint64_t getCostHash(ExprId id) const { return exprs[id].costHash; }

  /// The coordinate of a dimension of the output.
  ExprId getOutput(unsigned index) {
    return intern({CoordKind::Output,
                   sizes.intern(problem->outputs[index].size), index, 0});
  }

  uint32_t internWeight(llvm::ArrayRef<ExprId> coords);
  /// In the order of interning.
  llvm::ArrayRef<ExprId> getWeight(uint32_t id) const {
    return weights[id].coords;
  }
  uint64_t getWeightHash(uint32_t id) const { return weights[id].hash; }

  /// The leaves of the split that `id` is, from left to right; itself if none.
  void getFactors(ExprId id, llvm::SmallVectorImpl<ExprId> &factors) const;

  /// The size has a primary symbol that only unordered input dimensions have,
  /// so the coordinate can only end in such a one.
  bool isChannel(SizeId size) const {
    return !(sizes[size].powers & channelMask).isZero();
  }
  /// Outputs that may be exchanged for each other (all axes at once).
  bool isSwappable(const Expr &output) const {
    return problem->limits.swapAxes &&
           !problem->outputs[output.first].isUnordered;
  }

  const std::shared_ptr<const SearchProblem> problem;
  const GraphStateOptions options;
  SizeTable sizes;
  unsigned firstOutput = 0;
  /// The dimensions of the input that take part: all but a batch.
  llvm::SmallVector<SizeId, 4> targets;
  ShapeDistance distance;
  /// What a reduction may be, in a fixed order.
  llvm::SmallVector<SizeId> reduceSizes;
  /// By binding: the most points that all reductions may have.
  llvm::SmallVector<double, 4> maxReducePoints;
  /// By multiset of reductions: whether the input can be reached with them or
  /// with more.
  FlatMap<int8_t> areReductionsAlive;
  StagedCost cost;
  QueryTimer queries;
  /// Null when the problem asks for none.
  std::unique_ptr<GraphProperties> properties;

  /// FLOPs that were worked out, negative when they were not; a newer one takes
  /// the place of an older one. A cache of 65536 entries, by the low bits of
  /// the key.
  struct KnownFlops {
    uint64_t key = 0;
    double value = -1;
  };
  KnownFlops &getKnownFlops(uint64_t key) {
    KnownFlops &known = knownFlops[key % knownFlops.size()];
    if (known.key != key)
      known = {key, -1};
    return known;
  }

private:
  void addReduceSizes(unsigned index, Powers powers);
  uint64_t computeHash(const Expr &expr, bool isShape) const;
  uint64_t computeCostHash(const Expr &expr, uint64_t hash) const;

  struct ExprEntry {
    Expr expr;
    uint64_t hash, shapeHash, costHash;
  };
  struct WeightEntry {
    llvm::SmallVector<ExprId, 8> coords;
    uint64_t hash;
  };
  /// All ones in the exponents of symbols that only unordered dimensions have.
  Powers channelMask;
  std::vector<ExprEntry> exprs;
  FlatMap<ExprId> exprIds;
  std::vector<WeightEntry> weights;
  FlatMap<uint32_t> weightIds;
  std::vector<KnownFlops> knownFlops;
};

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_GRAPHSPACE_H
