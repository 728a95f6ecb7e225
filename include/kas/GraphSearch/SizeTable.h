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

#ifndef KAS_GRAPHSEARCH_SIZETABLE_H
#define KAS_GRAPHSEARCH_SIZETABLE_H

#include "kas/GraphSearch/SearchProblem.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>

namespace kas {

/// The number of a size in a `SizeTable`.
using SizeId = uint32_t;

/// What a search asks about a size again and again.
struct SizeInfo {
  Size size;
  /// An integer of at least 1 under every binding, and no primary symbol in
  /// the denominator. Values, min, max and isOdd mean something only then.
  bool isLegal = false;
  bool isOdd = false;
  bool hasPrimary = false;
  bool hasNegativePrimary = false;
  /// No symbol occurs more often than the problem allows in reductions and
  /// weights, taken alone.
  bool isAllowed = true;
  int64_t min = 0, max = 0;
  /// By binding.
  llvm::SmallVector<int64_t, 4> values;
};

/// Gives sizes numbers and remembers products and quotients. Numbers depend on
/// the order of interning; compare `SizeInfo::size` for an order that does not.
class SizeTable {
public:
  explicit SizeTable(const SearchProblem &problem) : problem(problem) {
    intern(Size());
  }

  /// The size 1.
  static constexpr SizeId one = 0;

  SizeId intern(const Size &size);
  const SizeInfo &operator[](SizeId id) const { return infos[id]; }

  /// Nothing when the result does not fit a `Size`.
  std::optional<SizeId> multiply(SizeId a, SizeId b);
  std::optional<SizeId> divide(SizeId a, SizeId b);

private:
  std::optional<SizeId> combine(SizeId a, SizeId b, bool divides);

  const SearchProblem &problem;
  /// References must survive growth.
  std::deque<SizeInfo> infos;
  llvm::DenseMap<uint64_t, llvm::SmallVector<SizeId, 1>> byHash;
  llvm::DenseMap<std::pair<SizeId, uint32_t>, uint32_t> combined;
};

} // namespace kas

#endif // KAS_GRAPHSEARCH_SIZETABLE_H
