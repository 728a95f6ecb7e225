//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Damaged data files of each format: an error, or a data set whose examples can
// all be read and whose labels are in range.
//
//===----------------------------------------------------------------------===//

#include "DataFileBytes.h"
#include "Mutation.h"
#include "TemporaryDirectory.h"
#include "kas/Training/Batches.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>

using namespace kas;
using namespace kas::training;
using llvm::StringRef;

namespace {

/// Reads all that a data set has: in range, finite, and in memory.
void readAll(const Dataset &data, uint64_t seed) {
  ASSERT_GE(data.size(), 1) << "seed " << seed;
  for (int32_t label : data.getLabels())
    ASSERT_TRUE(label >= 0 && label < data.getNumClasses()) << "seed " << seed;
  data.checkSum();
  BatchOptions options;
  options.batchSize = 3;
  options.normalization = computeNormalization(data);
  if (data.getNumElements() > 1 << 16)
    return;
  auto loader = BatchLoader::create(data, options);
  if (!loader) {
    // The deviation of f32 values may be too small for a quotient.
    llvm::consumeError(loader.takeError());
    return;
  }
  std::vector<float> images(3 * loader->getNumElements());
  std::vector<int32_t> labels(3);
  Epoch epoch = loader->startEpoch(0);
  for (int64_t b = 0; b < epoch.getNumBatches(); ++b)
    epoch.fill(b, images, labels);
}

/// Loads `spec`, in which @ is the directory, with mutations of one of `files`
/// at a time.
void checkMutations(
    StringRef spec,
    const std::vector<std::pair<std::string, std::string>> &files,
    const TemporaryDirectory &directory) {
  int64_t rounds = std::getenv("KAS_SLOW_TESTS") ? 20000 : 2000, good = 0;
  // Some file systems write a file that was cut to the disk at once.
  auto write = [&](StringRef name, StringRef bytes) {
    llvm::sys::fs::remove(directory.getPath(name));
    writeFile(directory.getPath(name), bytes);
  };
  for (auto &[name, bytes] : files)
    write(name, bytes);
  for (int64_t round = 0; round < rounds; ++round) {
    uint64_t seed = 1000 + round;
    Random random(seed);
    auto &[name, bytes] = files[random.below(files.size())];
    write(name, mutate(bytes, random));
    std::string text = spec.str();
    for (size_t at; (at = text.find('@')) != std::string::npos;)
      text.replace(at, 1, directory.getPath(""));
    auto data = loadDataset(text);
    if (data) {
      ++good;
      readAll(*data, seed);
    } else {
      std::string message = llvm::toString(data.takeError());
      EXPECT_FALSE(message.empty());
    }
    write(name, bytes);
  }
  // Else the test reads nothing but headers.
  EXPECT_GE(good, rounds / 100);
  EXPECT_LE(good, rounds * 3 / 4);
}

TEST(MutatedFilesTest, Idx) {
  TemporaryDirectory directory;
  checkMutations("idx:@x,@y,classes=7",
                 {{"x", makeIdx(8, {6, 3, 4}, randomBytes(1, 72))},
                  {"y", makeIdx(8, {6}, randomBytes(2, 6, 7))}},
                 directory);
}

TEST(MutatedFilesTest, CompressedIdx) {
  TemporaryDirectory directory;
  checkMutations(
      "idx:@x,@y",
      {{"x", getCompressedIdx()}, {"y", makeIdx(8, {6}, randomBytes(2, 6, 7))}},
      directory);
}

TEST(MutatedFilesTest, IdxOfFloats) {
  TemporaryDirectory directory;
  std::string zeros(6 * 2 * 8, '\0'), labels(6 * 4, '\0');
  checkMutations(
      "idx:@x,@y",
      {{"x", makeIdx(14, {6, 2}, zeros)}, {"y", makeIdx(12, {6}, labels)}},
      directory);
}

TEST(MutatedFilesTest, Npy) {
  TemporaryDirectory directory;
  std::string zeros(6 * 2 * 2 * 4, '\0'), labels(6 * 8, '\0');
  checkMutations("npy:@x,@y,layout=nhwc",
                 {{"x", makeNpy("<f4", "6, 2, 1, 2", zeros)},
                  {"y", makeNpy("<i8", "6,", labels)}},
                 directory);
}

TEST(MutatedFilesTest, Npz) {
  TemporaryDirectory directory;
  checkMutations("npz:@x.npz,classes=3", {{"x.npz", getCompressedNpz()}},
                 directory);
}

TEST(MutatedFilesTest, Cifar) {
  TemporaryDirectory directory;
  checkMutations("cifar100:@", {{"train.bin", makeCifar(1, 2, 2, 100)}},
                 directory);
}

} // namespace
