//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Enumerator.h"
#include "DigitState.h"
#include "WordState.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>

using namespace kas;
using namespace kas::search;

using Status = Enumerator::Status;

static std::vector<uint64_t> getKeys(const LivingTree &tree,
                                     const State &root) {
  std::vector<uint64_t> keys;
  for (uint64_t rank = 0; rank < tree.getNumSolutions(); ++rank)
    keys.push_back(
        tree.getSolution(root, tree.getSolutionNode(tree.getRoot(), rank))
            ->key());
  return keys;
}

/// Counts, links and the order of children, everywhere.
static void checkTree(const LivingTree &tree, const State &root) {
  if (tree.getRoot() == LivingTree::none)
    return;
  EXPECT_EQ(tree[tree.getRoot()].parent, LivingTree::none);
  uint64_t leaves = 0;
  for (LivingTree::NodeId id = 0; id < tree.getNumNodes(); ++id) {
    const LivingTree::Node &node = tree[id];
    EXPECT_EQ(tree.find(tree.getPath(id)), id);
    leaves += tree.isSolution(id);
    uint64_t count = tree.isSolution(id);
    for (unsigned child = 0; child < node.numChildren; ++child) {
      EXPECT_EQ(tree[node.firstChild + child].parent, id);
      count += tree[node.firstChild + child].count;
      if (child > 0)
        EXPECT_LT(tree.getMove(node.firstChild + child - 1),
                  tree.getMove(node.firstChild + child));
    }
    EXPECT_EQ(node.count, count);
  }
  EXPECT_EQ(leaves, tree.getNumSolutions());
}

TEST(Enumerator, ListsTheSameByPathsAndByTable) {
  WordState root(9, 4);
  std::vector<uint64_t> keys[2];
  for (bool useTable : {false, true}) {
    Enumerator::Options options;
    options.useTable = useTable;
    Enumerator enumerator(root.clone(), options);
    EXPECT_EQ(enumerator.run(), Status::Complete);
    const LivingTree &tree = enumerator.getTree();
    EXPECT_TRUE(tree.isComplete());
    EXPECT_EQ(tree.getNumSolutions(), root.getNumCandidates());
    EXPECT_EQ(enumerator.getStatistics().solutions, root.getNumCandidates());
    EXPECT_EQ(enumerator.getStatistics().revisits > 0, useTable);
    EXPECT_GT(enumerator.getStatistics().deadEnds, 0u);
    checkTree(tree, root);
    keys[useTable] = getKeys(tree, root);
  }
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_EQ(std::set<uint64_t>(keys[0].begin(), keys[0].end()).size(),
            keys[0].size());
}

TEST(Enumerator, KnowsOnlyTheLiving) {
  // 3^4 words; each prefix of length 3 has one candidate below it.
  DigitState root({3, 4, 3});
  Enumerator enumerator(root.clone(), {});
  EXPECT_EQ(enumerator.run(), Status::Complete);
  const LivingTree &tree = enumerator.getTree();
  EXPECT_EQ(tree.getNumSolutions(), 27u);
  EXPECT_EQ(tree.getNumNodes(), 1u + 3 + 9 + 27 + 27);
  EXPECT_EQ(enumerator.getStatistics().deadEnds, 2u * 27);
  checkTree(tree, root);
}

TEST(Enumerator, DropsLaterDuplicates) {
  DigitState root({4, 5, 1, /*numIgnored=*/2});
  Enumerator enumerator(root.clone(), {});
  EXPECT_EQ(enumerator.run(), Status::Complete);
  EXPECT_EQ(enumerator.getTree().getNumSolutions(), 64u);
  EXPECT_EQ(enumerator.getStatistics().duplicates, 1024u - 64);
  checkTree(enumerator.getTree(), root);
}

TEST(Enumerator, EndsWithASpaceOfNothing) {
  // No digit, no word.
  Enumerator none(std::make_unique<DigitState>(DigitState::Problem{0, 3, 1}),
                  {});
  EXPECT_EQ(none.run(), Status::Complete);
  EXPECT_TRUE(none.getTree().isComplete());
  EXPECT_EQ(none.getTree().getRoot(), LivingTree::none);
  EXPECT_EQ(none.getTree().getNumSolutions(), 0u);
  // The root is the candidate.
  DigitState empty(DigitState::Problem{3, 0, 1});
  Enumerator root0(empty.clone(), {});
  EXPECT_EQ(root0.run(), Status::Complete);
  EXPECT_EQ(root0.getTree().getNumSolutions(), 1u);
  checkTree(root0.getTree(), empty);
}

TEST(Enumerator, GoesOnWhereItWasInterrupted) {
  DigitState root({4, 5, 3, 1});
  Enumerator whole(root.clone(), {});
  EXPECT_EQ(whole.run(), Status::Complete);
  std::vector<uint64_t> expected = getKeys(whole.getTree(), root);

  Enumerator enumerator(root.clone(), {});
  unsigned calls = 0;
  std::vector<uint64_t> found;
  Enumerator::Limits limits;
  limits.expansions = 7;
  while (enumerator.run(limits,
                        [&](llvm::ArrayRef<Move> path, const State &state) {
                          EXPECT_EQ(path.size(), 5u);
                          found.push_back(state.key());
                        }) == Status::Interrupted) {
    ++calls;
    EXPECT_FALSE(enumerator.getTree().isComplete());
    checkTree(enumerator.getTree(), root);
    EXPECT_EQ(getKeys(enumerator.getTree(), root), found);
  }
  EXPECT_GT(calls, 40u);
  EXPECT_TRUE(enumerator.getTree().isComplete());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(getKeys(enumerator.getTree(), root), expected);
  EXPECT_EQ(enumerator.getTree().getNumNodes(), whole.getTree().getNumNodes());
  checkTree(enumerator.getTree(), root);
  // There is no more.
  EXPECT_EQ(enumerator.run(limits), Status::Complete);
}

TEST(Enumerator, StopsAtNumbersTimesAndOnRequest) {
  Enumerator::Limits limits;
  limits.solutions = 10;
  DigitState root({10, 12, 2});
  Enumerator enumerator(root.clone(), {});
  EXPECT_EQ(enumerator.run(limits), Status::Interrupted);
  EXPECT_EQ(enumerator.getTree().getNumSolutions(), 10u);
  limits = {};
  limits.seconds = 0.05;
  EXPECT_EQ(enumerator.run(limits), Status::Interrupted);
  EXPECT_GT(enumerator.getTree().getNumSolutions(), 100u);
  enumerator.stop();
  EXPECT_EQ(enumerator.run(), Status::Interrupted);
}

TEST(Enumerator, StaysWithinItsMemory) {
  for (bool useTable : {false, true}) {
    Enumerator::Options options;
    options.maxBytes = 3 << 20;
    options.useTable = useTable;
    DigitState root({10, 12, 2});
    Enumerator enumerator(root.clone(), options);
    EXPECT_EQ(enumerator.run(), Status::OutOfMemory);
    EXPECT_GT(enumerator.getNumBytes(), options.maxBytes / 3);
    EXPECT_GT(enumerator.getTree().getNumSolutions(), 10000u);
    EXPECT_LE(enumerator.getNumBytes(), options.maxBytes);
    EXPECT_FALSE(enumerator.getTree().isComplete());
    EXPECT_EQ(enumerator.run(), Status::OutOfMemory);
  }
}

TEST(LivingTree, DrawsUniformly) {
  // Subtrees of very different sizes: 0 at first leaves few candidates.
  DigitState root({5, 5, 7});
  Enumerator enumerator(root.clone(), {});
  EXPECT_EQ(enumerator.run(), Status::Complete);
  LivingTree tree = enumerator.takeTree();
  EXPECT_LE(tree.getNumBytes(), 32 * tree.getNumNodes() + (size_t(32) << 12));
  for (uint64_t seed : {0, 1, 2}) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<unsigned> hits(tree.getNumNodes());
    uint64_t solutions = tree.getNumSolutions();
    uint64_t rollouts = 50 * solutions;
    for (uint64_t rollout = 0; rollout < rollouts; ++rollout)
      ++hits[tree.draw(tree.getRoot(), random)];
    double chiSquare = 0;
    for (LivingTree::NodeId id = 0; id < tree.getNumNodes(); ++id) {
      if (!tree.isSolution(id))
        EXPECT_EQ(hits[id], 0u);
      else
        chiSquare += (hits[id] - 50.0) * (hits[id] - 50.0) / 50.0;
    }
    // Mean f, variance 2 f for f degrees of freedom; five sigma.
    double freedom = static_cast<double>(solutions - 1);
    EXPECT_LT(std::abs(chiSquare - freedom), 5 * std::sqrt(2 * freedom));
  }
}

TEST(LivingTree, DrawsUniformlyBelowANode) {
  DigitState root({4, 4, 1});
  Enumerator enumerator(root.clone(), {});
  EXPECT_EQ(enumerator.run(), Status::Complete);
  const LivingTree &tree = enumerator.getTree();
  LivingTree::NodeId id = tree.find({{1, 0}, {0, 1}});
  ASSERT_NE(id, LivingTree::none);
  EXPECT_EQ(tree[id].count, 16u);
  Random random(1);
  std::set<uint64_t> keys;
  for (unsigned rollout = 0; rollout < 400; ++rollout) {
    auto word = tree.getSolution(root, tree.draw(id, random));
    const auto &digits = static_cast<const DigitState::Word &>(*word).digits;
    EXPECT_EQ(digits[0], 2u);
    EXPECT_EQ(digits[1], 1u);
    keys.insert(word->key());
  }
  EXPECT_EQ(keys.size(), 16u);
  EXPECT_EQ(tree.find({{1, 7}}), LivingTree::none);
}
