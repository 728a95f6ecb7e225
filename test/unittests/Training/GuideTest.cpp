//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The example of docs/guide/training.md: a change here is a change there.
//
//===----------------------------------------------------------------------===//

#include "kas/Training/Batches.h"
#include "gtest/gtest.h"

using namespace kas::training;
using llvm::Error;
using llvm::Expected;

namespace {

Error runExample(int64_t numEpochs, std::vector<int64_t> &counts) {
  SplitSpec spec;
  spec.train = "fashion-mnist";
  spec.validation = 5000;
  spec.seed = 1;
  Expected<DataSplits> splits = loadSplits(spec);
  if (!splits)
    return splits.takeError();

  BatchOptions options;
  options.batchSize = 64;
  options.dropLast = true;
  options.height = options.width = 32;
  options.normalization = computeNormalization(splits->train);
  options.augmentation.crop = 4;
  options.augmentation.flip = true;
  Expected<BatchLoader> loader = BatchLoader::create(splits->train, options);
  if (!loader)
    return loader.takeError();

  std::vector<float> images(loader->getBatchSize() * loader->getNumElements());
  std::vector<int32_t> labels(loader->getBatchSize());
  for (int64_t number = 0; number < numEpochs; ++number) {
    Epoch epoch = loader->startEpoch(number);
    for (int64_t batch = 0; batch < epoch.getNumBatches(); ++batch) {
      epoch.fill(batch, images, labels);
      for (int32_t label : labels)
        ++counts[label];
    }
  }
  return Error::success();
}

TEST(GuideTest, RunsTheExample) {
  std::vector<int64_t> counts(10);
  Error error = runExample(1, counts);
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  int64_t sum = 0;
  for (int64_t count : counts) {
    EXPECT_NEAR(count, 5500, 200);
    sum += count;
  }
  EXPECT_EQ(sum, 55000 / 64 * 64);
}

} // namespace
