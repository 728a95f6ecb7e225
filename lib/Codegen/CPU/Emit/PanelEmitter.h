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

#ifndef LIB_CODEGEN_CPU_EMIT_PANELEMITTER_H
#define LIB_CODEGEN_CPU_EMIT_PANELEMITTER_H

#include "ContractionEmitter.h"

namespace kas::codegen {

/// A loop over reductions around the products: how far its step moves in the
/// panel, in rows, and in each scalar input.
struct KernelLoop {
  int64_t extent = 1, panelRows = 1;
  llvm::SmallVector<int64_t> scalarStrides;
};

/// Emits the loops of one contraction over panels.
class PanelEmitter : ContractionEmitter {
public:
  PanelEmitter(mlir::OpBuilder &builder, mlir::Location loc,
               const StridedContraction &contraction, const PanelPlan &plan,
               const ContractionTarget &target,
               const ContractionOptions &options)
      : ContractionEmitter(builder, loc, contraction, target, options),
        plan(plan), vectorType(getVectorType(target.lanes)) {
    makeKernelLoops();
  }

  void emit();

private:
  /// Whether a panel has all reductions, so that sums need not be added up in
  /// the output.
  bool isWhole() const {
    return plan.panelDepth == contraction.getExtent(contraction.reductions);
  }
  void emitItems(mlir::Value first, mlir::Value step, mlir::Value panelBase);
  void emitInterleaved();
  void emitPrepacked();
  void allocatePanels(int64_t numPanels);
  void setColumns(mlir::Value tile, mlir::AffineExpr rest);
  void emitItem(mlir::Value item,
                llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  int64_t getPanelSize() const {
    return plan.panelDepth * plan.paddedColumns + 4 * target.lanes;
  }
  void emitPacking(mlir::Value panelBase);
  void emitPackedRow(mlir::Value panelAddress);
  void emitPackedVectors(mlir::Value panelAddress, int64_t extent);
  void testGuards();
  llvm::SmallVector<mlir::Value> testGuards(const ColumnSegment &segment);
  Interval getInterval(const Guard &guard, int64_t first, int64_t step,
                       int64_t extent) const;
  mlir::Value maskColumns(unsigned segment, int64_t first, int64_t step,
                          int64_t extent);
  mlir::Value loadColumns(unsigned input, int64_t first, int64_t extent);
  mlir::Value loadPart(unsigned input, int64_t first, int64_t step,
                       int64_t extent);
  void emitPackedColumns(mlir::Value panelAddress, mlir::Value lower,
                         mlir::Value upper);
  void emitGuardedColumns(mlir::Value panelAddress, int64_t extent);
  void storeColumn(mlir::Value panelAddress, mlir::Value column,
                   mlir::Value value);
  mlir::Value loadProduct();
  mlir::Value isInRange(mlir::Value value, int64_t extent);
  void emitRows(mlir::Value panelBase, mlir::Value rowBase);
  mlir::Value getNextPanel(mlir::Value panelBase, mlir::Value row);
  void emitVectors(mlir::Value panelBase, int64_t rows);
  void emitKernel(mlir::Value panelBase, mlir::Value column, int64_t rows,
                  llvm::ArrayRef<Piece> pieces);
  void makeKernelLoops();
  llvm::SmallVector<mlir::Value>
  emitReduction(llvm::ArrayRef<KernelLoop> nest, mlir::Value panelAddress,
                llvm::ArrayRef<mlir::Value> scalarAddresses,
                mlir::ValueRange sums, int64_t rows,
                llvm::ArrayRef<Piece> pieces);
  llvm::SmallVector<mlir::Value> emitProducts(
      mlir::Value panelAddress, llvm::ArrayRef<mlir::Value> scalarAddresses,
      mlir::ValueRange sums, int64_t rows, llvm::ArrayRef<Piece> pieces);

  const PanelPlan &plan;
  mlir::VectorType vectorType;
  /// All panels, and how far what is fetched ahead is, if anything.
  mlir::Value panel, nextPanel;
  llvm::SmallVector<KernelLoop> kernelLoops;
  /// By segment: the guards that lanes are tested with, at the first column of
  /// the row that is packed.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> guardStarts;
  int64_t numItems = 1;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_PANELEMITTER_H
