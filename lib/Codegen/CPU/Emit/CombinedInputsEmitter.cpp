//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Combines the scalar inputs of a contraction in one buffer before the tiles:
// their products, summed over the reductions that the vectors do not depend on.
//
//===----------------------------------------------------------------------===//

#include "EmitContraction.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

void kas::codegen::emitCombinedInputs(OpBuilder &builder, Location loc,
                                      CombinedInputs &combined) {
  OpBuilder::InsertionGuard insertion(builder);
  const StridedContraction &remainder = combined.getRemainder();
  const StridedAccess &access = remainder.scalarInputs.front();
  auto type = MemRefType::get({access.size}, builder.getF32Type());
  auto buffer = memref::AllocOp::create(builder, loc, type,
                                        builder.getI64IntegerAttr(64));
  combined.setBuffer(buffer);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  SmallVector<Value> indices(remainder.loops.size());
  auto address = [&](const StridedAccess &input) {
    AffineExpr expr = builder.getAffineConstantExpr(input.base);
    SmallVector<OpFoldResult> operands;
    for (auto [stride, index] : llvm::zip_equal(input.strides, indices)) {
      if (!stride || !index)
        continue;
      expr = expr + builder.getAffineDimExpr(operands.size()) * stride;
      operands.push_back(index);
    }
    return affine::makeComposedAffineApply(
               builder, loc, AffineMap::get(operands.size(), 0, expr), operands)
        .getResult();
  };
  SmallVector<Value> flat;
  for (const StridedAccess &input : combined.getInputs())
    flat.push_back(memref::ReinterpretCastOp::create(
        builder, loc, MemRefType::get({input.size}, builder.getF32Type()),
        input.buffer, /*offset=*/0, ArrayRef<int64_t>{input.size},
        ArrayRef<int64_t>{1}));

  auto enter = [&](unsigned loop, ValueRange carried) {
    auto op = scf::ForOp::create(builder, loc, constant(0),
                                 constant(remainder.loops[loop].extent),
                                 constant(1), carried);
    builder.setInsertionPointToStart(op.getBody());
    indices[loop] = op.getInductionVar();
    return op;
  };
  for (unsigned loop : combined.getLoops().loops)
    enter(loop, {});
  auto constantFloat = [&](float value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getF32FloatAttr(value));
  };
  Value sum = constantFloat(0);
  SmallVector<scf::ForOp> nest;
  for (unsigned loop : combined.getLoops().sums) {
    nest.push_back(enter(loop, sum));
    sum = nest.back().getRegionIterArg(0);
  }
  Value product;
  for (auto [input, buffer] : llvm::zip_equal(combined.getInputs(), flat)) {
    Value factor = memref::LoadOp::create(builder, loc, buffer, address(input));
    product =
        product ? arith::MulFOp::create(builder, loc, product, factor) : factor;
  }
  sum = arith::AddFOp::create(builder, loc, sum, product);
  for (scf::ForOp op : llvm::reverse(nest)) {
    scf::YieldOp::create(builder, loc, sum);
    builder.setInsertionPointAfter(op);
    sum = op.getResult(0);
  }
  memref::StoreOp::create(builder, loc, sum, access.buffer, address(access));
}
