//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States and moves: what a search algorithm sees of a problem. Nothing here
// knows what is searched for.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_STATE_H
#define KAS_SEARCH_CORE_STATE_H

#include "kas/Support/Random.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>

namespace kas::search {

/// One step out of a state: plain data, the same on every machine. A move means
/// something only together with the state that gave it.
struct Move {
  /// The group of the move, below `State::getNumKinds`. Trees with two levels
  /// choose the kind first.
  uint32_t kind = 0;
  /// The move among those of its kind.
  uint32_t code = 0;

  auto operator<=>(const Move &) const = default;
};

/// A complete candidate, detached from the state it came of: immutable, so any
/// number of threads may read it at once. Problems derive from it.
class Solution {
public:
  virtual ~Solution();

  /// Equal for two solutions of one problem exactly when they are the same
  /// candidate, up to collisions of 64 bits. The same on every machine.
  virtual uint64_t key() const = 0;

  /// Appends numbers that describe the candidate, for surrogates: as many for
  /// all solutions of one problem, in one order; none when there are none.
  virtual void getFeatures(llvm::SmallVectorImpl<double> &features) const;
};

/// A partial candidate. A problem derives from it; a search algorithm goes
/// from the root by `nextMove` and `apply`.
///
/// Contracts:
/// * Everything is a function of the problem and of the moves applied: no
///   addresses, no clock, no order of hash tables.
/// * Paths are finite. A state without moves that is not terminal is a dead
///   end.
/// * States that stem from one root share tables and may be used by one thread
///   at a time; a solution may be used by any. For parallel rollouts make one
///   root per thread.
class State {
public:
  virtual ~State();

  virtual std::unique_ptr<State> clone() const = 0;

  /// Becomes a copy of `other`, a state of the same root. Problems whose states
  /// are plain data copy it without an allocation, so rollouts keep a state for
  /// each depth instead of cloning.
  virtual void assign(const State &other) = 0;

  /// How many kinds of moves the problem has; the same for all its states.
  virtual unsigned getNumKinds() const = 0;
  virtual llvm::StringRef getKindName(unsigned kind) const = 0;

  /// The first move of `kind` in canonical order, or the first one after
  /// `previous`, a move of that kind that this state gave before; nothing when
  /// there is no other. Moves are found one by one: a caller that needs one
  /// pays for one. A move is given only when it cannot be ruled out that a
  /// terminal state follows it.
  virtual std::optional<Move>
  nextMove(unsigned kind, std::optional<Move> previous = {}) const = 0;

  /// Appends all moves, by kind and then in canonical order: those that
  /// `nextMove` would give one by one.
  virtual void getMoves(llvm::SmallVectorImpl<Move> &moves) const;

  /// A move at random, for problems with many moves, where a rollout needs only
  /// one, or whose kinds of moves are not to be equally probable. A problem
  /// that draws does so at every state with moves. Nothing elsewhere: the
  /// caller then chooses, first a kind with moves and then a move of it.
  virtual std::optional<Move> drawMove(Random &random) const {
    return std::nullopt;
  }

  /// Makes a move that this state gave.
  virtual void apply(Move move) = 0;

  /// The state is a complete candidate. It has no moves.
  virtual bool isTerminal() const = 0;

  /// The candidate of a terminal state.
  virtual std::shared_ptr<const Solution> getSolution() const = 0;

  /// Equal for two states of one problem only when the same candidates follow
  /// from them, up to collisions of 64 bits, whichever paths lead to them:
  /// the key of a transposition table. That of a terminal state is the key of
  /// its solution.
  virtual uint64_t key() const = 0;

  /// Makes what this state, or another one of the same root, is working out end
  /// soon, and so all that comes later: moves may then lead nowhere. From any
  /// thread. Problems whose moves are found quickly need not do anything.
  virtual void stop() {}
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_STATE_H
