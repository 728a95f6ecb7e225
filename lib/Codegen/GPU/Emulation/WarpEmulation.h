//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of the lanes of a warp together, computed on a CPU from the
// values of all lanes: an independent statement of which lane holds which
// element.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMULATION_WARPEMULATION_H
#define LIB_CODEGEN_GPU_EMULATION_WARPEMULATION_H

#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kas::codegen {

/// Whether all lanes of a warp have to be there to compute `op`.
bool isWarpOperation(mlir::Operation *op);

/// Emits what `op` computes for all threads of a block. `operands` are one
/// buffer for each operand, with the value of each thread, but for memory,
/// which is the buffer itself; `result` gets the
/// values, and is null where there are none.
void emulateWarpOperation(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op,
                          mlir::ValueRange operands, mlir::Value result);

/// Makes copies that need no registers into loads and stores, of each thread
/// where it asks for them.
void emulateAsyncCopies(mlir::gpu::GPUFuncOp kernel);

/// Makes what the copy engine does for warpgroups loads and stores, of the
/// thread that asks for it. Waiting for what is not on its way is an assertion
/// that fails.
void emulateTensorCopies(mlir::gpu::GPUFuncOp kernel);

/// Adds assertions to `kernel` that fail where two threads access the same
/// workgroup memory, one of them writing it, and no barrier is between. Copies
/// of a thread are loads and stores already; those of the copy engine, and
/// operations of warps, are as they were. Functions go to `module`.
void addRaceShadow(mlir::ModuleOp module, mlir::gpu::GPUFuncOp kernel);

/// Names what `emitWarpgroupMma` computes for `op`, but for the sizes of its
/// buffers.
std::string getWarpgroupMmaName(WarpgroupMmaOp op);

/// Emits the products of `op` for all threads of a block. Arguments are
/// buffers, as those of `emulateWarpOperation`: the descriptor and memory of
/// rows and of columns, the sums and the results of each thread.
void emitWarpgroupMma(mlir::ImplicitLocOpBuilder &b, WarpgroupMmaOp op,
                      mlir::ValueRange arguments);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMULATION_WARPEMULATION_H
