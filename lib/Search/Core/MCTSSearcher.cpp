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
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/MCTSSearcher.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::search;

/// A move as the key of a map.
static uint64_t getKey(Move move) {
  return uint64_t(move.kind) << 32 | move.code;
}

void MCTSSearcher::Record::add(double reward) {
  double delta = reward - mean;
  mean += delta / ++count;
  squares += delta * (reward - mean);
}

MCTSSearcher::MCTSSearcher(std::unique_ptr<CandidateSpace> space,
                           const Options &options)
    : SpaceSearcher(std::move(space), options), options(options) {
  nodes.emplace_back();
}

double MCTSSearcher::normalize(double reward) const {
  double width = range.getWidth();
  return width > 0 ? (reward - range.getLowest()) / width : 0.5;
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

/// UCB1-tuned of a choice among `total` visits, with virtual loss.
double MCTSSearcher::getBound(const Record &record, uint32_t total,
                              std::optional<double> raveMean) const {
  uint32_t visits = record.count + record.inFlight;
  if (visits == 0)
    return std::numeric_limits<double>::infinity();
  double width = range.getWidth();
  double variance = width > 0 ? record.getVariance() / (width * width) : 0.25;
  double mean = record.count ? normalize(record.mean) : 0;
  if (raveMean && options.raveEquivalence > 0) {
    // Section 5 of Gelly and Silver.
    double share = std::sqrt(options.raveEquivalence /
                             (3.0 * record.count + options.raveEquivalence));
    mean += share * (*raveMean - mean);
  }
  double logRatio = std::log(static_cast<double>(std::max(total, 1u))) / visits;
  double spread = std::min(0.25, variance + std::sqrt(2 * logRatio));
  return mean + options.exploration * std::sqrt(logRatio * spread) -
         options.virtualLoss * record.inFlight / visits;
}

/// In [0, 1]. A move without a record is like the mean of all.
double MCTSSearcher::getRaveScore(const Node &node, Move move) const {
  auto local = node.rave.find(getKey(move));
  auto global = rave.find(getKey(move));
  auto getScore = [&](double mean) { return normalize(mean); };
  double everywhere =
      getScore(global == rave.end() ? all.mean : global->second.mean);
  if (local == node.rave.end())
    return everywhere;
  double count = local->second.count;
  double share = options.localRave / (options.localRave + count);
  return share * everywhere + (1 - share) * getScore(local->second.mean);
}

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

bool MCTSSearcher::prune(Node &node, Path &path) {
  bool hasTree = space->getTree() != nullptr;
  auto isAlive = [&](Move move) {
    if (!hasTree)
      return true;
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

size_t MCTSSearcher::chooseKind(const Node &node) {
  size_t best = node.kinds.size();
  double bestBound = 0;
  for (auto [index, kind] : llvm::enumerate(node.kinds)) {
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
  nodes.emplace_back();
  nodes.back().move = kind.hidden[best];
  kind.hidden.erase(kind.hidden.begin() + best);
  kind.children.push_back(nodes.size() - 1);
  return nodes.size() - 1;
}

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

/// Completes `path` by the best of some rollouts.
MCTSSearcher::Draw MCTSSearcher::rollOut(Path &path) {
  bool isChosen = random.uniform() >= options.rolloutNoise;
  unsigned rollouts =
      isChosen && all.count ? std::max(options.rollouts, 1u) : 1;
  Path best;
  double bestScore = 0;
  for (unsigned index = 0; index < rollouts; ++index) {
    Path candidate = path;
    Draw draw = space->draw(candidate, random);
    if (draw != Draw::Found) {
      if (best.empty())
        return draw;
      break;
    }
    double score = 0;
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

MCTSSearcher::Draw MCTSSearcher::propose(uint64_t id, Path &path) {
  while (true) {
    path.clear();
    Proposal proposal;
    uint32_t at = 0;
    bool isNew = false;
    while (!isNew) {
      Node &node = nodes[at];
      if (!node.isExpanded)
        expand(node, path);
      if (!prune(node, path))
        break;
      size_t kindIndex = chooseKind(node);
      Kind &kind = node.kinds[kindIndex];
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
    if (draw == Draw::Exhausted) {
      nodes[at].isFinished = true;
      continue;
    }
    if (draw == Draw::GaveUp)
      return draw;
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

void MCTSSearcher::learn(uint64_t id, std::optional<double> reward) {
  auto found = inFlight.find(id);
  if (found == inFlight.end())
    return; // The root itself.
  Proposal proposal = std::move(found->second);
  inFlight.erase(found);
  if (reward)
    range.add(*reward);
  double value = reward.value_or(range.getLowest());
  auto update = [&](Record &record) {
    --record.inFlight;
    record.add(value);
  };
  for (auto [depth, visit] : llvm::enumerate(proposal.visits)) {
    Node &node = nodes[visit.node];
    update(node.record);
    update(node.kinds[visit.kind].record);
    for (Move move : llvm::ArrayRef(proposal.path).drop_front(depth))
      node.rave[getKey(move)].add(value);
  }
  update(nodes[proposal.leaf].record);
  for (Move move : proposal.path)
    rave[getKey(move)].add(value);
  all.add(value);
}
