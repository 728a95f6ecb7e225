//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Objective.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::search;

static const double unknown = std::numeric_limits<double>::infinity();

static Objective parse(llvm::StringRef text) {
  return llvm::cantFail(Objective::parse(text));
}

static SearchResult makeResult(uint64_t id, Outcome outcome) {
  return {{id, nullptr}, std::move(outcome)};
}

static std::vector<uint64_t> getOrder(const Objective &objective,
                                      std::vector<SearchResult> results) {
  objective.sort(results);
  std::vector<uint64_t> ids;
  for (const SearchResult &result : results)
    ids.push_back(result.candidate.id);
  return ids;
}

TEST(Objective, WeighsMetrics) {
  Metrics metrics = {{"flops", 2e9}, {"loss", 0.5}, {"accuracy", 0.25}};
  EXPECT_EQ(parse("loss").getCost(metrics), 0.5);
  EXPECT_EQ(parse("-accuracy").getCost(metrics), -0.25);
  EXPECT_EQ(parse("2*loss - accuracy + 1e-9*flops").getCost(metrics), 2.75);
  EXPECT_EQ(parse("1e+1*loss-.5E1*accuracy").getCost(metrics), 3.75);
  EXPECT_EQ(parse("loss+latency_ms").getCost(metrics), unknown);
  EXPECT_EQ(parse("pareto(flops,-accuracy)").getCost(metrics),
            std::log(2e9) - 0.25);
  EXPECT_TRUE(parse("").isDefault());
  EXPECT_FALSE(parse("loss").isPareto());
  EXPECT_TRUE(parse("pareto(loss,flops)").isPareto());
}

TEST(Objective, RefusesWhatItCannotRead) {
  auto getError = [](llvm::StringRef text) {
    auto objective = Objective::parse(text);
    return objective ? "" : llvm::toString(objective.takeError());
  };
  EXPECT_EQ(getError("2*"), "requires a sum of metrics such as "
                            "'2*loss-accuracy', got '2*'");
  EXPECT_EQ(getError("loss++flops"), "requires a sum of metrics such as "
                                     "'2*loss-accuracy', got 'loss++flops'");
  EXPECT_EQ(getError("loss*2"), "requires a number before '*', got 'loss'");
  EXPECT_EQ(getError("nan*loss"), "requires a number before '*', got 'nan'");
  EXPECT_EQ(getError("pareto(flops)"),
            "requires two axes or more, got 'pareto(flops)'");
  EXPECT_EQ(getError("pareto(flops,params"),
            "requires ')' at the end, got 'pareto(flops,params'");
  EXPECT_NE(getError("pareto(flops,)"), "");
  EXPECT_NE(getError("2e9"), "");
  EXPECT_NE(getError("a b*c"), "");
}

TEST(Objective, SortsTheBestFirst) {
  std::vector<SearchResult> results = {
      makeResult(0, Metrics{{"flops", 4}, {"params", 1}}),
      makeResult(1, Metrics{{"flops", 3}, {"params", 3}}),
      makeResult(2, Metrics{{"flops", 4}, {"params", 4}}),
      makeResult(3, Metrics{{"flops", 3}, {"params", 2}}),
      makeResult(4, Metrics{{"params", 9}})};
  using Ids = std::vector<uint64_t>;
  EXPECT_EQ(getOrder(parse(""), results), (Ids{3, 1, 0, 2, 4}));
  EXPECT_EQ(getOrder(parse("params"), results), (Ids{0, 3, 1, 2, 4}));
  EXPECT_EQ(getOrder(parse("-params"), results), (Ids{4, 2, 1, 3, 0}));
  // The front is 0 and 3: products 4 and 6. Then 9, 16 and the unknown.
  EXPECT_EQ(getOrder(parse("pareto(flops,params)"), results),
            (Ids{0, 3, 1, 2, 4}));
  EXPECT_EQ(getFront(parse("pareto(flops,params)"), results).size(), 2u);
  EXPECT_EQ(getFront(parse(""), results).size(), 2u);
}

TEST(Objective, ChecksLimits) {
  EXPECT_EQ(llvm::cantFail(MetricLimit::parse("flops<=1e9")).bound, 1e9);
  EXPECT_TRUE(llvm::cantFail(MetricLimit::parse("flops <= 1e9")).isUpper);
  EXPECT_FALSE(llvm::cantFail(MetricLimit::parse("accuracy>=0.5")).isUpper);
  for (llvm::StringRef text :
       {"", "flops", "flops<1", "<=3", "flops<=x", "flops<=nan", "flops<=1<=2"})
    EXPECT_TRUE(
        llvm::StringRef(llvm::toString(MetricLimit::parse(text).takeError()))
            .starts_with("requires a limit such as 'flops<=1e9'"))
        << text.str();
}

namespace {

class FixedEvaluator final : public Evaluator {
public:
  explicit FixedEvaluator(Metrics metrics) : metrics(std::move(metrics)) {}
  llvm::StringRef getName() const override { return "fixed"; }
  bool isDeterministic() const override { return true; }
  llvm::Expected<Metrics> evaluate(const Solution &) override {
    return metrics;
  }

private:
  Metrics metrics;
};

struct Nothing final : Solution {
  uint64_t key() const override { return 0; }
};

} // namespace

TEST(Objective, FailsWhatIsBeyondALimit) {
  auto evaluate = [](Metrics metrics, std::vector<llvm::StringRef> texts) {
    std::vector<MetricLimit> limits;
    for (llvm::StringRef text : texts)
      limits.push_back(llvm::cantFail(MetricLimit::parse(text)));
    auto result = makeCheckedEvaluator(
                      std::make_unique<FixedEvaluator>(std::move(metrics)),
                      std::move(limits))
                      ->evaluate(Nothing());
    return result ? "" : llvm::toString(result.takeError());
  };
  EXPECT_EQ(evaluate({{"a", 1}, {"b", 2}}, {"a<=1", "b>=2", "c<=0"}), "");
  EXPECT_EQ(evaluate({{"a", 1.5}}, {"a<=1"}), "the limit is a <= 1, got 1.5");
  EXPECT_EQ(evaluate({{"a", 0.5}}, {"a>=1"}), "the limit is a >= 1, got 0.5");
  EXPECT_EQ(evaluate({{"a", unknown}}, {}),
            "metric 'a' requires a finite number");
  EXPECT_EQ(evaluate({{"a", -unknown}}, {}),
            "metric 'a' requires a finite number");
  EXPECT_EQ(evaluate({{"a", std::nan("")}}, {"a<=1"}),
            "metric 'a' requires a finite number");
}
