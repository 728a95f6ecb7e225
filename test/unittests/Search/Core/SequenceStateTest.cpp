//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WordSequence.h"
#include "kas/Search/Core/Enumerator.h"
#include "gtest/gtest.h"
#include <set>

using namespace kas;
using namespace kas::search;

namespace {
struct Listing {
  std::vector<std::shared_ptr<const Solution>> solutions;
  Enumerator::Statistics statistics;
};
} // namespace

static Listing list(std::unique_ptr<State> root, bool useTable = false) {
  Enumerator::Options options;
  options.useTable = useTable;
  Enumerator enumerator(std::move(root), options);
  Listing listing;
  EXPECT_EQ(enumerator.run({},
                           [&](llvm::ArrayRef<Move>, const State &state) {
                             listing.solutions.push_back(state.getSolution());
                             EXPECT_EQ(listing.solutions.back()->key(),
                                       state.key());
                           }),
            Enumerator::Status::Complete);
  listing.statistics = enumerator.getStatistics();
  return listing;
}

static const SequenceSolution &get(const Solution &solution) {
  return static_cast<const SequenceSolution &>(solution);
}

/// What a candidate is, without its key.
static std::vector<uint64_t> describe(const Solution &solution) {
  std::vector<uint64_t> parts{get(solution).variant};
  for (const auto &part : get(solution).parts)
    parts.push_back(part->key());
  return parts;
}

TEST(SequenceState, HasEachCombinationOnce) {
  // Some states can be reached in several ways.
  for (bool useTable : {false, true}) {
    Listing listing = list(makeWordSequence(), useTable);
    EXPECT_EQ(listing.solutions.size(), 2u * 110u);
    std::set<std::vector<uint64_t>> all;
    std::set<uint64_t> keys;
    for (const auto &solution : listing.solutions) {
      EXPECT_EQ(get(*solution).parts.size(), 3u);
      all.insert(describe(*solution));
      keys.insert(solution->key());
    }
    EXPECT_EQ(all.size(), 220u);
    EXPECT_EQ(keys.size(), 220u);
    EXPECT_EQ(listing.statistics.revisits > 0, useTable);
  }
}

TEST(SequenceState, LeavesOutWhatIsNotAllowed) {
  auto hasLetter2 = [](const Solution &word) {
    return static_cast<const Word &>(word).letters & 4;
  };
  auto isAllowed = [&](uint32_t variant, Parts parts) {
    // Of the first variant only words with a letter begin a candidate; with the
    // second number of the choice only the others end one.
    if (parts.size() == 1)
      return variant == 1 || hasLetter2(*parts[0]);
    if (parts.size() == 2)
      return true;
    bool isSecond = static_cast<const Choice &>(*parts[1]).number == 1;
    return !isSecond || !hasLetter2(*parts[2]);
  };
  size_t expected = 0;
  for (const auto &solution : list(makeWordSequence()).solutions) {
    Parts parts = get(*solution).parts;
    expected += isAllowed(get(*solution).variant, parts.take_front(1)) &&
                isAllowed(get(*solution).variant, parts);
  }
  SequenceOptions options;
  options.isAllowed = isAllowed;
  Listing listing = list(makeWordSequence(options));
  EXPECT_EQ(listing.solutions.size(), expected);
  EXPECT_LT(expected, 220u);
  EXPECT_GT(listing.statistics.deadEnds, 0u);
}

TEST(SequenceState, ChoosesNoVariantWhereThereIsOne) {
  std::vector<SequenceVariant> variants;
  variants.push_back(makeWordParts(5, 1, 5));
  std::unique_ptr<State> root = makeSequenceState(std::move(variants));
  llvm::SmallVector<Move> moves;
  root->getMoves(moves);
  EXPECT_EQ(moves.size(), 5u);
  EXPECT_EQ(list(std::move(root)).solutions.size(), 25u);
}

TEST(SequenceState, NamesKindsByPart) {
  SequenceOptions options;
  options.variantName = "widths";
  std::unique_ptr<State> root = makeWordSequence(options);
  std::vector<std::string> names;
  for (unsigned kind = 0; kind < root->getNumKinds(); ++kind)
    names.push_back(root->getKindName(kind).str());
  EXPECT_EQ(names, (std::vector<std::string>{"widths", "0.even", "0.odd",
                                             "1.between", "2.even", "2.odd"}));
}

TEST(SequenceState, GivesMovesOneByOneAndBecomesACopy) {
  std::unique_ptr<State> state = makeWordSequence();
  std::unique_ptr<State> copy = state->clone();
  while (!state->isTerminal()) {
    llvm::SmallVector<Move> moves, single;
    state->getMoves(moves);
    state->State::getMoves(single);
    ASSERT_FALSE(moves.empty());
    EXPECT_EQ(moves, single);
    copy->assign(*state);
    EXPECT_EQ(copy->key(), state->key());
    // Without letter 0, which dead ends have.
    state->apply(moves.back());
    EXPECT_NE(copy->key(), state->key());
  }
  llvm::SmallVector<double> features;
  state->getSolution()->getFeatures(features);
  EXPECT_EQ(features.size(), 2u); // The variant and the choice.
}
