//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/TensorEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

AffineMap TensorEmitter::getMap(ArrayRef<unsigned> dropped) const {
  SmallVector<AffineExpr> exprs;
  for (unsigned dimension = 0; dimension < type.getRank(); ++dimension)
    if (!llvm::is_contained(dropped, dimension))
      exprs.push_back(builder.getAffineDimExpr(dimension));
  return AffineMap::get(type.getRank(), 0, exprs, builder.getContext());
}

Value TensorEmitter::map(ArrayRef<TensorWithoutDims> inputs, BodyFn body) {
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const auto &[value, dropped] : inputs) {
    values.push_back(value);
    maps.push_back(getMap(dropped));
  }
  maps.push_back(getMap({}));
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, type, values, empty, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(builder, loc,
                                body(builder, loc, arguments.drop_back()));
      });
  return generic.getResult(0);
}

Value TensorEmitter::sum(ArrayRef<TensorWithoutDims> inputs,
                         ArrayRef<unsigned> dropped, BodyFn body) {
  return reduce(inputs, dropped, /*isMaximum=*/false, body);
}

Value TensorEmitter::maximum(ArrayRef<TensorWithoutDims> inputs,
                             ArrayRef<unsigned> dropped, BodyFn body) {
  return reduce(inputs, dropped, /*isMaximum=*/true, body);
}

Value TensorEmitter::reduce(ArrayRef<TensorWithoutDims> inputs,
                            ArrayRef<unsigned> dropped, bool isMaximum,
                            BodyFn body) {
  SmallVector<int64_t> shape;
  SmallVector<utils::IteratorType> iterators;
  for (auto [dimension, size] : llvm::enumerate(type.getShape())) {
    bool isDropped = llvm::is_contained(dropped, dimension);
    if (!isDropped)
      shape.push_back(size);
    iterators.push_back(isDropped ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
  }
  auto element = cast<FloatType>(type.getElementType());
  APFloat start = isMaximum ? APFloat::getInf(element.getFloatSemantics(), true)
                            : APFloat::getZero(element.getFloatSemantics());
  Value first = arith::ConstantOp::create(builder, loc,
                                          builder.getFloatAttr(element, start));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, element);
  Value init = linalg::FillOp::create(builder, loc, first, empty).getResult(0);
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const auto &[value, missing] : inputs) {
    values.push_back(value);
    maps.push_back(getMap(missing));
  }
  maps.push_back(getMap(dropped));
  auto generic = linalg::GenericOp::create(
      builder, loc, init.getType(), values, init, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        Value term = body(builder, loc, arguments.drop_back());
        Value combined = isMaximum ? Value(arith::MaximumFOp::create(
                                         builder, loc, arguments.back(), term))
                                   : Value(arith::AddFOp::create(
                                         builder, loc, arguments.back(), term));
        linalg::YieldOp::create(builder, loc, combined);
      });
  return generic.getResult(0);
}

Value TensorEmitter::sum(ValueRange inputs, BodyFn body) {
  SmallVector<TensorWithoutDims> whole;
  for (Value input : inputs)
    whole.push_back({input, {}});
  return reduce(whole, llvm::to_vector(llvm::seq<unsigned>(type.getRank())),
                /*isMaximum=*/false, body);
}

Value kas::scalars::makeConstant(OpBuilder &builder, Location loc, Type type,
                                 double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(type, value));
}

Value kas::scalars::multiply(OpBuilder &builder, Location loc, Value a,
                             Value b) {
  return arith::MulFOp::create(builder, loc, a, b);
}

Value kas::scalars::scale(OpBuilder &builder, Location loc, Value a,
                          double factor) {
  return multiply(builder, loc, a,
                  makeConstant(builder, loc, a.getType(), factor));
}
