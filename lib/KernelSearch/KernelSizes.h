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

#ifndef KAS_LIB_KERNELSEARCH_KERNELSIZES_H
#define KAS_LIB_KERNELSEARCH_KERNELSIZES_H

#include "kas/KernelSearch/KernelProblem.h"
#include "llvm/ADT/DenseMap.h"

namespace kas {

/// A position in `KernelSizes`.
using SizeId = uint16_t;
/// The size 1, and a size that does not fit.
constexpr SizeId oneSize = 0, noSize = UINT16_MAX;

class KernelSizes {
public:
  explicit KernelSizes(const KernelProblem &problem);

  SizeId intern(const Size &size);
  const Size &operator[](SizeId id) const { return entries[id].size; }

  SizeId multiply(SizeId a, SizeId b) {
    if (a == oneSize)
      return b;
    if (b == oneSize)
      return a;
    return a == noSize || b == noSize ? noSize : computeProduct(a, b);
  }
  SizeId divide(SizeId a, SizeId b) {
    if (b == oneSize || a == noSize)
      return a;
    if (a == b)
      return oneSize;
    return b == noSize ? noSize : computeQuotient(a, b);
  }
  /// `value` for variable number `variable` (from 0).
  SizeId substitute(SizeId id, unsigned variable, SizeId value) {
    if (id == noSize || !(getVariables(id) >> variable & 1))
      return id;
    return computeSubstitution(id, variable, value);
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
  SizeId computeProduct(SizeId a, SizeId b);
  SizeId computeQuotient(SizeId a, SizeId b);
  SizeId computeSubstitution(SizeId id, unsigned variable, SizeId value);
  void evaluate(Entry &entry) const;
  /// The symbol's value at a layer.
  int64_t getSymbolValue(unsigned symbol, const Binding &binding,
                         unsigned groups) const;
  bool areEqualAtAllLayers(const Size &a, const Size &b) const;

  const KernelProblem &problem;
  /// Those of the problem without bindings: what the facts prove.
  SizeRules rules;
  unsigned firstVariable;
  std::vector<Entry> entries;
  std::map<Size, SizeId> ids;
  llvm::DenseMap<uint64_t, SizeId> products, quotients, substitutions;
  llvm::DenseMap<unsigned, llvm::SmallVector<SizeId, 16>> factors;
  /// By size and candidate.
  llvm::DenseMap<uint64_t, std::vector<double>> values;
  llvm::DenseMap<uint64_t, std::vector<int64_t>> steps;
};

} // namespace kas

#endif // KAS_LIB_KERNELSEARCH_KERNELSIZES_H
