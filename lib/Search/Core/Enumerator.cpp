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
// Depth-first with an explicit stack of frames instead of recursion, so that a
// run can be interrupted after any state and continued. Nodes of the tree are
// written in post-order: the children of a state are complete, and neighbours
// in memory, before the state itself has a node. States without a solution
// below never get one.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Enumerator.h"
#include "KeyMark.h"
#include <chrono>

using namespace kas;
using namespace kas::search;

/// An open state. Frames above the deepest one wait for a child.
struct Enumerator::Frame {
  /// The memory of a frame is reused for the next state of its depth.
  std::unique_ptr<State> state;
  llvm::SmallVector<Move, 32> moves;
  /// The index in `moves` of the move to make next.
  size_t nextMove = 0;
  /// The living children so far. They get identifiers when all are known:
  /// `LivingTree::Node::firstChild` needs them next to each other.
  std::vector<LivingTree::Node> living;
};

// Until the enumeration is complete, users of the tree must not take it for the
// whole space.
Enumerator::Enumerator(std::unique_ptr<State> rootState, const Options &options)
    : root(std::move(rootState)), options(options) {
  assert(root->getNumKinds() <= LivingTree::maxKinds && "too many kinds");
  tree.complete = false;
}

Enumerator::~Enumerator() = default;

/// Lists the moves of the state in `frames[depth]`. The state becomes the
/// deepest open one.
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

/// The node of the open state at `at`, after its children. Appends the children
/// to the tree, which sets their parents as soon as the node itself is
/// appended. The node has the move that leads to the state, but no identifier
/// yet: its siblings are not complete.
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
  // The number of solutions below is exact, because a repeated solution has no
  // leaf.
  node.firstChild = tree.append(living);
  return node;
}

/// A state without living children leaves no trace: this is what keeps dead
/// ends out of the tree.
void Enumerator::leave() {
  unsigned at = depth - 1;
  Frame &frame = *frames[at];
  if (!frame.living.empty()) {
    LivingTree::Node node = makeNode(at);
    frame.living.clear();
    // The root has no siblings to wait for.
    if (at == 0)
      tree.root = tree.append(node);
    else
      frames[at - 1]->living.push_back(node);
  }
  --depth;
  // The root was reached by no move.
  if (at > 0)
    path.pop_back();
}

/// Whether the solution is new. Of solutions with the same key the first in
/// canonical order counts. The ordering rules do not prevent all repetitions
/// (docs/internals/canonical-form.md, O4), so this set is needed also without a
/// table of states.
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
  // The child gets the frame below, of which the state is reused if there is
  // one.
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
  // A terminal state has no frame: it is a leaf of the state above it.
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
    // A state that was seen before, with a table. Its solutions are those of
    // the first path to it; entering it again would find duplicates only.
    ++statistics.revisits;
  }
  // Neither a leaf nor a state that was seen stays open.
  path.pop_back();
}

/// The first step. A root that is a complete candidate makes a tree of one
/// node.
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

/// Limits count from the beginning of this call, not of the enumeration.
Enumerator::Status Enumerator::run(const Limits &limits, Found found) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  uint64_t firstExpansion = statistics.expansions;
  uint64_t firstSolution = statistics.solutions;
  // Nodes that only close the tree for a reader would be in the way of the
  // nodes to come.
  reopenTree();
  if (!isStarted)
    start(found);
  for (uint64_t step = 0; depth > 0; ++step) {
    uint64_t expansions = statistics.expansions - firstExpansion;
    uint64_t numFound = statistics.solutions - firstSolution;
    if (stopped || (limits.stopped && *limits.stopped) ||
        (limits.expansions && expansions >= limits.expansions) ||
        (limits.solutions && numFound >= limits.solutions))
      return Status::Interrupted;
    // The clock costs about as much as a step of a simple problem. That is why
    // it is read every 64 steps only.
    if (limits.seconds > 0 && step % 64 == 63 &&
        std::chrono::duration<double>(Clock::now() - begin).count() >=
            limits.seconds)
      return Status::Interrupted;
    // Checked before the step, with what the step may allocate: the enumeration
    // stays below the limit rather than noticing afterwards. A state has fewer
    // than `maxMoves` children, so identifiers cannot overflow in this step.
    if (getNumBytesAhead() > options.maxBytes ||
        tree.numNodes + LivingTree::maxMoves > LivingTree::maxNodes)
      return Status::OutOfMemory;
    Frame &frame = *frames[depth - 1];
    if (frame.nextMove == frame.moves.size())
      leave();
    else
      enter(frame.moves[frame.nextMove++], found);
  }
  // Without a tree nothing is claimed about it.
  tree.complete = options.buildTree;
  return Status::Complete;
}

/// Makes a valid tree of what is known so far: each open state gets a node with
/// the children found so far. These nodes are temporary, see `reopenTree`.
void Enumerator::closeTree() {
  if (isClosed || depth == 0 || !options.buildTree)
    return;
  isClosed = true;
  numSettled = tree.numNodes;
  // From the deepest state upwards, since a node needs those of its children.
  for (unsigned at = depth; at-- > 0;) {
    std::vector<LivingTree::Node> &living = frames[at]->living;
    if (living.empty())
      continue;
    LivingTree::Node node = makeNode(at);
    if (at == 0) {
      tree.root = tree.append(node);
      continue;
    }
    // Only until the tree is reopened. The state is still open, so it will get
    // its final node later.
    frames[at - 1]->living.push_back(node);
    openChildren.push_back(at - 1);
  }
}

/// Removes the nodes of `closeTree`. The children of a temporary node are
/// appended twice in all, by `closeTree` and when their state is left.
void Enumerator::reopenTree() {
  if (!isClosed)
    return;
  isClosed = false;
  for (unsigned at : openChildren)
    // In the order of `closeTree`: each such child is the last of its siblings.
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

/// The frames are left out: there are as many as the deepest path has moves.
size_t Enumerator::getNumBytes() const {
  return tree.getNumBytes() + visited.getMemorySize() +
         solutions.getMemorySize();
}

/// What the next step, and closing the tree after it, may come to: a set that
/// grows is there twice for a while. A node with many children may need a new
/// chunk for them, and closing the tree another one.
size_t Enumerator::getNumBytesAhead() const {
  // The rule by which llvm::DenseSet grows: see
  // `CandidateSpace::markExhausted`.
  auto getGrowth = [](const llvm::DenseSet<uint64_t> &set) {
    size_t buckets = set.getMemorySize() / sizeof(uint64_t);
    bool isFull = (set.size() + 1) * 4 >= buckets * 3;
    return isFull ? 2 * set.getMemorySize() : 0;
  };
  size_t chunks = 2 * LivingTree::chunkSize * sizeof(LivingTree::Node);
  return getNumBytes() + chunks + getGrowth(solutions) + getGrowth(visited);
}
