//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mean and deviation of each channel of a data set, in a fixed order of sums.
// A part of a training's result, so it must not depend on the number of
// threads: one thread adds up in the order of the examples
// (docs/guide/training.md).
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Batches.h"
#include "llvm/ADT/Sequence.h"
#include <array>
#include <cmath>

using namespace kas;
using namespace kas::training;

namespace {

/// Mean and standard deviation of the values of one channel.
struct Moments {
  double mean = 0, deviation = 1;
};

} // namespace

/// From the counts of each byte: exact sums of integers.
/// The channel has `count` elements from `first` on in each example. In units
/// of 1 (a byte of 255 is 1).
static Moments momentsOfBytes(const Dataset &data, int64_t first,
                              int64_t count) {
  std::array<int64_t, 256> histogram = {};
  for (int64_t i : llvm::seq(data.size()))
    for (uint8_t byte : data.getBytes(i).slice(first, count))
      ++histogram[byte];
  double total = static_cast<double>(data.size()) * static_cast<double>(count);
  double sum = 0;
  for (int64_t byte : llvm::seq(256))
    // A count times 255 is far below 2^53, so each product is exact.
    sum += static_cast<double>(byte * histogram[byte]);
  double mean = sum / total, squares = 0;
  for (int64_t byte : llvm::seq(256)) {
    double distance = static_cast<double>(byte) - mean;
    squares += distance * distance * static_cast<double>(histogram[byte]);
  }
  return {mean / 255, std::sqrt(squares / total) / 255};
}

/// Of f32 values as they are, summed in double precision.
static Moments momentsOfFloats(const Dataset &data, int64_t first,
                               int64_t count) {
  double total = static_cast<double>(data.size()) * static_cast<double>(count);
  double sum = 0, squares = 0;
  for (int64_t i : llvm::seq(data.size()))
    for (float value : data.getFloats(i).slice(first, count))
      sum += value;
  double mean = sum / total;
  // In a second pass: the difference of two large sums would be of no value.
  for (int64_t i : llvm::seq(data.size()))
    for (float value : data.getFloats(i).slice(first, count))
      squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / total)};
}

Normalization kas::training::computeNormalization(const Dataset &data) {
  Normalization result;
  // Elements of one channel; vectors and grey images have one.
  int64_t count = data.getNumElements() / data.getNumChannels();
  for (int64_t channel : llvm::seq(data.getNumChannels())) {
    Moments moments = data.getElementType() == ElementType::U8
                          ? momentsOfBytes(data, channel * count, count)
                          : momentsOfFloats(data, channel * count, count);
    result.mean.push_back(moments.mean);
    // A constant channel: dividing by 1 leaves zeros instead of NaN.
    result.deviation.push_back(moments.deviation > 0 ? moments.deviation : 1);
  }
  return result;
}
