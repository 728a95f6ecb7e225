//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomSizes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::test;

RandomSizes::RandomSizes(MLIRContext *context, uint64_t seed, int64_t maxExtent,
                         int64_t maxPoints)
    : context(context), random(seed), maxExtent(maxExtent),
      maxPoints(maxPoints) {
  static constexpr StringLiteral primaries[] = {"N", "C", "H", "W", "A"};
  static constexpr StringLiteral coefficients[] = {"k", "s", "g"};
  // Highly composite values leave room to merge; odd ones go wrong most.
  for (unsigned i = 0, e = 1 + below(5); i < e; ++i)
    declare(primaries[i], SymbolKind::Primary, {1, 2, 3, 4, 5, 6, 6, 8, 12});
  for (unsigned i = 0, e = below(4); i < e; ++i)
    declare(coefficients[i], SymbolKind::Coefficient, {1, 2, 2, 3, 3, 4});
}

void RandomSizes::declare(StringRef name, SymbolKind kind,
                          ArrayRef<int64_t> values) {
  llvm::cantFail(symbols.add(name, kind));
  int64_t scale = kind == SymbolKind::Primary ? maxExtent / 12 : 1;
  binding.push_back(pick(values) * scale);
}

ArrayAttr RandomSizes::getNames(SymbolKind kind) const {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < symbols.size(); ++i)
    if (symbols.getKind(i) == kind)
      names.push_back(symbols.getName(i));
  return Builder(context).getStrArrayAttr(names);
}

/// One factor more or less; nothing when it does not fit.
std::optional<Size> RandomSizes::drawFactor(const Size &size) {
  unsigned numPrimaries = 0;
  while (numPrimaries < symbols.size() &&
         symbols.getKind(numPrimaries) == SymbolKind::Primary)
    ++numPrimaries;
  unsigned numCoefficients = symbols.size() - numPrimaries;
  if (chance(50))
    return size.multiply(Size::symbol(below(numPrimaries)));
  if (numCoefficients && chance(75)) {
    Size symbol = Size::symbol(numPrimaries + below(numCoefficients));
    return chance(50) ? size.multiply(symbol) : size.divide(symbol);
  }
  Size constant = *Size::constant(1 + below(3));
  return chance(70) ? size.multiply(constant) : size.divide(constant);
}

Size RandomSizes::drawSize(int64_t limit) {
  for (unsigned attempt = 0; attempt < 20; ++attempt) {
    std::optional<Size> size = Size();
    for (unsigned i = 0, e = 1 + below(3); i < e && size; ++i)
      size = drawFactor(*size);
    if (!size || (size->isConstant() && !size->hasIntegerConstant()))
      continue;
    if (std::optional<int64_t> value = valueOf(*size); value && *value <= limit)
      return *size;
  }
  return Size();
}

bool RandomSizes::fits(const std::optional<Size> &product) const {
  std::optional<int64_t> value = product ? valueOf(*product) : std::nullopt;
  return value && *value <= maxPoints / 4;
}

SmallVector<Size> RandomSizes::getBlocks(const Size &size) const {
  SmallVector<Size> blocks = enumerateDivisors(size, symbols, {binding}, 1);
  llvm::erase_if(blocks, [&](const Size &block) {
    std::optional<Size> count = size.divide(block);
    return !count || (count->isConstant() && !count->hasIntegerConstant()) ||
           (block.isConstant() && !block.hasIntegerConstant());
  });
  return blocks;
}

SmallVector<Size> RandomSizes::getProperBlocks(const Size &size) const {
  SmallVector<Size> blocks = getBlocks(size);
  llvm::erase_if(blocks, [&](const Size &block) {
    return *valueOf(block) == 1 || *valueOf(block) == *valueOf(size);
  });
  return blocks;
}
