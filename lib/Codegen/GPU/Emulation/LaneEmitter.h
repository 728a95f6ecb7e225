//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Index arithmetic of one lane, for what computes on a CPU what warps do.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_EMULATION_LANEEMITTER_H
#define LIB_CODEGEN_GPU_EMULATION_LANEEMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kas::codegen {

class LaneEmitter {
public:
  explicit LaneEmitter(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value add(mlir::Value left, mlir::Value right) {
    return mlir::arith::AddIOp::create(b, left, right);
  }
  mlir::Value add(mlir::Value left, int64_t right) {
    return right ? add(left, constant(right)) : left;
  }
  mlir::Value times(mlir::Value left, int64_t right) {
    return mlir::arith::MulIOp::create(b, left, constant(right));
  }
  mlir::Value times(mlir::Value left, mlir::Value right) {
    return mlir::arith::MulIOp::create(b, left, right);
  }
  mlir::Value by(mlir::Value left, int64_t right) {
    return mlir::arith::DivUIOp::create(b, left, constant(right));
  }
  mlir::Value mod(mlir::Value left, int64_t right) {
    return mlir::arith::RemUIOp::create(b, left, constant(right));
  }
  mlir::Value isBelow(mlir::Value left, int64_t right) {
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::ult, left,
                                       constant(right));
  }
  /// A loop from `begin` in steps of `step`; the builder is inside afterwards.
  mlir::Value loop(mlir::Value begin, mlir::Value end, int64_t step = 1) {
    auto loop = mlir::scf::ForOp::create(b, begin, end, constant(step));
    b.setInsertionPointToStart(loop.getBody());
    return loop.getInductionVar();
  }
  mlir::Value loop(int64_t end) { return loop(constant(0), constant(end)); }

private:
  mlir::ImplicitLocOpBuilder &b;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_EMULATION_LANEEMITTER_H
