//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random numbers that are the same on every machine: a value is a function of
// the seed and of its index alone, computed in integers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_RANDOM_H
#define KAS_SUPPORT_RANDOM_H

#include <cstdint>
#include <string_view>

namespace kas {

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014, section 4): a bijection of 64
/// bits that leaves no visible trace of its input.
constexpr uint64_t mixBits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

/// A stream of random numbers that is addressed by a counter: `bits(i)` does
/// not depend on what was drawn before, so arrays may be filled in any order.
class RandomStream {
public:
  explicit constexpr RandomStream(uint64_t seed) : state(mixBits(seed)) {}

  /// The stream of something named, such as one argument of a function. The
  /// name is hashed by FNV-1a of 64 bits.
  constexpr RandomStream(uint64_t seed, std::string_view name)
      : state(mixBits(seed ^ hashName(name))) {}

  /// 64 random bits.
  constexpr uint64_t bits(uint64_t index) const {
    return mixBits(state + (index + 1) * 0x9e3779b97f4a7c15ull);
  }

  /// Uniform in [0, 1), a multiple of 2^-24.
  constexpr float uniform(uint64_t index) const {
    return static_cast<float>(bits(index) >> 40) * 0x1p-24f;
  }

  /// Close to normal with mean 0 and variance 1: the sum of twelve uniform
  /// values less six (Irwin-Hall), so |x| <= 6. Integers up to the last step,
  /// because the logarithm and cosine of other methods differ by machine.
  constexpr float normal(uint64_t index) const {
    int64_t sum = 0;
    for (uint64_t draw = 0; draw < 3; ++draw)
      for (uint64_t word = bits(3 * index + draw), part = 0; part < 4; ++part)
        sum += static_cast<int64_t>((word >> (16 * part)) & 0xffff);
    // The mean of a 16-bit part is 65535 / 2.
    return static_cast<float>(sum - 6 * 65535) * 0x1p-16f;
  }

private:
  static constexpr uint64_t hashName(std::string_view name) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (char character : name)
      hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3ull;
    return hash;
  }

  uint64_t state;
};

/// A sequential generator on a stream, for code that draws as it goes. Works
/// with the distributions' interface of <random>, but those differ between
/// standard libraries: use `below`.
class Random {
public:
  using result_type = uint64_t;
  explicit constexpr Random(uint64_t seed) : stream(seed) {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~0ull; }
  constexpr uint64_t operator()() { return stream.bits(next++); }

  /// Uniform in [0, bound), without bias; `bound` must not be 0.
  constexpr uint64_t below(uint64_t bound) {
    uint64_t reject = (0 - bound) % bound;
    for (;;)
      if (uint64_t value = (*this)(); value >= reject)
        return value % bound;
  }

  /// Uniform in [0, 1).
  constexpr float uniform() { return stream.uniform(next++); }

private:
  RandomStream stream;
  uint64_t next = 0;
};

} // namespace kas

#endif // KAS_SUPPORT_RANDOM_H
