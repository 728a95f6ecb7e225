//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linear algebra modulo the prime 2^61 - 1.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_PRIMEFIELD_H
#define KAS_SUPPORT_PRIMEFIELD_H

#include <cstdint>
#include <map>
#include <utility>

namespace kas {

/// The field of 2^61 - 1 elements. A relation that random elements of it meet
/// holds in general, but with a probability of the degree over 2^61 (Schwartz,
/// JACM 1980).
struct PrimeField {
  static constexpr uint64_t prime = (uint64_t(1) << 61) - 1;

  /// Of a number below twice the prime.
  static uint64_t reduce(uint64_t a) { return a < prime ? a : a - prime; }

  /// Of numbers below the prime, as all functions.
  static uint64_t multiply(uint64_t a, uint64_t b) {
    // 2^61 is 1 modulo the prime.
    auto product = static_cast<unsigned __int128>(a) * b;
    return reduce((uint64_t(product) & prime) + uint64_t(product >> 61));
  }
  static void addTo(uint64_t &sum, uint64_t value) {
    sum = reduce(sum + value);
  }
  /// The inverse of a number that is not 0.
  static uint64_t invert(uint64_t a) {
    uint64_t result = 1;
    for (uint64_t exponent = prime - 2; exponent; exponent >>= 1) {
      if (exponent & 1)
        result = multiply(result, a);
      a = multiply(a, a);
    }
    return result;
  }

  /// Coefficients by unknown.
  using SparseRow = std::map<uint64_t, uint64_t>;

  /// Independent rows.
  class Echelon {
  public:
    /// Adds a row, unless it depends on the others: then false.
    bool add(SparseRow row) {
      while (!row.empty()) {
        auto [lead, factor] = *row.begin();
        if (factor == 0) {
          row.erase(row.begin());
          continue;
        }
        auto known = rows.find(lead);
        if (known == rows.end()) {
          uint64_t inverse = invert(factor);
          for (auto &[unknown, value] : row)
            value = multiply(value, inverse);
          rows.emplace(lead, std::move(row));
          return true;
        }
        for (const auto &[unknown, value] : known->second)
          addTo(row[unknown], prime - multiply(factor, value));
      }
      return false;
    }

  private:
    /// By leading unknown; the leading coefficient is 1.
    std::map<uint64_t, SparseRow> rows;
  };
};

} // namespace kas

#endif // KAS_SUPPORT_PRIMEFIELD_H
