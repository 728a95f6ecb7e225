//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Damage to files, drawn at random.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_TRAINING_MUTATION_H
#define TEST_UNITTESTS_TRAINING_MUTATION_H

#include "DataFileBytes.h"

namespace kas::training {

/// Changes, cuts, doubles or inserts bytes, or writes a number at the limits of
/// its type.
inline void mutateOnce(std::string &bytes, Random &random) {
  constexpr uint64_t limits[] = {0,          1,          0x7f,       0x80,
                                 0xff,       0xffff,     0x7fffffff, 0x80000000,
                                 0xffffffff, ~0ull >> 1, 1ull << 63, ~0ull};
  size_t place = random.below(bytes.size() + 1);
  size_t length = std::min<size_t>(bytes.size() - place, 1 + random.below(16));
  switch (random.below(7)) {
  case 0:
    bytes.resize(place);
    break;
  case 1:
    bytes.erase(place, length);
    break;
  case 2:
    bytes.insert(place, bytes.substr(place, length));
    break;
  case 3:
    bytes.insert(place, randomBytes(random(), 1 + random.below(8)));
    break;
  case 4: {
    uint64_t limit = limits[random.below(std::size(limits))];
    size_t width = size_t(1) << random.below(4);
    bool bigEndian = random.below(2) == 0;
    for (size_t i = 0; i < width && place + i < bytes.size(); ++i)
      bytes[place + i] =
          static_cast<char>(limit >> (8 * (bigEndian ? width - 1 - i : i)));
    break;
  }
  default:
    if (place < bytes.size())
      bytes[place] ^= static_cast<char>(1 << random.below(8));
  }
}

/// `bytes` with one to three mutations. Most headers are short: many are near
/// the start or the end.
inline std::string mutate(std::string bytes, Random &random) {
  for (uint64_t count = 1 + random.below(3); count > 0 && !bytes.empty();
       --count) {
    size_t part = std::min<size_t>(bytes.size(), 64);
    std::string piece;
    switch (random.below(3)) {
    case 0:
      piece = bytes.substr(0, part);
      mutateOnce(piece, random);
      bytes.replace(0, part, piece);
      break;
    case 1:
      piece = bytes.substr(bytes.size() - part);
      mutateOnce(piece, random);
      bytes.replace(bytes.size() - part, part, piece);
      break;
    default:
      mutateOnce(bytes, random);
    }
  }
  return bytes;
}

} // namespace kas::training

#endif // TEST_UNITTESTS_TRAINING_MUTATION_H
