//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operations that the kernel before them computes: biases,
// residuals, rectifiers, conversions.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_EPILOGUE_H
#define LIB_CODEGEN_GPU_STRATEGY_EPILOGUE_H

#include "TensorAccess.h"

namespace kas::codegen {

/// What becomes of the results of a kernel before they are stored.
struct Epilogue {
  mlir::linalg::GenericOp op;
  /// Of each operand, in terms of the coordinates of the result; nothing is
  /// known of one that the body does not read.
  llvm::SmallVector<TensorAccess> accesses;
  /// Whether an operand is what the kernel computes; whether it is another
  /// tensor that is read in the order of the result.
  llvm::SmallVector<bool> isSum, isWhole;
  /// The other tensors that are read, each once.
  llvm::SmallVector<mlir::Value> inputs;

  llvm::ArrayRef<int64_t> getShape() const;

  /// That of a `kas.apply` or of a `linalg.generic` with reductions: an
  /// elementwise operation without a schedule that alone reads the result, each
  /// element for the same one of its own. An operation that reads several such
  /// results is the epilogue of one of them: of a contraction if there is one,
  /// and of the last.
  static std::optional<Epilogue> get(mlir::Operation *kernel);
};

/// The one operation that reads `value`, directly or through views; null: there
/// are several, or others.
mlir::linalg::GenericOp getOnlyReader(mlir::Value value);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_EPILOGUE_H
