//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

Attribute kas::codegen::getFinishedLoop(MLIRContext *context) {
  auto yes = BoolAttr::get(context, true);
  auto vectorize =
      LLVM::LoopVectorizeAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  auto unroll = LLVM::LoopUnrollAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  return LLVM::LoopAnnotationAttr::get(context, {}, vectorize, {}, unroll, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
}

Value LoopEmitter::flatten(Value buffer, int64_t size) {
  auto type = MemRefType::get({size}, builder.getF32Type());
  return memref::ReinterpretCastOp::create(
      builder, loc, type, buffer, /*offset=*/0, ArrayRef<int64_t>{size},
      ArrayRef<int64_t>{1});
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
  auto op = scf::ParallelOp::create(builder, loc, ValueRange{constant(0)},
                                    ValueRange{constant(numItems)},
                                    ValueRange{constant(1)});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  body(op.getInductionVars().front());
}
