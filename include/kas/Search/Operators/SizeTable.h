//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interned sizes with their values under all bindings.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_OPERATORS_SIZETABLE_H
#define KAS_SEARCH_OPERATORS_SIZETABLE_H

#include "kas/Search/Operators/SearchProblem.h"
#include "kas/Support/FlatMap.h"
#include <memory>
#include <vector>

namespace kas::search {

/// The number of a size in a `SizeTable`.
using SizeId = uint32_t;

/// Sixteen exponents of eight signed bits each: those of the symbols, then
/// those of the primes in the constants of the signature.
struct Powers {
  uint64_t low = 0, high = 0;

  int get(unsigned index) const {
    uint64_t word = index < 8 ? low : high;
    return static_cast<int8_t>(word >> (8 * (index % 8)));
  }
  void set(unsigned index, int value) {
    uint64_t &word = index < 8 ? low : high;
    unsigned shift = 8 * (index % 8);
    word &= ~(uint64_t(0xff) << shift);
    word |= uint64_t(static_cast<uint8_t>(value)) << shift;
  }
  bool isZero() const { return (low | high) == 0; }
  bool operator==(const Powers &other) const = default;

  /// Exponent by exponent; they do not carry into each other.
  Powers operator+(const Powers &other) const {
    return {add(low, other.low), add(high, other.high)};
  }
  Powers operator-(const Powers &other) const {
    return {subtract(low, other.low), subtract(high, other.high)};
  }
  Powers operator&(const Powers &other) const {
    return {low & other.low, high & other.high};
  }
  /// Some exponent is negative.
  bool hasNegative() const { return ((low | high) & signs) != 0; }

private:
  static constexpr uint64_t signs = 0x8080808080808080ull;
  static uint64_t add(uint64_t a, uint64_t b) {
    return ((a & ~signs) + (b & ~signs)) ^ ((a ^ b) & signs);
  }
  static uint64_t subtract(uint64_t a, uint64_t b) {
    return ((a | signs) - (b & ~signs)) ^ ((a ^ ~b) & signs);
  }
};

/// What a search asks about a size again and again.
struct SizeInfo {
  Size size;
  Powers powers;
  /// The absolute values of the exponents: what a reduction of this size uses
  /// of the occurrences.
  Powers usage;
  /// A coordinate may have it: an integer of at least 1 under every binding, no
  /// primary symbol in the denominator, coefficients there only below a
  /// primary symbol, within the limits on symbols. Values, min, max and isOdd
  /// mean something only then.
  bool isLegal = false;
  /// Odd under every binding.
  bool isOdd = false;
  bool hasPrimary = false;
  /// Weights may be indexed by it: no primary symbol occurs more often than the
  /// problem allows, and none is of the grid where weights must fit any.
  bool isShareable = true;
  int64_t min = 0, max = 0;
  /// The largest window up to `limits.window` that an unfold of it may have
  /// under every binding, when windows are the same under all.
  uint8_t maxWindow = 0;
  uint64_t hash = 0;
  /// By binding.
  llvm::SmallVector<int64_t, 4> values;
};

/// Gives sizes numbers and remembers products and quotients. Numbers depend on
/// the order of interning; compare `SizeInfo::size` for an order that does not.
class SizeTable {
public:
  explicit SizeTable(const SearchProblem &problem);

  /// The size 1, and what stands for all that cannot be written.
  static constexpr SizeId one = 0, invalid = 1;
  static constexpr unsigned maxPowers = 16;

  SizeId intern(const Size &size);
  SizeId intern(const Powers &powers);
  const SizeInfo &operator[](SizeId id) const { return *infos[id]; }
  size_t size() const { return infos.size(); }

  /// `invalid` when the result does not fit.
  SizeId multiply(SizeId a, SizeId b) {
    return intern(infos[a]->powers + infos[b]->powers);
  }
  SizeId divide(SizeId a, SizeId b) {
    return intern(infos[a]->powers - infos[b]->powers);
  }

  /// The sizes by which a coordinate of `size` may be merged: both halves are
  /// legal and not 1; the exponents lie between those of 1 and of `size` but
  /// for coefficients, which may go beyond by as much as occurrences allow, and
  /// within 2 of the middle. In the order of sizes.
  llvm::ArrayRef<SizeId> getBlocks(SizeId size);

  /// All ones in the exponents of primary symbols and of primes.
  const Powers &getPrimaryMask() const { return primaryMask; }
  /// By exponent: how often it may occur in reductions and weights; at most
  /// 127.
  const Powers &getOccurrences() const { return occurrences; }
  /// No symbol is used more often than allowed. Both are sums of few usages.
  bool isWithinOccurrences(const Powers &usage) const {
    return !(occurrences - usage).hasNegative();
  }
  unsigned getNumPowers() const { return numPowers; }

private:
  std::optional<Powers> getPowers(const Size &size) const;
  std::optional<Size> getSize(const Powers &powers) const;
  std::unique_ptr<SizeInfo> describe(const Powers &powers) const;
  void collectBlocks(SizeId size, unsigned index, Powers powers,
                     llvm::SmallVectorImpl<SizeId> &blocks);

  const SearchProblem &problem;
  llvm::SmallVector<int64_t, 4> primes;
  unsigned numPowers = 0;
  Powers primaryMask, occurrences;
  /// All ones in the exponents of symbols that no weight may have.
  Powers gridMask;
  std::vector<std::unique_ptr<SizeInfo>> infos;
  FlatMap<SizeId> ids;
  std::vector<std::unique_ptr<llvm::SmallVector<SizeId, 8>>> blocks;
};

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_SIZETABLE_H
