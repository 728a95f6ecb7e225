//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator as a kernel computes it, and the blocks and threads that it is
// launched with.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_KERNELPROBLEM_H
#define LIB_CODEGEN_GPU_STRATEGY_KERNELPROBLEM_H

#include "Epilogue.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/IR/Diagnostics.h"

namespace kas::codegen {

/// One operator with the shapes of its tensors.
struct GPUKernelProblem {
  Coordinates coordinates;
  llvm::SmallVector<int64_t> output, data;
  llvm::SmallVector<llvm::SmallVector<int64_t>> weights;
  /// Tensors, the data as 0, whose elements of f32 have been rounded to tf32.
  llvm::SmallDenseSet<unsigned> rounded;
  /// Buffers that it reads follow those of the weights.
  std::optional<Epilogue> epilogue;

  static GPUKernelProblem get(OperatorOp op);
};

/// The blocks of a grid and the threads of a block.
struct LaunchShape {
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};

  /// As many blocks, in as few dimensions as the device allows. The product may
  /// be larger than `blocks`. Fails if there are too many.
  static mlir::FailureOr<LaunchShape> get(int64_t blocks, int64_t threads,
                                          GPUDeviceAttr device);
  int64_t getNumBlocks() const { return grid[0] * grid[1] * grid[2]; }
};

/// The row-major address of the element at `indices`.
mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> indices,
                           llvm::ArrayRef<int64_t> shape,
                           mlir::MLIRContext *context);

/// A sum of axes times constants, and a constant.
struct LinearIndex {
  /// By axis; 0 for axes of one value.
  llvm::SmallVector<int64_t> factors;
  int64_t constant;
};

/// Nothing where `index`, a function of the axes, is no such sum.
std::optional<LinearIndex> getLinearIndex(mlir::AffineExpr index,
                                          const Coordinates &coordinates);

/// The distance in memory of neighbours along each axis of `problem` in a
/// tensor, the data or, from 1 on, a weight; 0 for axes of one value. Nothing
/// where the address is no sum of axes times constants, or begins elsewhere.
std::optional<llvm::SmallVector<int64_t>>
getStrides(const GPUKernelProblem &problem, unsigned tensor);

/// The reduction that threads of a direct kernel share, `depth` of them for
/// each tile: the innermost one whose extent `depth` divides. Nothing where
/// there is none, and where there are maxima.
std::optional<unsigned> getSharedAxis(const Coordinates &coordinates,
                                      int64_t depth);

/// The digits of `expr` in the mixed radix `extents`, the last one fastest.
/// `expr` is less than their product.
llvm::SmallVector<mlir::AffineExpr>
delinearize(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> extents);

/// The type of the elements of all `inputs`; f32 where they differ.
mlir::Type getInputType(mlir::ValueRange inputs);

/// How `schedule` cuts `problem` on inputs of `inputType`, or why it does not
/// suit it or the device.
mlir::FailureOr<LaunchShape>
getLaunchShape(const GPUKernelProblem &problem, mlir::Type inputType,
               GPUScheduleAttr schedule, GPUDeviceAttr device,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_KERNELPROBLEM_H
