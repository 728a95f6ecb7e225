//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by emitters of loops on buffers: sequential and parallel
// loops, index arithmetic, guards of lanes, transposition in registers. All of
// it makes scf, arith and vector operations at the builder's insertion point.
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"
#include "kas/Dialect/KasCPU/IR/KasCPUOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Both attributes of LLVM mean "disable" with `true`. Bodies are vectors
/// already, and unrolling them would exceed the buffer of decoded instructions.
Attribute kas::codegen::getFinishedLoop(MLIRContext *context) {
  auto yes = BoolAttr::get(context, true);
  auto vectorize =
      LLVM::LoopVectorizeAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  auto unroll = LLVM::LoopUnrollAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  return LLVM::LoopAnnotationAttr::get(context, {}, vectorize, {}, unroll, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
}

Value LoopEmitter::flatten(Value buffer, int64_t size) {
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  // Addresses count from the start of the allocation, also those of views.
  return memref::ReinterpretCastOp::create(
      builder, loc, MemRefType::get({size}, type), buffer, /*offset=*/0,
      ArrayRef<int64_t>{size}, ArrayRef<int64_t>{1});
}

Value LoopEmitter::flattenInput(Value buffer, int64_t size) {
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  if (type == elementType)
    return flatten(buffer, size);
  auto words = MemRefType::get({size}, elementType);
  // Upstream's views are of bytes only.
  if (type.isInteger(8))
    return memref::ViewOp::create(builder, loc, words,
                                  flatten(buffer, 4 * size), constant(0),
                                  ValueRange());
  // Of bf16 and i16 that leaves an operation of our own, which lowers to the
  // same pointer.
  return ViewVNNIGroupsOp::create(builder, loc, words,
                                  flatten(buffer, 2 * size));
}

scf::ForOp LoopEmitter::serialLoop(int64_t extent, int64_t step, Body body) {
  auto op = scf::ForOp::create(builder, loc, constant(0), constant(extent),
                               constant(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
  return op;
}

void LoopEmitter::sharedLoop(int64_t numItems, Body body) {
  // Whether threads share it is up to the pipeline: with one thread this
  // becomes a sequential loop.
  auto op = scf::ParallelOp::create(builder, loc, ValueRange{constant(0)},
                                    ValueRange{constant(numItems)},
                                    ValueRange{constant(1)});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  body(op.getInductionVars().front());
}

/// Operations of `arith`: to compose and simplify maps again and again takes
/// longer than to find what is the same in the end.
static Value emitExpr(OpBuilder &builder, Location loc, AffineExpr expr,
                      ArrayRef<Value> operands) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return operands[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantIndexOp::create(builder, loc, constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value left = emitExpr(builder, loc, binary.getLHS(), operands);
  // Divisions and remainders by constants: MLIR's expansion rounds them to
  // minus infinity.
  if (expr.getKind() != AffineExprKind::Add &&
      expr.getKind() != AffineExprKind::Mul)
    return affine::expandAffineExpr(
        builder, loc,
        getAffineBinaryOpExpr(expr.getKind(), builder.getAffineDimExpr(0),
                              binary.getRHS()),
        left, {});
  Value right = emitExpr(builder, loc, binary.getRHS(), operands);
  if (expr.getKind() == AffineExprKind::Add)
    return arith::AddIOp::create(builder, loc, left, right);
  return arith::MulIOp::create(builder, loc, left, right);
}

Value LoopEmitter::apply(AffineExpr expr, ArrayRef<Value> operands) {
  // Constant operands become part of the expression, whose constructors fold.
  SmallVector<AffineExpr> known;
  for (auto [position, operand] : llvm::enumerate(operands)) {
    std::optional<int64_t> value = getConstantIntValue(operand);
    known.push_back(value ? builder.getAffineConstantExpr(*value)
                          : builder.getAffineDimExpr(position));
  }
  return emitExpr(builder, loc, expr.replaceDims(known), operands);
}

Value LoopEmitter::testLanes(Value start, ArrayRef<int64_t> steps,
                             int64_t extent) {
  // Of 32 bits: as many lanes as the data.
  int64_t lanes = steps.size();
  auto type = VectorType::get({lanes}, builder.getI32Type());
  SmallVector<int32_t> offsets(steps);
  Value first =
      arith::IndexCastOp::create(builder, loc, builder.getI32Type(), start);
  Value values = arith::AddIOp::create(
      builder, loc, vector::BroadcastOp::create(builder, loc, type, first),
      arith::ConstantOp::create(
          builder, loc, DenseElementsAttr::get(type, ArrayRef(offsets))));
  Value extents = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, static_cast<int32_t>(extent)));
  // A negative number is a large one without its sign.
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, values,
                               extents);
}

Value LoopEmitter::add(Value left, Value right) {
  if (isa<FloatType>(elementType))
    return arith::AddFOp::create(builder, loc, left, right);
  return arith::AddIOp::create(builder, loc, left, right);
}

Value LoopEmitter::multiplyAdd(Value row, Value column, Value sum,
                               bool hasFMA) {
  if (hasFMA)
    return vector::FMAOp::create(builder, loc, row, column, sum);
  // A fused one would be a call of a function for each lane.
  Value product = arith::MulFOp::create(builder, loc, row, column);
  return arith::AddFOp::create(builder, loc, product, sum);
}

// Blocks off the diagonal change places, ever larger ones.
SmallVector<Value> LoopEmitter::transpose(SmallVector<Value> vectors) {
  // Step `size` exchanges, in each block of 2 size times 2 size elements, the
  // upper right block with the lower left one:
  //
  //     a b      a c
  //     c d  ->  b d
  //
  // These are log2(lanes) steps of `lanes` shuffles, each of two vectors.
  int64_t lanes = vectors.size();
  for (int64_t size = 1; size < lanes; size *= 2) {
    SmallVector<int64_t> lower, upper;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool second = lane & size;
      lower.push_back(second ? lanes + lane - size : lane);
      upper.push_back(second ? lanes + lane : lane + size);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      // The second vector of a pair was rewritten with the first.
      if (i & size)
        continue;
      Value first = vectors[i], second = vectors[i + size];
      vectors[i] =
          vector::ShuffleOp::create(builder, loc, first, second, lower);
      vectors[i + size] =
          vector::ShuffleOp::create(builder, loc, first, second, upper);
    }
  }
  return vectors;
}
