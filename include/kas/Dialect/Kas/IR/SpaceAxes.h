//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which dimensions of a signature are positions, and the words of limits for
// them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_SPACEAXES_H
#define KAS_DIALECT_KAS_IR_SPACEAXES_H

#include "kas/Support/Size.h"
#include "mlir/IR/Attributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace kas {

/// Output and input of a signature, with a flag per dimension: unordered.
struct SpaceSignature {
  llvm::ArrayRef<Size> outputs, inputs;
  llvm::ArrayRef<bool> outputUnordered, inputUnordered;
};

/// A dimension of the output and one of the input that are the same axis: the
/// size of the input is that of the output times the stride.
struct SpaceAxis {
  unsigned output, input;
  Size stride;
};

/// Whether the first dimensions of output and input are a batch: ordered, one
/// primary symbol, and it occurs nowhere else.
bool hasBatchAxis(const SpaceSignature &signature, const SymbolSet &symbols);

/// The axes, but for a batch, in the order of the output. Each ordered
/// dimension of the output has the first ordered dimension of the input that is
/// left and whose size is that of the output times coefficients and an integer,
/// if there is one. What is no axis and no batch is a channel.
llvm::SmallVector<SpaceAxis> getSpaceAxes(const SpaceSignature &signature,
                                          const SymbolSet &symbols);

/// The size of an entry of the limit `sees`, which is a number or the text of a
/// size; nothing when it is neither.
std::optional<Size> getWindowSize(mlir::Attribute value,
                                  const SymbolSet &symbols);

/// An entry of the limit `sees` that is all positions of its axis: "*".
bool isWholeAxis(mlir::Attribute window);

/// What a translation of the input along an axis does to the output.
enum class Translations : uint8_t {
  /// Something else than to move it.
  None,
  /// It moves it, but for what windows miss at the borders: it would move it if
  /// they went on at the other end.
  ZeroPadded,
  /// It moves it around the torus.
  Cyclic
};

/// `none`, `zero_padded`, `cyclic`: the words of the limit `equivariant`.
llvm::StringRef toString(Translations translations);
std::optional<Translations> parseTranslations(llvm::StringRef word);

/// The symbols of a grid: primary ones in the sizes of the axes.
llvm::SmallVector<unsigned> getGridSymbols(llvm::ArrayRef<SpaceAxis> axes,
                                           const SpaceSignature &signature,
                                           const SymbolSet &symbols);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_SPACEAXES_H
