//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Training/StopRule.h"
#include "DataFileBytes.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace kas::training;

namespace {

StopRule parse(llvm::StringRef text) {
  return llvm::cantFail(parseStopRule(text));
}

TEST(StopRuleTest, EndsWhereTheLossIsNotFinite) {
  EXPECT_EQ(StopRule::checkLoss(7, 1e30), std::nullopt);
  EXPECT_EQ(StopRule::checkLoss(7, NAN), "the loss is not finite at step 7");
  EXPECT_EQ(StopRule::checkLoss(8, -INFINITY),
            "the loss is not finite at step 8");
}

TEST(StopRuleTest, NeverEndsByItself) {
  StopRule rule = parse("");
  for (int64_t step = 0; step < 100; ++step)
    EXPECT_EQ(rule.observe(step, 0.1), std::nullopt);
}

TEST(StopRuleTest, HasPatience) {
  StopRule rule = parse("patience=2,improvement=0.01");
  EXPECT_EQ(rule.observe(1, 0.5), std::nullopt);
  // Not enough of an improvement, twice: compared with the best, not the last.
  EXPECT_EQ(rule.observe(2, 0.509), std::nullopt);
  EXPECT_EQ(rule.observe(3, 0.52), std::nullopt);
  EXPECT_EQ(rule.observe(4, 0.525), std::nullopt);
  EXPECT_EQ(rule.observe(5, 0.53),
            "the accuracy has not become better than 0.52 in 2 evaluations");
  EXPECT_EQ(rule.getBest(), 0.52);
}

TEST(StopRuleTest, IgnoresNaN) {
  StopRule rule = parse("patience=2");
  EXPECT_EQ(rule.observe(1, NAN), std::nullopt);
  EXPECT_EQ(rule.observe(2, 0.5), std::nullopt);
  EXPECT_EQ(rule.observe(3, NAN), std::nullopt);
  EXPECT_NE(rule.observe(4, NAN), std::nullopt);
  EXPECT_EQ(rule.getBest(), 0.5);
}

TEST(StopRuleTest, HasMilestones) {
  const char *text = "milestones=10:0.3+20:0.5";
  StopRule rule = parse(text);
  EXPECT_EQ(rule.observe(9, 0.1), std::nullopt);
  EXPECT_EQ(rule.observe(12, 0.3), std::nullopt);
  // The first milestone is past.
  EXPECT_EQ(rule.observe(15, 0.2), std::nullopt);
  EXPECT_EQ(rule.observe(20, 0.49),
            "requires an accuracy of 0.5 after 20 steps, got 0.49");
  StopRule late = parse(text);
  EXPECT_EQ(late.observe(30, NAN),
            "requires an accuracy of 0.3 after 10 steps, got nan");
}

TEST(StopRuleTest, Continues) {
  const char *text = "patience=3,milestones=3:0+6:0.2";
  const double accuracies[] = {0.1, 0.15, 0.3, 0.2, 0.25, 0.29, 0.1};
  for (int64_t interruption = 0; interruption < 7; ++interruption) {
    StopRule whole = parse(text), first = parse(text), second = parse(text);
    for (int64_t step = 0; step < 7; ++step) {
      auto expected = whole.observe(step, accuracies[step]);
      if (step < interruption) {
        EXPECT_EQ(first.observe(step, accuracies[step]), expected);
        continue;
      }
      if (step == interruption) {
        Counters counters;
        first.save(counters);
        llvm::cantFail(second.restore(counters));
      }
      EXPECT_EQ(second.observe(step, accuracies[step]), expected);
    }
  }
  StopRule rule = parse("");
  EXPECT_EQ(llvm::toString(rule.restore({})),
            "requires a counter 'stop-best', got none");
  EXPECT_EQ(
      llvm::toString(rule.restore(
          {{"stop-best", 0}, {"stop-waiting", 0}, {"stop-milestones", 1}})),
      "requires at most 0 milestones that are past, got 1");
}

TEST(StopRuleTest, RejectsBadText) {
  auto error = [](llvm::StringRef text) {
    return errorOf(parseStopRule(text));
  };
  EXPECT_EQ(error("patience"), "bad rule to stop 'patience': requires a number "
                               "for 'patience', got ''");
  EXPECT_EQ(error("patience=-1"), "bad rule to stop 'patience=-1': requires a "
                                  "patience of at least 0, got -1");
  EXPECT_EQ(error("improvement=nan"),
            "bad rule to stop 'improvement=nan': requires an improvement of at "
            "least 0, got nan");
  EXPECT_EQ(error("loss=1"), "bad rule to stop 'loss=1': requires 'patience', "
                             "'improvement' or 'milestones', got 'loss'");
  EXPECT_EQ(error("milestones=5"), "bad rule to stop 'milestones=5': requires "
                                   "STEP:ACCURACY for 'milestones', got '5'");
  EXPECT_EQ(error("milestones=5:0.1+5:0.2"),
            "bad rule to stop 'milestones=5:0.1+5:0.2': requires steps of "
            "milestones that ascend from 0, got 5 after 5");
  EXPECT_EQ(error("milestones=5:2"),
            "bad rule to stop 'milestones=5:2': requires accuracies of "
            "milestones in [0, 1], got 2");
}

} // namespace
