//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the solutions of a space in canonical order, each once, and builds the
// tree of states below which there are any.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Enumerator.h"
#include "KeyMark.h"
#include <chrono>

using namespace kas;
using namespace kas::search;

/// An open state.
struct Enumerator::Frame {
  std::unique_ptr<State> state;
  llvm::SmallVector<Move, 32> moves;
  size_t nextMove = 0;
  /// The living children so far.
  std::vector<LivingTree::Node> living;
};

Enumerator::Enumerator(std::unique_ptr<State> rootState, const Options &options)
    : root(std::move(rootState)), options(options) {
  assert(root->getNumKinds() <= LivingTree::maxKinds && "too many kinds");
  tree.complete = false;
}

Enumerator::~Enumerator() = default;

/// Lists the moves of the state in `frames[depth]`.
void Enumerator::open(unsigned at) {
  Frame &frame = *frames[at];
  frame.moves.clear();
  frame.nextMove = 0;
  frame.state->getMoves(frame.moves);
  assert(frame.moves.size() < LivingTree::maxMoves && "too many moves");
  ++statistics.expansions;
  statistics.deadEnds += frame.moves.empty();
  depth = at + 1;
}

/// The node of the open state at `at`, after its children.
LivingTree::Node Enumerator::makeNode(unsigned at) {
  const std::vector<LivingTree::Node> &living = frames[at]->living;
  LivingTree::Node node;
  if (at > 0) {
    node.kind = path[at - 1].kind;
    node.code = path[at - 1].code;
  }
  for (const LivingTree::Node &child : living)
    node.count += child.count;
  node.numChildren = living.size();
  node.firstChild = tree.append(living);
  return node;
}

void Enumerator::leave() {
  unsigned at = depth - 1;
  Frame &frame = *frames[at];
  if (!frame.living.empty()) {
    LivingTree::Node node = makeNode(at);
    frame.living.clear();
    if (at == 0)
      tree.root = tree.append(node);
    else
      frames[at - 1]->living.push_back(node);
  }
  --depth;
  if (at > 0)
    path.pop_back();
}

/// Whether the solution is new.
bool Enumerator::addSolution(const State &state, Found found) {
  if (!solutions.insert(getMark(state.key())).second) {
    ++statistics.duplicates;
    return false;
  }
  ++statistics.solutions;
  if (found)
    found(path, state);
  return true;
}

/// Makes `move` in the deepest open state.
void Enumerator::enter(Move move, Found found) {
  const State &from = *frames[depth - 1]->state;
  if (frames.size() == depth) {
    frames.push_back(std::make_unique<Frame>());
    frames.back()->state = from.clone();
  } else {
    frames[depth]->state->assign(from);
  }
  State &state = *frames[depth]->state;
  state.apply(move);
  path.push_back(move);
  if (state.isTerminal()) {
    if (addSolution(state, found) && options.buildTree) {
      LivingTree::Node leaf;
      leaf.count = 1;
      leaf.kind = move.kind;
      leaf.code = move.code;
      frames[depth - 1]->living.push_back(leaf);
    }
  } else if (!options.useTable || visited.insert(getMark(state.key())).second) {
    return open(depth);
  } else {
    ++statistics.revisits;
  }
  path.pop_back();
}

void Enumerator::start(Found found) {
  isStarted = true;
  frames.push_back(std::make_unique<Frame>());
  frames.front()->state = root->clone();
  if (!root->isTerminal())
    return open(0);
  addSolution(*root, found);
  LivingTree::Node leaf;
  leaf.count = 1;
  if (options.buildTree)
    tree.root = tree.append(leaf);
}

Enumerator::Status Enumerator::run(const Limits &limits, Found found) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  uint64_t firstExpansion = statistics.expansions;
  uint64_t firstSolution = statistics.solutions;
  reopenTree();
  if (!isStarted)
    start(found);
  for (uint64_t step = 0; depth > 0; ++step) {
    uint64_t expansions = statistics.expansions - firstExpansion;
    uint64_t numFound = statistics.solutions - firstSolution;
    if (stopped || (limits.expansions && expansions >= limits.expansions) ||
        (limits.solutions && numFound >= limits.solutions))
      return Status::Interrupted;
    // The clock costs about as much as a step of a simple problem.
    if (limits.seconds > 0 && step % 64 == 63 &&
        std::chrono::duration<double>(Clock::now() - begin).count() >=
            limits.seconds)
      return Status::Interrupted;
    if (getNumBytesAhead() > options.maxBytes ||
        tree.numNodes + LivingTree::maxMoves > LivingTree::maxNodes)
      return Status::OutOfMemory;
    Frame &frame = *frames[depth - 1];
    if (frame.nextMove == frame.moves.size())
      leave();
    else
      enter(frame.moves[frame.nextMove++], found);
  }
  tree.complete = options.buildTree;
  return Status::Complete;
}

void Enumerator::closeTree() {
  if (isClosed || depth == 0 || !options.buildTree)
    return;
  isClosed = true;
  numSettled = tree.numNodes;
  for (unsigned at = depth; at-- > 0;) {
    std::vector<LivingTree::Node> &living = frames[at]->living;
    if (living.empty())
      continue;
    LivingTree::Node node = makeNode(at);
    if (at == 0) {
      tree.root = tree.append(node);
      continue;
    }
    // Only until the tree is reopened.
    frames[at - 1]->living.push_back(node);
    openChildren.push_back(at - 1);
  }
}

void Enumerator::reopenTree() {
  if (!isClosed)
    return;
  isClosed = false;
  for (unsigned at : openChildren)
    frames[at]->living.pop_back();
  openChildren.clear();
  tree.truncate(numSettled);
  tree.root = LivingTree::none;
}

const LivingTree &Enumerator::getTree() {
  closeTree();
  return tree;
}

LivingTree Enumerator::takeTree() {
  closeTree();
  return std::move(tree);
}

size_t Enumerator::getNumBytes() const {
  return tree.getNumBytes() + visited.getMemorySize() +
         solutions.getMemorySize();
}

/// What the next step, and closing the tree after it, may come to: a set that
/// grows is there twice for a while.
size_t Enumerator::getNumBytesAhead() const {
  auto getGrowth = [](const llvm::DenseSet<uint64_t> &set) {
    size_t buckets = set.getMemorySize() / sizeof(uint64_t);
    bool isFull = (set.size() + 1) * 4 >= buckets * 3;
    return isFull ? 2 * set.getMemorySize() : 0;
  };
  size_t chunks = 2 * LivingTree::chunkSize * sizeof(LivingTree::Node);
  return getNumBytes() + chunks + getGrowth(solutions) + getGrowth(visited);
}
