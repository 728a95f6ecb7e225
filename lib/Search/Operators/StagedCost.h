//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an operator costs when it is computed in its best stages.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_STAGEDCOST_H
#define LIB_SEARCH_OPERATORS_STAGEDCOST_H

#include "kas/Search/Operators/OperatorGraph.h"
#include "kas/Search/Operators/SizeTable.h"

namespace kas::search {

/// The multiply-adds of the best stages of an operator under all bindings at
/// once: the value of `planStages` (kas/Schedule/StagePlan.h) with prepared
/// weights, which finds the stages themselves, in a few microseconds. A stage
/// multiplies by all of its weights at once, and sums what only they have
/// before. Dynamic programming over the sets
/// of reductions and weights that are done; what a set leaves is indexed
/// by the smallest cut of the expressions that does not separate what is done
/// from what needs it. Exact while all numbers are below 2^53.
class StagedCost {
public:
  StagedCost(const SearchProblem &problem, const SizeTable &sizes);

  /// A coordinate; operands come first.
  struct Node {
    CoordKind kind = CoordKind::Output;
    SizeId size = SizeTable::one;
    unsigned first = 0, second = 0;
  };

  /// Starts a new operator.
  void clear() {
    nodes.clear();
    data.clear();
    weights.clear();
  }

  llvm::SmallVector<Node, 24> nodes;
  llvm::SmallVector<unsigned, 6> data;
  llvm::SmallVector<llvm::SmallVector<unsigned, 6>, 4> weights;

  /// FLOPs and parameters, or nothing when a number does not fit 63 bits.
  std::optional<GraphCost> compute();

  /// The FLOPs only. Of an operator that has all its weights but is not
  /// finished, with the coordinates that are left as data, it is the most that
  /// they may come to: views make no intermediate tensor larger.
  double computeFlops() { return 2 * computeMacs(); }
  /// The least that they may come to: the most that views do is to remove
  /// coordinates of the data, the nodes `removable` (one bit each), from the
  /// tensors in which they are not summed yet.
  double computeLeastFlops(uint64_t removable);
  /// After `compute`: the weights in the order in which the stages of the
  /// largest binding take them, from the data to the output.
  llvm::ArrayRef<unsigned> getWeightOrder() const { return weightOrder; }

private:
  /// Sets of nodes are words.
  static constexpr unsigned maxNodes = 64;
  /// A set of reductions (low bits) and weights (above them) that are done.
  using Choice = uint32_t;

  /// The multiply-adds, summed over the bindings times their multiplicities.
  double computeMacs();
  double computeMacsOfChoices();
  template <unsigned Lanes>
  double computeMacsOfChoices();
  template <unsigned Lanes>
  void relax(unsigned index);
  unsigned findPrevious(unsigned index, unsigned binding) const;
  /// Of the choices, and after them of the whole.
  Choice getChoice(unsigned index) const {
    return index < choices.size()
               ? choices[index]
               : (Choice(1) << (numReductions + weights.size())) - 1;
  }
  const double *getElements(unsigned index) const {
    return index < choices.size() ? &elementsOf[index * lanes] : outputs.data();
  }
  void findWeightOrder(unsigned binding);
  void findReached();
  Choice getReached(Choice done) const;
  void findDependences();
  void findConflicts();
  void findChoices();
  /// Elements of what is left when `done` is done, by binding.
  void computeElements(Choice done, double *elements);
  void findBottoms();
  void findSizes();
  uint64_t getFrontier(Choice done) const;
  bool hasMergedStride() const;
  void startCut(Choice done);
  double findSmallestCut(uint64_t open, unsigned binding) const;
  bool isBinary(unsigned node) const {
    return nodes[node].kind == CoordKind::Split ||
           nodes[node].kind == CoordKind::Unfold;
  }
  bool isHalf(unsigned node) const {
    return nodes[node].kind == CoordKind::MergeQuotient ||
           nodes[node].kind == CoordKind::MergeRemainder;
  }
  bool isLeaf(unsigned node) const {
    return nodes[node].kind == CoordKind::Output ||
           nodes[node].kind == CoordKind::Reduce;
  }

  const SearchProblem &problem;
  const SizeTable &sizes;
  /// Bindings, and places for them: the rest is 0.
  unsigned numBindings, lanes;
  /// By binding: elements of the output, and those of a batch in it.
  llvm::SmallVector<double, 8> outputs, batch;
  unsigned numReductions = 0;
  /// By node: what the operands need, and the same with the node's own
  /// reduction and weights.
  llvm::SmallVector<Choice, 24> needed, above;
  llvm::SmallVector<unsigned, 8> reductions;
  uint64_t removed = 0;
  /// Whether a merge is above a stride: its operand may be a smaller cut than
  /// its halves.
  bool isMergedStride = false;
  /// Halves of which weights that are not done have one: they must be cut.
  uint64_t pinned = 0;
  /// The reductions that nodes, the data and weights depend on.
  llvm::SmallVector<Choice, 24> reached;
  Choice dataReductions = 0;
  llvm::SmallVector<Choice, 4> weightReductions;
  /// By weight: what must not be done when it is not.
  llvm::SmallVector<Choice, 4> conflicts;
  /// The sets that may be done, and the reductions that they depend on.
  std::vector<Choice> choices, reachedOf;
  llvm::SmallVector<unsigned, 4> weightOrder;
  /// By node: the smallest cut of it and what is below, but for merges of
  /// strides; and its size by binding.
  llvm::SmallVector<uint64_t, 24> bottoms;
  std::vector<double> sizesOf;
  /// By index of `choices` and binding; the last of `best` is the whole.
  std::vector<double> best, elementsOf;
  /// By set of reductions and binding: the product of their sizes.
  std::vector<double> points;
};

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_STAGEDCOST_H
