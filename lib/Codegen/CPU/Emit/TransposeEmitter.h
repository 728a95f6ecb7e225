//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transposes matrices in registers.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_TRANSPOSEEMITTER_H
#define LIB_CODEGEN_CPU_EMIT_TRANSPOSEEMITTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas::codegen {

/// Emits `op` on whole buffers of f32 as loops over blocks of `lanes` times
/// `lanes` elements, at the builder's insertion point: all it does is to let
/// some first dimensions, after those that stay, change places with all others,
/// and both sides have as many elements as a vector at least. Emits nothing,
/// and fails, where it does something else.
mlir::LogicalResult emitTranspose(mlir::OpBuilder &builder,
                                  mlir::linalg::TransposeOp op, int64_t lanes,
                                  bool isParallel);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_TRANSPOSEEMITTER_H
