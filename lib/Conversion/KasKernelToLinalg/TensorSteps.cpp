//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds linalg and tensor operations of static shape, for lowering kernels of
// the tensor level.
// Extents are numbers, so all shapes, slices and maps are static.
//
//===----------------------------------------------------------------------===//

#include "TensorSteps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

using namespace mlir;
using namespace kas;

/// Of the element type of `like`.
Value TensorSteps::createEmpty(ArrayRef<int64_t> shape, Value like) {
  return tensor::EmptyOp::create(b, shape, getElementTypeOrSelf(like));
}

Value TensorSteps::createFilled(ArrayRef<int64_t> shape, Value like,
                                double value) {
  Value scalar = arith::ConstantOp::create(
      b, b.getFloatAttr(getElementTypeOrSelf(like), value));
  return linalg::FillOp::create(b, scalar, createEmpty(shape, like))
      .getResult(0);
}

/// At most one collapse and one expand, which are free: no data moves. [2, 3,
/// 4] to [6, 2, 2]: groups {2 3 | 4} and {6 | 2 2}, by way of [6, 4].
Value TensorSteps::view(Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> from = type.getShape();
  if (from == shape)
    return value;
  // Runs of dimensions, as short as possible, that have as many elements on
  // both sides: those of the value are collapsed, then expanded to those of
  // `shape`.
  SmallVector<ReassociationIndices> sources, targets;
  Shape middle;
  for (size_t source = 0, target = 0;
       source < from.size() && target < shape.size();) {
    int64_t have = from[source], want = shape[target];
    sources.push_back({int64_t(source++)});
    targets.push_back({int64_t(target++)});
    // The side with fewer elements takes one more dimension. Both sides have
    // equally many elements in all, so neither runs out.
    while (have != want) {
      if (have < want) {
        have *= from[source];
        sources.back().push_back(source++);
      } else {
        want *= shape[target];
        targets.back().push_back(target++);
      }
    }
    middle.push_back(have);
  }
  // What is left on either side is ones.
  for (int64_t dim = sources.back().back() + 1, e = from.size(); dim < e; ++dim)
    sources.back().push_back(dim);
  for (int64_t dim = targets.back().back() + 1, e = shape.size(); dim < e;
       ++dim)
    targets.back().push_back(dim);
  if (middle.size() != from.size())
    value =
        tensor::CollapseShapeOp::create(b, type.clone(middle), value, sources);
  if (middle.size() != shape.size())
    value = tensor::ExpandShapeOp::create(b, type.clone(shape), value, targets);
  return value;
}

/// All loops are parallel, one per dimension of the result; maps may drop loops
/// (broadcast) or add them up (windows).
Value TensorSteps::map(ArrayRef<int64_t> shape, ArrayRef<Value> operands,
                       ArrayRef<AffineMap> maps, Body body) {
  Value empty = createEmpty(shape, operands.front());
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(b.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, empty.getType(), operands, empty, allMaps, iterators,
             [&](OpBuilder &nested, Location loc, ValueRange arguments) {
               linalg::YieldOp::create(
                   nested, loc, body(nested, loc, arguments.drop_back()));
             })
      .getResult(0);
}

Value TensorSteps::map(ArrayRef<Value> operands, Body body) {
  Shape shape(getShape(operands.front()));
  SmallVector<AffineMap> maps(operands.size(),
                              b.getMultiDimIdentityMap(shape.size()));
  return map(shape, operands, maps, body);
}

/// Element by element; rounded to the element type once.
Value TensorSteps::scale(Value value, double factor) {
  return map(value, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
    Value constant = arith::ConstantOp::create(
        nested, loc, nested.getFloatAttr(getElementTypeOrSelf(value), factor));
    return arith::MulFOp::create(nested, loc, arguments[0], constant);
  });
}

/// In the form that linalg's and our own matchers of contractions know: result
/// loops first, body `add(out, mul(left, right))`, zeros to begin with.
Value TensorSteps::contract(ArrayRef<int64_t> shape, unsigned numReductions,
                            Value left, AffineMap leftMap, Value right,
                            AffineMap rightMap) {
  Value zeros = createFilled(shape, left, 0.0);
  unsigned numLoops = shape.size() + numReductions;
  AffineMap result = AffineMap::getMultiDimIdentityMap(numLoops, b.getContext())
                         .getMajorSubMap(shape.size());
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  iterators.append(numReductions, utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             b, zeros.getType(), ValueRange{left, right}, zeros,
             ArrayRef<AffineMap>{leftMap, rightMap, result}, iterators,
             [](OpBuilder &nested, Location loc, ValueRange arguments) {
               Value product = arith::MulFOp::create(nested, loc, arguments[0],
                                                     arguments[1]);
               Value sum =
                   arith::AddFOp::create(nested, loc, arguments[2], product);
               linalg::YieldOp::create(nested, loc, sum);
             })
      .getResult(0);
}

/// Kept dimensions stay in their order.
Value TensorSteps::reduce(Value value, ArrayRef<int64_t> dims, bool isMax) {
  ArrayRef<int64_t> shape = getShape(value);
  Shape kept;
  SmallVector<AffineExpr> results;
  SmallVector<utils::IteratorType> iterators;
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    bool isReduced = llvm::is_contained(dims, int64_t(dim));
    iterators.push_back(isReduced ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
    if (isReduced)
      continue;
    kept.push_back(extent);
    results.push_back(b.getAffineDimExpr(dim));
  }
  Value start = createFilled(
      kept, value, isMax ? -std::numeric_limits<double>::infinity() : 0.0);
  AffineMap maps[] = {b.getMultiDimIdentityMap(shape.size()),
                      AffineMap::get(shape.size(), 0, results, b.getContext())};
  return linalg::GenericOp::create(
             b, start.getType(), value, start, maps, iterators,
             [&](OpBuilder &nested, Location loc, ValueRange arguments) {
               // `maximumf` keeps NaN, as the reference does (`maxnumf` would
               // not).
               Value next = isMax ? arith::MaximumFOp::create(
                                        nested, loc, arguments[0], arguments[1])
                                        .getResult()
                                  : arith::AddFOp::create(
                                        nested, loc, arguments[1], arguments[0])
                                        .getResult();
               linalg::YieldOp::create(nested, loc, next);
             })
      .getResult(0);
}

Value TensorSteps::permute(Value value, ArrayRef<int64_t> permutation) {
  ArrayRef<int64_t> shape = getShape(value);
  Shape target;
  SmallVector<AffineExpr> sources(shape.size());
  for (auto [dim, source] : llvm::enumerate(permutation)) {
    target.push_back(shape[source]);
    // The inverse permutation: loops are those of the result.
    sources[source] = b.getAffineDimExpr(dim);
  }
  return map(
      target, value, AffineMap::get(shape.size(), 0, sources, b.getContext()),
      [](OpBuilder &, Location, ValueRange arguments) { return arguments[0]; });
}

Value TensorSteps::pad(Value value, ArrayRef<int64_t> low,
                       ArrayRef<int64_t> high) {
  auto isZero = [](int64_t width) { return width == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  Shape shape;
  for (auto [extent, before, after] :
       llvm::zip_equal(type.getShape(), low, high))
    shape.push_back(extent + before + after);
  Value zero =
      arith::ConstantOp::create(b, b.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(
      b, type.clone(shape), value, getAsIndexOpFoldResult(b.getContext(), low),
      getAsIndexOpFoldResult(b.getContext(), high), zero);
}

/// Slices must cover all positions of the result: it begins uninitialized.
Value TensorSteps::rearrange(Value value, int64_t dim, ArrayRef<Slice> slices) {
  ArrayRef<int64_t> shape = getShape(value);
  Value result = createEmpty(shape, value);
  for (const Slice &slice : slices) {
    if (slice.count == 0)
      continue;
    Shape from(shape.size(), 0), to(from), sizes(shape);
    Shape steps(shape.size(), 1), toSteps(steps);
    from[dim] = slice.from;
    to[dim] = slice.to;
    sizes[dim] = slice.count;
    steps[dim] = slice.step;
    toSteps[dim] = slice.toStep;
    auto asAttributes = [&](ArrayRef<int64_t> numbers) {
      return getAsIndexOpFoldResult(b.getContext(), numbers);
    };
    Value part = tensor::ExtractSliceOp::create(
        b, value, asAttributes(from), asAttributes(sizes), asAttributes(steps));
    result = tensor::InsertSliceOp::create(b, part, result, asAttributes(to),
                                           asAttributes(sizes),
                                           asAttributes(toSteps));
  }
  return result;
}

/// The value itself when it is all of it.
Value TensorSteps::take(Value value, int64_t dim, int64_t from, int64_t count) {
  Shape sizes(getShape(value)), offsets(sizes.size(), 0), ones(sizes.size(), 1);
  if (sizes[dim] == count)
    return value;
  sizes[dim] = count;
  offsets[dim] = from;
  auto asAttributes = [&](ArrayRef<int64_t> numbers) {
    return getAsIndexOpFoldResult(b.getContext(), numbers);
  };
  return tensor::ExtractSliceOp::create(
      b, value, asAttributes(offsets), asAttributes(sizes), asAttributes(ones));
}

/// Tensors are values: the result is a new one, which bufferization makes in
/// place where it can.
Value TensorSteps::put(Value part, Value value, int64_t dim, int64_t to) {
  Shape sizes(getShape(part)), offsets(sizes.size(), 0), ones(sizes.size(), 1);
  offsets[dim] = to;
  auto asAttributes = [&](ArrayRef<int64_t> numbers) {
    return getAsIndexOpFoldResult(b.getContext(), numbers);
  };
  return tensor::InsertSliceOp::create(b, part, value, asAttributes(offsets),
                                       asAttributes(sizes), asAttributes(ones));
}

Value TensorSteps::constant(ArrayRef<float> values) {
  auto type = RankedTensorType::get(int64_t(values.size()), b.getF32Type());
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<float>(values)));
}
