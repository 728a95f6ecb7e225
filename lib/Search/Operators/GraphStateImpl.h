//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state of the search for operators: plain data.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_GRAPHSTATEIMPL_H
#define LIB_SEARCH_OPERATORS_GRAPHSTATEIMPL_H

#include "GraphSpace.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstring>

namespace kas::search {

/// The kinds of moves, in canonical order.
enum GraphMove : uint32_t {
  ReduceMove,
  ContractMove,
  StrideMove,
  MergeMove,
  UnfoldMove,
  SplitMove,
  ShiftMove,
  ExpandMove,
  FinishMove,
  NumGraphMoves
};

/// A coordinate that nothing uses yet, but for weights. 40 bytes; states have
/// 16 at most.
struct LiveCoord {
  enum : uint8_t {
    /// A reduction, an unordered output, or a half of one.
    Unordered = 1,
    /// A split whose factors are in ascending order.
    Ascending = 2,
    /// A stride is below that no unfold has taken in.
    Strided = 4,
    /// A reduction is below that no weight indexes.
    Unweighted = 8,
    /// An output is below.
    HasOutput = 16,
    /// An ordered output is below.
    HasPosition = 32,
    /// A reduction is below.
    HasReduction = 64,
    /// An unfold or a merge of what has a reduction is below.
    HasWindow = 128,
  };
  /// An end of a coordinate as a number of mixed radix, to see what a split
  /// would undo: the kind in 2 bits, the weights that index it in 4, and the
  /// coordinate that was cut there. The coordinate is in the bits from 6 on, so
  /// that two ends are equal if all agree.
  enum End : uint32_t { Opaque = 0, ReduceEnd = 1, HighCut = 2, LowCut = 3 };
  static constexpr uint32_t makeCut(End end, ExprId whole) {
    return end | whole << 6;
  }

  ExprId expr = 0;
  SizeId size = SizeTable::one;
  /// The largest key of a move since it was made, and since it was made or
  /// last indexed by a weight.
  uint64_t sinceMade = 0, sinceShared = 0;
  uint32_t left = Opaque, right = Opaque;
  CoordKind kind = CoordKind::Output;
  /// The weights that index it, one bit each.
  uint8_t weights = 0;
  /// Steps and shares in a row below it, a reduction being one; a split's own
  /// left operand's.
  uint8_t height = 0, heightOfOuter = 0;
  uint8_t flags = 0;
};

/// All that a state is, without pointers: copied as bytes.
struct GraphStateData {
  uint8_t numLive = 0, numWeights = 0, numExpanded = 0, steps = 0;
  /// How often each kind of move was made.
  uint8_t counts[NumGraphMoves] = {};
  bool isFinished = false;
  /// The last reduction, an index into the sizes they may have.
  uint32_t lastReduce = 0;
  uint32_t weights[GraphSpace::maxWeights] = {};
  ExprId expanded[GraphSpace::maxWeights] = {};
  /// How often symbols occur in reductions and weights.
  Powers usage;
  /// Elements of all weights, summed over the bindings.
  double params = 0;
  /// The product of the largest values of the reductions that no weight indexes
  /// and that were joined.
  double pooled = 1;
  uint64_t finalKey = 0;
  /// When finished: the input dimensions, in order.
  LiveCoord live[GraphSpace::maxLive];

  llvm::ArrayRef<LiveCoord> getLive() const { return {live, numLive}; }
  llvm::MutableArrayRef<LiveCoord> getLive() { return {live, numLive}; }
  void erase(unsigned index) {
    std::copy(live + index + 1, live + numLive, live + index);
    --numLive;
  }
  /// Live coordinates beyond `numLive` are not copied: the array is the last
  /// field.
  void assign(const GraphStateData &other) {
    std::memcpy(static_cast<void *>(this), &other,
                offsetof(GraphStateData, live) +
                    other.numLive * sizeof(LiveCoord));
  }
};

/// What a weight does with a coordinate: a digit, of two bits, of the code of a
/// contraction.
enum WeightUse : uint8_t { Unused, Taken, Shared };
inline WeightUse getUse(uint32_t code, unsigned index) {
  return static_cast<WeightUse>(code >> (2 * index) & 3);
}

class GraphState final : public State {
public:
  explicit GraphState(std::shared_ptr<GraphSpace> space);

  std::unique_ptr<State> clone() const override {
    return std::make_unique<GraphState>(*this);
  }
  void assign(const State &other) override {
    const auto &state = static_cast<const GraphState &>(other);
    assert(space == state.space && "a state of another root");
    data.assign(state.data);
  }
  unsigned getNumKinds() const override { return NumGraphMoves; }
  llvm::StringRef getKindName(unsigned kind) const override;
  std::optional<Move> nextMove(unsigned kind,
                               std::optional<Move> previous) const override;
  void getMoves(llvm::SmallVectorImpl<Move> &moves) const override;
  void apply(Move move) override;
  bool isTerminal() const override { return data.isFinished; }
  std::shared_ptr<const Solution> getSolution() const override;
  uint64_t key() const override;
  void stop() override { space->distance.stop(); }

  const GraphStateData &getData() const { return data; }
  const GraphSpace &getSpace() const { return *space; }

  /// The steps to the input, at least, if they are not more than are left.
  std::optional<int> getDistance() const;

private:
  std::shared_ptr<GraphSpace> space;
  GraphStateData data;
};

//===----------------------------------------------------------------------===//
// Parts, over plain data
//===----------------------------------------------------------------------===//

/// The position of a move in the order of moves that commute: a number made of
/// what the move does, whatever state it is made in. Kinds come first, in the
/// order of `GraphMove`; no reductions, no ends.
uint64_t getMoveKey(GraphSpace &space, const GraphStateData &state,
                    unsigned kind, uint32_t code);
/// The keys of contractions are below this, all others are not.
constexpr uint64_t firstViewKey = uint64_t(2) << 60;
/// The keys of splits and what comes after them are not below this, those of
/// unfolds and what comes before are.
constexpr uint64_t lastUnfoldKey = uint64_t(SplitMove) << 60;

/// Makes a move that the rules allow; `key` is its key.
void applyMove(GraphSpace &space, GraphStateData &state, unsigned kind,
               uint32_t code, uint64_t key);

/// Calls `visit` for the moves of kinds from `firstKind` to `lastKind` with
/// codes from `begin` on, in ascending order, until it returns true.
void forEachMove(GraphSpace &space, const GraphStateData &state,
                 unsigned firstKind, unsigned lastKind, uint32_t begin,
                 llvm::function_ref<bool(Move)> visit);

/// Whether the distance depends on what the coordinate sees.
inline bool needsSight(const GraphSpace &space, const LiveCoord &coord) {
  return (coord.flags & LiveCoord::HasOutput) &&
         space.distance.requiresWindows();
}

/// The distance of a state, as its parts. Where `needsSight`, the coordinate
/// has its expression.
ShapeItem getShapeItem(const GraphSpace &space, const LiveCoord &coord);
ShapeBudget getShapeBudget(const GraphSpace &space,
                           const GraphStateData &state);
/// Whether unfolds come too late (O1) once no coordinate that `canBeInUnfold`
/// is newer than the first move that comes after them in the order, and none
/// `canBecomeWindow` by a shift: weights and merges make no such one any more.
bool needsMadeWindow(const GraphSpace &space, const ShapeBudget &budget);
bool canBeInUnfold(const GraphSpace &space, const LiveCoord &coord);
bool canBecomeWindow(const GraphSpace &space, const LiveCoord &coord);
bool isReachable(GraphSpace &space, const GraphStateData &state);
/// The same, when more reductions may come.
bool isReachableByReductions(GraphSpace &space, const GraphStateData &state);
/// The moves of `ReduceMove`.
void forEachReduce(GraphSpace &space, const GraphStateData &state,
                   uint32_t begin, llvm::function_ref<bool(uint32_t)> visit);

/// Calls `visit` with each way to make the live coordinates the input's
/// dimensions; until it returns true.
void forEachMatch(const GraphSpace &space, const GraphStateData &state,
                  llvm::function_ref<bool(llvm::ArrayRef<unsigned>)> visit);
/// The rules of the end but the match itself.
bool isFinishable(GraphSpace &space, const GraphStateData &state);
/// The cost of a state with the live coordinates as data, in any order.
std::optional<GraphCost> computeCost(GraphSpace &space,
                                     const GraphStateData &state);
/// The FLOPs in it, remembered for some time.
double getFlops(GraphSpace &space, const GraphStateData &state);
/// Whether the bounds on FLOPs can be met when no weight comes any more.
bool canMeetBudget(GraphSpace &space, const GraphStateData &state);
/// The key of the operator that the finished state is.
uint64_t computeFinalKey(GraphSpace &space, const GraphStateData &state);

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_GRAPHSTATEIMPL_H
