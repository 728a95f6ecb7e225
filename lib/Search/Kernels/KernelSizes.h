//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sizes of a kernel search, each once: arithmetic, legality and totals over
// the layers are computed once and looked up afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_KERNELS_KERNELSIZES_H
#define LIB_SEARCH_KERNELS_KERNELSIZES_H

#include "kas/Search/Kernels/KernelProblem.h"
#include "llvm/ADT/DenseMap.h"

namespace kas::search {

/// A position in `KernelSizes`.
using SizeId = uint16_t;
/// The size 1, and a size that does not fit.
constexpr SizeId oneSize = 0, noSize = UINT16_MAX;

/// Results by pair of sizes. What was looked up last is found at one place. A
/// direct-mapped cache of 8192 entries before a hash table: the lookup is
/// one multiplication and one comparison.
class SizeMemo {
public:
  template <typename Compute>
  SizeId get(uint64_t key, Compute compute) {
    // The multiplier is 2^64 divided by the golden ratio; the upper 13 bits of
    // the product index the cache.
    Entry &recent = recents[key * 0x9e3779b97f4a7c15ull >> 51];
    return LLVM_LIKELY(recent.key == key) ? recent.value
                                          : find(recent, key, compute);
  }

private:
  struct Entry {
    uint64_t key = ~uint64_t(0);
    SizeId value = noSize;
  };

  /// Not a part of what is inlined everywhere.
  template <typename Compute>
  LLVM_ATTRIBUTE_NOINLINE SizeId find(Entry &recent, uint64_t key,
                                      Compute compute) {
    auto found = all.find(key);
    SizeId value = found != all.end() ? found->second : compute();
    if (found == all.end())
      all[key] = value;
    recent = {key, value};
    return value;
  }

  llvm::DenseMap<uint64_t, SizeId> all;
  std::vector<Entry> recents = std::vector<Entry>(1 << 13);
};

/// Not safe for threads: the states of one root share it.
class KernelSizes {
public:
  explicit KernelSizes(const KernelProblem &problem);

  /// The number of a size, a new one if it is new.
  SizeId intern(const Size &size);
  const Size &operator[](SizeId id) const { return entries[id].size; }

  SizeId multiply(SizeId a, SizeId b) {
    if (a == oneSize)
      return b;
    if (b == oneSize)
      return a;
    if (a == noSize || b == noSize)
      return noSize;
    return products.get(getPair(std::min(a, b), std::max(a, b)), [&] {
      return intern((*this)[a].multiply((*this)[b]));
    });
  }
  SizeId divide(SizeId a, SizeId b) {
    if (b == oneSize || a == noSize)
      return a;
    if (a == b)
      return oneSize;
    if (b == noSize)
      return noSize;
    return quotients.get(getPair(a, b),
                         [&] { return intern((*this)[a].divide((*this)[b])); });
  }
  /// `value` for variable number `variable` (from 0).
  SizeId substitute(SizeId id, unsigned variable, SizeId value) {
    if (id == noSize || !(getVariables(id) >> variable & 1))
      return id;
    return substitutions.get(getPair(variable << 16 | id, value), [&] {
      return computeSubstitution(id, variable, value);
    });
  }

  /// An integer for some values of its variables, proven by the facts, so for
  /// each number of groups.
  bool isLegal(SizeId id) const { return id != noSize && entries[id].legal; }
  /// Bit i: variable i occurs, above or below.
  unsigned getVariables(SizeId id) const { return entries[id].variables; }
  /// The variables above: their number, counted with their powers, or 255 when
  /// one is below.
  unsigned getDegree(SizeId id) const { return entries[id].degree; }
  /// A variable is below.
  bool isBelow(SizeId id) const { return entries[id].degree == 255; }
  /// No more than the sum over all layers, times their multiplicities, whatever
  /// the variables and the number of groups are.
  double getTotal(SizeId id) const { return entries[id].total; }
  /// The same of the largest value at any layer.
  double getLargest(SizeId id) const { return entries[id].largest; }

  int getExponent(SizeId id, unsigned variable) const {
    return entries[id].size.getExponent(firstVariable + variable);
  }
  /// By layer, the value with all variables 1, for the candidate number
  /// `groups` (or the bindings' own value, where none is chosen).
  llvm::ArrayRef<double> getValues(SizeId id, unsigned groups);
  /// By layer, what the one variable of a size must be a multiple of.
  llvm::ArrayRef<int64_t> getSteps(SizeId id, unsigned groups);

  /// Does not tell variables apart.
  uint64_t getHash(SizeId id) const { return entries[id].hash; }

  /// `SizeRules::factors`, less those that equal an earlier one at all layers.
  llvm::ArrayRef<SizeId> getFactors(SizeId id);

private:
  /// What is known of a size; see the functions of the same names.
  struct Entry {
    Size size;
    bool legal = false;
    uint8_t variables = 0, degree = 0;
    double total = 0, largest = 0;
    uint64_t hash = 0;
  };
  static uint64_t getPair(unsigned a, unsigned b) {
    return uint64_t(a) << 32 | b;
  }
  SizeId intern(std::optional<Size> size) {
    return size ? intern(*size) : noSize;
  }
  /// The entry of a size and a candidate.
  template <typename Entries>
  auto &getEntry(Entries &table, SizeId id, unsigned groups) {
    size_t stride = std::max<size_t>(problem.groupCandidates.size(), 1);
    if (table.size() < entries.size() * stride)
      table.resize(entries.size() * stride);
    return table[id * stride + groups];
  }
  SizeId computeSubstitution(SizeId id, unsigned variable, SizeId value);
  void evaluate(Entry &entry) const;
  /// The symbol's value at a layer.
  int64_t getSymbolValue(unsigned symbol, const Binding &binding,
                         unsigned groups) const;
  bool areEqualAtAllLayers(const Size &a, const Size &b) const;

  const KernelProblem &problem;
  /// Those of the problem without bindings: what the facts prove.
  solver::SizeRules rules;
  unsigned firstVariable;
  std::vector<Entry> entries;
  std::map<Size, SizeId> ids;
  SizeMemo products, quotients, substitutions;
  llvm::DenseMap<unsigned, llvm::SmallVector<SizeId, 16>> factors;
  /// By size and candidate; empty where not computed.
  std::vector<std::vector<double>> values;
  std::vector<std::vector<int64_t>> steps;
};

} // namespace kas::search

#endif // LIB_SEARCH_KERNELS_KERNELSIZES_H
