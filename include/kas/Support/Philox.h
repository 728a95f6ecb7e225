//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011): what compiled programs draw random numbers by.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_PHILOX_H
#define KAS_SUPPORT_PHILOX_H

#include <array>
#include <cstdint>

namespace kas {

/// A bijection of counters of 128 bits for each key of 64 bits.
struct Philox4x32 {
  using Counter = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  static constexpr unsigned numRounds = 10;
  static constexpr Key multipliers = {0xD2511F53u, 0xCD9E8D57u};
  /// What is added to the key after each round.
  static constexpr Key keySteps = {0x9E3779B9u, 0xBB67AE85u};

  static constexpr Counter draw(Counter counter, Key key) {
    for (unsigned round = 0; round < numRounds; ++round) {
      uint64_t first = uint64_t(multipliers[0]) * counter[0];
      uint64_t second = uint64_t(multipliers[1]) * counter[2];
      counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
                 uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
      key = {key[0] + keySteps[0], key[1] + keySteps[1]};
    }
    return counter;
  }
};

} // namespace kas

#endif // KAS_SUPPORT_PHILOX_H
