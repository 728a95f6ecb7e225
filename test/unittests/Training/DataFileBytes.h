//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes of data files, made by the definition of each format.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_TRAINING_DATAFILEBYTES_H
#define TEST_UNITTESTS_TRAINING_DATAFILEBYTES_H

#include "kas/Support/Random.h"
#include "kas/Training/Dataset.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <string>

namespace kas::training {

/// `count` random bytes below `end`.
inline std::string randomBytes(uint64_t seed, int64_t count, int end = 256) {
  Random random(seed);
  std::string bytes(count, '\0');
  for (char &byte : bytes)
    byte = static_cast<char>(random.below(end));
  return bytes;
}

/// An idx file of numbers of this type.
inline std::string makeIdx(char type, llvm::ArrayRef<uint32_t> shape,
                           llvm::StringRef data) {
  std::string bytes("\0\0", 2);
  bytes += type;
  bytes += static_cast<char>(shape.size());
  for (uint32_t dimension : shape)
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes += static_cast<char>(dimension >> shift);
  return bytes + data.str();
}

/// A .npy file of an array of this dtype; `shape` is the text in parentheses.
inline std::string makeNpy(llvm::StringRef dtype, llvm::StringRef shape,
                           llvm::StringRef data, bool fortranOrder = false) {
  std::string header =
      ("{'descr': '" + dtype + "', 'fortran_order': " +
       (fortranOrder ? "True" : "False") + ", 'shape': (" + shape + "), }")
          .str();
  header.resize(llvm::alignTo(10 + header.size() + 1, 64) - 11, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data.str();
}

/// An archive that numpy.savez_compressed 1.26 made: x_train u8 4x2x3, the
/// values 7 * i, y_train i64 (0, 2, 1, 2), x_test the first two of x_train plus
/// 1, y_test (0, 2).
inline std::string getCompressedNpz() {
  return llvm::fromHex(
      "504b03042d0000000800000021006d18a4b1ffffffffffffffff0b001400785f7472"
      "61696e2e6e707901001000980000000000000062000000000000009bec17ea1b10c9"
      "c850c650ad9e925a9c5ca46ea5a05e536aa8aea3a09e965f54529498179f5f94920a"
      "12774bcc294e058a17672416a402f91a263a0a463a0ac69a3a0ab50ae4012e06763e"
      "5119652d430b7b37df90e8a4cc82f2bad69ec9b3160200504b03042d000000080000"
      "00210087dea66cffffffffffffffff0b001400795f747261696e2e6e707901001000"
      "a0000000000000004c000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca4"
      "6ea5a06e9369a1aea3a09e965f54529498179f5f94920a12774bcc294e058a176724"
      "16a402f91a263a9a3a0ab50a14002e06286082d28c687c00504b03042d0000000800"
      "000021004b48b5ffffffffffffffffff0a001400785f746573742e6e707901001000"
      "8c0000000000000054000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca4"
      "6ea5a05e536aa8aea3a09e965f54529498179f5f94920a12774bcc294e058a176724"
      "16a402f91a463a0a4064aca9a350ab401ee062e4e0179355d136b27470f70300504b"
      "03042d0000000800000021009d6d7447ffffffffffffffff0a001400795f74657374"
      "2e6e707901001000900000000000000049000000000000009bec17ea1b10c9c850c6"
      "50ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f5f94920a12774b"
      "cc294e058a17672416a402f91a463a9a3a0ab50a14002e06286082d200504b01022d"
      "032d0000000800000021006d18a4b162000000980000000b00000000000000000000"
      "00800100000000785f747261696e2e6e7079504b01022d032d000000080000002100"
      "87dea66c4c000000a00000000b000000000000000000000080019f000000795f7472"
      "61696e2e6e7079504b01022d032d0000000800000021004b48b5ff540000008c0000"
      "000a0000000000000000000000800128010000785f746573742e6e7079504b01022d"
      "032d0000000800000021009d6d744749000000900000000a00000000000000000000"
      "008001b8010000795f746573742e6e7079504b05060000000004000400e20000003d"
      "0200000000");
}

/// An idx file of u8 6x3x4, the values i * 7 + i * i / 5, that Python's module
/// gzip compressed.
inline std::string getCompressedIdx() {
  return llvm::fromHex(
      "1f8b08000000000002ff6360e06066606060036210cdc2c0ce2726af6168e5e21f95"
      "5a50d3396df1867d67efbcfec525ad63eb9750dc3673cd81abaffe8b683946e4b7cd"
      "db7ee125938c79506ec79283f77e4b9885964cde74e9b3886958c5ec7d0f018bbbab"
      "5758000000");
}

/// A file of CIFAR's binary format: records of labels and 3072 bytes.
inline std::string makeCifar(uint64_t seed, int64_t count, int64_t labelBytes,
                             int classes) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes += randomBytes(seed + 2 * i, labelBytes, classes) +
             randomBytes(seed + 2 * i + 1, 3072);
  return bytes;
}

/// The message of what should have failed.
template <typename Value>
std::string errorOf(llvm::Expected<Value> value) {
  return value ? "no error" : llvm::toString(value.takeError());
}

/// A data set of bytes in memory, with labels 0, 1, 2, 0, ...
inline Dataset makeBytes(llvm::ArrayRef<int64_t> shape, int64_t count,
                         uint64_t seed) {
  int64_t size = 1;
  for (int64_t dimension : shape)
    size *= dimension;
  auto bytes = std::make_shared<std::string>(randomBytes(seed, count * size));
  Examples examples;
  examples.shape.assign(shape.begin(), shape.end());
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    examples.starts.push_back(bytes->data() + i * size);
    labels.push_back(i % 3);
  }
  examples.storage = bytes;
  return llvm::cantFail(Dataset::create(std::move(examples), labels));
}

} // namespace kas::training

#endif // TEST_UNITTESTS_TRAINING_DATAFILEBYTES_H
