//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/ReferenceTiming.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/SmallVector.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::execution;

TEST(ReferenceTiming, DriftCancels) {
  // A machine that gets up to three times slower: times and references alike.
  Random random(1);
  for (double actual : {0.5, 2.0, 40.0}) {
    llvm::SmallVector<double> times, references = {0.1};
    double slowness = 1;
    for (unsigned run = 0; run < 9; ++run) {
      // It changes between a run and the next, less than by a tenth.
      times.push_back(actual * slowness);
      slowness *= 1 + 0.1 * random.uniform();
      references.push_back(0.1 * slowness);
    }
    double median = getDriftFreeMedian(times, references, 0.1);
    EXPECT_NEAR(median, actual, 0.06 * actual);
    EXPECT_GT(Timing::summarize(times).median, 1.15 * actual);
  }
}

TEST(ReferenceTiming, OutliersDoNotCount) {
  EXPECT_DOUBLE_EQ(getDriftFreeMedian({2, 2, 50, 2, 2}, {1, 1, 1, 1, 1, 1}, 1),
                   2);
  EXPECT_DOUBLE_EQ(getDriftFreeMedian({2, 2, 2, 2, 2}, {1, 1, 30, 1, 1, 1}, 1),
                   2);
  EXPECT_DOUBLE_EQ(getDriftFreeMedian({3}, {2, 4}, 1), 1);
}

TEST(ReferenceTiming, MeasuresInterleaved) {
  double nominal = calibrateReferenceKernel();
  EXPECT_GT(nominal, 0);
  EXPECT_LT(nominal, 100);
  unsigned calls = 0;
  TimingOptions options;
  options.minRuns = options.maxRuns = 5;
  options.warmUpRuns = 2;
  options.seconds = 0;
  double milliseconds = measureAgainstReference(
      [&] {
        ++calls;
        for (unsigned repetition = 0; repetition < 20; ++repetition)
          timeReferenceKernel();
      },
      nominal, options);
  EXPECT_EQ(calls, 7u);
  // Twenty of them take as long as twenty, however busy the machine is.
  EXPECT_GT(milliseconds, 5 * nominal);
  EXPECT_LT(milliseconds, 80 * nominal);
}
