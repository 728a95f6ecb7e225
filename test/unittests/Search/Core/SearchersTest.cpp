//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DigitState.h"
#include "WordSequence.h"
#include "kas/Search/Core/Driver.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>
#include <thread>

using namespace kas;
using namespace kas::search;
using llvm::StringRef;

namespace {

struct Setting {
  std::string algorithm;
  bool hasTree = true;
};

class Searchers : public testing::TestWithParam<Setting> {
protected:
  std::unique_ptr<Searcher> make(const State &root, uint64_t seed,
                                 std::vector<std::string> parameters = {}) {
    SearcherSettings settings;
    settings.seed = seed;
    settings.objective = [](const Metrics &metrics) {
      return metrics.at("cost");
    };
    if (!GetParam().hasTree)
      parameters.push_back("tree-expansions=0");
    if (GetParam().algorithm == "evolution")
      parameters.push_back("population=10");
    if (GetParam().algorithm == "surrogate")
      parameters.push_back("trees=4");
    return llvm::cantFail(
        makeSearcher(GetParam().algorithm, root.clone(), settings, parameters));
  }
};

/// The number of digits that are not those of the sought word, with a gradient:
/// half of the reward of a digit for the neighbour.
double getCost(const Solution &solution) {
  double cost = 0;
  static constexpr unsigned sought[] = {3, 1, 4, 1, 5, 2, 6};
  const auto &digits = static_cast<const DigitState::Word &>(solution).digits;
  for (size_t index = 0; index < digits.size(); ++index)
    cost += std::min(
        2.0, std::abs(static_cast<double>(digits[index]) - sought[index]));
  return cost;
}

} // namespace

static std::vector<uint64_t> getKeys(llvm::ArrayRef<Candidate> candidates) {
  std::vector<uint64_t> keys;
  for (const Candidate &candidate : candidates)
    keys.push_back(candidate.solution->key());
  return keys;
}

/// Asks one by one until there is no more, tells at once.
static std::vector<Candidate> runToEnd(Searcher &searcher,
                                       bool isFailing = false) {
  std::vector<Candidate> all;
  for (;;) {
    std::vector<Candidate> some = searcher.ask(1);
    if (some.empty())
      return all;
    double cost = static_cast<double>(mixBits(some[0].solution->key()) % 100);
    Outcome outcome = Metrics{{"cost", cost}};
    if (isFailing || some[0].id % 5 == 0)
      outcome = Failure{"planted"};
    if (some[0].id % 7 == 1)
      outcome = Metrics{{"cost", std::nan("")}};
    EXPECT_FALSE(searcher.tell(some[0].id, outcome));
    all.push_back(some[0]);
  }
}

TEST_P(Searchers, ProposeEachCandidateOnce) {
  // Many paths to one state, dead ends; dead ends and repeated solutions.
  WordState words(9, 4);
  DigitState digits({4, 5, 3, 1});
  Enumerator enumerator(digits.clone(), {});
  (void)enumerator.run();
  std::unique_ptr<State> sequences = makeWordSequence();
  std::pair<const State *, uint64_t> spaces[] = {
      {&words, words.getNumCandidates()},
      {sequences.get(), 220},
      {&digits, enumerator.getTree().getNumSolutions()}};
  for (auto [root, count] : spaces)
    for (bool isFailing : {false, true}) {
      std::unique_ptr<Searcher> searcher = make(*root, 1);
      std::vector<Candidate> all = runToEnd(*searcher, isFailing);
      EXPECT_EQ(all.size(), count);
      std::vector<uint64_t> keys = getKeys(all);
      EXPECT_EQ(std::set<uint64_t>(keys.begin(), keys.end()).size(), count);
      EXPECT_TRUE(searcher->isExhausted());
      EXPECT_TRUE(searcher->ask(3).empty());
      for (size_t id = 0; id < all.size(); ++id) {
        EXPECT_EQ(all[id].id, id);
        if (all[id].parent)
          EXPECT_LT(*all[id].parent, id);
      }
      SearchStatistics statistics = searcher->getStatistics();
      EXPECT_EQ(statistics.asked, count);
      EXPECT_EQ(statistics.evaluated + statistics.failed, count);
    }
}

TEST_P(Searchers, GiveAnyNumberInFlight) {
  DigitState root({4, 5, 1});
  std::unique_ptr<Searcher> searcher = make(root, 2);
  std::vector<Candidate> all = searcher->ask(600);
  EXPECT_EQ(all.size(), 600u);
  // Outcomes in reverse, and the rest requested.
  for (const Candidate &candidate : llvm::reverse(all))
    EXPECT_FALSE(searcher->tell(
        candidate.id, Metrics{{"cost", getCost(*candidate.solution)}}));
  std::vector<Candidate> rest = searcher->ask(1000);
  EXPECT_EQ(rest.size(), 1024u - 600);
  std::set<uint64_t> keys;
  for (const auto &some : {all, rest})
    for (uint64_t key : getKeys(some))
      EXPECT_TRUE(keys.insert(key).second);
  EXPECT_EQ(llvm::toString(searcher->tell(0, Metrics{})),
            "candidate 0 has an outcome already");
  EXPECT_EQ(llvm::toString(searcher->tell(1024, Metrics{})),
            "candidate 1024 was not proposed");
}

TEST_P(Searchers, RepeatWithTheirSeed) {
  DigitState root({6, 5, 2});
  auto run = [&](uint64_t seed, unsigned perAsk) {
    std::unique_ptr<Searcher> searcher = make(root, seed);
    std::vector<uint64_t> keys;
    // All of a round is requested before any outcome.
    for (unsigned round = 0; round < 30; ++round) {
      std::vector<Candidate> candidates;
      while (candidates.size() < 6)
        for (Candidate &candidate : searcher->ask(perAsk))
          candidates.push_back(candidate);
      for (const Candidate &candidate : candidates) {
        keys.push_back(candidate.solution->key());
        EXPECT_FALSE(searcher->tell(
            candidate.id, Metrics{{"cost", getCost(*candidate.solution)}}));
      }
    }
    return keys;
  };
  std::vector<uint64_t> keys = run(7, 1);
  EXPECT_EQ(keys.size(), 180u);
  EXPECT_EQ(keys, run(7, 1));
  // Any way to ask for the same number.
  EXPECT_EQ(keys, run(7, 2));
  EXPECT_EQ(keys, run(7, 6));
  if (GetParam().algorithm != "exhaustive")
    EXPECT_NE(keys, run(8, 1));
}

TEST_P(Searchers, WorkFromThreads) {
  DigitState root({4, 5, 3});
  std::unique_ptr<Searcher> searcher = make(root, 3);
  std::vector<std::vector<Candidate>> found(2);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 2; ++thread)
    threads.emplace_back([&, thread] {
      for (;;) {
        std::vector<Candidate> candidates = searcher->ask(2);
        if (candidates.empty())
          return;
        for (const Candidate &candidate : candidates) {
          (void)searcher->getStatistics();
          llvm::cantFail(searcher->tell(
              candidate.id,
              candidate.id % 3
                  ? Outcome(Metrics{{"cost", getCost(*candidate.solution)}})
                  : Outcome(Failure{"third"})));
          found[thread].push_back(candidate);
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  std::set<uint64_t> keys;
  for (const auto &some : found)
    for (uint64_t key : getKeys(some))
      EXPECT_TRUE(keys.insert(key).second);
  Enumerator enumerator(root.clone(), {});
  (void)enumerator.run();
  EXPECT_EQ(keys.size(), enumerator.getTree().getNumSolutions());
}

TEST_P(Searchers, Stop) {
  DigitState root({10, 18, 2});
  std::unique_ptr<Searcher> searcher = make(root, 3);
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    searcher->stop();
  });
  std::vector<Candidate> candidates = searcher->ask(100000000);
  thread.join();
  EXPECT_FALSE(searcher->isExhausted());
  EXPECT_TRUE(searcher->ask(1).empty());
}

TEST_P(Searchers, EndWithASpaceOfOneOrNone) {
  DigitState one(DigitState::Problem{3, 0, 1});
  EXPECT_EQ(runToEnd(*make(one, 1)).size(), 1u);
  DigitState none(DigitState::Problem{0, 3, 1});
  std::unique_ptr<Searcher> searcher = make(none, 1);
  EXPECT_TRUE(runToEnd(*searcher).empty());
  EXPECT_TRUE(searcher->isExhausted());
}

INSTANTIATE_TEST_SUITE_P(
    All, Searchers,
    testing::Values(Setting{"random", false}, Setting{"uniform", true},
                    Setting{"uniform", false}, Setting{"exhaustive", true},
                    Setting{"exhaustive", false}, Setting{"evolution", true},
                    Setting{"evolution", false}, Setting{"mcts", true},
                    Setting{"mcts", false}, Setting{"surrogate", true},
                    Setting{"surrogate", false}),
    [](const testing::TestParamInfo<Setting> &info) {
      return info.param.algorithm +
             (info.param.hasTree ? "OnTree" : "ByRollouts");
    });

/// The median over seeds of the evaluations until the sought word is found.
static uint64_t getMedianEvaluations(const std::string &algorithm,
                                     bool hasTree) {
  DigitState root({7, 5, 2});
  std::vector<uint64_t> evaluations;
  SearcherSettings settings;
  settings.objective = [](const Metrics &metrics) {
    return metrics.at("cost");
  };
  settings.space.treeExpansions = hasTree ? 1000000 : 0;
  for (uint64_t seed = 0; seed < 9; ++seed) {
    settings.seed = seed;
    auto searcher =
        llvm::cantFail(makeSearcher(algorithm, root.clone(), settings));
    double best = 100;
    uint64_t count = 0;
    while (best > 0 && count < 10000) {
      Candidate candidate = searcher->ask(1).front();
      double cost = getCost(*candidate.solution);
      llvm::cantFail(searcher->tell(candidate.id, Metrics{{"cost", cost}}));
      best = std::min(best, cost);
      ++count;
    }
    evaluations.push_back(count);
  }
  llvm::sort(evaluations);
  return evaluations[4];
}

TEST(Algorithms, FindAPlantedReward) {
  // 8404 candidates of which one is sought: the sum of its digits is even.
  uint64_t uniform = getMedianEvaluations("uniform", true);
  EXPECT_GT(uniform, 2000u);
  for (bool hasTree : {true, false})
    for (const char *algorithm : {"evolution", "mcts", "surrogate"}) {
      SCOPED_TRACE(algorithm);
      EXPECT_LT(getMedianEvaluations(algorithm, hasTree), uniform / 5)
          << hasTree;
    }
}

TEST(ExhaustiveSearcher, GoesByCost) {
  DigitState root({5, 4, 3});
  SearcherSettings settings;
  settings.cost = getCost;
  auto sorted =
      llvm::cantFail(makeSearcher("exhaustive", root.clone(), settings));
  std::vector<Candidate> candidates = sorted->ask(1000);
  EXPECT_GT(candidates.size(), 200u);
  for (size_t index = 1; index < candidates.size(); ++index)
    EXPECT_LE(getCost(*candidates[index - 1].solution),
              getCost(*candidates[index].solution));
  // Without a cost: in canonical order.
  auto plain = llvm::cantFail(makeSearcher("exhaustive", root.clone()));
  std::vector<uint64_t> keys = getKeys(plain->ask(1000));
  EXPECT_EQ(keys.size(), candidates.size());
  EXPECT_TRUE(llvm::is_sorted(keys));
}

static std::string getError(StringRef name,
                            std::vector<std::string> parameters) {
  auto searcher =
      makeSearcher(name, std::make_unique<DigitState>(DigitState::Problem()),
                   {}, parameters);
  return searcher ? "" : llvm::toString(searcher.takeError());
}

TEST(MakeSearcher, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(getError("hillclimb", {}),
            "expected an algorithm (random, uniform, exhaustive, evolution, "
            "mcts, surrogate), got 'hillclimb'");
  EXPECT_EQ(getError("mcts", {"exploration=x"}),
            "expected a number 0 <= exploration <= 1e+09, got 'x'");
  EXPECT_EQ(getError("mcts", {"exploration=-1"}),
            "expected a number 0 <= exploration <= 1e+09, got '-1'");
  EXPECT_EQ(getError("evolution", {"population=1.5"}),
            "expected an integer 1 <= population <= 1e+09, got '1.5'");
  EXPECT_EQ(getError("evolution", {"population"}),
            "expected an integer 1 <= population <= 1e+09, got ''");
  EXPECT_NE(getError("uniform", {"population=3"}), "");
  EXPECT_EQ(getError("surrogate", {"pool=10", "trees=4"}), "");
}

TEST(MakeSearcher, SetsEveryParameterThatItLists) {
  for (StringRef name : getSearcherNames())
    for (const SearcherParameter &parameter : getSearcherParameters(name)) {
      EXPECT_FALSE(parameter.description.empty());
      EXPECT_LE(parameter.least, parameter.defaultValue);
      EXPECT_LE(parameter.defaultValue, parameter.most);
      std::string text =
          llvm::formatv("{0}={1}", parameter.name, parameter.defaultValue);
      EXPECT_EQ(getError(name, {text}), "") << text;
    }
}

TEST(MakeSearcher, AcceptsFormerNames) {
  EXPECT_EQ(getError("mcts", {"walks=4", "walk-noise=0.5"}), "");
  EXPECT_EQ(getError("uniform", {"expansions-per-walk=9"}), "");
  EXPECT_EQ(getError("mcts", {"walks=0"}),
            "expected an integer 1 <= rollouts <= 1e+09, got '0'");
  for (StringRef name : getSearcherNames())
    for (const SearcherParameter &parameter : getSearcherParameters(name))
      EXPECT_FALSE(StringRef(parameter.name).contains("walk"));
}
