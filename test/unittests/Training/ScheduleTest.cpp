//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Schedule.h"
#include "DataFileBytes.h"
#include "gtest/gtest.h"

using namespace kas::training;

namespace {

Schedule parse(llvm::StringRef text, double learningRate, int64_t numSteps) {
  return llvm::cantFail(parseSchedule(text, learningRate, numSteps));
}

void expectSizes(const Schedule &schedule, std::vector<double> expected) {
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(schedule.getLearningRate(step), expected[step],
                1e-12 * schedule.getOptions().learningRate)
        << "step " << step;
}

// All numbers below are of PyTorch 2.13: the learning rate of SGD before each
// of its steps, the schedule advanced after each.

TEST(ScheduleTest, IsConstant) {
  expectSizes(parse("constant", 0.25, 3), {0.25, 0.25, 0.25, 0.25});
  EXPECT_FALSE(parse("constant", 0.25, 3).getMomentum(0));
}

/// LinearLR(0.1, total_iters=4).
TEST(ScheduleTest, WarmsUp) {
  expectSizes(parse("constant:warm-up=4", 0.1, 6),
              {0.010000000000000002, 0.03250000000000001, 0.055000000000000014,
               0.07750000000000003, 0.1, 0.1});
}

/// MultiStepLR([3, 5], gamma=0.2).
TEST(ScheduleTest, HasMilestones) {
  std::vector<double> expected = {0.1, 0.1, 0.1, 0.02, 0.02, 0.004, 0.004};
  expectSizes(parse("milestones:at=3+5,factor=0.2", 0.1, 7), expected);
  expectSizes(parse("milestones:at=43%+72%,factor=0.2", 0.1, 7), expected);
}

TEST(ScheduleTest, CountsMilestonesFromTheStart) {
  expectSizes(parse("milestones:at=3,warm-up=2,warm-up-factor=0.5", 1, 7),
              {0.5, 0.75, 1, 0.1, 0.1});
}

/// CosineAnnealingLR(T_max=7, eta_min=0.001).
TEST(ScheduleTest, FollowsACosine) {
  expectSizes(parse("cosine:last=0.001", 0.1, 7),
              {0.1, 0.09509795896116975, 0.08136274519200731,
               0.061514786230837566, 0.03948521376916245, 0.019637254807992697,
               0.005902041038830259, 0.001, 0.001, 0.001});
}

/// SequentialLR of LinearLR(0.1, total_iters=4) and CosineAnnealingLR(T_max=6).
TEST(ScheduleTest, FollowsACosineAfterWarmUp) {
  expectSizes(parse("cosine:warm-up=4,warm-up-factor=0.1", 0.1, 10),
              {0.010000000000000002, 0.03250000000000001, 0.055000000000000014,
               0.07750000000000003, 0.1, 0.09330127018922195,
               0.07500000000000001, 0.05, 0.025000000000000012,
               0.006698729810778065});
}

void expectMomenta(const Schedule &schedule, std::vector<double> expected) {
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(*schedule.getMomentum(step), expected[step], 1e-12)
        << "step " << step;
}

/// OneCycleLR(max_lr=0.1, total_steps=10).
TEST(ScheduleTest, HasOneCycle) {
  Schedule schedule = parse("one-cycle", 0.1, 10);
  expectSizes(schedule,
              {0.0040000000000000036, 0.052000000000000005, 0.1,
               0.09504846320134738, 0.0811745653949763, 0.06112620219362893,
               0.03887419780637107, 0.0188258346050237, 0.004951936798652629,
               4e-07, 4e-07});
  expectMomenta(schedule,
                {0.95, 0.9, 0.85, 0.854951556604879, 0.8688255099070633,
                 0.8888739533021842, 0.9111260466978157, 0.9311744900929366,
                 0.945048443395121, 0.95, 0.95});
}

/// OneCycleLR(max_lr=0.2, total_steps=11, pct_start=0.25, div_factor=10,
/// final_div_factor=100, base_momentum=0.8, max_momentum=0.9): the first phase
/// ends between two steps.
TEST(ScheduleTest, HasOneCycleThatTurnsBetweenSteps) {
  Schedule schedule =
      parse("one-cycle:rise=0.25,start-divisor=10,end-divisor=100,"
            "momentum=0.8+0.9",
            0.2, 11);
  expectSizes(schedule,
              {0.01999999999999999, 0.1300268840560683, 0.19954764506505115,
               0.18889466132062688, 0.165520587321134, 0.13277408953541045,
               0.09534656660920815, 0.05860004020111156, 0.027798969593303486,
               0.007356043491694351, 0.0002});
  expectMomenta(schedule,
                {0.9, 0.8388739533021843, 0.8002264038713458,
                 0.8055582275672539, 0.8172569633027358, 0.833646601834129,
                 0.8523790957911872, 0.8707707506500943, 0.8861867019052535,
                 0.8964183966508037, 0.9});
}

TEST(ScheduleTest, IsFiniteAtTheEdges) {
  for (const char *text : {"constant", "cosine", "milestones:at=1", "one-cycle",
                           "one-cycle:rise=0", "one-cycle:rise=1"})
    for (int64_t steps : {1, 2, 3, 10})
      for (int64_t step = 0; step < steps + 2; ++step) {
        double size = parse(text, 0.1, steps).getLearningRate(step);
        EXPECT_TRUE(size >= 0 && size <= 0.1 * (1 + 1e-12))
            << text << ", step " << step << " of " << steps << ": " << size;
      }
}

TEST(ScheduleTest, RejectsBadText) {
  auto error = [](llvm::StringRef text, double learningRate = 0.1) {
    return errorOf(parseSchedule(text, learningRate, 10));
  };
  EXPECT_EQ(error("linear"), "bad schedule 'linear': requires constant, "
                             "milestones, cosine or one-cycle, got 'linear'");
  EXPECT_EQ(error("cosine:rise=0.1"), "bad schedule 'cosine:rise=0.1': unknown "
                                      "option 'rise' of this schedule");
  EXPECT_EQ(error("one-cycle:warm-up=1"),
            "bad schedule 'one-cycle:warm-up=1': unknown option 'warm-up' of "
            "this schedule");
  EXPECT_EQ(error("cosine:last=x"), "bad schedule 'cosine:last=x': requires a "
                                    "number for 'last', got 'x'");
  EXPECT_EQ(error("cosine:last=nan"),
            "bad schedule 'cosine:last=nan': requires a number for 'last', got "
            "'nan'");
  EXPECT_EQ(
      error("cosine:last=0.2"),
      "bad schedule 'cosine:last=0.2': requires a last learning rate of at "
      "least 0 and at most 0.1, got 0.2");
  EXPECT_EQ(error("milestones:at=3+3"),
            "bad schedule 'milestones:at=3+3': requires milestones that are "
            "positive and ascend, got 3 after 3");
  EXPECT_EQ(error("milestones:at=101%"),
            "bad schedule 'milestones:at=101%': requires a number of steps or "
            "a percentage for 'at', got '101%'");
  EXPECT_EQ(error("constant:warm-up=10"),
            "bad schedule 'constant:warm-up=10': requires from 0 to 9 steps of "
            "warm-up, got 10");
  EXPECT_EQ(error("one-cycle:momentum=0.9+0.8"),
            "bad schedule 'one-cycle:momentum=0.9+0.8': requires a smallest "
            "momentum of at least 0 and at most 0.8, got 0.9");
  EXPECT_EQ(error("constant", 0), "bad schedule 'constant': requires a "
                                  "learning rate of more than 0, got 0");
  EXPECT_EQ(errorOf(parseSchedule("constant", 0.1, 0)),
            "bad schedule 'constant': requires at least one step, got 0");
}

} // namespace
