//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The elementwise operation after a contraction on vectors of sums that are in
// registers, and what happens to the operations that it replaces.
//
//===----------------------------------------------------------------------===//

#include "EmitContraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The allocation of the result may be between the contraction and its
/// epilogue: it moves up.
void kas::codegen::prepareEpilogue(const ContractionEpilogue &epilogue,
                                   linalg::LinalgOp op) {
  if (!epilogue.elementwise)
    return;
  if (auto made = epilogue.result.getDefiningOp<memref::AllocOp>();
      made && !made->isBeforeInBlock(op))
    made->moveBefore(op);
}

Value kas::codegen::emitElementwise(OpBuilder &builder, Location loc,
                                    linalg::GenericOp op, ValueRange inputs) {
  Block &body = *op.getBlock();
  ArrayRef<int64_t> shape =
      cast<VectorType>(inputs.front().getType()).getShape();
  IRMapping map;
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    map.map(argument, input);
  // Constants and other scalars from outside of the body are broadcast.
  auto getVector = [&](Value value) -> Value {
    Value mapped = map.lookupOrDefault(value);
    if (isa<VectorType>(mapped.getType()))
      return mapped;
    return vector::BroadcastOp::create(
        builder, loc, VectorType::get(shape, mapped.getType()), mapped);
  };
  for (Operation &inner : body.without_terminator()) {
    // Remains scalar until an operation uses it.
    if (isa<arith::ConstantOp>(inner)) {
      builder.clone(inner, map);
      continue;
    }
    SmallVector<Value> operands =
        llvm::map_to_vector(inner.getOperands(), getVector);
    Type type = VectorType::get(shape, inner.getResult(0).getType());
    Operation *made = builder.create(loc, inner.getName().getIdentifier(),
                                     operands, type, inner.getAttrs());
    map.map(inner.getResult(0), made->getResult(0));
  }
  return getVector(body.getTerminator()->getOperand(0));
}

void kas::codegen::eraseEpilogue(const ContractionEpilogue &epilogue) {
  if (epilogue.broadcast)
    epilogue.broadcast->erase();
  if (epilogue.elementwise)
    epilogue.elementwise->erase();
}
