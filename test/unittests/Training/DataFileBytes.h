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
