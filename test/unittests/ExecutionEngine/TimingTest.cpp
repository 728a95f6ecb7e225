//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How runs are counted and ordered; times themselves are not tested.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Timing.h"
#include "gtest/gtest.h"
#include <string>

using namespace kas;
using namespace kas::execution;

TEST(Timing, SummarizesByTheMedian) {
  Timing odd = Timing::summarize({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.count, 3);
  EXPECT_EQ(Timing::summarize({4, 1, 2, 3}).median, 2.5);
}

TEST(Timing, MeasuresInterleaved) {
  std::string runs;
  TimingOptions options;
  options.minRuns = 4;
  options.seconds = 0;
  options.warmUpRuns = 1;
  llvm::SmallVector<Timing> timings = measureInterleaved(
      {[&] { runs += 'a'; }, [&] { runs += 'b'; }}, options, /*rounds=*/2);
  // Per round one run to warm up and half of the runs.
  EXPECT_EQ(runs, "aaabbbaaabbb");
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_EQ(timings[0].count, 4);
  EXPECT_EQ(timings[1].count, 4);
}
