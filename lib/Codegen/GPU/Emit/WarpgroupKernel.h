//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emitter of kernels for warpgroups. Its parts are in files of their own:
// where things are, copies and the order of steps (WarpgroupKernel.cpp),
// products and what becomes of them (WarpgroupMma.cpp, ResultTile.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMIT_WARPGROUPKERNEL_H
#define LIB_CODEGEN_GPU_EMIT_WARPGROUPKERNEL_H

#include "../Strategy/WarpgroupView.h"
#include "ResultTile.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"

namespace kas::codegen {

class WarpgroupKernelEmitter : GPUKernelEmitter {
public:
  WarpgroupKernelEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                         const GPUKernelProblem &problem,
                         GPUScheduleAttr schedule, const LaunchShape &launch,
                         mlir::gpu::GPUFuncOp kernel);
  void emit();

private:
  /// Elements of a line of 128 bytes, steps of one instruction, lines of one
  /// instruction.
  static constexpr int64_t unit = 64, instructionSteps = 16;

  /// A matrix in workgroup memory.
  struct Part {
    TensorMapAttr map;
    mlir::Value memory;
    /// Elements of one buffer of the ring.
    int64_t size;
    /// The first row or column of the block.
    mlir::AffineExpr begin;
    /// The first one of the warpgroup, in the block.
    mlir::AffineExpr warpgroup;
  };

  int64_t getTile(unsigned i) const { return schedule.getTile()[i]; }
  int64_t getBlock(unsigned i) const { return schedule.getBlock()[i]; }
  llvm::SmallVector<int64_t> getExtents(llvm::ArrayRef<unsigned> axes) const {
    return llvm::map_to_vector(axes, [&](unsigned axis) {
      return problem.coordinates.axes[axis].extent;
    });
  }
  mlir::AffineExpr addValue(mlir::AffineExpr expr, int64_t extent) {
    return index.add(index.emit(expr), {0, extent - 1});
  }
  mlir::AffineExpr constant(int64_t value) {
    return b.getAffineConstantExpr(value);
  }

  // Places and copies.
  void addMemory();
  void addPositions();
  /// Of the block and the thread, where they are among rows and columns.
  void setPositions(mlir::AffineExpr block, mlir::AffineExpr thread);
  void addMap(unsigned number);
  void emitIfLeader(llvm::function_ref<void()> emitBody);
  void emitCopies(mlir::AffineExpr block, mlir::Value buffer);
  void emitCopy(unsigned number, mlir::AffineExpr block, mlir::Value buffer);
  llvm::SmallVector<mlir::Value> emitSteps(mlir::ValueRange sums);

  // Products.
  mlir::Value emitDescriptor(unsigned number, int64_t lines,
                             mlir::Value buffer);
  llvm::SmallVector<mlir::Value> emitProducts(mlir::ValueRange sums,
                                              mlir::Value buffer);
  llvm::SmallVector<mlir::Value> emitWait(mlir::ValueRange sums,
                                          int64_t groups);
  void finish(mlir::ValueRange sums);
  /// Stores the results through workgroup memory, or as they are in fragments.
  void emitTile(mlir::ValueRange sums);
  void emitRow(mlir::Value sums, unsigned half, mlir::AffineExpr row);

  mlir::gpu::GPUFuncOp kernel;
  WarpgroupView view;
  /// Blocks of steps, and of the grid: batches, rows, columns.
  int64_t numBlocks;
  llvm::SmallVector<int64_t> counts;
  mlir::AffineExpr block, thread;
  /// Rows, columns.
  std::array<Part, 2> parts;
  mlir::Value barriers, isLeader;
  llvm::SmallVector<mlir::AffineExpr> batch;
  /// Of a warp in its warpgroup, of a lane in its warp.
  mlir::AffineExpr warp, lane;
  /// Of the results; its memory is that of the matrices, of which nothing is
  /// left then.
  std::optional<ResultTile> tile;
  mlir::Value tileMemory;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMIT_WARPGROUPKERNEL_H
