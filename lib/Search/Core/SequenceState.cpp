//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States of a search whose candidates are a choice of a variant and then of
// each of its parts.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SequenceState.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

namespace {

/// The root has `count` moves, all of kind 0 with codes from 0; each leads to a
/// terminal state.
class ChoiceState final : public State {
public:
  // Copies share the name: states are copied often.
  ChoiceState(std::string name, uint32_t count)
      : name(std::make_shared<const std::string>(std::move(name))),
        count(count) {}

  std::unique_ptr<State> clone() const override {
    return std::make_unique<ChoiceState>(*this);
  }
  void assign(const State &other) override {
    *this = static_cast<const ChoiceState &>(other);
  }
  unsigned getNumKinds() const override { return 1; }
  llvm::StringRef getKindName(unsigned) const override { return *name; }
  std::optional<Move> nextMove(unsigned,
                               std::optional<Move> previous) const override {
    uint32_t code = previous ? previous->code + 1 : 0;
    // A terminal state has no moves.
    if (chosen || code >= count)
      return std::nullopt;
    return Move{0, code};
  }
  void apply(Move move) override { chosen = move.code; }
  bool isTerminal() const override { return chosen.has_value(); }
  std::shared_ptr<const Solution> getSolution() const override {
    return std::make_shared<Choice>(*chosen);
  }
  // 0 is no key of a solution: those are mixed from numbers above 0.
  uint64_t key() const override { return chosen ? Choice(*chosen).key() : 0; }

private:
  std::shared_ptr<const std::string> name;
  uint32_t count;
  std::optional<uint32_t> chosen;
};

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// What the states of one root share. It is immutable after
/// `makeSequenceState`.
struct SequenceSpace {
  /// Roots of the parts by variant; cloned when a part begins.
  std::vector<SequenceVariant> variants;
  SequenceOptions options;
  /// By part, the number of its first kind; that of the variant is 0. Kinds of
  /// different parts have different numbers, so statistics by kind, such as
  /// those of the tree search, are not mixed up. Variants share them: the part
  /// with the most kinds determines how many there are.
  llvm::SmallVector<unsigned, 8> firstKinds;
  std::vector<std::string> kindNames;

  size_t getNumParts() const { return variants.front().size(); }
};

/// The moves of the part at hand, with their kinds shifted by `getFirstKind()`.
/// Completed parts are kept as solutions, which are immutable and shared by all
/// copies.
class SequenceState final : public State {
public:
  explicit SequenceState(std::shared_ptr<const SequenceSpace> space)
      : space(std::move(space)) {
    // With one variant there is nothing to choose, and no move for it.
    if (this->space->variants.size() == 1)
      choose(0);
  }
  SequenceState(const SequenceState &other)
      : space(other.space), variant(other.variant), done(other.done),
        isDead(other.isDead), part(other.part ? other.part->clone() : nullptr) {
  }

  std::unique_ptr<State> clone() const override {
    return std::make_unique<SequenceState>(*this);
  }
  void assign(const State &other) override;
  unsigned getNumKinds() const override { return space->kindNames.size(); }
  llvm::StringRef getKindName(unsigned kind) const override {
    return space->kindNames[kind];
  }
  std::optional<Move> nextMove(unsigned kind,
                               std::optional<Move> previous) const override;
  void getMoves(llvm::SmallVectorImpl<Move> &moves) const override;
  void apply(Move move) override;
  // All parts are complete and the last one left nothing to continue.
  bool isTerminal() const override { return variant && !part && !isDead; }
  std::shared_ptr<const Solution> getSolution() const override;
  uint64_t key() const override;
  // All parts: which one is at hand is another thread's to know.
  void stop() override {
    for (const SequenceVariant &roots : space->variants)
      for (const std::unique_ptr<State> &root : roots)
        root->stop();
  }

private:
  void choose(uint32_t number);
  /// Goes on with the next part while the one at hand is complete.
  void advance();
  unsigned getFirstKind() const { return space->firstKinds[done.size()]; }

  std::shared_ptr<const SequenceSpace> space;
  /// Nothing before the first move, where there are several variants.
  std::optional<uint32_t> variant;
  llvm::SmallVector<std::shared_ptr<const Solution>, 4> done;
  /// `isAllowed` has refused the parts in `done`; the state has no moves.
  bool isDead = false;
  /// The part at hand; null before a variant is chosen and after the last one.
  std::unique_ptr<State> part;
};

} // namespace

/// Rollouts assign at every step, mostly within the same part: then the part's
/// own `assign` avoids an allocation.
void SequenceState::assign(const State &other) {
  const auto &state = static_cast<const SequenceState &>(other);
  assert(space == state.space && "a state of another root");
  bool isSamePart = part && state.part && variant == state.variant &&
                    done.size() == state.done.size();
  if (isSamePart)
    part->assign(*state.part);
  else
    part = state.part ? state.part->clone() : nullptr;
  variant = state.variant;
  done = state.done;
  isDead = state.isDead;
}

/// `previous` is a move of this state, so its kind is shifted back before the
/// part sees it.
std::optional<Move>
SequenceState::nextMove(unsigned kind, std::optional<Move> previous) const {
  if (!variant) {
    uint32_t code = previous ? previous->code + 1 : 0;
    if (kind != 0 || code >= space->variants.size())
      return std::nullopt;
    return Move{0, code};
  }
  // Kinds of other parts have no moves now.
  if (!part || kind < getFirstKind() ||
      kind >= getFirstKind() + part->getNumKinds())
    return std::nullopt;
  if (previous)
    previous->kind -= getFirstKind();
  std::optional<Move> move = part->nextMove(kind - getFirstKind(), previous);
  if (move)
    move->kind += getFirstKind();
  return move;
}

/// The default would ask kind by kind; parts may list their moves faster.
void SequenceState::getMoves(llvm::SmallVectorImpl<Move> &moves) const {
  if (!variant) {
    State::getMoves(moves);
  } else if (part) {
    size_t first = moves.size();
    part->getMoves(moves);
    for (Move &move : llvm::drop_begin(moves, first))
      move.kind += getFirstKind();
  }
}

/// The kind of a move after the choice of the variant is always one of the part
/// at hand.
void SequenceState::apply(Move move) {
  if (!variant)
    return choose(move.code);
  move.kind -= getFirstKind();
  part->apply(move);
  advance();
}

void SequenceState::choose(uint32_t number) {
  variant = number;
  part = space->variants[number].front()->clone();
  advance();
}

/// A loop, because the root of a part may be a complete candidate itself: a
/// choice that is fixed, or an empty part.
void SequenceState::advance() {
  while (part && part->isTerminal()) {
    done.push_back(part->getSolution());
    part = nullptr;
    // Asked after each part, so that a prefix that cannot fit the budget is a
    // dead end before the rest is searched.
    isDead =
        space->options.isAllowed && !space->options.isAllowed(*variant, done);
    if (!isDead && done.size() < space->getNumParts())
      part = space->variants[*variant][done.size()]->clone();
  }
}

/// Of a state in which `parts` are complete. Order matters: each step mixes the
/// sum so far. Two sequences with the same parts in different order have
/// different keys.
static uint64_t combineKeys(uint32_t variant, Parts parts) {
  uint64_t key = mixBits(variant + 1);
  for (const auto &part : parts)
    key = mixBits(key ^ part->key());
  return key;
}

uint64_t SequenceState::key() const {
  if (!variant)
    return 0;
  uint64_t key = combineKeys(*variant, done);
  // One more word, so that a state is not taken for a solution. `done` with a
  // part at its root and `done` as a whole have the same prefix.
  if (part)
    key = mixBits(mixBits(key ^ part->key()) + done.size() + 1);
  // A dead state must not have the key of a solution with the same parts.
  return isDead ? mixBits(key + 1) : key;
}

std::shared_ptr<const Solution> SequenceState::getSolution() const {
  auto solution = std::make_shared<SequenceSolution>();
  solution->variant = *variant;
  solution->parts.assign(done.begin(), done.end());
  // The key of this terminal state, which makes it that of the state as well.
  solution->hash = key();
  return solution;
}

void SequenceSolution::getFeatures(
    llvm::SmallVectorImpl<double> &features) const {
  features.push_back(variant);
  for (const auto &part : parts)
    part->getFeatures(features);
}

std::unique_ptr<State> kas::search::makeChoiceState(std::string name,
                                                    uint32_t count) {
  return std::make_unique<ChoiceState>(std::move(name), count);
}

/// Kinds are numbered once for all variants: 0 for the variant, then those of
/// the first part, and so on. The name of a kind begins with the number of its
/// part, such as `0.unfold`.
std::unique_ptr<State>
kas::search::makeSequenceState(std::vector<SequenceVariant> variants,
                               SequenceOptions options) {
  assert(!variants.empty() && !variants.front().empty() &&
         "a sequence has a part");
  auto space = std::make_shared<SequenceSpace>();
  space->options = std::move(options);
  space->kindNames.push_back(space->options.variantName);
  for (size_t index = 0; index < variants.front().size(); ++index) {
    // Parts at one position may be of different problems; the one with the most
    // kinds names them.
    const State *widest = nullptr;
    for (const SequenceVariant &variant : variants) {
      assert(variant.size() == variants.front().size() &&
             "all variants have as many parts");
      const State *root = variant[index].get();
      if (!widest || root->getNumKinds() > widest->getNumKinds())
        widest = root;
    }
    space->firstKinds.push_back(space->kindNames.size());
    for (unsigned kind = 0; kind < widest->getNumKinds(); ++kind)
      space->kindNames.push_back(std::to_string(index) + "." +
                                 widest->getKindName(kind).str());
  }
  space->variants = std::move(variants);
  return std::make_unique<SequenceState>(std::move(space));
}
