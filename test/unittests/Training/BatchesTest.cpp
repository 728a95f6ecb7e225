//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Batches.h"
#include "DataFileBytes.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

using namespace kas;
using namespace kas::training;

namespace {

/// A batch in memory.
struct Batch {
  std::vector<float> images;
  std::vector<int32_t> labels;
  int64_t count = 0;

  bool operator==(const Batch &) const = default;
};

Batch fill(const BatchLoader &loader, const Epoch &epoch, int64_t number) {
  Batch batch;
  batch.images.resize(loader.getNumElements() * loader.getBatchSize(), -77);
  batch.labels.resize(loader.getBatchSize(), -77);
  batch.count = epoch.fill(number, batch.images, batch.labels);
  return batch;
}

BatchLoader makeLoader(const Dataset &data, const BatchOptions &options) {
  return llvm::cantFail(BatchLoader::create(data, options));
}

/// The pixel of an image in a data set of bytes, by the definition: 0 outside.
float pixelAt(const Dataset &data, int64_t example, int64_t channel, int64_t y,
              int64_t x) {
  int64_t height = data.getShape()[1], width = data.getShape()[2];
  if (y < 0 || y >= height || x < 0 || x >= width)
    return 0;
  return static_cast<float>(
             data.getBytes(example)[(channel * height + y) * width + x]) /
         255;
}

TEST(BatchesTest, ScalesBytes) {
  Dataset data = makeBytes({2, 3, 5}, 10, 1);
  BatchOptions options;
  options.batchSize = 4;
  options.shuffle = false;
  BatchLoader loader = makeLoader(data, options);
  EXPECT_EQ(loader.getBatchShape(), llvm::ArrayRef<int64_t>({4, 2, 3, 5}));
  EXPECT_EQ(loader.getNumBatches(), 3);
  Epoch epoch = loader.startEpoch(0);
  for (int64_t b = 0; b < 3; ++b) {
    Batch batch = fill(loader, epoch, b);
    EXPECT_EQ(batch.count, b < 2 ? 4 : 2);
    for (int64_t i = 0; i < 4; ++i) {
      bool there = b * 4 + i < 10;
      EXPECT_EQ(batch.labels[i], there ? (b * 4 + i) % 3 : -1);
      for (int64_t j = 0; j < 30; ++j)
        EXPECT_NEAR(batch.images[i * 30 + j],
                    there ? data.getBytes(b * 4 + i)[j] / 255.0 : 0.0, 1e-7);
    }
  }
}

TEST(BatchesTest, NormalizesChannels) {
  Dataset data = makeBytes({3, 8, 8}, 16, 1);
  BatchOptions options;
  options.batchSize = 16;
  options.normalization = computeNormalization(data);
  BatchLoader loader = makeLoader(data, options);
  Batch batch = fill(loader, loader.startEpoch(0), 0);
  for (int64_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t j = 0; j < 64; ++j) {
        double value = batch.images[(i * 3 + c) * 64 + j];
        sum += value;
        squares += value * value;
      }
    EXPECT_NEAR(sum / 1024, 0, 1e-6);
    EXPECT_NEAR(squares / 1024, 1, 1e-6);
  }
  // A known one: bytes 0 and 255 have mean and deviation 1/2.
  std::vector<uint8_t> bytes = {0, 255};
  Examples examples;
  examples.shape = {2};
  examples.starts = {bytes.data()};
  auto two = computeNormalization(
      llvm::cantFail(Dataset::create(std::move(examples), {0})));
  EXPECT_EQ(two.mean[0], 0.5);
  EXPECT_EQ(two.deviation[0], 0.5);
}

TEST(BatchesTest, PlacesImagesInLargerAndSmallerWindows) {
  Dataset data = makeBytes({1, 5, 4}, 2, 1);
  BatchOptions options;
  options.batchSize = 2;
  options.shuffle = false;
  options.height = 8;
  options.width = 2;
  options.normalization = Normalization{{0.25}, {0.5}};
  for (Border border : {Border::Zero, Border::Mean}) {
    options.border = border;
    BatchLoader loader = makeLoader(data, options);
    Batch batch = fill(loader, loader.startEpoch(0), 0);
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t y = 0; y < 8; ++y)
        for (int64_t x = 0; x < 2; ++x) {
          // One row above, two below; the two columns in the middle.
          float expected = (pixelAt(data, i, 0, y - 1, x + 1) - 0.25f) / 0.5f;
          if (border == Border::Mean && (y < 1 || y > 5))
            expected = 0;
          EXPECT_NEAR(batch.images[(i * 8 + y) * 2 + x], expected, 1e-6);
        }
  }
}

/// Finds the window and flip that give an image of a batch: bytes are random,
/// so there is only one.
std::vector<int64_t> findWindow(const Dataset &data, int64_t example,
                                const float *image, int64_t reach) {
  std::vector<int64_t> found;
  int64_t height = data.getShape()[1], width = data.getShape()[2];
  for (int64_t flip : {0, 1})
    for (int64_t top = -reach; top <= reach; ++top)
      for (int64_t left = -reach; left <= reach; ++left) {
        bool same = true;
        for (int64_t c = 0; c < data.getShape()[0] && same; ++c)
          for (int64_t y = 0; y < height && same; ++y)
            for (int64_t x = 0; x < width && same; ++x) {
              int64_t from = left + (flip ? width - 1 - x : x);
              same = std::abs(image[(c * height + y) * width + x] -
                              pixelAt(data, example, c, top + y, from)) < 1e-6;
            }
        if (same)
          found.insert(found.end(), {top, left, flip});
      }
  return found;
}

TEST(BatchesTest, Augments) {
  Dataset data = makeBytes({2, 6, 7}, 400, 1);
  for (auto [crop, shift, reach] :
       {std::array<int64_t, 3>{2, 0, 2}, std::array<int64_t, 3>{0, 1, 1},
        std::array<int64_t, 3>{1, 2, 3}}) {
    BatchOptions options;
    options.batchSize = 400;
    options.shuffle = false;
    options.seed = 11;
    options.augmentation = {crop, shift, true};
    BatchLoader loader = makeLoader(data, options);
    Batch batch = fill(loader, loader.startEpoch(3), 0);
    std::set<std::vector<int64_t>> windows;
    for (int64_t i = 0; i < 400; ++i) {
      auto window = findWindow(data, i, batch.images.data() + i * 84, reach);
      ASSERT_EQ(window.size(), 3u) << "seed 11, example " << i;
      windows.insert(window);
    }
    // All combinations appear: the rarest of 98 has probability 1/450 or more.
    int64_t width = 2 * reach + 1;
    if (crop == 0 || shift == 0)
      EXPECT_EQ(static_cast<int64_t>(windows.size()), 2 * width * width);
    else
      EXPECT_GE(windows.size(), 60u);
    // Other numbers in another epoch.
    EXPECT_NE(fill(loader, loader.startEpoch(4), 0), batch);
  }
}

TEST(BatchesTest, FlipsAndMovesEvenly) {
  Dataset data = makeBytes({1, 6, 6}, 3000, 1);
  BatchOptions options;
  options.batchSize = 3000;
  options.shuffle = false;
  options.augmentation = {1, 0, true};
  BatchLoader loader = makeLoader(data, options);
  Batch batch = fill(loader, loader.startEpoch(0), 0);
  int64_t flips = 0, tops[3] = {}, lefts[3] = {};
  for (int64_t i = 0; i < 3000; ++i) {
    auto window = findWindow(data, i, batch.images.data() + i * 36, 1);
    ASSERT_EQ(window.size(), 3u);
    ++tops[window[0] + 1];
    ++lefts[window[1] + 1];
    flips += window[2];
  }
  // Five standard deviations: 27 of 3000 halves, 26 of thirds.
  EXPECT_NEAR(flips, 1500, 137);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(tops[i], 1000, 130);
    EXPECT_NEAR(lefts[i], 1000, 130);
  }
}

TEST(BatchesTest, ShufflesByEpoch) {
  Dataset data = makeBytes({1, 1, 1}, 100, 1);
  BatchOptions options;
  options.batchSize = 32;
  options.seed = 5;
  BatchLoader loader = makeLoader(data, options);
  Epoch first = loader.startEpoch(1);
  auto order = first.getOrder().vec();
  EXPECT_EQ(loader.startEpoch(1).getOrder(), llvm::ArrayRef(order));
  EXPECT_NE(loader.startEpoch(2).getOrder(), llvm::ArrayRef(order));
  options.seed = 6;
  EXPECT_NE(makeLoader(data, options).startEpoch(1).getOrder(),
            llvm::ArrayRef(order));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(order[i], i);
  // Runs must continue on another machine with another version: known values.
  options.seed = 0;
  Epoch known =
      makeLoader(llvm::cantFail(data.takeFirst(8)), options).startEpoch(0);
  EXPECT_EQ(known.getOrder(),
            llvm::ArrayRef<int64_t>({1, 4, 7, 6, 5, 0, 3, 2}));
}

TEST(BatchesTest, IsTheSameInAnyThread) {
  Dataset data = makeBytes({3, 9, 9}, 257, 1);
  BatchOptions options;
  options.batchSize = 16;
  options.augmentation = {2, 1, true};
  BatchLoader loader = makeLoader(data, options);
  Epoch epoch = loader.startEpoch(2);
  std::vector<Batch> expected, actual(epoch.getNumBatches());
  for (int64_t b = 0; b < epoch.getNumBatches(); ++b)
    expected.push_back(fill(loader, epoch, b));
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t b = epoch.getNumBatches() - 1 - t; b >= 0; b -= 4)
        actual[b] = fill(loader, epoch, b);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(actual, expected);
}

TEST(BatchesTest, WritesLabelsAsFloats) {
  Dataset data = makeBytes({4}, 10, 1);
  BatchOptions options;
  options.batchSize = 4;
  options.shuffle = false;
  options.paddingLabel = 1;
  BatchLoader loader = makeLoader(data, options);
  std::vector<float> images(16), labels(4);
  EXPECT_EQ(loader.startEpoch(0).fill(2, images, labels), 2);
  EXPECT_EQ(labels, (std::vector<float>{2, 0, 1, 1}));
}

TEST(BatchesTest, DropsTheLastBatch) {
  Dataset data = makeBytes({4}, 10, 1);
  BatchOptions options;
  options.batchSize = 4;
  options.dropLast = true;
  BatchLoader loader = makeLoader(data, options);
  EXPECT_EQ(loader.getNumBatches(), 2);
  EXPECT_EQ(loader.getBatchShape(), llvm::ArrayRef<int64_t>({4, 4}));
  options.batchSize = 11;
  EXPECT_EQ(errorOf(BatchLoader::create(data, options)),
            "requires batches of at most 10 examples, those of the data set, "
            "got 11");
}

TEST(BatchesTest, RejectsBadOptions) {
  Dataset images = makeBytes({2, 3, 5}, 10, 1), rows = makeBytes({7}, 10, 1);
  auto error = [](const Dataset &data, auto &&change) {
    BatchOptions options;
    change(options);
    return errorOf(BatchLoader::create(data, options));
  };
  EXPECT_EQ(error(images, [](BatchOptions &o) { o.batchSize = 0; }),
            "requires a batch of at least one example, got 0");
  EXPECT_EQ(error(images, [](BatchOptions &o) { o.paddingLabel = 3; }),
            "requires a padding label in [-1, 3), got 3");
  EXPECT_EQ(error(images, [](BatchOptions &o) { o.augmentation.crop = -1; }),
            "requires sizes and distances of images that are not negative, got "
            "0x0, crop -1, shift 0");
  EXPECT_EQ(error(images, [](BatchOptions &o) { o.width = 1 << 21; }),
            "requires sizes and distances of images of at most 1048576 pixels, "
            "got 2097152");
  EXPECT_EQ(error(rows, [](BatchOptions &o) { o.augmentation.flip = true; }),
            "requires images CxHxW for a size or an augmentation, got examples "
            "of shape 7");
  EXPECT_EQ(error(images,
                  [](BatchOptions &o) { o.normalization = {{{0.0}, {1.0}}}; }),
            "requires a normalization of 2 channels, got 1 means and 1 "
            "deviations");
  EXPECT_EQ(
      error(rows, [](BatchOptions &o) { o.normalization = {{{0.0}, {0.0}}}; }),
      "requires finite means and positive deviations, got mean 0, "
      "deviation 0");
  EXPECT_EQ(
      error(rows,
            [](BatchOptions &o) { o.normalization = {{{0.0}, {1e-60}}}; }),
      "requires a normalization in the range of f32, got mean 0, deviation "
      "1e-60");
}

} // namespace
