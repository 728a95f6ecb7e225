//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits contractions as packed panels and register tiles: the columns of a tile
// are copied once to consecutive memory, for all reductions, and then
// multiplied with all rows, a few rows and vectors at a time, whose sums stay
// in registers. After Goto and van de Geijn: "Anatomy of High-Performance
// Matrix Multiplication", ACM TOMS 34(3), 2008, sections 3 to 5; a convolution
// needs no other treatment than a matrix product because the packing follows
// any indices.
//
// Panels.cpp has the loops over tiles, PanelPacking.cpp the copies,
// PanelKernel.cpp the products.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_PIPELINES_PANELEMITTER_H
#define KAS_LIB_PIPELINES_PANELEMITTER_H

#include "PanelPlan.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kas {

/// A loop over reductions around the products: how far its step moves in the
/// panel, in rows, and in each scalar input.
struct KernelLoop {
  int64_t extent = 1, panelRows = 1;
  llvm::SmallVector<int64_t> scalarStrides;
};

/// Emits the loops of one contraction.
class PanelEmitter {
public:
  PanelEmitter(mlir::OpBuilder &builder, mlir::Location loc,
               const Contraction &contraction, const PanelPlan &plan,
               const PanelTarget &target, const PanelOptions &options)
      : builder(builder), loc(loc), contraction(contraction), plan(plan),
        target(target), options(options),
        vectorType(mlir::VectorType::get({target.lanes}, builder.getF32Type())),
        indices(contraction.loops.size()) {
    makeKernelLoops();
  }

  void emit();

private:
  using Body = llvm::function_ref<void(mlir::Value)>;

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// `map` of `operands`, folded where it can be.
  mlir::Value apply(mlir::AffineExpr expr,
                    llvm::ArrayRef<mlir::Value> operands) {
    auto map = mlir::AffineMap::get(operands.size(), 0, expr);
    return mlir::affine::makeComposedAffineApply(
        builder, loc, map, mlir::getAsOpFoldResult(operands));
  }
  mlir::AffineExpr dim(unsigned position) {
    return builder.getAffineDimExpr(position);
  }

  /// Calls `body` in a loop from 0 below `extent`; without one for extent 1.
  void loop(int64_t extent, int64_t step, Body body) {
    if (extent <= step)
      return body(constant(0));
    auto op = mlir::scf::ForOp::create(builder, loc, constant(0),
                                       constant(extent), constant(step));
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(op.getBody());
    body(op.getInductionVar());
  }
  /// Nested loops over `dims`, which get their indices.
  void loops(llvm::ArrayRef<unsigned> dims, llvm::function_ref<void()> body) {
    if (dims.empty())
      return body();
    loop(contraction.loops[dims.front()].extent, 1, [&](mlir::Value index) {
      indices[dims.front()] = index;
      loops(dims.drop_front(), body);
    });
  }

  /// All elements of a buffer as one dimension.
  mlir::Value flatten(mlir::Value buffer, int64_t size) {
    auto type = mlir::MemRefType::get({size}, builder.getF32Type());
    return mlir::memref::ReinterpretCastOp::create(
        builder, loc, type, buffer, /*offset=*/0, llvm::ArrayRef<int64_t>{size},
        llvm::ArrayRef<int64_t>{1});
  }
  /// `expr`, of all loops, at the current indices.
  mlir::Value evaluate(mlir::AffineExpr expr) {
    llvm::SmallVector<mlir::AffineExpr> dims;
    llvm::SmallVector<mlir::Value> operands;
    for (mlir::Value index : indices) {
      dims.push_back(index ? dim(operands.size())
                           : builder.getAffineConstantExpr(0));
      if (index)
        operands.push_back(index);
    }
    return apply(expr.replaceDims(dims), operands);
  }
  /// The address at the current indices; loops without an index count as 0.
  mlir::Value address(const StridedAccess &access, int64_t offset = 0) {
    mlir::AffineExpr expr = builder.getAffineConstantExpr(access.base + offset);
    llvm::SmallVector<mlir::Value> operands;
    for (auto [stride, index] : llvm::zip_equal(access.strides, indices)) {
      if (!stride || !index)
        continue;
      expr = expr + dim(operands.size()) * stride;
      operands.push_back(index);
    }
    return apply(expr, operands);
  }

  void emitItems(mlir::Value first, mlir::Value step, mlir::Value panelBase);
  void emitItem(mlir::Value item, mlir::Value panelBase);
  void emitPacking(mlir::Value panelBase);
  void emitPackedRow(mlir::Value panelAddress);
  void emitPackedVectors(mlir::Value panelAddress, int64_t extent);
  void emitPackedColumns(mlir::Value panelAddress, mlir::Value lower,
                         mlir::Value upper);
  void emitGuardedColumns(mlir::Value panelAddress, int64_t extent);
  void storeColumn(mlir::Value panelAddress, mlir::Value column,
                   mlir::Value value);
  mlir::Value loadProduct();
  mlir::Value zeroValue();
  mlir::Value isInRange(mlir::Value value, int64_t extent);
  void emitRows(mlir::Value panelBase, mlir::Value rowBase);
  void emitVectors(mlir::Value panelBase, int64_t rows);
  void emitKernel(mlir::Value panelBase, mlir::Value column, int64_t rows,
                  int64_t vectors, bool last);
  void makeKernelLoops();
  llvm::SmallVector<mlir::Value>
  emitReduction(llvm::ArrayRef<KernelLoop> nest, mlir::Value panelAddress,
                llvm::ArrayRef<mlir::Value> scalarAddresses,
                mlir::ValueRange sums, int64_t rows, int64_t vectors);
  llvm::SmallVector<mlir::Value>
  emitProducts(mlir::Value panelAddress,
               llvm::ArrayRef<mlir::Value> scalarAddresses,
               mlir::ValueRange sums, int64_t rows, int64_t vectors);
  mlir::Value multiplyAdd(mlir::Value row, mlir::Value column, mlir::Value sum);
  mlir::Value tailMask(int64_t lanes);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const Contraction &contraction;
  const PanelPlan &plan;
  const PanelTarget &target;
  const PanelOptions &options;
  mlir::VectorType vectorType;
  /// The index of each loop where it is known.
  llvm::SmallVector<mlir::Value> indices;
  mlir::Value panel, output;
  llvm::SmallVector<mlir::Value> vectorInputs, scalarInputs;
  llvm::SmallVector<KernelLoop> kernelLoops;
  int64_t numItems = 1;
};

} // namespace kas

#endif // KAS_LIB_PIPELINES_PANELEMITTER_H
