//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The candidates of a space that were not proposed yet: rollouts with
// backtracking, or draws from the complete tree where it is small enough.
//
// Two representations with one interface. With a complete `LivingTree`, each
// node counts the candidates below it that are left, and a draw descends by
// these counts: it always succeeds. Without one, a draw is a depth-first
// descent with random order of moves, and the keys of states that are known to
// be used up are remembered, so the search never enters them again
// (docs/internals/search-algorithms.md, "The live-state tree").
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/CandidateSpace.h"
#include "KeyMark.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>

using namespace kas;
using namespace kas::search;

/// Moves to make again where they are possible. Those are the moves of a parent
/// whose child is drawn. Each is made at most once; the one that comes first in
/// the parent is preferred.
struct CandidateSpace::Guide {
  llvm::SmallVector<Move, 16> moves;
  double keep = 0;

  /// The index of the first move for which `isPossible`, if it is to be made
  /// now. Called at each state of a descent: with the probability 1 - `keep`,
  /// and where no move of the guide is possible, the caller chooses at random.
  template <typename Predicate>
  std::optional<size_t> choose(Random &random, Predicate isPossible) const {
    // Draws no random number for an empty guide: plain rollouts have the same
    // sequence with and without this feature.
    if (moves.empty() || random.uniform() >= keep)
      return std::nullopt;
    for (size_t index = 0; index < moves.size(); ++index)
      if (isPossible(moves[index]))
        return index;
    return std::nullopt;
  }
};

CandidateSpace::CandidateSpace(std::unique_ptr<State> rootState,
                               const Options &options)
    : root(std::move(rootState)), options(options) {}

CandidateSpace::CandidateSpace(std::unique_ptr<State> rootState,
                               const Options &options,
                               std::shared_ptr<const LivingTree> known)
    : CandidateSpace(std::move(rootState), options) {
  // A tree that was cut off has no nodes for the rest of the space.
  assert(known->isComplete() && "candidates outside the tree would be lost");
  isPrepared = true;
  setTree(std::move(known));
}

/// Initially everything below a node is left.
void CandidateSpace::setTree(std::shared_ptr<const LivingTree> known) {
  tree = std::move(known);
  left.resize(tree->getNumNodes());
  for (LivingTree::NodeId id = 0; id < left.size(); ++id)
    left[id] = (*tree)[id].count;
}

/// A space that turns out too large costs the expansions up to the limit; its
/// partial tree is thrown away, because draws from it would be restricted to
/// the part of the space that depth-first order comes to first.
void CandidateSpace::prepare() {
  if (std::exchange(isPrepared, true) || options.treeExpansions == 0)
    return;
  Enumerator::Options settings;
  settings.useTable = options.useTable;
  settings.maxBytes = options.maxBytes;
  Enumerator enumerator(root->clone(), settings);
  auto begin = std::chrono::steady_clock::now();
  auto isLate = [&] {
    std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - begin;
    return options.treeSeconds > 0 && elapsed.count() >= options.treeSeconds;
  };
  // In small pieces, so that the clock can be looked at between calls.
  Enumerator::Limits limits;
  limits.stopped = &stopped;
  auto status = Enumerator::Status::Interrupted;
  while (status == Enumerator::Status::Interrupted && !stopped && !isLate()) {
    uint64_t done = enumerator.getStatistics().expansions;
    if (done >= options.treeExpansions)
      break;
    limits.expansions = std::min<uint64_t>(1000, options.treeExpansions - done);
    status = enumerator.run(limits);
  }
  numExpansions += enumerator.getStatistics().expansions;
  numDeadEnds += enumerator.getStatistics().deadEnds;
  numDuplicates += enumerator.getStatistics().duplicates;
  if (status == Enumerator::Status::Complete)
    setTree(std::make_shared<const LivingTree>(enumerator.takeTree()));
}

bool CandidateSpace::isExhausted() const { return !isAlive({}); }

bool CandidateSpace::isAlive(llvm::ArrayRef<Move> path) const {
  // Without a tree a state counts as alive until a descent has proven
  // otherwise.
  if (!tree)
    return !exhausted.contains(getMark(replay(path).key()));
  LivingTree::NodeId id = tree->find(path);
  return id != LivingTree::none && left[id] > 0;
}

void CandidateSpace::getMoves(llvm::ArrayRef<Move> path,
                              llvm::SmallVectorImpl<Move> &moves) {
  if (!tree) {
    // Listing moves is the cost of a state, so it counts like an expansion.
    ++numExpansions;
    replay(path).getMoves(moves);
    return;
  }
  LivingTree::NodeId id = tree->find(path);
  if (id == LivingTree::none)
    return;
  const LivingTree::Node &node = (*tree)[id];
  for (unsigned child = 0; child < node.numChildren; ++child)
    // Children without candidates left are hidden: what is chosen here leads to
    // a candidate.
    if (left[node.firstChild + child])
      moves.push_back(tree->getMove(node.firstChild + child));
}

CandidateSpace::Draw CandidateSpace::draw(Path &path, Random &random) {
  return drawNear(path, {}, 0, random);
}

/// Without a tree there are two attempts: a quick one that makes the problem's
/// own draws of moves (`State::drawMove`), and, when that gives up, a complete
/// one that lists all moves and can prove that nothing is left. A guide needs
/// the list of moves, so it excludes the quick attempt.
CandidateSpace::Draw CandidateSpace::drawNear(Path &path,
                                              llvm::ArrayRef<Move> moves,
                                              double keep, Random &random) {
  Guide guide{llvm::to_vector<16>(moves), keep};
  if (tree)
    return drawOnTree(path, guide, random);
  Descent descent{path, guide, random, options.expansionsPerRollout};
  size_t depth = path.size();
  Draw result = Draw::GaveUp;
  // This draw is only to ask whether the problem draws moves; the move itself
  // is not made.
  if (moves.empty() && replay(path).drawMove(random)) {
    descent.isQuick = true;
    result = descend(depth, descent);
    descent.isQuick = false;
  }
  // The budget is shared: what the quick attempt has left over is for the
  // complete one.
  if (result == Draw::GaveUp) {
    path.truncate(depth);
    // With a guide the state of this depth is not at `path` yet, and `descend`
    // reads it.
    replay(path);
    result = descend(depth, descent);
  }
  if (result != Draw::Found)
    path.truncate(depth);
  return result;
}

/// A child with candidates left. Its probability depends on the mode: uniform
/// over the candidates below (the child that has candidate number `rank`), or
/// uniform over kinds and then over moves. `left[id]` must be positive.
LivingTree::NodeId CandidateSpace::chooseChild(LivingTree::NodeId id,
                                               Random &random) const {
  const LivingTree::Node &node = (*tree)[id];
  LivingTree::NodeId child = node.firstChild;
  // `rank` is a number among all candidates below, in canonical order; children
  // are skipped by their counts. The loop ends because the counts add up to
  // `left[id]`.
  if (options.drawUniformly) {
    uint64_t rank = random.below(left[id]);
    for (; rank >= left[child]; ++child)
      rank -= left[child];
    return child;
  }
  // Children by kind. They are in canonical order, so those of one kind are
  // next to each other.
  llvm::SmallVector<llvm::SmallVector<LivingTree::NodeId, 16>, 8> kinds;
  uint32_t last = LivingTree::maxKinds;
  // A value that no kind has, so the first live child begins a kind.
  for (; child != node.firstChild + node.numChildren; ++child) {
    if (left[child] == 0)
      continue;
    if (uint32_t kind = (*tree)[child].kind; kind != last) {
      kinds.emplace_back();
      last = kind;
    }
    kinds.back().push_back(child);
  }
  const auto &kind = kinds[random.below(kinds.size())];
  return kind[random.below(kind.size())];
}

/// Never gives up: each child that is chosen has a candidate below that is
/// left. Appends to `path` only when it succeeds.
CandidateSpace::Draw CandidateSpace::drawOnTree(Path &path, Guide &guide,
                                                Random &random) {
  LivingTree::NodeId id = tree->find(path);
  if (id == LivingTree::none || left[id] == 0)
    return Draw::Exhausted;
  while (!tree->isSolution(id)) {
    LivingTree::NodeId child = LivingTree::none;
    if (auto index = guide.choose(random, [&](Move move) {
          child = tree->getChild(id, move);
          return child != LivingTree::none && left[child] > 0;
        })) {
      // Each move of the guide is made once, as in the candidate that it is of.
      guide.moves.erase(guide.moves.begin() + *index);
    } else {
      child = chooseChild(id, random);
    }
    path.push_back(tree->getMove(child));
    id = child;
  }
  return Draw::Found;
}

/// The state that is kept for `depth`. States are reused: `assign` copies plain
/// data into memory that is there, while `clone` allocates.
State &CandidateSpace::getState(size_t depth) const {
  while (states.size() <= depth)
    states.push_back(root->clone());
  return *states[depth];
}

/// Costs as many `apply` calls as the path has moves. The result is valid until
/// another path of this length is replayed.
State &CandidateSpace::replay(llvm::ArrayRef<Move> path) const {
  State &state = getState(path.size());
  state.assign(*root);
  for (Move move : path)
    state.apply(move);
  return state;
}

/// Remembers that nothing is left below the state of `key`. Within `maxBytes`
/// only: without the mark the state is merely entered again, so forgetting
/// costs time, never a candidate.
void CandidateSpace::markExhausted(uint64_t key) {
  // llvm::DenseSet doubles when three quarters of its buckets are in use. While
  // it grows, the old table (1) and the new one (2) are in memory together.
  size_t buckets = exhausted.getMemorySize() / sizeof(uint64_t);
  bool grows = (exhausted.size() + 1) * 4 >= buckets * 3;
  if (!grows || 3 * exhausted.getMemorySize() <= options.maxBytes)
    exhausted.insert(key);
}

/// Goes on after `move` from the state at `depth`. On failure `path` is what it
/// was before.
CandidateSpace::Draw CandidateSpace::enter(unsigned depth, Move move,
                                           Descent &descent) {
  State &child = getState(depth + 1);
  child.assign(getState(depth));
  child.apply(move);
  descent.path.push_back(move);
  Draw draw = descend(depth + 1, descent);
  if (draw != Draw::Found)
    descent.path.pop_back();
  return draw;
}

/// The problem's own choice, and again when it leads nowhere, but not until all
/// is known: the rollout then goes back further.
CandidateSpace::Draw CandidateSpace::drawQuickly(unsigned depth,
                                                 Descent &descent) {
  // Three draws at a state: enough to step around a single dead end. More would
  // repeat moves that failed already, since the draws do not know of each other
  // (docs/internals/search-algorithms.md).
  constexpr unsigned attempts = 3;
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    std::optional<Move> move = getState(depth).drawMove(descent.random);
    // A problem that draws does so at every state with moves, so this state has
    // none.
    if (!move) {
      ++numDeadEnds;
      markExhausted(getMark(getState(depth).key()));
      return Draw::Exhausted;
    }
    if (enter(depth, *move, descent) == Draw::Found)
      return Draw::Found;
    // The budget is that of the whole rollout: no ancestor is to go on either.
    if (descent.budget == 0)
      break;
  }
  return Draw::GaveUp;
}

/// One level of a rollout from the state at `depth`. `Found`: `path` is
/// complete. `Exhausted`: nothing is left below, and the state is marked.
/// `GaveUp`: the budget of states is spent, so nothing is known about the rest.
CandidateSpace::Draw CandidateSpace::descend(unsigned depth, Descent &descent) {
  State &state = getState(depth);
  uint64_t mark = getMark(state.key());
  // A terminal state in the set is a candidate that was taken before.
  if (exhausted.contains(mark)) {
    numDuplicates += state.isTerminal();
    return Draw::Exhausted;
  }
  if (state.isTerminal())
    return Draw::Found;
  if (descent.budget == 0 || stopped)
    return Draw::GaveUp;
  --descent.budget;
  ++numExpansions;

  if (descent.isQuick)
    return drawQuickly(depth, descent);

  llvm::SmallVector<Move, 32> moves;
  state.getMoves(moves);
  // By kind: a kind is drawn first, so a kind with a thousand moves is as
  // likely as one with two.
  llvm::SmallVector<llvm::SmallVector<Move, 8>, 8> kinds;
  for (Move move : moves) {
    if (kinds.empty() || kinds.back().front().kind != move.kind)
      kinds.emplace_back();
    kinds.back().push_back(move);
  }
  numDeadEnds += moves.empty();
  // Moves are tried without replacement, in random order, until one leads to a
  // candidate. Only when all have come back exhausted the state is known to be.
  Guide &guide = descent.guide;
  while (!kinds.empty()) {
    size_t kind = 0, index = 0;
    // The guide sees moves of every kind: it overrides the draw of the kind,
    // too.
    if (auto guided = guide.choose(descent.random, [&](Move move) {
          for (kind = 0; kind < kinds.size(); ++kind) {
            auto *found = llvm::find(kinds[kind], move);
            index = found - kinds[kind].begin();
            if (found != kinds[kind].end())
              return true;
          }
          return false;
        })) {
      guide.moves.erase(guide.moves.begin() + *guided);
    } else {
      kind = descent.random.below(kinds.size());
      index = descent.random.below(kinds[kind].size());
    }
    // Order does not matter any more, so a move is removed in constant time.
    std::swap(kinds[kind][index], kinds[kind].back());
    Move move = kinds[kind].pop_back_val();
    // `GaveUp` is passed on: the siblings would find an empty budget as well.
    if (Draw draw = enter(depth, move, descent); draw != Draw::Exhausted)
      return draw;
    if (kinds[kind].empty())
      kinds.erase(kinds.begin() + kind);
  }
  markExhausted(mark);
  return Draw::Exhausted;
}

std::shared_ptr<const Solution>
CandidateSpace::getSolution(llvm::ArrayRef<Move> path) const {
  return replay(path).getSolution();
}

/// With a tree the counts of all ancestors fall by one, so that `left` stays
/// exact. The key of a state without a tree is that of its solution, so the
/// same candidate reached by another path is recognized.
std::shared_ptr<const Solution>
CandidateSpace::take(llvm::ArrayRef<Move> path) {
  if (!tree) {
    const State &state = replay(path);
    // Whatever the memory: a candidate may not come twice.
    return exhausted.insert(getMark(state.key())).second ? state.getSolution()
                                                         : nullptr;
  }
  LivingTree::NodeId id = tree->find(path);
  // Not in the tree, no candidate, or taken already.
  if (id == LivingTree::none || !tree->isSolution(id) || left[id] == 0)
    return nullptr;
  for (LivingTree::NodeId node = id; node != LivingTree::none;
       node = (*tree)[node].parent)
    --left[node];
  return getSolution(path);
}

size_t CandidateSpace::getNumBytes() const {
  return (tree ? tree->getNumBytes() : 0) + left.size() * sizeof(left[0]) +
         exhausted.getMemorySize();
}
