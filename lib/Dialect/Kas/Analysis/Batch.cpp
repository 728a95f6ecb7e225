//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether the first dimension of an operator is a batch, in which each example
// is computed by itself.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Batch.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace kas;

/// The symbol at `index` occurs in `size`; also where that is not known.
static bool hasSymbol(SizeAttr size, const SymbolSet &symbols, unsigned index) {
  std::optional<Size> value = size.toSize(symbols);
  return !value || value->getExponent(index) != 0;
}

/// The position of the symbol that `size` is, if it is a primary one alone.
static std::optional<unsigned> getPrimary(SizeAttr size,
                                          const SymbolSet &symbols) {
  std::optional<Size> value = size.toSize(symbols);
  for (unsigned index = 0; value && index < symbols.size(); ++index)
    if (symbols.getKind(index) == SymbolKind::Primary &&
        *value == Size::symbol(index))
      return index;
  return std::nullopt;
}

bool kas::keepsFirstCoordinate(OperatorOp op) {
  SmallVector<SizeAttr> outputs = op.getOutputSizes(), data = op.getDataSizes();
  if (outputs.empty() || data.empty() || outputs.front() != data.front())
    return false;
  Value example = op.getOutputs().front();
  return example.hasOneUse() && op.getYield().getData().front() == example;
}

bool kas::hasBatch(OperatorOp op) {
  if (!keepsFirstCoordinate(op))
    return false;
  SmallVector<SizeAttr> outputs = op.getOutputSizes(), data = op.getDataSizes();
  SymbolSet symbols = op.getSymbolSet();
  std::optional<unsigned> batch = getPrimary(outputs.front(), symbols);
  if (!batch)
    return false;
  auto isFree = [&](SizeAttr size) {
    return !hasSymbol(size, symbols, *batch);
  };
  bool found = !llvm::all_of(ArrayRef(outputs).drop_front(), isFree) ||
               !llvm::all_of(ArrayRef(data).drop_front(), isFree);
  AttrTypeWalker walker;
  walker.addWalk([&](SizeAttr size) { found |= !isFree(size); });
  for (Operation &primitive : op.getBody().front().without_terminator()) {
    walker.walk(primitive.getAttrDictionary());
    if (Attribute properties = primitive.getPropertiesAsAttribute())
      walker.walk(properties);
    for (Type type : primitive.getResultTypes())
      walker.walk(type);
  }
  return !found;
}
