//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Driver.h"
#include "WordState.h"
#include "kas/Search/Core/RandomSearcher.h"
#include "gtest/gtest.h"
#include <atomic>
#include <thread>

using namespace kas;
using namespace kas::search;

namespace {

/// Fails for every third key, at most `limit` at once.
class KeyEvaluator final : public Evaluator {
public:
  llvm::StringRef getName() const override { return "key"; }
  bool isDeterministic() const override { return true; }
  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    ++calls;
    // So that threads overtake one another.
    std::this_thread::sleep_for(
        std::chrono::microseconds(solution.key() % 7 * 100));
    if (solution.key() % 3 == 0)
      return llvm::createStringError("divisible");
    return Metrics{{"key", static_cast<double>(solution.key())}};
  }
  std::atomic<unsigned> calls = 0;
};

class CountingEvaluator final : public Evaluator {
public:
  llvm::StringRef getName() const override { return "count"; }
  bool isDeterministic() const override { return true; }
  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    ++calls;
    return Metrics{{"one", 1}};
  }
  std::atomic<unsigned> calls = 0;
};

} // namespace

static std::vector<SearchResult> run(unsigned threads, uint64_t evaluations,
                                     KeyEvaluator &key,
                                     CountingEvaluator &count) {
  RandomSearcher::Options options;
  options.seed = 11;
  RandomSearcher searcher(std::make_unique<WordState>(12, 5), options);
  Evaluator *evaluators[] = {&key, &count};
  unsigned reports = 0;
  std::vector<SearchResult> results =
      runSearch(searcher, evaluators, {evaluations, 0, threads},
                [&](const SearchResult &) { ++reports; });
  EXPECT_EQ(reports, results.size());
  return results;
}

TEST(Driver, DoesNotDependOnThreads) {
  KeyEvaluator keyA, keyB;
  CountingEvaluator countA, countB;
  std::vector<SearchResult> a = run(1, 100, keyA, countA);
  std::vector<SearchResult> b = run(4, 100, keyB, countB);
  ASSERT_EQ(a.size(), 100u);
  ASSERT_EQ(b.size(), 100u);
  for (size_t index = 0; index < a.size(); ++index) {
    EXPECT_EQ(a[index].candidate.id, index);
    EXPECT_EQ(a[index].candidate.solution->key(),
              b[index].candidate.solution->key());
    EXPECT_EQ(a[index].outcome.index(), b[index].outcome.index());
  }
}

TEST(Driver, RecordsFailures) {
  KeyEvaluator key;
  CountingEvaluator count;
  std::vector<SearchResult> results = run(2, 60, key, count);
  unsigned failed = 0;
  for (const SearchResult &result : results) {
    uint64_t value = result.candidate.solution->key();
    if (const auto *failure = std::get_if<Failure>(&result.outcome)) {
      ++failed;
      EXPECT_EQ(value % 3, 0u);
      EXPECT_EQ(failure->reason, "key: divisible");
      continue;
    }
    Metrics expected = {{"key", static_cast<double>(value)}, {"one", 1}};
    EXPECT_EQ(std::get<Metrics>(result.outcome), expected);
  }
  EXPECT_GT(failed, 0u);
  // A candidate that has failed is not evaluated further.
  EXPECT_EQ(key.calls, 60u);
  EXPECT_EQ(count.calls, 60u - failed);
}

TEST(Driver, EndsWithTheSpace) {
  KeyEvaluator key;
  CountingEvaluator count;
  EXPECT_EQ(run(3, 1000000, key, count).size(),
            WordState(12, 5).getNumCandidates());
}

TEST(Driver, EndsWithTheTime) {
  KeyEvaluator key;
  RandomSearcher searcher(std::make_unique<WordState>(40, 20), {});
  Evaluator *evaluators[] = {&key};
  auto start = std::chrono::steady_clock::now();
  std::vector<SearchResult> results =
      runSearch(searcher, evaluators, {~uint64_t(0), 0.2, 2});
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  EXPECT_FALSE(results.empty());
  EXPECT_GE(elapsed.count(), 0.2);
  EXPECT_LT(elapsed.count(), 10);
}
