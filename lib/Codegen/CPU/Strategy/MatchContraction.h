//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which operations are contractions that the strategies for CPUs know, and how
// these lie in memory.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_MATCHCONTRACTION_H
#define LIB_CODEGEN_CPU_STRATEGY_MATCHCONTRACTION_H

#include "StridedContraction.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kas::codegen {

/// What `op` computes, if it is such a sum of f32 on buffers of static shape
/// and layout with sums of loops as indices, or one of int8 or bf16 whose
/// innermost reduction takes a VNNI group; else why it is none.
mlir::FailureOr<StridedContraction>
matchContraction(mlir::linalg::LinalgOp op,
                 Contraction::EmitReasonFn emitReason);

/// `source` on buffers of identity layout, of which some are `prepacked`, or
/// all. It does not accumulate.
mlir::FailureOr<StridedContraction>
getStridedContraction(const Contraction &source, mlir::Value output,
                      Contraction::EmitReasonFn emitReason,
                      llvm::ArrayRef<bool> prepacked = {});

/// The buffer that holds a tensor.
using ToBufferFn = llvm::function_ref<mlir::Value(mlir::Value)>;

/// What `op` on tensors computes, where inputs that are padded with zeros are
/// read as they were before.
mlir::FailureOr<Contraction> matchUnpadded(mlir::linalg::LinalgOp op,
                                           ToBufferFn toBuffer);

/// `source`, whose output has the shape `output`, as plain data. Inputs that
/// are `prepacked` are packed ahead; where nothing is known of that, what does
/// not step with the vectors is.
schedule::LoopNest getLoopNest(const Contraction &source,
                               llvm::ArrayRef<int64_t> output,
                               llvm::ArrayRef<bool> prepacked);

/// The zeros before each dimension where `op` pads with zeros as many elements
/// as are known; nothing otherwise.
std::optional<llvm::SmallVector<int64_t>> getZeros(mlir::tensor::PadOp op);

/// Whether `op` on tensors adds to zeros, or to a bias of one dimension.
bool beginsWithBias(mlir::linalg::LinalgOp op);

/// Whether `op` on tensors reads one that is padded with zeros, and adds to
/// zeros or to a value per channel.
bool readsPadding(mlir::linalg::LinalgOp op);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_MATCHCONTRACTION_H
