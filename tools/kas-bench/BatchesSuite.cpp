//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How fast batches for training are made, from images at random places of a
// data set that is larger than the caches.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "kas/Support/Random.h"
#include "kas/Training/Batches.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::training;
using llvm::Error;

namespace {

struct Case {
  llvm::StringLiteral name;
  ElementType type;
  llvm::SmallVector<int64_t> shape;
  int64_t edge;
  Augmentation augmentation;
};

} // namespace

/// Images of random bytes, or of f32 values from 0 to 1.
static Dataset makeImages(const Case &benchCase) {
  constexpr int64_t bytes = 64 << 20;
  Examples examples;
  examples.type = benchCase.type;
  examples.shape = benchCase.shape;
  int64_t size = benchCase.type == ElementType::U8 ? 1 : sizeof(float);
  for (int64_t dimension : benchCase.shape)
    size *= dimension;
  auto words =
      std::make_shared<std::vector<uint32_t>>(bytes / sizeof(uint32_t));
  RandomStream random(1);
  for (auto [i, word] : llvm::enumerate(*words))
    if (benchCase.type == ElementType::U8)
      word = static_cast<uint32_t>(random.bits(i));
    else
      word = llvm::bit_cast<uint32_t>(random.uniform(i));
  for (int64_t start = 0; start + size <= bytes; start += size)
    examples.starts.push_back(reinterpret_cast<const char *>(words->data()) +
                              start);
  examples.storage = std::move(words);
  std::vector<int64_t> labels(examples.starts.size());
  return llvm::cantFail(Dataset::create(std::move(examples), labels));
}

static Error measureCase(const Case &benchCase, const BenchSettings &settings,
                         BenchReport &report) {
  if (!isSelected(settings, benchCase.name))
    return Error::success();
  BatchOptions options;
  options.height = options.width = benchCase.edge;
  options.augmentation = benchCase.augmentation;
  Dataset data = makeImages(benchCase);
  options.normalization = computeNormalization(data);
  auto loader = BatchLoader::create(std::move(data), options);
  if (!loader)
    return loader.takeError();
  Epoch epoch = loader->startEpoch(0);
  std::vector<float> images(loader->getNumElements() * options.batchSize);
  std::vector<int32_t> labels(options.batchSize);
  int64_t batch = 0;
  TimingOptions timingOptions;
  timingOptions.seconds = settings.seconds;
  Timing timing = measure(
      [&] {
        epoch.fill(batch, images, labels);
        batch = (batch + 1) % epoch.getNumBatches();
      },
      timingOptions);
  std::string name = benchCase.name.str();
  report.print({name, "time_ms", timing.median, "ms", timing});
  BenchLine line{name, "images_per_second",
                 1e3 * static_cast<double>(options.batchSize) / timing.median,
                 "1/s"};
  report.print(line);
  report.addToMean("batches", line);
  return Error::success();
}

Error kas::runBatchesSuite(mlir::MLIRContext &, const BenchSettings &settings,
                           BenchReport &report) {
  const Case cases[] = {
      {"u8<64x1x28x28>", ElementType::U8, {1, 28, 28}, 28, {}},
      {"u8<64x1x28x28>/32x32", ElementType::U8, {1, 28, 28}, 32, {}},
      {"u8<64x3x32x32>", ElementType::U8, {3, 32, 32}, 32, {}},
      {"u8<64x3x32x32>/crop,flip",
       ElementType::U8,
       {3, 32, 32},
       32,
       {4, 0, true}},
      {"f32<64x3x32x32>", ElementType::F32, {3, 32, 32}, 32, {}},
  };
  for (const Case &benchCase : cases)
    if (Error error = measureCase(benchCase, settings, report))
      return error;
  return Error::success();
}
