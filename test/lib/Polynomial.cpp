//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Polynomial.h"
#include <algorithm>
#include <cassert>
#include <iterator>

using namespace kas::test;

Polynomial::Polynomial(int64_t constant) { add({}, constant); }

Polynomial Polynomial::variable(unsigned number) {
  Polynomial result;
  result.add({number}, 1);
  return result;
}

void Polynomial::add(const Monomial &monomial, int64_t coefficient) {
  int64_t &entry = terms[monomial];
  entry += coefficient;
  if (entry == 0)
    terms.erase(monomial);
}

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial result = *this;
  for (const auto &[monomial, coefficient] : other.terms)
    result.add(monomial, coefficient);
  return result;
}

Polynomial Polynomial::operator-(const Polynomial &other) const {
  Polynomial result = *this;
  for (const auto &[monomial, coefficient] : other.terms)
    result.add(monomial, -coefficient);
  return result;
}

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  for (const auto &[left, a] : terms)
    for (const auto &[right, b] : other.terms) {
      Monomial product;
      std::merge(left.begin(), left.end(), right.begin(), right.end(),
                 std::back_inserter(product));
      result.add(product, a * b);
    }
  return result;
}

bool Polynomial::isConstant() const {
  return terms.empty() || (terms.size() == 1 && terms.begin()->first.empty());
}

std::optional<int64_t> Polynomial::getConstant() const {
  if (!isConstant())
    return std::nullopt;
  return terms.empty() ? 0 : terms.begin()->second;
}

std::pair<Polynomial, Polynomial>
Polynomial::divide(const Polynomial &divisor) const {
  assert(divisor.terms.size() == 1 && "the divisor must have one term");
  const auto &[by, factor] = *divisor.terms.begin();
  std::pair<Polynomial, Polynomial> result;
  for (const auto &[monomial, coefficient] : terms) {
    bool isMultiple =
        coefficient % factor == 0 &&
        std::includes(monomial.begin(), monomial.end(), by.begin(), by.end());
    if (!isMultiple) {
      result.second.add(monomial, coefficient);
      continue;
    }
    Monomial quotient;
    std::set_difference(monomial.begin(), monomial.end(), by.begin(), by.end(),
                        std::back_inserter(quotient));
    result.first.add(quotient, coefficient / factor);
  }
  return result;
}
