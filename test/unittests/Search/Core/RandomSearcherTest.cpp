//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/RandomSearcher.h"
#include "WordState.h"
#include "gtest/gtest.h"
#include <set>
#include <thread>

using namespace kas;
using namespace kas::search;

static RandomSearcher makeSearcher(uint64_t seed, unsigned alphabet = 9,
                                   unsigned length = 4) {
  RandomSearcher::Options options;
  options.seed = seed;
  return RandomSearcher(std::make_unique<WordState>(alphabet, length), options);
}

static std::vector<uint64_t> getKeys(llvm::ArrayRef<Candidate> candidates) {
  std::vector<uint64_t> keys;
  for (const Candidate &candidate : candidates)
    keys.push_back(candidate.solution->key());
  return keys;
}

TEST(RandomSearcher, EnumeratesASmallSpaceOnce) {
  WordState root(9, 4);
  for (uint64_t seed : {0, 1, 2}) {
    SCOPED_TRACE(seed);
    RandomSearcher searcher = makeSearcher(seed);
    EXPECT_FALSE(searcher.isExhausted());
    std::vector<Candidate> candidates = searcher.ask(1000);
    EXPECT_EQ(candidates.size(), root.getNumCandidates());
    EXPECT_TRUE(searcher.isExhausted());
    EXPECT_TRUE(searcher.ask(1).empty());
    std::vector<uint64_t> keys = getKeys(candidates);
    EXPECT_EQ(std::set<uint64_t>(keys.begin(), keys.end()).size(), keys.size());
    for (uint64_t key : keys) {
      EXPECT_EQ(__builtin_popcountll(key), 4);
      EXPECT_TRUE(!(key & 1) || (key & 7) == 7);
    }
    for (size_t index = 0; index < candidates.size(); ++index)
      EXPECT_EQ(candidates[index].id, index);
    EXPECT_EQ(searcher.getStatistics().asked, candidates.size());
    EXPECT_GT(searcher.getStatistics().deadEnds, 0u);
  }
}

TEST(RandomSearcher, RepeatsWithItsSeed) {
  RandomSearcher a = makeSearcher(5), b = makeSearcher(5), c = makeSearcher(6);
  std::vector<uint64_t> keys = getKeys(a.ask(50));
  // However many are requested at once, whatever the outcomes.
  std::vector<Candidate> some = b.ask(20);
  EXPECT_FALSE(b.tell(19, Failure{"no"}));
  EXPECT_FALSE(b.tell(3, Metrics{{"m", 1}}));
  std::vector<Candidate> more = b.ask(30);
  some.insert(some.end(), more.begin(), more.end());
  EXPECT_EQ(keys, getKeys(some));
  EXPECT_NE(keys, getKeys(c.ask(50)));
  // The generator is our own: this sequence is the same on every machine.
  EXPECT_EQ(std::vector<uint64_t>(keys.begin(), keys.begin() + 4),
            getKeys(makeSearcher(5).ask(4)));
}

TEST(RandomSearcher, RefusesWrongTells) {
  RandomSearcher searcher = makeSearcher(1);
  (void)searcher.ask(2);
  EXPECT_EQ(llvm::toString(searcher.tell(2, Metrics())),
            "candidate 2 was not proposed");
  EXPECT_FALSE(searcher.tell(1, Metrics()));
  EXPECT_EQ(llvm::toString(searcher.tell(1, Failure{"late"})),
            "candidate 1 has an outcome already");
  SearchStatistics statistics = searcher.getStatistics();
  EXPECT_EQ(statistics.asked, 2u);
  EXPECT_EQ(statistics.evaluated, 1u);
  EXPECT_EQ(statistics.failed, 0u);
}

TEST(RandomSearcher, WorksFromThreads) {
  RandomSearcher searcher = makeSearcher(3, 14, 5);
  std::vector<std::vector<Candidate>> found(4);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (;;) {
        std::vector<Candidate> candidates = searcher.ask(3);
        if (candidates.empty())
          return;
        // In the reverse order, and half of them as failures.
        for (const Candidate &candidate : llvm::reverse(candidates)) {
          Outcome outcome = Metrics{{"m", 1}};
          if (candidate.id % 2)
            outcome = Failure{"odd"};
          llvm::cantFail(searcher.tell(candidate.id, outcome));
          found[thread].push_back(candidate);
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  std::set<uint64_t> ids, keys;
  for (const std::vector<Candidate> &some : found)
    for (const Candidate &candidate : some) {
      EXPECT_TRUE(ids.insert(candidate.id).second);
      EXPECT_TRUE(keys.insert(candidate.solution->key()).second);
    }
  uint64_t count = WordState(14, 5).getNumCandidates();
  EXPECT_EQ(ids.size(), count);
  EXPECT_EQ(*ids.rbegin(), count - 1);
  SearchStatistics statistics = searcher.getStatistics();
  EXPECT_EQ(statistics.evaluated, (count + 1) / 2);
  EXPECT_EQ(statistics.failed, count / 2);
}

TEST(RandomSearcher, BoundsTheEffortOfOneCall) {
  RandomSearcher::Options options;
  options.expansionsPerAsk = 10;
  RandomSearcher searcher(std::make_unique<WordState>(20, 8), options);
  std::vector<Candidate> candidates = searcher.ask(1000000);
  EXPECT_FALSE(candidates.empty());
  EXPECT_LT(candidates.size(), 10u);
  EXPECT_FALSE(searcher.isExhausted());
  EXPECT_FALSE(searcher.ask(1).empty());
  searcher.stop();
  EXPECT_TRUE(searcher.ask(1).empty());
}

TEST(RandomSearcher, GivesUpRolloutsThatLeadNowhere) {
  // A rollout of two states never reaches a word of four letters.
  RandomSearcher::Options options;
  options.expansionsPerRollout = 2;
  options.expansionsPerAsk = 100;
  RandomSearcher searcher(std::make_unique<WordState>(9, 4), options);
  EXPECT_TRUE(searcher.ask(1).empty());
  EXPECT_FALSE(searcher.isExhausted());
}
