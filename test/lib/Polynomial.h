//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Polynomials with integer coefficients: what coordinates are when sizes are
// symbols.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_POLYNOMIAL_H
#define KAS_TEST_LIB_POLYNOMIAL_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kas::test {

/// A sum of products of variables, each with a coefficient other than 0. The
/// order of terms is that of the numbers of their variables.
class Polynomial {
public:
  /// The variables of a product, sorted; one that is squared is there twice.
  using Monomial = std::vector<unsigned>;

  /// Zero.
  Polynomial() = default;
  Polynomial(int64_t constant);
  static Polynomial variable(unsigned number);

  Polynomial operator+(const Polynomial &other) const;
  Polynomial operator-(const Polynomial &other) const;
  Polynomial operator*(const Polynomial &other) const;

  const std::map<Monomial, int64_t> &getTerms() const { return terms; }
  bool isZero() const { return terms.empty(); }
  bool isConstant() const;
  /// The value, when no variable occurs.
  std::optional<int64_t> getConstant() const;

  /// The quotient and the rest where `divisor`, of one term, divides some of
  /// the terms: the rest is the sum of the others.
  std::pair<Polynomial, Polynomial> divide(const Polynomial &divisor) const;

  bool operator==(const Polynomial &other) const = default;
  bool operator<(const Polynomial &other) const { return terms < other.terms; }

private:
  void add(const Monomial &monomial, int64_t coefficient);

  std::map<Monomial, int64_t> terms;
};

} // namespace kas::test

#endif // KAS_TEST_LIB_POLYNOMIAL_H
