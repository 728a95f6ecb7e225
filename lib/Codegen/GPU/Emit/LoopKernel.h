//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of linalg operations: a thread computes one point of the outputs.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMIT_LOOPKERNEL_H
#define LIB_CODEGEN_GPU_EMIT_LOOPKERNEL_H

#include "../Strategy/LoopProblem.h"

namespace kas::codegen {

/// Emits the body of a kernel whose arguments are the inputs of the problem and
/// then its outputs. A thread computes `width` points, and stores them as a
/// vector.
void emitLoopKernel(mlir::OpBuilder &builder, mlir::Location loc,
                    const LoopProblem &problem, const LaunchShape &launch,
                    int64_t width, mlir::ValueRange arguments);

/// Emits a prologue: the threads of a block, of which there are `numThreads`,
/// compute all points of the problem, store them in `memory` of the workgroup,
/// and wait for each other. `inputs` are the buffers that it reads.
void emitPrologue(mlir::OpBuilder &builder, mlir::Location loc,
                  const LoopProblem &problem, int64_t numThreads,
                  mlir::ValueRange inputs, mlir::Value memory);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMIT_LOOPKERNEL_H
