//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Monte-Carlo tree search with UCB1-tuned (Auer et al., 2002), progressive
// widening (Coulom, 2007) and RAVE (Gelly and Silver).
//
// Each state of the tree is a bandit over kinds, each kind a bandit over its
// moves. `propose` descends to a move that is not in play yet, completes it by
// rollouts, and marks the way as in flight; `learn` adds the reward to all
// records on the way. The header names the sources of each part.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/MCTSSearcher.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::search;

/// A move as the key of a map. Kind and code together identify a move in every
/// state; that is what RAVE relies on.
static uint64_t getKey(Move move) {
  return uint64_t(move.kind) << 32 | move.code;
}

/// Welford's update: numerically stable, and needs no list of rewards.
/// `squares` is the sum of squared deviations from the mean.
void MCTSSearcher::Record::add(double reward) {
  double delta = reward - mean;
  mean += delta / ++count;
  squares += delta * (reward - mean);
}

MCTSSearcher::MCTSSearcher(std::unique_ptr<CandidateSpace> space,
                           const Options &options)
    : SpaceSearcher(std::move(space), options), options(options) {
  // The root. Node 0 exists from the beginning and has no move.
  nodes.emplace_back();
}

/// All rewards equal: nothing distinguishes them, and 1/2 favours neither
/// exploitation nor exploration.
double MCTSSearcher::normalize(double reward) const {
  double width = range.getWidth();
  return width > 0 ? (reward - range.getLowest()) / width : 0.5;
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

/// UCB1-tuned of a choice among `total` visits, with virtual loss. With n
/// visits of this choice among N in all, mean x and variance v of its rewards
/// in [0, 1], the bound is
///   x + exploration * sqrt(ln N / n * min(1/4, v + sqrt(2 ln N / n)))
/// where 1/4 is the largest variance of a variable in [0, 1]. Infinite without
/// a visit, so each choice that is in play is tried once.
double MCTSSearcher::getBound(const Record &record, uint32_t total,
                              std::optional<double> raveMean) const {
  // Visits in flight count as visits: otherwise parallel proposals would all
  // take the same way.
  uint32_t visits = record.count + record.inFlight;
  if (visits == 0)
    return std::numeric_limits<double>::infinity();
  double width = range.getWidth();
  // Rewards are stored in their own unit, because the range is not known in
  // advance, so the variance is scaled here.
  double variance = width > 0 ? record.getVariance() / (width * width) : 0.25;
  double mean = record.count ? normalize(record.mean) : 0;
  if (raveMean && options.raveEquivalence > 0) {
    // Section 5 of Gelly and Silver. The RAVE mean is biased but known early;
    // its weight falls with the visits of the choice, sqrt(k / (3n + k)).
    double share = std::sqrt(options.raveEquivalence /
                             (3.0 * record.count + options.raveEquivalence));
    mean += share * (*raveMean - mean);
  }
  double logRatio = std::log(static_cast<double>(std::max(total, 1u))) / visits;
  double spread = std::min(0.25, variance + std::sqrt(2 * logRatio));
  // Virtual loss: what is in flight lowers the bound until its outcome is
  // known.
  return mean + options.exploration * std::sqrt(logRatio * spread) -
         options.virtualLoss * record.inFlight / visits;
}

/// In [0, 1]. A move without a record is like the mean of all. A weighted mean
/// of two estimates: the rewards of candidates below this state that have the
/// move, and those of all candidates that have it. The first is specific but
/// rare, so it counts n / (n + localRave) after n records.
double MCTSSearcher::getRaveScore(const Node &node, Move move) const {
  auto local = node.rave.find(getKey(move));
  auto global = rave.find(getKey(move));
  // Normalized at the time of use: the range grows during the search.
  auto getScore = [&](double mean) { return normalize(mean); };
  double everywhere =
      getScore(global == rave.end() ? all.mean : global->second.mean);
  if (local == node.rave.end())
    return everywhere;
  double count = local->second.count;
  double share = options.localRave / (options.localRave + count);
  return share * everywhere + (1 - share) * getScore(local->second.mean);
}

/// All moves of the state start hidden. They are in canonical order, so each
/// kind is one run.
void MCTSSearcher::expand(Node &node, llvm::ArrayRef<Move> path) {
  node.isExpanded = true;
  llvm::SmallVector<Move, 32> moves;
  space->getMoves(path, moves);
  for (Move move : moves) {
    if (node.kinds.empty() || node.kinds.back().kind != move.kind) {
      node.kinds.emplace_back();
      node.kinds.back().kind = move.kind;
    }
    node.kinds.back().hidden.push_back(move);
  }
}

/// Rewards of what is removed stay in the records of the ancestors: the
/// bandit's estimates remain right.
bool MCTSSearcher::prune(Node &node, Path &path) {
  bool hasTree = space->getTree() != nullptr;
  // Without a tree the space cannot tell; a subtree that is used up is noticed
  // when a rollout comes back exhausted, and is then `isFinished`.
  auto isAlive = [&](Move move) {
    if (!hasTree)
      return true;
    // `path` is borrowed to ask about a child and is restored.
    path.push_back(move);
    bool result = space->isAlive(path);
    path.pop_back();
    return result;
  };
  bool isLeft = false;
  for (Kind &kind : node.kinds) {
    llvm::erase_if(kind.hidden, [&](Move move) { return !isAlive(move); });
    llvm::erase_if(kind.children, [&](uint32_t child) {
      return nodes[child].isFinished || !isAlive(nodes[child].move);
    });
    isLeft |= !kind.hidden.empty() || !kind.children.empty();
  }
  node.isFinished = !isLeft;
  return isLeft;
}

/// A kind has no RAVE: it is a name shared by very different moves.
size_t MCTSSearcher::chooseKind(const Node &node) {
  size_t best = node.kinds.size();
  double bestBound = 0;
  for (auto [index, kind] : llvm::enumerate(node.kinds)) {
    // A kind whose moves are all used up is no choice, whatever its bound.
    if (kind.hidden.empty() && kind.children.empty())
      continue;
    double bound = getBound(
        kind.record, node.record.count + node.record.inFlight, std::nullopt);
    if (best == node.kinds.size() || bound > bestBound) {
      best = index;
      bestBound = bound;
    }
  }
  return best;
}

/// Progressive widening: the hidden move with the best RAVE score comes into
/// play. Of equal scores the first in canonical order, unless there is noise.
uint32_t MCTSSearcher::reveal(Node &node, Kind &kind) {
  size_t best = 0;
  double bestScore = -1;
  for (auto [index, move] : llvm::enumerate(kind.hidden)) {
    double score = (1 - options.raveNoise) * getRaveScore(node, move) +
                   options.raveNoise * random.uniform();
    if (score > bestScore) {
      bestScore = score;
      best = index;
    }
  }
  // `node` and `kind` stay valid: `nodes` is a deque.
  nodes.emplace_back();
  nodes.back().move = kind.hidden[best];
  kind.hidden.erase(kind.hidden.begin() + best);
  kind.children.push_back(nodes.size() - 1);
  return nodes.size() - 1;
}

/// There is at least one child in play: `propose` reveals the first move before
/// it comes here.
uint32_t MCTSSearcher::chooseChild(const Node &node, const Kind &kind) {
  uint32_t best = kind.children.front();
  double bestBound = -std::numeric_limits<double>::infinity();
  for (uint32_t child : kind.children) {
    double bound =
        getBound(nodes[child].record, kind.record.count + kind.record.inFlight,
                 getRaveScore(node, nodes[child].move));
    if (bound > bestBound) {
      bestBound = bound;
      best = child;
    }
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Proposals
//===----------------------------------------------------------------------===//

/// Completes `path` by the best of some rollouts. Rollouts compete by the mean
/// RAVE score of the moves that they add. Fails only when not a single rollout
/// has found a candidate.
MCTSSearcher::Draw MCTSSearcher::rollOut(Path &path) {
  // A share of the proposals is a plain rollout. Without it, moves that the
  // records hold in low esteem would never be tried again.
  bool isChosen = random.uniform() >= options.rolloutNoise;
  // Without an outcome all scores are equal, so one rollout is as good as many.
  unsigned rollouts =
      isChosen && all.count ? std::max(options.rollouts, 1u) : 1;
  Path best;
  double bestScore = 0;
  for (unsigned index = 0; index < rollouts; ++index) {
    Path candidate = path;
    Draw draw = space->draw(candidate, random);
    if (draw != Draw::Found) {
      // The second and later draws only compete: without them the best so far
      // is taken.
      if (best.empty())
        return draw;
      break;
    }
    double score = 0;
    // Only what the rollout has chosen is compared; the way to it is the same
    // for all.
    for (Move move : llvm::ArrayRef(candidate).drop_front(path.size()))
      score += getRaveScore(nodes.front(), move);
    score /= std::max<size_t>(candidate.size() - path.size(), 1);
    if (best.empty() || score > bestScore) {
      bestScore = score;
      best = std::move(candidate);
    }
  }
  path = std::move(best);
  return Draw::Found;
}

/// Descends from the root until a hidden move comes into play. Where the
/// descent ends in a state whose candidates are all proposed, it starts again:
/// that state is then removed from its parent, so each repetition makes the
/// tree smaller and the loop ends.
MCTSSearcher::Draw MCTSSearcher::propose(uint64_t id, Path &path) {
  while (true) {
    path.clear();
    // The way of this descent; kept only if it ends in a proposal.
    Proposal proposal;
    uint32_t at = 0;
    bool isNew = false;
    while (!isNew) {
      Node &node = nodes[at];
      if (!node.isExpanded)
        expand(node, path);
      // `prune` marks the node as finished.
      if (!prune(node, path))
        break;
      size_t kindIndex = chooseKind(node);
      Kind &kind = node.kinds[kindIndex];
      // In-flight visits count for the width, too, so many parallel proposals
      // widen the tree at once.
      double visits = kind.record.count + kind.record.inFlight;
      double width = std::max(1.0, options.wideningFactor *
                                       std::pow(visits, options.widening));
      isNew = !kind.hidden.empty() &&
              static_cast<double>(kind.children.size()) < width;
      proposal.visits.push_back({at, static_cast<uint32_t>(kindIndex)});
      at = isNew ? reveal(node, kind) : chooseChild(node, kind);
      path.push_back(nodes[at].move);
    }
    if (!isNew) {
      // All below `at` was proposed; the state above finds that out next.
      if (at == 0)
        return Draw::Exhausted;
      continue;
    }
    Draw draw = rollOut(path);
    // No candidate is left below the new move. Exhausted is a proof, unlike
    // `GaveUp`.
    if (draw == Draw::Exhausted) {
      nodes[at].isFinished = true;
      continue;
    }
    // The revealed move stays in play without a visit: its bound is infinite,
    // so it is tried again.
    if (draw == Draw::GaveUp)
      return draw;
    // Nothing is counted before this line: descents that fail leave no visits
    // in flight.
    for (Visit visit : proposal.visits) {
      ++nodes[visit.node].record.inFlight;
      ++nodes[visit.node].kinds[visit.kind].record.inFlight;
    }
    ++nodes[at].record.inFlight;
    proposal.leaf = at;
    proposal.path = path;
    inFlight[id] = std::move(proposal);
    return Draw::Found;
  }
}

/// A failure counts as the worst reward so far. A candidate whose state was
/// never descended to has no proposal.
void MCTSSearcher::learn(uint64_t id, std::optional<double> reward) {
  auto found = inFlight.find(id);
  if (found == inFlight.end())
    return; // The root itself.
  Proposal proposal = std::move(found->second);
  inFlight.erase(found);
  // Before the value is used: the least may be this one.
  if (reward)
    range.add(*reward);
  double value = reward.value_or(range.getLowest());
  // A visit in flight becomes a visit with a reward.
  auto update = [&](Record &record) {
    --record.inFlight;
    record.add(value);
  };
  for (auto [depth, visit] : llvm::enumerate(proposal.visits)) {
    Node &node = nodes[visit.node];
    update(node.record);
    update(node.kinds[visit.kind].record);
    // RAVE of a state knows the moves made at or below it, in whatever order
    // they come.
    for (Move move : llvm::ArrayRef(proposal.path).drop_front(depth))
      node.rave[getKey(move)].add(value);
  }
  update(nodes[proposal.leaf].record);
  // The records of the whole space know every move of the candidate.
  for (Move move : proposal.path)
    rave[getKey(move)].add(value);
  all.add(value);
}
