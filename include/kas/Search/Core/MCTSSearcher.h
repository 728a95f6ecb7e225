//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Monte-Carlo tree search.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_MCTSSEARCHER_H
#define KAS_SEARCH_CORE_MCTSSEARCHER_H

#include "kas/Search/Core/SpaceSearcher.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>
#include <map>

namespace kas::search {

/// Monte-Carlo tree search with two levels for each state: first the kind of
/// move is chosen, then the move. Both by UCB1-tuned (Auer, Cesa-Bianchi,
/// Fischer: "Finite-time Analysis of the Multiarmed Bandit Problem", Machine
/// Learning 47, 2002, section 4). The moves of a kind come into play one by one
/// (progressive widening: Coulom, "Computing Elo Ratings of Move Patterns in
/// the Game of Go", 2007, section 4.2), the most promising first by the
/// rewards of all candidates with that move (RAVE: Gelly and Silver,
/// "Combining Online and Offline Knowledge in UCT", ICML 2007): those below
/// the same state, and those anywhere. Two levels and both kinds of RAVE are
/// those of the search in the Syno paper (section 7).
///
/// A move that comes into play is followed by rollouts to candidates, of
/// which the one with the best moves is proposed. What is in flight counts as a
/// visit without a reward (virtual loss: Chaslot, Winands, van den Herik,
/// "Parallel Monte-Carlo Tree Search", 2008, section 3.3). States below which
/// every candidate was proposed leave the tree.
///
/// Rewards are brought to [0, 1] by the least and the largest so far; failures
/// count as the least. Constants without a source were chosen by experiment
/// (research/reports/search-algorithms.md).
class MCTSSearcher final : public SpaceSearcher {
public:
  struct Options : SpaceSearcher::Options {
    /// The factor of the width of the confidence interval; 1 in UCB1-tuned, 4
    /// sqrt(2) in Syno.
    double exploration = 1;
    /// The mean reward of a choice among n visits is lowered by this times its
    /// visits in flight over n (Syno: 0.3 each).
    double virtualLoss = 0.3;
    /// After n visits, at least 1 and at most wideningFactor * n^widening moves
    /// of a kind are in play (Syno: 1 and 0.8, for thousands of evaluations).
    double wideningFactor = 1, widening = 0.3;
    /// A state's own records of a move count n / (n + localRave) after n of
    /// them, those of the whole space the rest (Syno: 3).
    double localRave = 3;
    /// The share of chance in which move comes next (Syno: 0.3). Without it,
    /// moves that nothing is known of come in canonical order.
    double raveNoise = 0;
    /// The records of a choice's moves count as much as its own mean after so
    /// many visits (Gelly and Silver's k; 0: they do not count).
    double raveEquivalence = 30;
    /// Rollouts to choose a candidate from (1: none is better than another).
    unsigned rollouts = 32;
    /// The share of proposals whose rollout is not chosen.
    double rolloutNoise = 0.1;
  };

  MCTSSearcher(std::unique_ptr<CandidateSpace> space, const Options &options);

private:
  /// Mean and variance of rewards (Welford's updates), and visits under way.
  struct Record {
    void add(double reward);
    double getVariance() const { return count ? squares / count : 0; }
    uint32_t count = 0, inFlight = 0;
    double mean = 0, squares = 0;
  };
  struct Kind {
    uint32_t kind = 0;
    Record record;
    /// Nodes in play; moves that are not.
    llvm::SmallVector<uint32_t, 4> children;
    llvm::SmallVector<Move, 4> hidden;
  };
  struct Node {
    Move move;
    Record record;
    bool isExpanded = false, isFinished = false;
    llvm::SmallVector<Kind, 4> kinds;
    /// Rewards of candidates below by the moves on their way.
    llvm::DenseMap<uint64_t, Record> rave;
  };
  /// The nodes on the way to a proposal, with the kinds chosen there.
  struct Visit {
    uint32_t node = 0, kind = 0;
  };
  struct Proposal {
    llvm::SmallVector<Visit, 16> visits;
    uint32_t leaf = 0;
    Path path;
  };

  Draw propose(uint64_t id, Path &path) override;
  void learn(uint64_t id, std::optional<double> reward) override;

  bool hasProposedAll() const override {
    return nodes.front().isFinished || SpaceSearcher::hasProposedAll();
  }

  void expand(Node &node, llvm::ArrayRef<Move> path);
  /// Removes what is finished; false if nothing is left.
  bool prune(Node &node, Path &path);
  size_t chooseKind(const Node &node);
  /// The node of a move that comes into play.
  uint32_t reveal(Node &node, Kind &kind);
  uint32_t chooseChild(const Node &node, const Kind &kind);
  Draw rollOut(Path &path);

  double normalize(double reward) const;
  double getBound(const Record &record, uint32_t total,
                  std::optional<double> rave) const;
  double getRaveScore(const Node &node, Move move) const;

  Options options;
  RewardRange range;
  /// A deque, so that references stay valid when nodes are added.
  std::deque<Node> nodes;
  llvm::DenseMap<uint64_t, Record> rave;
  Record all;
  std::map<uint64_t, Proposal> inFlight;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_MCTSSEARCHER_H
