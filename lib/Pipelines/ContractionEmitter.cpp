//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace kas;
using namespace mlir;

Attribute kas::getFinishedLoop(MLIRContext *context) {
  auto yes = BoolAttr::get(context, true);
  auto vectorize =
      LLVM::LoopVectorizeAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  auto unroll = LLVM::LoopUnrollAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  return LLVM::LoopAnnotationAttr::get(context, {}, vectorize, {}, unroll, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
}

void ContractionEmitter::flattenBuffers() {
  output = flatten(contraction.output.buffer, contraction.output.size);
  for (const PackedAccess &input : contraction.vectorInputs)
    vectorInputs.push_back(flatten(input.buffer, input.size));
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarInputs.push_back(flatten(input.buffer, input.size));
}

Value ContractionEmitter::tailMask(int64_t lanes, int64_t size) {
  auto type = VectorType::get({size}, builder.getI1Type());
  return vector::ConstantMaskOp::create(builder, loc, type,
                                        ArrayRef<int64_t>{lanes});
}

Value ContractionEmitter::multiplyAdd(Value row, Value column, Value sum) {
  if (target.hasFMA)
    return vector::FMAOp::create(builder, loc, row, column, sum);
  // A fused one would be a call of a function for each lane.
  Value product = arith::MulFOp::create(builder, loc, row, column);
  return arith::AddFOp::create(builder, loc, product, sum);
}
