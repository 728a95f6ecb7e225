//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/StoredSearcher.h"
#include "../Core/WordState.h"
#include "TemporaryDirectory.h"
#include "kas/Search/Core/RandomSearcher.h"
#include "kas/Support/Random.h"
#include "gtest/gtest.h"
#include <set>
#include <thread>

using namespace kas;
using namespace kas::search;

namespace {

/// Proposes numbers that depend on all calls of ask and tell, in order.
class HistorySearcher final : public Searcher {
public:
  explicit HistorySearcher(uint64_t seed) : state(seed) {}

  std::vector<Candidate> ask(unsigned count) override {
    std::vector<Candidate> result;
    for (; result.size() < count; ++statistics.asked) {
      state = mixBits(state + 1);
      result.push_back({statistics.asked, std::make_shared<Word>(state)});
    }
    return result;
  }
  llvm::Error tell(uint64_t id, Outcome outcome) override {
    const auto *metrics = std::get_if<Metrics>(&outcome);
    ++(metrics ? statistics.evaluated : statistics.failed);
    state = mixBits(state ^ mixBits(id) ^
                    (metrics ? static_cast<uint64_t>(metrics->at("cost")) : 1));
    return llvm::Error::success();
  }
  bool isExhausted() const override { return false; }
  void stop() override {}
  SearchStatistics getStatistics() const override { return statistics; }

private:
  uint64_t state;
  SearchStatistics statistics;
};

/// Fails one candidate in five.
class KeyEvaluator final : public Evaluator {
public:
  llvm::StringRef getName() const override { return "key"; }
  bool isDeterministic() const override { return true; }
  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    ++calls;
    if (solution.key() % 5 == 0)
      return llvm::createStringError("divisible");
    return Metrics{{"cost", static_cast<double>(solution.key() >> 40)}};
  }
  std::atomic<unsigned> calls = 0;
};

} // namespace

static std::string printWord(const Solution &solution) {
  return std::to_string(solution.key());
}

static std::unique_ptr<SearchStore> openStore(llvm::StringRef path) {
  return llvm::cantFail(SearchStore::open(path, {{"space", "words"}}));
}

/// What identifies each candidate, and what became of it.
static std::vector<std::string> describe(SearchStore &store) {
  std::vector<std::string> result;
  for (const StoredCandidate &candidate :
       llvm::cantFail(store.readCandidates())) {
    std::string line = std::to_string(candidate.id) + " " + candidate.text;
    if (!candidate.outcome)
      line += " ?";
    else if (auto *failure = std::get_if<Failure>(&*candidate.outcome))
      line += " " + failure->reason;
    else
      line += " " +
              std::to_string(std::get<Metrics>(*candidate.outcome).at("cost"));
    result.push_back(std::move(line));
  }
  return result;
}

TEST(StoredSearcher, GoesOnWhereverItIsCut) {
  constexpr unsigned count = 24;
  TemporaryDirectory directory;
  KeyEvaluator key;
  Evaluator *evaluators[] = {&key};
  auto whole = openStore(directory.getPath("whole.db"));
  {
    HistorySearcher inner(3);
    StoredSearcher searcher(inner, *whole, printWord);
    llvm::cantFail(searcher.replay());
    EXPECT_EQ(runSearch(searcher, evaluators, {count}).size(), count);
  }
  std::vector<std::string> expected = describe(*whole);
  ASSERT_EQ(expected.size(), count);
  // After `cut` outcomes, with or without one more proposal in flight.
  for (unsigned cut = 0; cut < count; ++cut)
    for (unsigned inFlight : {0, 1}) {
      SCOPED_TRACE(testing::Message() << cut << " and " << inFlight);
      std::string path = directory.getPath("cut" + std::to_string(cut) +
                                           (inFlight ? "+.db" : ".db"));
      {
        auto store = openStore(path);
        HistorySearcher inner(3);
        StoredSearcher searcher(inner, *store, printWord);
        llvm::cantFail(searcher.replay());
        if (cut)
          runSearch(searcher, evaluators, {cut});
        (void)searcher.ask(inFlight);
      }
      auto store = openStore(path);
      HistorySearcher inner(3);
      StoredSearcher searcher(inner, *store, printWord);
      llvm::cantFail(searcher.replay());
      EXPECT_EQ(searcher.getReplayed().size(), cut);
      key.calls = 0;
      auto results = runSearch(searcher, evaluators, {count - cut});
      // Nothing that was known is evaluated again.
      EXPECT_EQ(key.calls, count - cut);
      EXPECT_EQ(results.front().candidate.id, cut);
      EXPECT_EQ(describe(*store), expected);
      llvm::cantFail(store->checkIntegrity());
      EXPECT_EQ(searcher.getStatistics().asked, count);
    }
}

TEST(StoredSearcher, HandsOutAgainWhatWasInFlight) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  std::vector<uint64_t> keys;
  {
    auto store = openStore(path);
    HistorySearcher inner(9);
    StoredSearcher searcher(inner, *store, printWord);
    llvm::cantFail(searcher.replay());
    for (const Candidate &candidate : searcher.ask(6))
      keys.push_back(candidate.solution->key());
    for (uint64_t id : {4, 0, 2})
      llvm::cantFail(searcher.tell(id, Metrics{{"cost", 1}}));
  }
  auto store = openStore(path);
  HistorySearcher inner(9);
  StoredSearcher searcher(inner, *store, printWord);
  llvm::cantFail(searcher.replay());
  std::vector<uint64_t> ids;
  for (const Candidate &candidate : searcher.ask(4)) {
    ids.push_back(candidate.id);
    if (candidate.id < 6)
      EXPECT_EQ(candidate.solution->key(), keys[candidate.id]);
  }
  EXPECT_EQ(ids, (std::vector<uint64_t>{1, 3, 5, 6}));
  EXPECT_EQ(llvm::cantFail(store->readCandidates()).size(), 7u);
}

TEST(StoredSearcher, WorksFromThreads) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  uint64_t count = WordState(12, 5).getNumCandidates();
  KeyEvaluator key;
  Evaluator *evaluators[] = {&key};
  RandomSearcher::Options options;
  options.seed = 2;
  // In parts, each by other numbers of threads.
  std::set<uint64_t> ids, keys;
  for (unsigned threads : {4, 1, 3}) {
    auto store = openStore(path);
    RandomSearcher inner(std::make_unique<WordState>(12, 5), options);
    StoredSearcher searcher(inner, *store, printWord);
    llvm::cantFail(searcher.replay());
    for (const SearchResult &result :
         runSearch(searcher, evaluators,
                   {threads == 3 ? ~uint64_t(0) : 100, 0, threads})) {
      EXPECT_TRUE(ids.insert(result.candidate.id).second);
      EXPECT_TRUE(keys.insert(result.candidate.solution->key()).second);
    }
    EXPECT_EQ(searcher.isExhausted(), threads == 3);
  }
  EXPECT_EQ(ids.size(), count);
  EXPECT_EQ(key.calls, count);
}

TEST(StoredSearcher, RefusesAnotherSequence) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  KeyEvaluator key;
  Evaluator *evaluators[] = {&key};
  {
    auto store = openStore(path);
    HistorySearcher inner(1);
    StoredSearcher searcher(inner, *store, printWord);
    runSearch(searcher, evaluators, {10});
  }
  auto store = openStore(path);
  HistorySearcher inner(2);
  StoredSearcher searcher(inner, *store, printWord);
  EXPECT_EQ(llvm::toString(searcher.replay()),
            "search database '" + path +
                "': candidate 0 requires the one that the file has, got "
                "another; the program or its limits on effort have changed");
  EXPECT_EQ(llvm::cantFail(store->readCandidates()).size(), 10u);
}

TEST(StoredSearcher, StopsWhenItCannotRecord) {
  TemporaryDirectory directory;
  auto store = openStore(directory.getPath("a.db"));
  // Its key is taken: the store refuses the third proposal.
  HistorySearcher other(1);
  StoredCandidate taken;
  taken.id = 1000;
  taken.key = other.ask(3).back().solution->key();
  llvm::cantFail(store->recordAsk(taken));
  HistorySearcher inner(1);
  StoredSearcher searcher(inner, *store, printWord);
  std::vector<Candidate> asked = searcher.ask(5);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_TRUE(searcher.ask(1).empty());
  // What is in flight may still get an outcome; it is not recorded.
  EXPECT_FALSE(searcher.tell(0, Metrics{{"cost", 1}}));
  EXPECT_TRUE(llvm::StringRef(llvm::toString(searcher.takeError()))
                  .contains("UNIQUE constraint failed"));
  EXPECT_FALSE(searcher.takeError());
  auto candidates = llvm::cantFail(store->readCandidates());
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_FALSE(candidates[0].outcome);
}
