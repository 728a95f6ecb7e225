//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits structured operations over the dimensions of one tensor whose operands
// may lack some of them.
// All loops run over that tensor's dimensions, one each; an operand without
// some of them is broadcast along these. Normalizations, losses and optimizers
// of training steps are written with it.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/TensorEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

/// For rank 4 and `dropped` {0, 2, 3}: (n, c, h, w) -> (c).
AffineMap TensorEmitter::getMap(ArrayRef<unsigned> dropped) const {
  SmallVector<AffineExpr> exprs;
  for (unsigned dimension = 0; dimension < type.getRank(); ++dimension)
    if (!llvm::is_contained(dropped, dimension))
      exprs.push_back(builder.getAffineDimExpr(dimension));
  return AffineMap::get(type.getRank(), 0, exprs, builder.getContext());
}

/// Dropped dimensions are reductions, all others parallel.
SmallVector<utils::IteratorType>
TensorEmitter::getIterators(ArrayRef<unsigned> dropped) const {
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  for (unsigned dimension : dropped)
    iterators[dimension] = utils::IteratorType::reduction;
  return iterators;
}

/// The shape is that of `type` without them.
Value TensorEmitter::fill(ArrayRef<unsigned> dropped, APFloat value) {
  SmallVector<int64_t> shape;
  for (auto [dimension, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(dropped, dimension))
      shape.push_back(size);
  Type element = type.getElementType();
  Value first = arith::ConstantOp::create(builder, loc,
                                          builder.getFloatAttr(element, value));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, element);
  return linalg::FillOp::create(builder, loc, first, empty).getResult(0);
}

/// The result has all dimensions of `type`.
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
  auto generic = linalg::GenericOp::create(
      builder, loc, type, values, empty, maps, getIterators({}),
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

/// One linalg.generic with `count` results: the data is read once.
SmallVector<Value> TensorEmitter::sums(unsigned count,
                                       ArrayRef<TensorWithoutDims> inputs,
                                       ArrayRef<unsigned> dropped,
                                       BodiesFn body) {
  SmallVector<Value> values, inits;
  SmallVector<AffineMap> maps;
  for (const auto &[value, missing] : inputs) {
    values.push_back(value);
    maps.push_back(getMap(missing));
  }
  auto &semantics = cast<FloatType>(type.getElementType()).getFloatSemantics();
  for (unsigned i = 0; i < count; ++i) {
    inits.push_back(fill(dropped, APFloat::getZero(semantics)));
    maps.push_back(getMap(dropped));
  }
  auto generic = linalg::GenericOp::create(
      builder, loc, ValueRange(inits).getTypes(), values, inits, maps,
      getIterators(dropped),
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        SmallVector<Value> sums =
            body(builder, loc, arguments.drop_back(count));
        // Reassociation lets the vectorizer keep one partial sum per lane.
        for (auto [sum, old] :
             llvm::zip_equal(sums, arguments.take_back(count)))
          sum = arith::AddFOp::create(builder, loc, old, sum,
                                      arith::FastMathFlags::reassoc);
        linalg::YieldOp::create(builder, loc, sums);
      });
  return llvm::to_vector(ValueRange(generic.getResults()));
}

Value TensorEmitter::maximum(ArrayRef<TensorWithoutDims> inputs,
                             ArrayRef<unsigned> dropped, BodyFn body) {
  return reduce(inputs, dropped, /*isMaximum=*/true, body);
}

/// Terms in order of the loops: no reassociation, results are the same for any
/// vector width.
Value TensorEmitter::reduce(ArrayRef<TensorWithoutDims> inputs,
                            ArrayRef<unsigned> dropped, bool isMaximum,
                            BodyFn body) {
  auto &semantics = cast<FloatType>(type.getElementType()).getFloatSemantics();
  // Neutral elements: minus infinity, or zero.
  Value init = fill(dropped, isMaximum ? APFloat::getInf(semantics, true)
                                       : APFloat::getZero(semantics));
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const auto &[value, missing] : inputs) {
    values.push_back(value);
    maps.push_back(getMap(missing));
  }
  maps.push_back(getMap(dropped));
  auto generic = linalg::GenericOp::create(
      builder, loc, init.getType(), values, init, maps, getIterators(dropped),
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

/// A tensor of rank 0, as of a loss.
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
