//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the shape inference of tensor-level ops; the generated
// code of ops that keep the shape of their operand uses it, too.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_IR_KASDAGSHAPES_H
#define KAS_LIB_DIALECT_KAS_IR_KASDAGSHAPES_H

#include "kas/Dialect/Kas/IR/KasDag.h"

namespace kas {

inline SymbolicTensorType getTensorType(mlir::Value value) {
  return llvm::cast<SymbolicTensorType>(value.getType());
}

/// D3
llvm::LogicalResult verifyDim(SymbolicTensorType type, int64_t dim,
                              std::optional<mlir::Location> location);

/// The dimensions must be different and from `first` to `last` - 1; at least
/// one.
llvm::LogicalResult verifyDims(llvm::ArrayRef<int64_t> dims, int64_t first,
                               int64_t last, llvm::StringRef what,
                               llvm::StringRef constraint,
                               std::optional<mlir::Location> location);

/// D2
llvm::LogicalResult verifyHasChannels(SymbolicTensorType type,
                                      std::optional<mlir::Location> location);

// What an op may demand of an operand whose shape its result has.

template <typename Adaptor>
llvm::LogicalResult verifyNothing(Adaptor, SymbolicTensorType,
                                  std::optional<mlir::Location>) {
  return mlir::success();
}

template <typename Adaptor>
llvm::LogicalResult verifyOneDim(Adaptor adaptor, SymbolicTensorType type,
                                 std::optional<mlir::Location> location) {
  return verifyDim(type, adaptor.getDim(), location);
}

/// D3, D19
template <typename Adaptor>
llvm::LogicalResult verifyScan(Adaptor adaptor, SymbolicTensorType type,
                               std::optional<mlir::Location> location) {
  if (SymbolicTensorType factor = getTensorType(adaptor.getFactor());
      factor != type)
    return mlir::emitOptionalError(location,
                                   "requires a factor of the input's shape "
                                   "(D19), ",
                                   type, ", got ", factor);
  return verifyDim(type, adaptor.getDim(), location);
}

/// D9
template <typename Adaptor>
llvm::LogicalResult verifyAllDims(Adaptor adaptor, SymbolicTensorType type,
                                  std::optional<mlir::Location> location) {
  return verifyDims(adaptor.getDims(), 0, type.getRank(), "dimension", "D9",
                    location);
}

template <typename Adaptor>
llvm::LogicalResult verifyChannels(Adaptor, SymbolicTensorType type,
                                   std::optional<mlir::Location> location) {
  return verifyHasChannels(type, location);
}

} // namespace kas

#endif // KAS_LIB_DIALECT_KAS_IR_KASDAGSHAPES_H
