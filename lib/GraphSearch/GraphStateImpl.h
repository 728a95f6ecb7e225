//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state of the search for operators, and the parts of its rules.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_GRAPHSEARCH_GRAPHSTATEIMPL_H
#define KAS_LIB_GRAPHSEARCH_GRAPHSTATEIMPL_H

#include "GraphSpace.h"

namespace kas {

/// The kinds of moves, in canonical order.
enum GraphMove : uint32_t {
  ReduceMove,
  ContractMove,
  MergeMove,
  SplitMove,
  ShiftMove,
  UnfoldMove,
  StrideMove,
  ExpandMove,
  FinishMove,
  NumGraphMoves
};

class GraphState final : public State {
public:
  explicit GraphState(std::shared_ptr<GraphSpace> space);

  std::unique_ptr<State> clone() const override {
    return std::make_unique<GraphState>(*this);
  }
  void assign(const State &other) override {
    *this = static_cast<const GraphState &>(other);
  }
  unsigned getNumKinds() const override { return NumGraphMoves; }
  llvm::StringRef getKindName(unsigned kind) const override;
  std::optional<Move> nextMove(unsigned kind,
                               std::optional<Move> previous) const override;
  void apply(Move move) override;
  bool isTerminal() const override { return isFinished; }
  std::shared_ptr<const Solution> getSolution() const override;
  uint64_t key() const override;

private:
  /// What a weight does with a coordinate, a digit of the code of a
  /// contraction.
  enum Use : uint8_t { Unused, Shared, Taken };
  using Uses = std::array<uint8_t, GraphSpace::maxLive>;

  uint32_t getNumCodes(unsigned kind) const;
  uint32_t getNumPartners(unsigned kind, uint32_t high) const;
  /// Makes the move if the rules allow it; else the state is of no more use.
  bool tryMove(unsigned kind, uint32_t code);
  bool tryReduce(uint32_t index);
  bool tryContract(uint32_t code);
  bool tryMerge(unsigned coord, unsigned block);
  bool trySplit(unsigned outer, unsigned inner);
  bool tryShift(unsigned coord, bool isBackward);
  bool tryUnfold(unsigned base, unsigned window);
  bool tryStride(unsigned coord, unsigned factor);
  bool tryExpand(unsigned coord);
  bool tryFinish();

  bool isAtom(const LiveCoord &coord) const;
  Uses getUses(uint32_t code) const;
  bool isContractionAllowed(const Uses &uses) const;
  bool containsWeight(llvm::ArrayRef<ExprId> coords) const;
  bool isLowRank(ExprId reduction, llvm::ArrayRef<ExprId> weight) const;
  bool useSymbols(SizeId size);
  bool isSplitCanonical(const LiveCoord &outer, const LiveCoord &inner,
                        SizeId product) const;
  bool isFirstTwin(unsigned coord) const;
  uint8_t getWeightsOf(ExprId expr) const;

  /// Replaces operands by a result.
  void replace(const LiveCoord &result, unsigned first,
               std::optional<unsigned> second = {});
  LiveCoord make(const Expr &expr, uint8_t flags) const;

  ShapeItem getItem(const LiveCoord &coord) const;
  /// The input can still be reached within the steps that are left.
  bool isReachable() const;
  /// The same, when more reductions may come.
  bool isReachableByReductions() const;
  std::optional<GraphCost> getCost() const;
  /// At most the FLOPs and parameters of the budget: all steps add to them.
  bool isWithinBudget() const;
  /// The live coordinates in the order of the input, if they match it.
  std::optional<llvm::SmallVector<ExprId, 6>> matchInputs() const;
  uint64_t getFinalHash(llvm::ArrayRef<ExprId> data) const;
  uint64_t getFinalHash(llvm::ArrayRef<ExprId> data,
                        const llvm::DenseMap<ExprId, unsigned> &labels) const;

  std::shared_ptr<GraphSpace> space;
  llvm::SmallVector<LiveCoord, GraphSpace::maxLive> live;
  llvm::SmallVector<ExprId, 6> reductions;
  llvm::SmallVector<uint32_t, GraphSpace::maxWeights> weights;
  llvm::SmallVector<ExprId, 1> expanded;
  /// By symbol: how often it occurs in reductions and weights.
  std::array<uint8_t, SymbolSet::maxSymbols> occurrences = {};
  /// How often each kind of move was made.
  std::array<uint8_t, NumGraphMoves> counts = {};
  uint8_t steps = 0;
  /// The last reduction, an index into the sizes they may have.
  uint32_t lastReduce = 0;
  bool isFinished = false;
};

} // namespace kas

#endif // KAS_LIB_GRAPHSEARCH_GRAPHSTATEIMPL_H
