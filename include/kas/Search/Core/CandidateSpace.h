//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search space from which candidates are drawn, each once: the common ground
// of the algorithms.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_CANDIDATESPACE_H
#define KAS_SEARCH_CORE_CANDIDATESPACE_H

#include "kas/Search/Core/Enumerator.h"

namespace kas::search {

/// The moves from the root to a candidate.
using Path = llvm::SmallVector<Move, 16>;

/// The candidates of a space that were not taken yet. If the space is small
/// enough its tree of living states is built first: then every draw succeeds.
/// Else a draw is a rollout that steps back at dead ends and remembers them.
/// Not safe to be used by two threads at once.
class CandidateSpace {
public:
  struct Options {
    /// Build the tree if that takes no more than so many expansions; 0: never.
    uint64_t treeExpansions = 5000000;
    /// The same in seconds (0: no limit); whether there is a tree then depends
    /// on the speed of the machine.
    double treeSeconds = 0;
    /// The most memory for the tree and what is remembered beside it.
    size_t maxBytes = size_t(1) << 30;
    /// Use a table of states to build it, for problems that give several paths
    /// to one state.
    bool useTable = false;
    /// With a tree, all candidates are equally probable in a draw; else first
    /// the kinds and then the moves of a kind are, at each state. The latter
    /// prefers candidates that have few relatives.
    bool drawUniformly = true;
    /// Without a tree, a rollout is given up after so many states: the part of
    /// the space it is in may be large and empty.
    uint64_t expansionsPerRollout = 2000;
  };

  /// What came of looking for a candidate.
  enum class Draw {
    Found,
    /// There is none left.
    Exhausted,
    /// None was found with the effort that is allowed.
    GaveUp
  };

  CandidateSpace(std::unique_ptr<State> root, const Options &options);
  /// Takes a tree that is known, the complete one of `root`.
  CandidateSpace(std::unique_ptr<State> root, const Options &options,
                 std::shared_ptr<const LivingTree> tree);

  /// Builds the tree, if the options want it and it is not there. Call it
  /// before all else.
  void prepare();

  const State &getRoot() const { return *root; }
  /// Null if the space was too large.
  const std::shared_ptr<const LivingTree> &getTree() const { return tree; }
  /// With a tree: how many candidates are below a node and not taken.
  uint32_t getNumLeft(LivingTree::NodeId id) const { return left[id]; }

  /// Every candidate was taken.
  bool isExhausted() const;
  /// Some candidate below `path` may be left.
  bool isAlive(llvm::ArrayRef<Move> path) const;

  /// Appends the moves that can follow `path`, in canonical order; with a tree
  /// those with candidates left.
  void getMoves(llvm::ArrayRef<Move> path, llvm::SmallVectorImpl<Move> &moves);

  /// Completes `path` to that of a candidate that is not taken, at random; if
  /// there is none, or none is found, `path` does not change.
  Draw draw(Path &path, Random &random);

  /// The same, but where there is a choice a move of `guide` that is possible
  /// is made (each at most once, the first first) with the probability `keep`.
  /// To vary a candidate: what is left of its moves stays.
  Draw drawNear(Path &path, llvm::ArrayRef<Move> guide, double keep,
                Random &random);

  /// Takes the candidate of a path that was drawn; null if it was taken.
  std::shared_ptr<const Solution> take(llvm::ArrayRef<Move> path);
  /// The same without taking it.
  std::shared_ptr<const Solution> getSolution(llvm::ArrayRef<Move> path) const;

  /// Makes `prepare` and rollouts without a tree end soon. From any thread.
  void stop() {
    stopped = true;
    root->stop();
  }

  uint64_t getNumExpansions() const { return numExpansions; }
  uint64_t getNumDeadEnds() const { return numDeadEnds; }
  uint64_t getNumDuplicates() const { return numDuplicates; }
  size_t getNumBytes() const;

private:
  struct Guide;
  /// One draw from a space without a tree.
  struct Descent {
    Path &path;
    Guide &guide;
    Random &random;
    uint64_t budget;
    /// Only by the moves that the problem draws.
    bool isQuick = false;
  };
  void setTree(std::shared_ptr<const LivingTree> known);
  LivingTree::NodeId chooseChild(LivingTree::NodeId id, Random &random) const;
  Draw drawOnTree(Path &path, Guide &guide, Random &random);
  Draw descend(unsigned depth, Descent &descent);
  Draw enter(unsigned depth, Move move, Descent &descent);
  Draw drawQuickly(unsigned depth, Descent &descent);
  State &getState(size_t depth) const;
  /// The state after `path`, in the place for states of its depth.
  State &replay(llvm::ArrayRef<Move> path) const;
  void markExhausted(uint64_t key);

  std::unique_ptr<State> root;
  Options options;
  bool isPrepared = false;
  std::shared_ptr<const LivingTree> tree;
  /// By node: the candidates below that are left.
  std::vector<uint32_t> left;
  /// Without a tree: the keys of taken candidates, and of states below which
  /// nothing is left.
  llvm::DenseSet<uint64_t> exhausted;
  /// One state for each depth, used again and again.
  mutable std::vector<std::unique_ptr<State>> states;
  std::atomic<bool> stopped = false;
  uint64_t numExpansions = 0, numDeadEnds = 0, numDuplicates = 0;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_CANDIDATESPACE_H
