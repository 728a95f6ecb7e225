//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/GraphSearch/SizeTable.h"
#include <cstdlib>

using namespace kas;

static SizeInfo describe(const Size &size, const SearchProblem &problem) {
  SizeInfo info;
  info.size = size;
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol) {
    int exponent = size.getExponent(symbol);
    if (problem.symbols.getKind(symbol) == SymbolKind::Primary) {
      info.hasPrimary |= exponent != 0;
      info.hasNegativePrimary |= exponent < 0;
    }
    info.isAllowed &= static_cast<unsigned>(std::abs(exponent)) <=
                      problem.occurrences[symbol];
  }
  // A constant fraction is an error whatever the bindings (C1, C2, C7).
  bool isLegal = !info.hasNegativePrimary;
  isLegal &= !size.isConstant() || size.hasIntegerConstant();
  info.isOdd = true;
  for (const Binding &binding : problem.bindings) {
    std::optional<int64_t> value = size.evaluate(binding);
    isLegal &= value.has_value() && *value <= Size::maxInteger;
    if (!isLegal)
      return info;
    info.isOdd &= *value % 2 == 1;
    info.min = info.values.empty() ? *value : std::min(info.min, *value);
    info.max = std::max(info.max, *value);
    info.values.push_back(*value);
  }
  info.isLegal = true;
  return info;
}

SizeId SizeTable::intern(const Size &size) {
  // DenseMap reserves the two largest keys.
  llvm::SmallVector<SizeId, 1> &ids = byHash[size.hash() >> 1];
  for (SizeId id : ids)
    if (infos[id].size == size)
      return id;
  ids.push_back(infos.size());
  infos.push_back(describe(size, problem));
  return ids.back();
}

std::optional<SizeId> SizeTable::combine(SizeId a, SizeId b, bool divides) {
  auto [entry, isNew] = combined.try_emplace({a, 2 * b + divides}, 0);
  if (!isNew)
    return entry->second ? std::optional(entry->second - 1) : std::nullopt;
  const Size &x = infos[a].size, &y = infos[b].size;
  std::optional<Size> result = divides ? x.divide(y) : x.multiply(y);
  if (!result)
    return std::nullopt;
  SizeId id = intern(*result);
  combined[{a, 2 * b + divides}] = id + 1;
  return id;
}

std::optional<SizeId> SizeTable::multiply(SizeId a, SizeId b) {
  return combine(a, b, false);
}

std::optional<SizeId> SizeTable::divide(SizeId a, SizeId b) {
  return combine(a, b, true);
}
