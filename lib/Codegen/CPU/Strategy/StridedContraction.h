//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions on buffers, as plain strides: the value that the strategies for
// CPUs choose for and the emitters emit.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_STRIDEDCONTRACTION_H
#define LIB_CODEGEN_CPU_STRATEGY_STRIDEDCONTRACTION_H

#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "kas/Schedule/TileChoice.h"
#include <optional>

namespace kas::codegen {

using schedule::DirectPlan;
using schedule::PanelPlan;
using schedule::RowVectorPlan;

/// A buffer and the address of its element at each point of the loops:
/// `base + sum of stride * index`, in elements from the start of the
/// allocation.
struct StridedAccess {
  mlir::Value buffer;
  int64_t base = 0;
  /// One per loop.
  llvm::SmallVector<int64_t> strides;
  /// One more than the largest address of the buffer.
  int64_t size = 0;
  /// Whether a copy is made ahead of the calls where weights are prepacked.
  bool isPrepacked = true;
};

/// A buffer and the address of its element as any expression of the loops: for
/// inputs that are copied before they are multiplied.
struct PackedAccess {
  mlir::Value buffer;
  mlir::AffineExpr address;
  int64_t size = 0;
  /// The address by dimensions, and their sizes, where they are known.
  llvm::SmallVector<mlir::AffineExpr> index = {};
  llvm::SmallVector<int64_t> shape = {};
  /// Whether a copy may be made ahead of the calls.
  bool isPrepacked = false;
};

/// The innermost columns at which some guards hold; at these, everything is
/// linear in them. A shift around the end of a line makes two segments.
struct ColumnSegment {
  /// The address of each vector input.
  llvm::SmallVector<mlir::AffineExpr> addresses;
  /// The guards of the contraction, and those that hold in the segment only: no
  /// column is in two of them.
  llvm::SmallVector<Guard> guards;
};

/// F32, or VNNI groups of two bf16, of two i16 or of four int8. Of an input
/// that steps with the innermost dimension of the output and one that does not,
/// one has unsigned bytes, the other signed ones.
enum class ElementKind {
  F32,
  BFloats,
  Int16,
  UnsignedVectorInt8,
  UnsignedScalarInt8
};

/// `output += product of inputs`, summed over the reduction loops.
struct StridedContraction {
  llvm::SmallVector<Contraction::Loop> loops;
  StridedAccess output;
  /// Those that step with the innermost dimension of the output, and the
  /// others.
  llvm::SmallVector<PackedAccess> vectorInputs;
  llvm::SmallVector<StridedAccess> scalarInputs;
  /// Where one of these does not hold, the vector inputs count as zero and are
  /// not read. Their expressions are of the loops.
  llvm::SmallVector<Guard> guards;
  /// What the products are multiplied with; 1 for VNNI groups.
  double factor = 1;
  /// What an element is multiplied as: f32, or a VNNI group, whose products
  /// with another VNNI group are added to a sum of f32, or of i32 for integers.
  ElementKind elements = ElementKind::F32;
  /// Whether the output holds values that the sums are added to; else they
  /// replace whatever it holds.
  bool accumulates = true;

  /// Loops by what steps with them: batches by both kinds of inputs (or none),
  /// rows by scalar inputs only, columns by vector inputs only. The columns are
  /// sorted, the last one is contiguous in the output.
  llvm::SmallVector<unsigned> batches, rows, columns, reductions;

  /// All innermost columns; none if there is no small number of segments.
  llvm::SmallVector<ColumnSegment> segments;

  int64_t getExtent(llvm::ArrayRef<unsigned> dims) const {
    int64_t extent = 1;
    for (unsigned dim : dims)
      extent *= loops[dim].extent;
    return extent;
  }

  bool isOfVNNIGroups() const { return elements != ElementKind::F32; }
  bool isOfIntegers() const {
    return isOfVNNIGroups() && elements != ElementKind::BFloats;
  }
  /// The type of sums, which VNNI groups are read as: f32, or i32 for integers.
  mlir::Type getElementType() const;

  /// What the planners need of it.
  schedule::TileNest getNest() const;

  /// The same with a loop of one row, for tiles that need one.
  StridedContraction withOneRow() const;
};

/// The coefficient of `dim` in `expr`, if `expr` is linear in it.
std::optional<int64_t> getCoefficient(mlir::AffineExpr expr, unsigned dim);

/// The product of several scalar inputs, summed over the reductions that no
/// vector input steps with, can be computed once, before the columns come into
/// play: for a stack of weights far fewer multiplications.
class CombinedInputs {
public:
  /// What remains of `contraction` when its scalar inputs have been combined;
  /// nothing if there is only one and it needs no sum, or nothing remains.
  static std::optional<CombinedInputs>
  get(const StridedContraction &contraction);

  /// The scalar inputs, which loops over `getLoops` combine.
  llvm::ArrayRef<StridedAccess> getInputs() const { return inputs; }
  const schedule::CombinedInputs &getLoops() const { return combined; }
  const StridedContraction &getRemainder() const { return remainder; }
  /// Where the combined input is, which the remainder reads.
  mlir::Value getBuffer() const {
    return remainder.scalarInputs.front().buffer;
  }
  void setBuffer(mlir::Value buffer) {
    remainder.scalarInputs.front().buffer = buffer;
  }

private:
  llvm::SmallVector<StridedAccess> inputs;
  schedule::CombinedInputs combined;
  StridedContraction remainder;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_STRIDEDCONTRACTION_H
