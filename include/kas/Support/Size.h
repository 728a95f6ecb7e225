//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes: monomials of symbols with a positive rational constant, and the
// bindings that give the symbols values. No dialect is needed here.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_SIZE_H
#define KAS_SUPPORT_SIZE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace kas {

/// Primary symbols are sizes of inputs and outputs: their exponents are never
/// negative. Coefficient symbols are small, introduced by primitives, and may
/// occur in a denominator.
enum class SymbolKind : uint8_t { Primary, Coefficient };

/// An ordered list of declared symbols. A `Size` refers to symbols by their
/// position here.
class SymbolSet {
public:
  /// More symbols than this do not fit the exponents of a `Size`.
  static constexpr unsigned maxSymbols = 12;

  /// Declares `name`. Fails when it is declared already or the set is full.
  llvm::Error add(llvm::StringRef name, SymbolKind kind);

  /// The position of `name`, if it is declared.
  std::optional<unsigned> lookup(llvm::StringRef name) const;

  unsigned size() const { return names.size(); }
  llvm::StringRef getName(unsigned index) const { return names[index]; }
  SymbolKind getKind(unsigned index) const { return kinds[index]; }

private:
  llvm::SmallVector<std::string, 8> names;
  llvm::SmallVector<SymbolKind, 8> kinds;
};

/// A value for each symbol of a `SymbolSet`, in its order; each at least 1.
using Binding = llvm::SmallVector<int64_t, 8>;

/// A monomial of symbols with integer exponents times a positive rational
/// constant, in two machine words. Arithmetic is exact; a result that does not
/// fit (exponents of eight signed bits; integer constants below 2^31, fractions
/// with a numerator below 2^20 and a denominator below 2^11) is `nullopt`.
class Size {
public:
  static constexpr int64_t maxInteger = (int64_t(1) << 31) - 1;
  static constexpr int64_t maxNumerator = (int64_t(1) << 20) - 1;
  static constexpr int64_t maxDenominator = (int64_t(1) << 11) - 1;

  /// The size 1.
  Size() = default;

  /// The constant `numerator / denominator`, both at least 1.
  static std::optional<Size> constant(int64_t numerator,
                                      int64_t denominator = 1);
  /// The symbol at `index`, to the power `exponent`.
  static Size symbol(unsigned index, int8_t exponent = 1);

  int64_t getNumerator() const;
  int64_t getDenominator() const;
  int getExponent(unsigned index) const { return exponents[index]; }
  llvm::ArrayRef<int8_t> getExponents() const { return exponents; }

  bool isOne() const { return *this == Size(); }
  /// No symbol occurs.
  bool isConstant() const;
  /// The constant is an integer.
  bool hasIntegerConstant() const { return getDenominator() == 1; }

  std::optional<Size> multiply(const Size &other) const;
  std::optional<Size> divide(const Size &other) const;
  std::optional<Size> power(int exponent) const;

  /// The same monomial with the symbol at position `i` moved to
  /// `positions[i]`. Symbols in use must have a position.
  Size remap(llvm::ArrayRef<unsigned> positions) const;

  /// The value under `binding` when it is an integer from 1 to 2^63-1, else
  /// nothing.
  std::optional<int64_t> evaluate(llvm::ArrayRef<int64_t> binding) const;

  /// An integer of at least 1 under every binding.
  bool isLegal(llvm::ArrayRef<Binding> bindings) const;

  /// A total order that is the same on every machine.
  bool operator==(const Size &other) const = default;
  std::strong_ordering operator<=>(const Size &other) const = default;

  /// A hash that is the same on every machine.
  uint64_t hash() const;

private:
  std::array<int8_t, SymbolSet::maxSymbols> exponents = {};
  /// Integers below 2^31, or bit 31 set, 11 bits of denominator and 20 bits
  /// of numerator, in lowest terms.
  uint32_t packedConstant = 1;
};
static_assert(sizeof(Size) == 16, "a size fits two machine words");

/// Every monomial d with integer constant such that d and `size / d` are legal
/// under all `bindings`, the exponent of each symbol in d lies between 0 and
/// that in `size` (in either direction), or within `coefficientReach` beyond it
/// for coefficient symbols. The result is sorted and free of duplicates; 1 and
/// `size` itself are in it when they qualify. The constant of d divides the
/// numerator of `size`.
llvm::SmallVector<Size> enumerateDivisors(const Size &size,
                                          const SymbolSet &symbols,
                                          llvm::ArrayRef<Binding> bindings,
                                          unsigned coefficientReach = 0);

/// Prints in the one normal order: the constant's numerator, then the symbols
/// with positive exponent by name, then `/` and the denominator, in parentheses
/// when it has more than one factor. `names[i]` is the name of symbol i.
void printSize(llvm::raw_ostream &os, const Size &size,
               llvm::ArrayRef<llvm::StringRef> names);
std::string toString(const Size &size, const SymbolSet &symbols);

/// Parses the text form of a size, e.g. `C*k/s`, `k**2*H`, `C/(g*s)`. Unknown
/// symbols, trailing text and overflow are errors that say where.
llvm::Expected<Size> parseSize(llvm::StringRef text, const SymbolSet &symbols);

} // namespace kas

#endif // KAS_SUPPORT_SIZE_H
