//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Complete enumeration of a search space, depth first.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_ENUMERATOR_H
#define KAS_SEARCH_CORE_ENUMERATOR_H

#include "kas/Search/Core/LivingTree.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <atomic>

namespace kas::search {

/// Lists the solutions of a space in canonical order, each once, and builds the
/// tree of living states. It can be interrupted at any time and run on from
/// there; the tree then holds what was found so far.
class Enumerator {
public:
  struct Options {
    /// Remember the key of every state and enter none twice. Needed unless the
    /// problem gives only one path to each state; costs 11 to 22 bytes a state.
    bool useTable = false;
    /// Build the tree; without it only the solutions' keys are kept.
    bool buildTree = true;
    /// The most memory for nodes and keys.
    size_t maxBytes = size_t(1) << 30;
  };

  /// When one call of `run` returns; 0: no limit.
  struct Limits {
    uint64_t expansions = 0;
    uint64_t solutions = 0;
    /// What is found then depends on the speed of the machine.
    double seconds = 0;
    /// As `stop`, while it is true; of whoever enumerates.
    const std::atomic<bool> *stopped = nullptr;
  };

  enum class Status {
    /// All of the space is known.
    Complete,
    /// A limit of the call was met, or `stop` was called. It can go on.
    Interrupted,
    /// Another state might take more than the allowed memory.
    OutOfMemory
  };

  struct Statistics {
    /// States whose moves were listed; those of them without a move.
    uint64_t expansions = 0, deadEnds = 0;
    /// Solutions, and those that repeated the key of an earlier one.
    uint64_t solutions = 0, duplicates = 0;
    /// States reached again (with a table).
    uint64_t revisits = 0;
  };

  /// Called with each new solution: its moves and its state.
  using Found = llvm::function_ref<void(llvm::ArrayRef<Move>, const State &)>;

  Enumerator(std::unique_ptr<State> root, const Options &options);
  ~Enumerator();

  Status run(const Limits &limits, Found found = {});
  Status run() { return run(Limits()); }
  /// Makes a running `run` return soon, and later ones at once. From any
  /// thread.
  void stop() { stopped = true; }

  /// The tree of what was found so far.
  const LivingTree &getTree();
  /// The same; ends the enumeration.
  LivingTree takeTree();

  const Statistics &getStatistics() const { return statistics; }
  /// The memory for nodes and keys.
  size_t getNumBytes() const;
  const State &getRoot() const { return *root; }

private:
  struct Frame;
  void start(Found found);
  void open(unsigned at);
  void enter(Move move, Found found);
  /// Adds what was found below the deepest open state to the one above it.
  void leave();
  LivingTree::Node makeNode(unsigned at);
  bool addSolution(const State &state, Found found);
  size_t getNumBytesAhead() const;
  void closeTree();
  void reopenTree();

  std::unique_ptr<State> root;
  Options options;
  std::atomic<bool> stopped = false;
  /// The open states, one for each depth, of which the first `depth` are in
  /// use; the rest keep their memory.
  std::vector<std::unique_ptr<Frame>> frames;
  unsigned depth = 0;
  llvm::SmallVector<Move, 16> path;
  bool isStarted = false;
  LivingTree tree;
  /// A tree that is requested early is closed by nodes below the settled ones;
  /// they are also among the living children at the depths `openChildren`.
  bool isClosed = false;
  uint64_t numSettled = 0;
  llvm::SmallVector<unsigned, 16> openChildren;
  llvm::DenseSet<uint64_t> visited, solutions;
  Statistics statistics;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_ENUMERATOR_H
