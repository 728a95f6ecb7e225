//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What emitters of loops over vectors of f32, or of VNNI groups of narrow
// elements, have in common.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_LOOPEMITTER_H
#define LIB_CODEGEN_CPU_EMIT_LOOPEMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kas::codegen {

/// Tells LLVM neither to vectorize nor to unroll a loop.
mlir::Attribute getFinishedLoop(mlir::MLIRContext *context);

class LoopEmitter {
protected:
  LoopEmitter(mlir::OpBuilder &builder, mlir::Location loc)
      : LoopEmitter(builder, loc, builder.getF32Type()) {}
  LoopEmitter(mlir::OpBuilder &builder, mlir::Location loc,
              mlir::Type elementType)
      : builder(builder), loc(loc), elementType(elementType) {}

  using Body = llvm::function_ref<void(mlir::Value)>;

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  mlir::VectorType getVectorType(int64_t lanes) {
    return mlir::VectorType::get({lanes}, elementType);
  }
  mlir::Value zeros(mlir::VectorType type) {
    return mlir::arith::ConstantOp::create(builder, loc,
                                           builder.getZeroAttr(type));
  }
  /// Zero as an element.
  mlir::Value zero() {
    return mlir::arith::ConstantOp::create(builder, loc,
                                           builder.getZeroAttr(elementType));
  }
  mlir::Value add(mlir::Value left, mlir::Value right);
  /// `expr` of `operands`, folded where it can be.
  mlir::Value apply(mlir::AffineExpr expr,
                    llvm::ArrayRef<mlir::Value> operands);
  mlir::AffineExpr dim(unsigned position) {
    return builder.getAffineDimExpr(position);
  }
  /// All elements of a buffer as one dimension.
  mlir::Value flatten(mlir::Value buffer, int64_t size);
  /// The same of what is multiplied: narrow elements as VNNI groups of 32 bits.
  mlir::Value flattenInput(mlir::Value buffer, int64_t size);
  /// Calls `body` in a loop from 0 below `extent`.
  mlir::scf::ForOp serialLoop(int64_t extent, int64_t step, Body body);
  /// The same with one iteration per item, shared by the threads.
  void sharedLoop(int64_t numItems, Body body);
  /// For each lane, whether 0 <= `start + steps[lane]` < `extent`.
  mlir::Value testLanes(mlir::Value start, llvm::ArrayRef<int64_t> steps,
                        int64_t extent);
  /// `row * column + sum`.
  mlir::Value multiplyAdd(mlir::Value row, mlir::Value column, mlir::Value sum,
                          bool hasFMA);
  /// The rows of the square matrix whose columns are `vectors`.
  llvm::SmallVector<mlir::Value>
  transpose(llvm::SmallVector<mlir::Value> vectors);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  /// F32, or i32.
  mlir::Type elementType;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_LOOPEMITTER_H
