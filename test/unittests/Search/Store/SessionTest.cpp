//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Session.h"
#include "../Core/WordState.h"
#include "TemporaryDirectory.h"
#include "gtest/gtest.h"
#include <atomic>

using namespace kas;
using namespace kas::search;

namespace {

/// `NAME` is the key modulo 1000; fails one candidate in five.
class KeyEvaluator final : public Evaluator {
public:
  KeyEvaluator(llvm::StringRef name, std::atomic<unsigned> &calls)
      : name(name), calls(calls) {}

  llvm::StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }
  llvm::Expected<Metrics> evaluate(const Solution &solution) override {
    ++calls;
    if (solution.key() % 5 == 0)
      return llvm::createStringError("divisible");
    return Metrics{{name, static_cast<double>(solution.key() % 1000)}};
  }

private:
  std::string name;
  std::atomic<unsigned> &calls;
};

/// Of no search.
struct NumberSolution final : Solution {
  explicit NumberSolution(uint64_t number) : number(number) {}
  uint64_t key() const override { return number; }
  uint64_t number;
};

class SessionTest : public testing::Test {
protected:
  llvm::Expected<std::unique_ptr<Session>> tryMake() {
    return Session::create({.root = std::make_unique<WordState>(9, 5),
                            .print =
                                [](const Solution &solution) {
                                  return std::to_string(solution.key());
                                }},
                           options);
  }
  std::unique_ptr<Session> make() {
    auto session = llvm::cantFail(tryMake());
    auto makeKey = [&](llvm::StringRef name) {
      return std::make_unique<KeyEvaluator>(name, calls);
    };
    llvm::cantFail(session->makeEvaluators({"cost"}, makeKey));
    llvm::cantFail(session->makeFinalEvaluators({"late"}, makeKey));
    return session;
  }
  /// What identifies each candidate, and what became of it.
  static std::vector<std::string> describe(const SessionResults &results) {
    std::vector<std::string> lines;
    for (const auto *list : {&results.evaluated, &results.failed})
      for (const SearchResult &result : *list) {
        std::string line = std::to_string(result.candidate.id) + " " +
                           std::to_string(result.candidate.solution->key());
        if (const auto *failure = std::get_if<Failure>(&result.outcome))
          line += " " + failure->reason;
        else
          for (auto &[name, value] : std::get<Metrics>(result.outcome))
            line += " " + name + "=" + std::to_string(value);
        lines.push_back(line);
      }
    return lines;
  }
  std::string getError(llvm::Error error) {
    return llvm::toString(std::move(error));
  }

  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  SessionOptions options = {
      .algorithm = "mcts", .seed = 3, .objective = "cost", .limits = {40}};
  std::atomic<unsigned> calls = 0;
};

} // namespace

TEST_F(SessionTest, RunsTheSame) {
  std::vector<std::string> expected = describe(llvm::cantFail(make()->run()));
  EXPECT_EQ(expected.size(), 40u);
  EXPECT_EQ(calls, 40u);
  // By steps.
  SessionResults steps;
  auto session = make();
  for (unsigned count = 0; count < 40; ++count) {
    std::optional<SearchResult> result = llvm::cantFail(session->step());
    ASSERT_TRUE(result);
    bool isFailure = std::holds_alternative<Failure>(result->outcome);
    (isFailure ? steps.failed : steps.evaluated).push_back(*result);
  }
  EXPECT_EQ(describe(steps), expected);
  // By asking and telling on a database, which a run then goes on with.
  {
    auto first = make();
    llvm::cantFail(first->openStore(path, {{"space", "words"}}));
    for (unsigned count = 0; count < 15; ++count) {
      Candidate candidate = llvm::cantFail(first->ask(1)).front();
      uint64_t key = candidate.solution->key();
      llvm::cantFail(first->tell(
          candidate.id,
          key % 5 ? Outcome(Metrics{{"cost", static_cast<double>(key % 1000)}})
                  : Outcome(Failure{"cost: divisible"})));
    }
    ASSERT_TRUE(first->getStore());
    llvm::cantFail(first->close());
    EXPECT_FALSE(first->getStore());
  }
  calls = 0;
  auto second = make();
  llvm::cantFail(second->openStore(path, {{"space", "words"}}));
  EXPECT_EQ(second->getReplayed().size(), 15u);
  EXPECT_EQ(describe(llvm::cantFail(second->run())), expected);
  EXPECT_EQ(calls, 25u);
  EXPECT_EQ(second->getStatistics().asked, 40u);
}

TEST_F(SessionTest, RemembersTheFinalRound) {
  options.finalCount = 10;
  std::vector<std::string> expected;
  for (unsigned times = 0; times < 2; ++times) {
    auto session = make();
    llvm::cantFail(session->openStore(path, {}));
    SessionResults results = llvm::cantFail(session->run());
    unsigned finals = 0;
    double last = 0;
    for (const SearchResult &result : results.evaluated) {
      const Metrics &metrics = std::get<Metrics>(result.outcome);
      finals += metrics.count("late");
      EXPECT_GE(metrics.at("cost"), last);
      last = metrics.at("cost");
    }
    EXPECT_EQ(finals, 10u);
    if (times == 0)
      expected = describe(results);
    EXPECT_EQ(describe(results), expected);
    EXPECT_EQ(calls, 50u);
  }
}

/// Baselines are evaluated by what is theirs, once, whatever the bounds are;
/// more evaluators give more.
TEST_F(SessionTest, EvaluatesBaselines) {
  std::atomic<unsigned> own = 0;
  auto makeBaseline = [&](llvm::StringRef name, uint64_t number) {
    Baseline baseline;
    baseline.name = name.str();
    baseline.isNetwork = name == Baseline::networkName;
    baseline.text = {"word", name.str(), {}, {}};
    baseline.solution = std::make_shared<NumberSolution>(number);
    baseline.makeEvaluator = [&](llvm::StringRef evaluator) {
      return std::make_unique<KeyEvaluator>(evaluator, own);
    };
    return baseline;
  };
  auto run = [&](std::vector<Baseline> baselines) {
    auto session = make();
    session->setBaselines(std::move(baselines));
    llvm::cantFail(session->openStore(path, {}));
    return getError(session->run().takeError());
  };
  auto readPoints = [&] {
    std::vector<std::string> lines;
    auto store = llvm::cantFail(SearchStore::openToRead(path));
    for (const TrainingPoint &point : llvm::cantFail(store->readTraining()))
      lines.push_back(std::to_string(point.candidate) + " " +
                      std::to_string(point.seed) + " " + point.name + " " +
                      std::to_string(int(point.value)));
    return lines;
  };
  using Lines = std::vector<std::string>;
  options.bounds = {"cost<=500"};
  options.limits.threads = 2;
  std::vector<Baseline> baselines{makeBaseline(Baseline::networkName, 901),
                                  makeBaseline("a", 902)};
  EXPECT_EQ(run(baselines), "");
  EXPECT_EQ(readPoints(), (Lines{"-2 3 cost 902", "-1 3 cost 901"}));
  EXPECT_EQ(own, 2u);
  // The algorithm has seen none of them.
  EXPECT_EQ(calls, 40u);
  options.finalCount = 1;
  baselines.push_back(makeBaseline("b", 903));
  EXPECT_EQ(run(baselines), "");
  EXPECT_EQ(readPoints(),
            (Lines{"-3 3 cost 903", "-3 3 late 903", "-2 3 cost 902",
                   "-2 3 late 902", "-1 3 cost 901", "-1 3 late 901"}));
  EXPECT_EQ(own, 6u);
  EXPECT_EQ(run(baselines), "");
  EXPECT_EQ(own, 6u);
  baselines.push_back(makeBaseline("c", 905));
  EXPECT_EQ(run(baselines),
            "the baseline 'c' cannot be evaluated: cost: divisible");
}

TEST_F(SessionTest, ChecksBounds) {
  options.bounds = {"cost<=500"};
  SessionResults results = llvm::cantFail(make()->run());
  EXPECT_FALSE(results.evaluated.empty());
  for (const SearchResult &result : results.evaluated)
    EXPECT_LE(std::get<Metrics>(result.outcome).at("cost"), 500);
  options.bounds = {"cost"};
  auto session = llvm::cantFail(tryMake());
  EXPECT_NE(getError(session->makeEvaluators({}, nullptr)), "");
}

TEST_F(SessionTest, RefusesWhatThereIsNot) {
  auto session = llvm::cantFail(tryMake());
  EXPECT_EQ(getError(session->makeEvaluators(
                {"none"},
                [](llvm::StringRef name)
                    -> llvm::Expected<std::unique_ptr<Evaluator>> {
                  return llvm::createStringError("no '" + name + "'");
                })),
            "no 'none'");
  options.objective = "2*";
  EXPECT_EQ(getError(tryMake().takeError()),
            "requires a sum of metrics such as '2*loss-accuracy', got '2*'");
  options.objective = "cost";
  options.algorithm = "none";
  EXPECT_NE(getError(tryMake().takeError()).find("expected an algorithm"),
            std::string::npos);
}

TEST_F(SessionTest, StoresWhatDecides) {
  llvm::cantFail(make()->openStore(path, {{"space", "words"}}));
  std::string start = "search database '" + path + "': is of another search: ";
  auto open = [&] {
    return getError(make()->openStore(path, {{"space", "words"}}));
  };
  options.seed = 4;
  EXPECT_EQ(open(), start + "requires its seed '3', got '4'");
  options.seed = 3;
  options.algorithm = "evolution";
  EXPECT_EQ(open(), start + "requires its algorithm 'mcts', got 'evolution'");
  options.algorithm = "mcts";
  options.objective = "late";
  EXPECT_EQ(open(), start + "requires its objective 'cost', got 'late'");
  options.objective = "cost";
  options.parameters = {"expansions-per-ask=7"};
  EXPECT_EQ(open(),
            start + "requires no parameters, got 'expansions-per-ask=7'");
}

TEST_F(SessionTest, TakesFormerNamesOfSettings) {
  llvm::cantFail(make()->openStore(path, {{"kernel_search", "limits a"}}));
  EXPECT_EQ(getError(make()->openStore(path, {{"network_search", "limits a"}})),
            "");
  EXPECT_EQ(getError(make()->openStore(path, {{"network_search", "limits b"}})),
            "search database '" + path +
                "': is of another search: requires its network_search 'limits "
                "a', got 'limits b'");
}
