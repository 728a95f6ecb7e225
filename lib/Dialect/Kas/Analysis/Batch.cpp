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
// Evaluators may then choose the batch themselves, and code generation may
// split it over threads.
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
/// `N` is one; `2*N`, `N/s` and a coefficient are not.
static std::optional<unsigned> getPrimary(SizeAttr size,
                                          const SymbolSet &symbols) {
  std::optional<Size> value = size.toSize(symbols);
  for (unsigned index = 0; value && index < symbols.size(); ++index)
    if (symbols.getKind(index) == SymbolKind::Primary &&
        *value == Size::symbol(index))
      return index;
  return std::nullopt;
}

/// One use, by the data's first dimension: no primitive changes it, no weight
/// is indexed by it. Also true of concrete operators, whose sizes have no
/// symbols.
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
  // Sizes of primitives are in attributes (`by`, `stride`), properties and
  // types; a walker finds them all, also those that a new primitive will have.
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
