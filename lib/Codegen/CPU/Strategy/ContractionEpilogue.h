//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations right before and after a contraction, computed with its
// sums while they are in registers.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONEPILOGUE_H
#define LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONEPILOGUE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::codegen {

struct StridedContraction;

/// The operations around a contraction that can be computed with it.
struct ContractionEpilogue {
  /// A value per channel that the sums begin with, if not null, and how far
  /// each loop of the contraction moves in it.
  mlir::Value bias;
  llvm::SmallVector<int64_t> biasStrides;
  /// An elementwise operation on the sums and on tensors that lie like the
  /// output or have a value per channel, if not null.
  mlir::linalg::GenericOp elementwise;
  struct Input {
    /// Null: the sums.
    mlir::Value buffer;
    /// How far each loop moves in it; empty: it lies like the output.
    llvm::SmallVector<int64_t> strides;
  };
  /// Those of `elementwise`, and the buffer of its result.
  llvm::SmallVector<Input> inputs;
  mlir::Value result;
  /// The operation that fills the output with the bias, where it is one on
  /// buffers.
  mlir::linalg::BroadcastOp broadcast;

  explicit operator bool() const { return bias || elementwise; }

  /// What is around `op` on buffers, which computes `contraction`.
  static ContractionEpilogue find(mlir::linalg::LinalgOp op,
                                  const StridedContraction &contraction);

  /// The elementwise operation that alone reads `tensor`, or null.
  static mlir::linalg::GenericOp findReader(mlir::Value tensor);
  /// Takes `reader`, which `findReader` found for the result of `contraction`;
  /// `inputs` are buffers of its inputs, null for the sums. False, and nothing
  /// is taken, if one of them does not fit. `shape` is that of the reader's
  /// result, if the contraction's output lies like it but has other dimensions.
  bool takeReader(mlir::linalg::GenericOp reader, mlir::ValueRange inputs,
                  const StridedContraction &contraction,
                  mlir::MemRefType shape = {});
  /// Takes a bias of one dimension, that of the output, or of `shape`, at
  /// `position`. False if the loops do not fit it: the rows step through it, or
  /// there are none.
  bool takeBias(mlir::Value buffer, int64_t position,
                const StridedContraction &contraction,
                mlir::MemRefType shape = {});

  /// Whether vectors along the rows can compute it.
  bool suitsRowVectors(const StridedContraction &contraction) const;
  /// Whether vectors along `vectorLoop` can, some of which are computed twice:
  /// a value per channel is the same in all lanes, and no input is overwritten.
  bool suitsDirectTiles(const StridedContraction &contraction,
                        unsigned vectorLoop) const;

  /// Whether the result is written to a buffer that is read at the same places.
  bool overwritesInput() const;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONEPILOGUE_H
