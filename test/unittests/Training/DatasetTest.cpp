//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Dataset.h"
#include "DataFileBytes.h"
#include "kas/Training/Batches.h"
#include "gtest/gtest.h"
#include <set>

using namespace kas;
using namespace kas::training;

namespace {

TEST(DatasetTest, TakesSubsets) {
  Dataset data = makeBytes({1, 2, 2}, 20, 3);
  auto first = llvm::cantFail(data.takeFirst(4));
  EXPECT_EQ(first.size(), 4);
  EXPECT_EQ(first.getBytes(3).data(), data.getBytes(3).data());
  auto random = llvm::cantFail(data.takeRandom(7, 5));
  EXPECT_EQ(random.size(), 7);
  const uint8_t *previous = nullptr;
  for (int64_t i = 0; i < 7; ++i) {
    const uint8_t *start = random.getBytes(i).data();
    int64_t number = (start - data.getBytes(0).data()) / 4;
    EXPECT_EQ(random.getLabels()[i], data.getLabels()[number]);
    EXPECT_LT(previous, start);
    previous = start;
  }
  EXPECT_EQ(random.checkSum(),
            llvm::cantFail(data.takeRandom(7, 5)).checkSum());
  EXPECT_NE(random.checkSum(),
            llvm::cantFail(data.takeRandom(7, 6)).checkSum());
  EXPECT_EQ(errorOf(data.takeFirst(21)),
            "requires from 1 to 20 examples, got 21");
  EXPECT_EQ(errorOf(data.takeRandom(0, 0)),
            "requires from 1 to 20 examples, got 0");
}

TEST(DatasetTest, Splits) {
  Dataset data = makeBytes({1, 2, 2}, 20, 3);
  auto numbers = [&](const Dataset &part) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < part.size(); ++i)
      result.push_back((part.getBytes(i).data() - data.getBytes(0).data()) / 4);
    return result;
  };
  auto [train, last] = llvm::cantFail(data.split(3, std::nullopt));
  EXPECT_EQ(numbers(train).back(), 16);
  EXPECT_EQ(numbers(last), (std::vector<int64_t>{17, 18, 19}));
  // By seed, each example is for validation as often: 3/20 of 2000, within
  // five standard deviations.
  std::vector<int64_t> counts(20);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    auto [rest, drawn] = llvm::cantFail(data.split(3, seed));
    auto all = numbers(rest), chosen = numbers(drawn);
    for (int64_t number : chosen)
      ++counts[number];
    all.insert(all.end(), chosen.begin(), chosen.end());
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 20u);
    EXPECT_EQ(all.size(), 20u);
  }
  for (int64_t count : counts)
    EXPECT_NEAR(count, 300, 80);
  EXPECT_EQ(errorOf(data.split(20, 1)),
            "requires from 1 to 19 examples, got 20");
  EXPECT_EQ(errorOf(llvm::cantFail(data.takeFirst(1)).split(1, 1)),
            "requires at least two examples to split, got 1");
}

TEST(DatasetTest, TakesAnotherNumberOfClasses) {
  Dataset data = makeBytes({1, 2, 2}, 20, 3);
  EXPECT_EQ(llvm::cantFail(data.withClasses(7)).getNumClasses(), 7);
  EXPECT_EQ(errorOf(data.withClasses(2)),
            "requires labels in [0, 2), got 2 for example 2");
  EXPECT_EQ(errorOf(data.withClasses(0)),
            "requires from 1 to 2147483647 classes, got 0");
}

TEST(DatasetTest, ChecksumsAllThatMatters) {
  std::set<std::string> sums;
  Dataset data = makeBytes({1, 2, 2}, 6, 3);
  sums.insert(data.checkSum());
  sums.insert(makeBytes({1, 2, 2}, 6, 4).checkSum());
  sums.insert(makeBytes({1, 4, 1}, 6, 3).checkSum());
  sums.insert(data.select({1, 0, 2, 3, 4, 5}).checkSum());
  Examples examples;
  examples.shape = {1, 2, 2};
  for (int64_t i = 0; i < 6; ++i)
    examples.starts.push_back(data.getBytes(i).data());
  sums.insert(
      llvm::cantFail(Dataset::create(examples, {0, 1, 2, 0, 1, 1})).checkSum());
  sums.insert(llvm::cantFail(Dataset::create(examples, {0, 1, 2, 0, 1, 2}, 4))
                  .checkSum());
  EXPECT_EQ(sums.size(), 6u);
}

/// Debian's package is one of those that kas's tests need.
TEST(DatasetTest, ReadsFashionMnist) {
  auto train = loadDataset("fashion-mnist");
  ASSERT_TRUE(bool(train)) << llvm::toString(train.takeError());
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(train->getShape(), llvm::ArrayRef<int64_t>({1, 28, 28}));
  EXPECT_EQ(train->getNumClasses(), 10);
  // The numbers that are usually given for it.
  Normalization normalization = computeNormalization(*train);
  EXPECT_NEAR(normalization.mean[0], 0.2860, 5e-5);
  EXPECT_NEAR(normalization.deviation[0], 0.3530, 5e-5);
  auto test = loadDataset("fashion-mnist", DatasetPart::Test);
  ASSERT_TRUE(bool(test)) << llvm::toString(test.takeError());
  EXPECT_EQ(test->size(), 10000);
  for (const Dataset &data : {*train, *test}) {
    std::vector<int64_t> counts(10);
    for (int32_t label : data.getLabels())
      ++counts[label];
    EXPECT_EQ(counts, std::vector<int64_t>(10, data.size() / 10));
  }
}

TEST(DatasetTest, LoadsSplits) {
  SplitSpec spec;
  spec.train = "fashion-mnist";
  spec.validation = 5000;
  spec.limit = 10000;
  spec.seed = 1;
  auto splits = llvm::cantFail(loadSplits(spec));
  EXPECT_EQ(splits.train.size(), 10000);
  EXPECT_EQ(splits.validation->size(), 5000);
  EXPECT_EQ(splits.test->size(), 10000);
  // A split is part of what a number in a report means: it must not change.
  EXPECT_EQ(splits.train.checkSum(), "0ff63e567b097a9489b5ecf8d1822a15");
  EXPECT_EQ(splits.validation->checkSum(), "2ce6551d45b1b139384d1f67bd46b49b");
  EXPECT_EQ(splits.test->checkSum(), "99f039cd41e77d1761aa5a9ce34fa637");
}

} // namespace
