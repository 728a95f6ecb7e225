//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tree of states with solutions below, with exact counts, so that rollouts
// never fail.
//
// Nodes live in chunks of 4096 that are never moved or copied, so a tree of
// millions of nodes grows without a second copy in memory. The tree is written
// by `Enumerator`.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/LivingTree.h"
#include <algorithm>

using namespace kas;
using namespace kas::search;

/// A node is appended together with its siblings and after its children; only
/// now its identifier is known, so the parents of its children are set here.
LivingTree::NodeId LivingTree::append(llvm::ArrayRef<Node> siblings) {
  NodeId first = static_cast<NodeId>(numNodes);
  for (const Node &sibling : siblings) {
    // A node is 20 bytes, a chunk 80 KiB.
    if (numNodes == chunks.size() * chunkSize)
      chunks.push_back(std::make_unique<Node[]>(chunkSize));
    NodeId id = static_cast<NodeId>(numNodes++);
    at(id) = sibling;
    for (NodeId child = 0; child < sibling.numChildren; ++child)
      at(sibling.firstChild + child).parent = id;
  }
  return first;
}

/// Drops the nodes from `size` on; the caller guarantees that no other node
/// refers to them.
void LivingTree::truncate(uint64_t size) {
  numNodes = size;
  chunks.resize((size + chunkSize - 1) / chunkSize);
}

/// Linear in the number of children, of which a state of operators has few.
LivingTree::NodeId LivingTree::getChild(NodeId id, Move move) const {
  const Node &node = (*this)[id];
  // Moves come by kind, then in an order of the problem's: search through.
  for (NodeId child = node.firstChild;
       child != node.firstChild + node.numChildren; ++child)
    if (getMove(child) == move)
      return child;
  return none;
}

/// `none` is passed on: a path that leaves the tree has no way back.
LivingTree::NodeId LivingTree::find(llvm::ArrayRef<Move> path) const {
  NodeId id = root;
  for (Move move : path) {
    // Also a tree without a root.
    if (id == none)
      break;
    id = getChild(id, move);
  }
  return id;
}

llvm::SmallVector<Move, 16> LivingTree::getPath(NodeId id) const {
  llvm::SmallVector<Move, 16> path;
  for (; id != root; id = (*this)[id].parent)
    path.push_back(getMove(id));
  std::reverse(path.begin(), path.end());
  return path;
}

/// Makes the moves again: the tree has no states, which are much larger than
/// nodes.
std::shared_ptr<const Solution> LivingTree::getSolution(const State &rootState,
                                                        NodeId id) const {
  assert(isSolution(id) && "the states on the way have no solution");
  std::unique_ptr<State> state = rootState.clone();
  for (Move move : getPath(id))
    state->apply(move);
  return state->getSolution();
}
