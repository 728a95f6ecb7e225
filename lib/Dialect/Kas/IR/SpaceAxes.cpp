//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which dimensions of a space's output and input are the same axis, and at
// which stride.
// An axis is what windows move along (height, width); all other dimensions are
// batch or channels.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/SpaceAxes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;

static bool occursIn(llvm::ArrayRef<Size> shape, unsigned symbol) {
  return llvm::any_of(
      shape, [&](const Size &size) { return size.getExponent(symbol) != 0; });
}

bool kas::hasBatchAxis(const SpaceSignature &signature,
                       const SymbolSet &symbols) {
  if (signature.outputs.empty() || signature.inputs.empty() ||
      signature.outputs.front() != signature.inputs.front() ||
      signature.outputUnordered.front() || signature.inputUnordered.front())
    return false;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    if (signature.outputs.front() == Size::symbol(symbol))
      return symbols.getKind(symbol) == SymbolKind::Primary &&
             !occursIn(signature.outputs.drop_front(), symbol) &&
             !occursIn(signature.inputs.drop_front(), symbol);
  return false;
}

/// The input's size over the output's, when it is a product of coefficients and
/// an integer.
/// H and s*H: stride s. H and C: none.
static std::optional<Size> getStride(const Size &output, const Size &input,
                                     const SymbolSet &symbols) {
  std::optional<Size> stride = input.divide(output);
  if (!stride || !stride->hasIntegerConstant())
    return std::nullopt;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol) {
    int exponent = stride->getExponent(symbol);
    bool isPrimary = symbols.getKind(symbol) == SymbolKind::Primary;
    if (exponent < 0 || (isPrimary && exponent != 0))
      return std::nullopt;
  }
  return stride;
}

/// Example: [N, C2 unordered, H, W] from [N, C1 unordered, s*H, s*W] has a
/// batch and the axes (H, s*H) and (W, s*W), both of stride s.
llvm::SmallVector<SpaceAxis> kas::getSpaceAxes(const SpaceSignature &signature,
                                               const SymbolSet &symbols) {
  llvm::SmallVector<SpaceAxis> axes;
  llvm::SmallVector<bool> isUsed(signature.inputs.size(), false);
  // 1 skips the batch.
  unsigned first = hasBatchAxis(signature, symbols);
  for (unsigned output = first; output < signature.outputs.size(); ++output) {
    if (signature.outputUnordered[output])
      continue;
    for (unsigned input = first; input < signature.inputs.size(); ++input) {
      if (isUsed[input] || signature.inputUnordered[input])
        continue;
      std::optional<Size> stride = getStride(signature.outputs[output],
                                             signature.inputs[input], symbols);
      if (!stride)
        continue;
      isUsed[input] = true;
      axes.push_back({output, input, *stride});
      // Greedy, first fit: of equal dimensions the orders agree.
      break;
    }
  }
  return axes;
}

/// No text of a size: a size begins with a symbol or a digit.
bool kas::isWholeAxis(mlir::Attribute window) {
  auto text = llvm::dyn_cast<mlir::StringAttr>(window);
  return text && text.getValue() == "*";
}

/// By value of `Translations`.
static constexpr llvm::StringLiteral translationWords[] = {
    "none", "zero_padded", "cyclic"};

llvm::StringRef kas::toString(Translations translations) {
  return translationWords[static_cast<unsigned>(translations)];
}

std::optional<Translations> kas::parseTranslations(llvm::StringRef word) {
  const auto *found = llvm::find(translationWords, word);
  if (found == std::end(translationWords))
    return std::nullopt;
  return static_cast<Translations>(found - std::begin(translationWords));
}

/// The input's size is that of the output times a stride, which has none.
llvm::SmallVector<unsigned> kas::getGridSymbols(llvm::ArrayRef<SpaceAxis> axes,
                                                const SpaceSignature &signature,
                                                const SymbolSet &symbols) {
  llvm::SmallVector<unsigned> grid;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    if (symbols.getKind(symbol) == SymbolKind::Primary &&
        llvm::any_of(axes, [&](const SpaceAxis &axis) {
          return signature.inputs[axis.input].getExponent(symbol) != 0;
        }))
      grid.push_back(symbol);
  return grid;
}
