//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What networks do right before and behind a contraction, computed with its
// sums while they are in registers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_PIPELINES_CONTRACTIONTAIL_H
#define KAS_LIB_PIPELINES_CONTRACTIONTAIL_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas {

struct Contraction;

/// The operations around a contraction that can be computed with it.
struct ContractionTail {
  /// Fills the output with a value per channel before, if not null.
  mlir::linalg::BroadcastOp bias;
  /// How far each loop of the contraction moves in the bias.
  llvm::SmallVector<int64_t> biasStrides;
  /// An elementwise operation on the sums and on tensors that lie like the
  /// output, if not null, and which of its inputs the sums are.
  mlir::linalg::GenericOp elementwise;
  unsigned sumsInput = 0;

  explicit operator bool() const { return bias || elementwise; }

  /// What stands around `op`, which computes `contraction`.
  static ContractionTail find(mlir::linalg::LinalgOp op,
                              const Contraction &contraction);

  /// Lets the result of the elementwise operation be written where `op` stands.
  void prepare(mlir::linalg::LinalgOp op) const;
  /// The buffer that the tail leaves its result in; null without one.
  mlir::Value getResult() const;
  /// One vector of the elementwise operation's results; `inputs` are vectors of
  /// its inputs.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::ValueRange inputs) const;
  /// Removes the operations once they are computed otherwise.
  void erase();
};

} // namespace kas

#endif // KAS_LIB_PIPELINES_CONTRACTIONTAIL_H
