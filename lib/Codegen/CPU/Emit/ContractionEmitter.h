//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by emitters of contractions: loops, addresses, vectors.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_CONTRACTIONEMITTER_H
#define LIB_CODEGEN_CPU_EMIT_CONTRACTIONEMITTER_H

#include "../Strategy/ContractionTarget.h"
#include "../Strategy/StridedContraction.h"
#include "LoopEmitter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace kas::codegen {

/// A vector of a tile: where it begins, relative to the tile, its size, and how
/// many of its lanes exist in the output.
struct Piece {
  int64_t offset, lanes, active;
};

/// Emits the loops of one contraction.
class ContractionEmitter : protected LoopEmitter {
protected:
  ContractionEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                     const StridedContraction &contraction,
                     const ContractionTarget &target,
                     const ContractionOptions &options)
      : LoopEmitter(builder, loc, contraction.getElementType()),
        contraction(contraction), target(target), options(options),
        indices(contraction.loops.size()) {}

  /// Calls `body` in a loop from 0 below `extent`; without one for extent 1.
  void loop(int64_t extent, int64_t step, Body body) {
    if (extent <= step)
      return body(constant(0));
    serialLoop(extent, step, body);
  }
  /// The same over all items, shared by the threads if there are several.
  void parallelLoop(int64_t numItems, Body body) {
    if (options.threads == 1 || numItems == 1)
      return loop(numItems, 1, body);
    sharedLoop(numItems, body);
  }
  /// The index along the innermost of the loops that `rest` counts through,
  /// which has `extent`; `rest` then counts through the others.
  static mlir::AffineExpr takeIndex(mlir::AffineExpr &rest, int64_t extent) {
    mlir::AffineExpr index = rest % extent;
    rest = rest.floorDiv(extent);
    return index;
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

  /// The flat form of the output and of all inputs.
  void flattenBuffers();
  /// The same of what is computed with the sums.
  void flattenEpilogue();
  /// Which of the first `lanes` lanes of a vector of `size` there are.
  mlir::Value tailMask(int64_t lanes, int64_t size);
  /// The sums that begin at `place` of the output, or zeros, and where they go
  /// in the end, in the result.
  mlir::Value loadSum(mlir::Value place, Piece piece, bool accumulates);
  void storeSum(mlir::Value sum, mlir::Value place, Piece piece);
  /// So many elements of a buffer.
  mlir::VectorType getVectorType(mlir::Value buffer, int64_t lanes) {
    return mlir::VectorType::get(
        {lanes},
        mlir::cast<mlir::MemRefType>(buffer.getType()).getElementType());
  }
  using LoopEmitter::getVectorType;
  /// The lanes that exist of what begins at `place` of a flat buffer.
  mlir::Value loadPiece(mlir::Value buffer, mlir::Value place, Piece piece);
  /// `row * column + sum`, of the scalar inputs and of the vector inputs.
  mlir::Value multiplyAdd(mlir::Value row, mlir::Value column, mlir::Value sum);

  const StridedContraction &contraction;
  const ContractionTarget &target;
  const ContractionOptions &options;
  /// The index of each loop where it is known.
  llvm::SmallVector<mlir::Value> indices;
  mlir::Value output;
  llvm::SmallVector<mlir::Value> vectorInputs, scalarInputs;
  /// The bias, and the tensors of the next elementwise operation: its inputs
  /// (null: the sums) and its result, which is the output if there is none.
  mlir::Value bias;
  llvm::SmallVector<mlir::Value> epilogueInputs;
  mlir::Value result;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_CONTRACTIONEMITTER_H
