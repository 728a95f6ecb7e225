//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The live-state tree: the part of a search space that leads to
// solutions, as an explicit tree with exact counts.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_LIVINGTREE_H
#define KAS_SEARCH_CORE_LIVINGTREE_H

#include "kas/Search/Core/State.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/ArrayRef.h"
#include <cassert>
#include <vector>

namespace kas::search {

/// The states below which there is a solution that no earlier path leads to
/// (paths in lexicographic order of their moves). Each node has its exact
/// number of such solutions, so that a rollout is a choice among solutions,
/// never fails, and may be uniform. Nodes hold moves, not states: a state is
/// had by making the moves from the root.
///
/// Made by an `Enumerator`. A finished tree does not change, and any number of
/// threads may use it.
class LivingTree {
public:
  using NodeId = uint32_t;
  static constexpr NodeId none = ~NodeId(0);

  /// What an `Enumerator` stores for each state: 20 bytes.
  struct Node {
    NodeId parent = none;
    /// The children are neighbours, in canonical order of their moves.
    NodeId firstChild = none;
    /// Solutions at or below this node.
    uint32_t count = 0;
    /// The move that leads here.
    uint32_t code = 0;
    uint32_t kind : 8 = 0;
    uint32_t numChildren : 24 = 0;
  };
  static constexpr uint64_t maxNodes = none;
  static constexpr unsigned maxKinds = 256, maxMoves = 1 << 24;

  /// Every solution of the space is in the tree.
  bool isComplete() const { return complete; }
  /// `none` in a tree without a solution.
  NodeId getRoot() const { return root; }
  uint64_t getNumNodes() const { return numNodes; }
  uint64_t getNumSolutions() const {
    return root == none ? 0 : (*this)[root].count;
  }
  /// The memory that the nodes take.
  size_t getNumBytes() const {
    return chunks.size() * chunkSize * sizeof(Node);
  }

  const Node &operator[](NodeId id) const {
    assert(id < numNodes && "no such node");
    return chunks[id / chunkSize][id % chunkSize];
  }
  bool isSolution(NodeId id) const { return (*this)[id].numChildren == 0; }
  Move getMove(NodeId id) const { return {(*this)[id].kind, (*this)[id].code}; }

  /// The child that `move` leads to, or `none`.
  NodeId getChild(NodeId id, Move move) const;
  /// The node that `path` leads to from the root, or `none`.
  NodeId find(llvm::ArrayRef<Move> path) const;
  /// The moves from the root to a node.
  llvm::SmallVector<Move, 16> getPath(NodeId id) const;

  /// The solution number `rank` below `id`, in canonical order.
  NodeId getSolutionNode(NodeId id, uint64_t rank) const {
    assert(rank < (*this)[id].count && "no such solution");
    while (true) {
      const Node &node = (*this)[id];
      if (node.numChildren == 0)
        return id;
      for (id = node.firstChild;; ++id) {
        uint32_t count = (*this)[id].count;
        if (rank < count)
          break;
        rank -= count;
      }
    }
  }
  /// A solution below `id`, all with the same probability.
  NodeId draw(NodeId id, Random &random) const {
    return getSolutionNode(id, random.below((*this)[id].count));
  }

  /// The solution of a node, found again by making its moves from `rootState`.
  std::shared_ptr<const Solution> getSolution(const State &rootState,
                                              NodeId id) const;

private:
  friend class Enumerator;
  static constexpr size_t chunkSize = size_t(1) << 12;

  Node &at(NodeId id) { return const_cast<Node &>(std::as_const(*this)[id]); }
  /// Appends the children of a node, whose own place is not known yet.
  NodeId append(llvm::ArrayRef<Node> siblings);
  void truncate(uint64_t size);

  std::vector<std::unique_ptr<Node[]>> chunks;
  uint64_t numNodes = 0;
  NodeId root = none;
  bool complete = false;
};

static_assert(sizeof(LivingTree::Node) == 20);

} // namespace kas::search

#endif // KAS_SEARCH_CORE_LIVINGTREE_H
