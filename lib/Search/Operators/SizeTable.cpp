//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes of one search as packed exponents, interned, with what moves ask about
// them.
//
// A size is 16 exponents of 8 bits in two words: products and quotients are one
// addition per word (`Powers`), and equality is comparison.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/SizeTable.h"
#include "kas/Support/PrimeFactors.h"
#include "kas/Support/Random.h"
#include <cstdlib>

using namespace kas;
using namespace kas::search;

/// Exponents beyond this are no sizes; so sums and differences of two do not
/// wrap. 63 + 63 fits signed 8 bits.
static constexpr int maxExponent = 63;

/// Primes of the constants in the signature are exponents like symbols, so that
/// `4*C / 2` and `2*C` are one size.
SizeTable::SizeTable(const SearchProblem &problem) : problem(problem) {
  unsigned numSymbols = problem.symbols.size();
  for (const auto *shape : {&problem.outputs, &problem.inputs})
    for (const Dimension &dimension : *shape) {
      addPrimeFactors(dimension.size.getNumerator(), primes);
      addPrimeFactors(dimension.size.getDenominator(), primes);
    }
  llvm::sort(primes);
  numPowers = numSymbols + primes.size();
  assert(numPowers <= maxPowers && "the verifier of kas.space bounds them");
  for (unsigned i = 0; i < numPowers; ++i) {
    bool isSymbol = i < numSymbols;
    if (!isSymbol || problem.symbols.getKind(i) == SymbolKind::Primary)
      primaryMask.set(i, -1);
    // Constants occur up to 4 times.
    occurrences.set(i, std::min(isSymbol ? problem.occurrences[i] : 4u, 127u));
  }
  if (problem.limits.anyGrid)
    for (unsigned symbol : problem.getGridSymbols())
      gridMask.set(symbol, -1);
  // The numbers 0 and 1 are `one` and `invalid`.
  infos.push_back(describe(Powers()));
  ids[mixBits(0)] = one;
  auto nothing = std::make_unique<SizeInfo>();
  nothing->powers = {~uint64_t(0), ~uint64_t(0)};
  nothing->isShareable = false;
  infos.push_back(std::move(nothing));
}

/// Nothing if the constant has a prime that the signature has not.
std::optional<Powers> SizeTable::getPowers(const Size &size) const {
  Powers powers;
  unsigned numSymbols = problem.symbols.size();
  for (unsigned symbol = 0; symbol < numSymbols; ++symbol)
    powers.set(symbol, size.getExponent(symbol));
  int64_t numerator = size.getNumerator(), denominator = size.getDenominator();
  for (auto [index, prime] : llvm::enumerate(primes)) {
    int exponent = 0;
    for (; numerator % prime == 0; numerator /= prime)
      ++exponent;
    for (; denominator % prime == 0; denominator /= prime)
      --exponent;
    powers.set(numSymbols + index, exponent);
  }
  if (numerator != 1 || denominator != 1)
    return std::nullopt;
  return powers;
}

/// Nothing if the size does not fit.
std::optional<Size> SizeTable::getSize(const Powers &powers) const {
  std::optional<Size> size = Size();
  unsigned numSymbols = problem.symbols.size();
  for (unsigned index = 0; size && index < numPowers; ++index) {
    int exponent = powers.get(index);
    if (index < numSymbols) {
      size = size->multiply(Size::symbol(index, exponent));
      continue;
    }
    std::optional<Size> prime = Size::constant(primes[index - numSymbols]);
    prime = prime ? prime->power(exponent) : prime;
    size = prime ? size->multiply(*prime) : std::nullopt;
  }
  return size;
}

/// Everything that moves ask about a size, once.
std::unique_ptr<SizeInfo> SizeTable::describe(const Powers &powers) const {
  auto info = std::make_unique<SizeInfo>();
  info->powers = powers;
  info->hash = mixBits(mixBits(powers.low + 0x9e3779b97f4a7c15ull) ^
                       (powers.high * 0xd6e8feb86659fd93ull));
  std::optional<Size> size = getSize(powers);
  unsigned symbols = 0, sum = 0;
  bool hasCoefficientBelow = false, isPositive = true;
  for (unsigned i = 0; i < numPowers; ++i) {
    int exponent = powers.get(i);
    info->usage.set(i, std::abs(exponent));
    symbols += exponent != 0;
    sum += std::abs(exponent);
    // Only primary symbols are limited in weights (W5).
    if (primaryMask.get(i)) {
      info->hasPrimary |= exponent > 0;
      isPositive &= exponent >= 0;
      info->isShareable &= std::abs(exponent) <= occurrences.get(i);
      info->isShareable &= exponent == 0 || !gridMask.get(i); // Q7
    } else {
      hasCoefficientBelow |= exponent < 0;
    }
  }
  if (!size)
    return info;
  info->size = *size;
  // A coordinate has no primary symbol in the denominator, and coefficients
  // there only below a primary symbol (R3).
  info->isLegal = isPositive && (info->hasPrimary || !hasCoefficientBelow) &&
                  symbols <= problem.limits.sizeSymbols &&
                  sum <= problem.limits.sizePowers &&
                  size->hasIntegerConstant();
  info->isOdd = true;
  for (const Binding &binding : problem.bindings) {
    if (!info->isLegal)
      break;
    std::optional<int64_t> value = size->evaluate(binding);
    if (!value || *value > Size::maxInteger) {
      info->isLegal = false;
      break;
    }
    info->isOdd &= *value % 2 == 1;
    info->min = info->values.empty() ? *value : std::min(info->min, *value);
    info->max = std::max(info->max, *value);
    info->values.push_back(*value);
  }
  // U2, counted up: windows are small.
  const SpaceLimits &limits = problem.limits;
  while (info->isLegal &&
         info->maxWindow < std::min<int64_t>(limits.window, UINT8_MAX) &&
         static_cast<double>(info->min) >=
             limits.unfoldRatio * (info->maxWindow + 1.0))
    ++info->maxWindow;
  return info;
}

/// `invalid` beyond the exponents that are allowed; also remembered.
SizeId SizeTable::intern(const Powers &powers) {
  uint64_t key = mixBits(powers.low ^ mixBits(powers.high));
  if (const SizeId *id = ids.find(key))
    return *id;
  SizeId id = infos.size();
  for (unsigned i = 0; i < numPowers; ++i)
    if (std::abs(powers.get(i)) > maxExponent)
      id = invalid;
  if (id != invalid)
    infos.push_back(describe(powers));
  ids[key] = id;
  return id;
}

/// For sizes that come from IR.
SizeId SizeTable::intern(const Size &size) {
  std::optional<Powers> powers = getPowers(size);
  return powers ? intern(*powers) : invalid;
}

/// Recursive over the exponents; `powers` has those below `index`. `intern` may
/// grow the table, so `size` is looked up again at each level.
void SizeTable::collectBlocks(SizeId size, unsigned index, Powers powers,
                              llvm::SmallVectorImpl<SizeId> &list) {
  if (index == numPowers) {
    SizeId block = intern(powers), quotient = divide(size, block);
    if (block != one && quotient != one && infos[block]->isLegal &&
        infos[quotient]->isLegal)
      list.push_back(block);
    return;
  }
  int whole = infos[size]->powers.get(index), allowed = occurrences.get(index);
  int least = whole / 2 - 2, most = whole / 2 + 2;
  // Primary symbols stay between those of 1 and of the whole.
  if (primaryMask.get(index))
    allowed = 0;
  least = std::max(least, std::min(0, whole) - allowed);
  most = std::min(most, std::max(0, whole) + allowed);
  for (int exponent = least; exponent <= most; ++exponent) {
    powers.set(index, exponent);
    collectBlocks(size, index + 1, powers, list);
  }
}

/// Sorted by size, which does not depend on the order of interning: positions
/// in this list are codes of moves.
llvm::ArrayRef<SizeId> SizeTable::getBlocks(SizeId size) {
  if (blocks.size() <= size)
    blocks.resize(infos.size() + size);
  if (!blocks[size]) {
    auto list = std::make_unique<llvm::SmallVector<SizeId, 8>>();
    if (infos[size]->isLegal)
      collectBlocks(size, 0, Powers(), *list);
    llvm::sort(*list, [&](SizeId a, SizeId b) {
      return infos[a]->size < infos[b]->size;
    });
    blocks[size] = std::move(list);
  }
  return *blocks[size];
}
