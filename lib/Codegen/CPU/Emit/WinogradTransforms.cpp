//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products with the constant matrices of Winograd's algorithm, and buffers.
//
//===----------------------------------------------------------------------===//

#include "WinogradTransforms.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

Value WinogradTransforms::combine(ArrayRef<float> factors, ValueRange values) {
  Type type = values.front().getType();
  auto splat = [&](float value) -> Value {
    TypedAttr attr = builder.getF32FloatAttr(value);
    if (auto vectorType = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vectorType, value);
    return arith::ConstantOp::create(builder, loc, attr);
  };
  Value sum;
  for (auto [factor, value] : llvm::zip_equal(factors, values)) {
    // Zeros and ones of the matrices save a multiplication: 12 of the 36
    // factors of `dataTransform` remain.
    if (factor == 0)
      continue;
    bool isOne = factor == 1 || factor == -1;
    if (!sum)
      sum = factor == 1
                ? value
                : arith::MulFOp::create(builder, loc, value, splat(factor))
                      .getResult();
    else if (isOne && factor > 0)
      sum = arith::AddFOp::create(builder, loc, sum, value);
    else if (isOne)
      sum = arith::SubFOp::create(builder, loc, sum, value);
    else if (hasFMA && isa<VectorType>(type))
      sum = vector::FMAOp::create(builder, loc, value, splat(factor), sum);
    else
      sum = arith::AddFOp::create(
          builder, loc, sum,
          arith::MulFOp::create(builder, loc, value, splat(factor)));
  }
  return sum;
}

Value WinogradTransforms::makeBuffer(ArrayRef<int64_t> shape) {
  auto type = MemRefType::get(shape, builder.getF32Type());
  return memref::AllocOp::create(builder, loc, type,
                                 builder.getI64IntegerAttr(64));
}

Value WinogradTransforms::flatten(Value buffer) {
  return LoopEmitter::flatten(
      buffer, cast<MemRefType>(buffer.getType()).getNumElements());
}

Value WinogradTransforms::toBuffer(Value tensor) {
  auto type = bufferization::getMemRefTypeWithStaticIdentityLayout(
      cast<TensorType>(tensor.getType()));
  return bufferization::ToBufferOp::create(builder, loc, type, tensor,
                                           /*read_only=*/true);
}

Value WinogradTransforms::getMask(ArrayRef<bool> exists) {
  auto type = VectorType::get({static_cast<int64_t>(exists.size())},
                              builder.getI1Type());
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, exists));
}
