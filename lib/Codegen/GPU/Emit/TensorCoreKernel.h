//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emitter of kernels for tensor cores. Its parts are in files of their own:
// where things are and the order of steps (TensorCoreKernel.cpp), copies to
// workgroup memory (TensorCoreCopies.cpp), products and what becomes of them
// (TensorCoreMma.cpp, ResultTile.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMIT_TENSORCOREKERNEL_H
#define LIB_CODEGEN_GPU_EMIT_TENSORCOREKERNEL_H

#include "../Strategy/MatrixView.h"
#include "ResultTile.h"

namespace kas::codegen {

/// One of the two matrices, and the part of it that a block holds for `depth`
/// steps. Thread t copies the units t, t + threads, ... of `unit` elements.
struct TensorCorePart {
  llvm::SmallVector<unsigned> tensors;
  llvm::SmallVector<unsigned> axes;
  int64_t numLines, blockLines;
  /// Whether lines of memory hold neighbouring steps, not rows or columns.
  bool stepsFirst;
  /// Elements from one line of memory to the next, and of a whole part.
  int64_t pitch, size;
  /// So many neighbours have the same indices but for the last one, and so many
  /// of them are read at once.
  int64_t sameDigits, readWidth;
  /// Whether units are copied without registers.
  bool isAsync;
  /// Whether neighbouring threads copy neighbouring rows or columns.
  bool threadsAlongLines;
  mlir::Value memory;
  /// The first row or column of the block, in units if these are along it.
  mlir::AffineExpr begin;
  /// For each unit that a thread copies: where it is, in lines and steps; the
  /// one along which it lies is in units.
  llvm::SmallVector<mlir::AffineExpr> lines, steps;
  /// Whether the thread has the last of these; null: always.
  mlir::Value hasLast;
};

class TensorCoreKernelEmitter : GPUKernelEmitter {
public:
  TensorCoreKernelEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                          const GPUKernelProblem &problem,
                          GPUScheduleAttr schedule, const LaunchShape &launch,
                          mlir::gpu::GPUFuncOp kernel);
  void emit();

private:
  int64_t getTile(unsigned i) const { return schedule.getTile()[i]; }
  int64_t getBlock(unsigned i) const { return schedule.getBlock()[i]; }
  llvm::SmallVector<int64_t> getExtents(llvm::ArrayRef<unsigned> axes) const {
    return llvm::map_to_vector(
        axes, [&](unsigned axis) { return coordinates.axes[axis].extent; });
  }
  mlir::AffineExpr addValue(mlir::AffineExpr expr, int64_t extent) {
    return index.add(index.emit(expr), {0, extent - 1});
  }
  mlir::AffineExpr constant(int64_t value) {
    return b.getAffineConstantExpr(value);
  }

  // Places.
  void orderSides();
  void addParts();
  void addPart(unsigned number);
  void addMemory();
  void analyzeReads(TensorCorePart &part);
  void addUnits(TensorCorePart &part);

  // Copies.
  llvm::SmallVector<mlir::AffineExpr> getDigits(mlir::AffineExpr units,
                                                int64_t offset,
                                                llvm::ArrayRef<int64_t> extents,
                                                int64_t same) const;
  void setSteps(llvm::SmallVectorImpl<mlir::AffineExpr> &axes,
                const TensorCorePart &part, mlir::AffineExpr block,
                mlir::AffineExpr step, int64_t offset) const;
  mlir::Value getAxes(const TensorCorePart &part, unsigned i,
                      mlir::AffineExpr block, int64_t offset,
                      llvm::SmallVectorImpl<mlir::AffineExpr> &axes);
  mlir::Value emitRead(const TensorCorePart &part, unsigned i,
                       mlir::AffineExpr block, int64_t offset);
  mlir::Value emitUnit(const TensorCorePart &part, unsigned i,
                       mlir::AffineExpr block);
  mlir::Value emitAsyncCopy(const TensorCorePart &part, unsigned i,
                            mlir::AffineExpr block, mlir::Value buffer);
  mlir::Value getUnitAddress(const TensorCorePart &part, unsigned i,
                             mlir::Value buffer);
  /// Adds the offset of a buffer of the ring to an address; null: none.
  mlir::Value addOffset(mlir::Value address, mlir::Value buffer, int64_t size);
  void emitIfHasUnit(const TensorCorePart &part, unsigned i,
                     llvm::function_ref<void()> emitBody);
  void emitAsyncCopies(mlir::AffineExpr block, mlir::Value buffer);
  mlir::Value emitGroup();
  llvm::SmallVector<mlir::Value> emitReads(mlir::AffineExpr block);
  void emitStores(llvm::ArrayRef<mlir::Value> units, mlir::Value buffer);

  // Products.
  void addFragmentAddresses();
  /// Whether the elements of a matrix have been rounded to tf32; a product of
  /// several tensors is rounded here.
  bool isRounded(unsigned number) const {
    return parts[number].tensors.size() == 1 &&
           problem.rounded.contains(parts[number].tensors.front());
  }
  mlir::Value emitFragment(unsigned number, int64_t line, int64_t step,
                           mlir::Value buffer);
  mlir::Value emitVector(llvm::ArrayRef<mlir::Value> registers);
  llvm::SmallVector<mlir::Value> emitProducts(mlir::ValueRange sums,
                                              mlir::Value buffer);
  llvm::SmallVector<mlir::Value> emitSteps(mlir::ValueRange sums);
  void finish(llvm::ArrayRef<mlir::Value> sums);
  /// Stores the results through workgroup memory, or as they are in fragments.
  void emitTile(llvm::ArrayRef<mlir::Value> sums);
  void emitFragments(llvm::ArrayRef<mlir::Value> sums);
  void emitPair(mlir::Value sums, unsigned half, mlir::AffineExpr row,
                mlir::AffineExpr column);
  /// The first row or column of the block.
  mlir::AffineExpr getBegin(unsigned number) const {
    // `begin` is in units where lines are contiguous.
    return parts[number].begin * (parts[number].stepsFirst ? 1 : unit);
  }

  mlir::gpu::GPUFuncOp kernel;
  const Coordinates &coordinates;
  MatrixView view;
  int64_t depth, numSteps, numBlocks;
  /// Of the numbers that are multiplied, and the elements of 16 bytes.
  mlir::Type factorType;
  int64_t unit;
  /// Steps of one matrix instruction.
  int64_t instructionSteps;
  mlir::AffineExpr thread, lane;
  std::array<mlir::AffineExpr, 2> warp;
  llvm::SmallVector<mlir::AffineExpr> batch;
  /// Rows, columns.
  std::array<TensorCorePart, 2> parts;
  /// What a lane gives to ldmatrix for the fragment at the origin of its warp.
  std::array<mlir::AffineExpr, 2> fragment;
  bool hasAsync = false;
  /// Of the results; its memory is that of the matrices, of which nothing is
  /// left then.
  std::optional<ResultTile> tile;
  mlir::Value tileMemory;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMIT_TENSORCOREKERNEL_H
