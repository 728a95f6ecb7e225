//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels of one operator read and write, and the code that both kinds
// of kernels share.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMIT_KERNELEMITTER_H
#define LIB_CODEGEN_GPU_EMIT_KERNELEMITTER_H

#include "../Strategy/KernelProblem.h"
#include "../Strategy/ResultSide.h"
#include "IndexEmitter.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace kas::codegen {

struct ResultTile;

/// The number of this block among all of the grid.
mlir::Value emitBlockId(mlir::ImplicitLocOpBuilder &b, IndexEmitter &index,
                        const LaunchShape &launch);

/// Emits into the body of a kernel whose arguments are one-dimensional buffers:
/// the data, the weights, the output.
class GPUKernelEmitter {
public:
  GPUKernelEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                   const GPUKernelProblem &problem, GPUScheduleAttr schedule,
                   const LaunchShape &launch, mlir::ValueRange arguments);

protected:
  /// The numbers of this block and of this thread in its block.
  mlir::AffineExpr addBlockId(int64_t numBlocks);
  /// The same for kernels with barriers, which no thread may leave early: where
  /// a grid of several dimensions has more than the `numBlocks` blocks that are
  /// needed, the others repeat the last one.
  mlir::AffineExpr addRepeatedBlockId(int64_t numBlocks);
  mlir::AffineExpr addThreadId();

  mlir::Value createConstant(double value);
  /// All of `conditions` that are not null; null if there is none.
  mlir::Value emitAnd(mlir::ValueRange conditions);

  /// The element of tensor `number` (the data first) at `indices`. Where
  /// `condition` does not hold some other element is read; null: it always
  /// does. The indices are inside wherever it does, or else `isSufficient` is
  /// false. With a `width` above 1, a vector of that element and its neighbours
  /// after it; the address is a multiple of `width`.
  mlir::Value emitLoad(unsigned number,
                       llvm::ArrayRef<mlir::AffineExpr> indices,
                       mlir::Value condition, bool isSufficient = true,
                       int64_t width = 1);
  /// Where `emitLoad` loads from.
  mlir::Value emitAddress(unsigned number,
                          llvm::ArrayRef<mlir::AffineExpr> indices,
                          mlir::Value condition, bool isSufficient = true,
                          int64_t width = 1);
  /// Stores a value, or a vector where its alignment is that of a whole one.
  void emitStore(mlir::AffineExpr address, mlir::Value value);
  /// Values of some of the output's axes.
  using AxisValues =
      std::pair<llvm::ArrayRef<unsigned>, llvm::SmallVector<mlir::AffineExpr>>;
  /// Stores what becomes of a sum, divided for a mean, where the axes have
  /// these values, and other axes are zero; a vector of sums there and after
  /// it.
  void emitResult(mlir::Value sum, llvm::ArrayRef<AxisValues> values);

  /// What is stored of `value`, a result where the axes of the output have
  /// these values, or a vector of it and those after it.
  mlir::Value emitEpilogue(mlir::Value value,
                           llvm::ArrayRef<mlir::AffineExpr> coordinates);
  /// The output's axes where some have these values, and others are zero.
  llvm::SmallVector<mlir::AffineExpr>
  getCoordinates(llvm::ArrayRef<AxisValues> values) const;
  /// The type of results on their way through workgroup memory: rounded after
  /// an epilogue only.
  mlir::Type getExchangeType() const {
    return problem.epilogue ? computeType : elementType;
  }

  /// `sum` divided by what a mean is divided by.
  mlir::Value emitMean(mlir::Value sum);
  /// Where `axes` have these values and others are zero, in the result.
  mlir::AffineExpr
  getResultOffset(llvm::ArrayRef<unsigned> axes,
                  llvm::ArrayRef<mlir::AffineExpr> values) const;
  /// Where results lie along `axes`.
  ResultSide getResultSide(llvm::ArrayRef<unsigned> axes) const {
    return ResultSide::get(problem.coordinates, axes);
  }
  /// How results of 16 bits go through workgroup memory (ResultTile.h), of
  /// which a kernel has what its schedule says: the rows of warps or
  /// warpgroups as multiples of `group`. Nothing where columns are no
  /// neighbours in the result, where numbers have 32 bits (two of a fragment
  /// fill sectors of 32 bytes already), and where there is no room.
  std::optional<ResultTile> planTile(llvm::ArrayRef<unsigned> batches,
                                     llvm::ArrayRef<unsigned> rows,
                                     llvm::ArrayRef<unsigned> columns,
                                     int64_t group,
                                     bool areLinesWhole = false) const;
  /// How many columns one store can write, at most 16 bytes: not more than
  /// batches and rows lie at multiples of.
  int64_t getResultWidth(llvm::ArrayRef<unsigned> batches,
                         llvm::ArrayRef<unsigned> rows,
                         llvm::ArrayRef<unsigned> columns) const;

  llvm::ArrayRef<int64_t> getShape(unsigned number) const {
    return number == 0 ? problem.data : problem.weights[number - 1];
  }
  llvm::ArrayRef<mlir::AffineExpr> getIndices(unsigned number) const {
    return number == 0 ? problem.coordinates.data
                       : problem.coordinates.weights[number - 1];
  }
  unsigned getNumInputs() const { return problem.weights.size() + 1; }
  mlir::Type getInputType(unsigned number) const {
    return mlir::cast<mlir::MemRefType>(inputs[number].getType())
        .getElementType();
  }

  /// How many neighbours along `axis`, at most `most`, are neighbours at
  /// `address`, both beginning at multiples of that number: a power of two that
  /// divides the extent of the axis. Dimension i of `address` is axis i.
  int64_t getVectorWidth(mlir::AffineExpr address, unsigned axis,
                         int64_t most) const;
  /// The same for what is read of tensor `number`: the vector exists as a whole
  /// or not at all.
  int64_t getReadWidth(unsigned number, unsigned axis, int64_t most) const;
  /// The last of `axes` with more than one value.
  std::optional<unsigned> getInnerAxis(llvm::ArrayRef<unsigned> axes) const;

  /// How far apart, in the largest of `tensors`, the first two values of the
  /// last axis of `axes` with more than one value are; very far where no axis
  /// has.
  int64_t getDistance(llvm::ArrayRef<unsigned> tensors,
                      llvm::ArrayRef<unsigned> axes) const;
  bool isContiguous(llvm::ArrayRef<unsigned> tensors,
                    llvm::ArrayRef<unsigned> axes) const {
    return getDistance(tensors, axes) == 1;
  }

  mlir::ImplicitLocOpBuilder b;
  IndexEmitter index;
  const GPUKernelProblem &problem;
  GPUScheduleAttr schedule;
  LaunchShape launch;
  /// Copies: a kernel that gets workgroup memory moves its arguments.
  llvm::SmallVector<mlir::Value> inputs;
  mlir::Value output;
  /// Of the output, which may have more bits than the inputs have; and of sums.
  mlir::Type elementType, computeType;
};

/// Emit the body of the kernel at the builder's insertion point. All but a
/// direct one need a `MatrixView`. They add workgroup memory to the kernel.
/// `arguments` of a direct one are its buffers, some of which may be workgroup
/// memory.
void emitDirectKernel(mlir::OpBuilder &builder, mlir::Location loc,
                      const GPUKernelProblem &problem, GPUScheduleAttr schedule,
                      const LaunchShape &launch, mlir::gpu::GPUFuncOp kernel,
                      mlir::ValueRange arguments);
void emitStagedKernel(mlir::OpBuilder &builder, mlir::Location loc,
                      const GPUKernelProblem &problem, GPUScheduleAttr schedule,
                      const LaunchShape &launch, mlir::gpu::GPUFuncOp kernel);
void emitTensorCoreKernel(mlir::OpBuilder &builder, mlir::Location loc,
                          const GPUKernelProblem &problem,
                          GPUScheduleAttr schedule, const LaunchShape &launch,
                          mlir::gpu::GPUFuncOp kernel);
/// Needs a `WarpgroupView`.
void emitWarpgroupKernel(mlir::OpBuilder &builder, mlir::Location loc,
                         const GPUKernelProblem &problem,
                         GPUScheduleAttr schedule, const LaunchShape &launch,
                         mlir::gpu::GPUFuncOp kernel);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMIT_KERNELEMITTER_H
