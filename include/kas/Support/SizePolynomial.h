//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of monomials of symbols: what operators cost, before the symbols have
// values.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_SIZEPOLYNOMIAL_H
#define KAS_SUPPORT_SIZEPOLYNOMIAL_H

#include "kas/Support/Size.h"

namespace kas {

/// A sum of monomials, each a product of symbols with integer exponents times a
/// positive rational constant. Like terms are one; the order of terms is the
/// same on every machine. Arithmetic is exact; a result that does not fit
/// (constants of 63 bits, exponents of eight signed bits) is `nullopt`.
class SizePolynomial {
public:
  /// Zero.
  SizePolynomial() = default;

  /// `factor` (at least 0) times the product of `sizes`.
  static std::optional<SizePolynomial> product(llvm::ArrayRef<Size> sizes,
                                               int64_t factor = 1);

  std::optional<SizePolynomial> add(const SizePolynomial &other) const;
  /// `factor` is at least 0.
  std::optional<SizePolynomial> scale(int64_t factor) const;

  bool isZero() const { return terms.empty(); }

  /// The exact value under `binding`; nothing when it is no integer or 2^63 or
  /// more.
  std::optional<int64_t> evaluate(llvm::ArrayRef<int64_t> binding) const;

  bool operator==(const SizePolynomial &other) const = default;

  /// `2*C*H + C*k**2/g`, or `0`; `names[i]` is the name of symbol i.
  void print(llvm::raw_ostream &os,
             llvm::ArrayRef<llvm::StringRef> names) const;

private:
  struct Term {
    /// The symbols; its constant is 1.
    Size symbols;
    /// In lowest terms.
    int64_t numerator = 1, denominator = 1;

    bool operator==(const Term &other) const = default;
    bool multiply(const Size &size);
    bool multiply(int64_t numerator, int64_t denominator);
    bool addLike(const Term &other);
    std::optional<int64_t> evaluate(llvm::ArrayRef<int64_t> binding) const;
    void print(llvm::raw_ostream &os,
               llvm::ArrayRef<llvm::StringRef> names) const;
  };

  /// Sorted by their symbols, the highest powers of the first symbol first.
  llvm::SmallVector<Term, 2> terms;
};

std::string toString(const SizePolynomial &polynomial,
                     const SymbolSet &symbols);

} // namespace kas

#endif // KAS_SUPPORT_SIZEPOLYNOMIAL_H
