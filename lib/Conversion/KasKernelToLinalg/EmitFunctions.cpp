//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Element-wise functions, folds and blends.
// Softmax, scans, broadcasts and matrix products are here as well. Meaning of
// all ops: docs/reference/tensor-level.md; the reference is
// lib/Reference/KernelArithmetic.cpp. Everything is upstream linalg, so fusion,
// gradients and batching need nothing new.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace kas;

using Shape = TensorSteps::Shape;

//===----------------------------------------------------------------------===//
// Element-wise functions and folds
//===----------------------------------------------------------------------===//

/// The function of one element; `n` builds in the body of a linalg op.
static Value apply(DagUnaryKind kind, ImplicitLocOpBuilder &n, Value x) {
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(n, n.getFloatAttr(x.getType(), value));
  };
  switch (kind) {
  case DagUnaryKind::ReLU:
    return arith::MaximumFOp::create(n, x, constant(0));
  // x / 2 * (1 + erf(x / sqrt 2)): the exact form.
  case DagUnaryKind::GELU: {
    Value error = math::ErfOp::create(
        n, arith::MulFOp::create(n, x, constant(std::numbers::sqrt2 / 2)));
    Value half = arith::MulFOp::create(n, x, constant(0.5));
    return arith::MulFOp::create(n, half,
                                 arith::AddFOp::create(n, error, constant(1)));
  }
  case DagUnaryKind::Sigmoid: {
    Value power = math::ExpOp::create(n, arith::NegFOp::create(n, x));
    return arith::DivFOp::create(n, constant(1),
                                 arith::AddFOp::create(n, power, constant(1)));
  }
  case DagUnaryKind::TanH:
    return math::TanhOp::create(n, x);
  case DagUnaryKind::Abs:
    return math::AbsFOp::create(n, x);
  case DagUnaryKind::Exp:
    return math::ExpOp::create(n, x);
  case DagUnaryKind::Neg:
    return arith::NegFOp::create(n, x);
  // sin(pi x / 2), as in Canvas.
  case DagUnaryKind::Sin:
    return math::SinOp::create(
        n, arith::MulFOp::create(n, x, constant(std::numbers::pi / 2)));
  case DagUnaryKind::Sqrt:
    return math::SqrtOp::create(n, math::AbsFOp::create(n, x));
  case DagUnaryKind::Sqr:
    return arith::MulFOp::create(n, x, x);
  }
  llvm_unreachable("all functions are above");
}

FailureOr<Value> KernelEmitter::emit(DagUnaryOp op, ArrayRef<int64_t>) {
  return steps.map(values[op.getInput()],
                   [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                     ImplicitLocOpBuilder n(loc, nested);
                     return apply(op.getKind(), n, arguments[0]);
                   });
}

/// Folds `dims` of `input`, counted with the batch.
/// A mean is a sum and a scale: fusion merges them, and the sum is exact for
/// integers.
Value KernelEmitter::fold(DagFoldKind kind, Value input,
                          ArrayRef<int64_t> dims) {
  Value result = steps.reduce(input, dims, kind == DagFoldKind::Max);
  if (kind != DagFoldKind::Mean)
    return result;
  int64_t count = getProduct(TensorSteps::getShape(input)) /
                  getProduct(TensorSteps::getShape(result));
  return steps.scale(result, 1 / double(count));
}

FailureOr<Value> KernelEmitter::emit(DagFoldOp op, ArrayRef<int64_t>) {
  return fold(op.getKind(), values[op.getInput()], shiftDims(op.getDims()));
}

/// Each named dimension is split into the windows and their elements.
/// [N, C, H] by windows of 2 -> [N, C, H/2, 2], whose last dimension is folded.
FailureOr<Value> KernelEmitter::emit(DagPoolOp op, ArrayRef<int64_t> shape) {
  FailureOr<Shape> windows = getSizes(op.getWindows());
  if (failed(windows))
    return failure();
  Shape split;
  SmallVector<int64_t> folded;
  SmallVector<int64_t> dims = shiftDims(op.getDims());
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    split.push_back(extent);
    auto *found = llvm::find(dims, int64_t(dim));
    if (found == dims.end())
      continue;
    folded.push_back(split.size());
    split.push_back((*windows)[found - dims.begin()]);
  }
  return fold(op.getKind(), steps.view(values[op.getInput()], split), folded);
}

/// exp(x - max) / sum, in four linalg ops that code generation fuses. The
/// maximum keeps exp() from overflowing.
FailureOr<Value> KernelEmitter::emit(DagSoftmaxOp op, ArrayRef<int64_t> shape) {
  Value input = values[op.getInput()];
  SmallVector<int64_t> dims = shiftDims(op.getDims());
  SmallVector<int64_t> kept =
      llvm::filter_to_vector(getRange(0, shape.size()), [&](int64_t dim) {
        return !llvm::is_contained(dims, dim);
      });
  // The whole tensor, and one without `dims`.
  AffineMap maps[] = {b.getMultiDimIdentityMap(shape.size()),
                      getMap(shape.size(), kept)};
  Value largest = steps.reduce(input, dims, /*isMax=*/true);
  Value powers = steps.map(
      shape, {input, largest}, maps,
      [](OpBuilder &nested, Location loc, ValueRange arguments) -> Value {
        return math::ExpOp::create(
            nested, loc,
            arith::SubFOp::create(nested, loc, arguments[0], arguments[1]));
      });
  Value sums = steps.reduce(powers, dims, /*isMax=*/false);
  return steps.map(
      shape, {powers, sums}, maps,
      [](OpBuilder &nested, Location loc, ValueRange arguments) -> Value {
        return arith::DivFOp::create(nested, loc, arguments[0], arguments[1]);
      });
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

static Value add(OpBuilder &nested, Location loc, ValueRange arguments) {
  return arith::AddFOp::create(nested, loc, arguments[0], arguments[1]);
}

static Value multiply(OpBuilder &nested, Location loc, ValueRange arguments) {
  return arith::MulFOp::create(nested, loc, arguments[0], arguments[1]);
}

/// The product of the last two arguments is added to the first one.
static Value addProduct(OpBuilder &nested, Location loc, ValueRange arguments) {
  Value product = multiply(nested, loc, arguments.drop_front());
  return arith::AddFOp::create(nested, loc, arguments[0], product);
}

/// A linear recurrence along `dim`, counted with the batch; without a factor a
/// sum. By doubling: before the step of `distance` each position has what it
/// and the `distance` - 1 positions before it give, and the product of their
/// factors, which is right where it is still read. The first `distance`
/// positions are done.
/// ceil(log2 extent) steps, as Hillis and Steele's scan: more additions than a
/// loop over the dimension, but each step is parallel. `factor` is null for
/// sums.
Value KernelEmitter::scan(Value factor, Value input, int64_t dim) {
  int64_t extent = TensorSteps::getShape(input)[dim];
  Value state = input;
  for (int64_t distance = 1; distance < extent; distance *= 2) {
    int64_t count = extent - distance;
    // state[i] += (factor[i] *) state[i - distance].
    SmallVector<Value> operands = {steps.take(state, dim, distance, count),
                                   steps.take(state, dim, 0, count)};
    if (!factor) {
      state = steps.put(steps.map(operands, add), state, dim, distance);
      continue;
    }
    Value factors = steps.take(factor, dim, distance, count);
    operands.push_back(factors);
    state = steps.put(steps.map(operands, addProduct), state, dim, distance);
    // Nothing reads the products of the last step.
    if (2 * distance >= extent)
      break;
    Value products =
        steps.map({factors, steps.take(factor, dim, 0, count)}, multiply);
    factor = steps.put(products, factor, dim, distance);
  }
  return state;
}

FailureOr<Value> KernelEmitter::emit(DagCumSumOp op, ArrayRef<int64_t>) {
  return scan(Value(), values[op.getInput()], op.getDim() + 1);
}

FailureOr<Value> KernelEmitter::emit(DagScanOp op, ArrayRef<int64_t>) {
  return scan(values[op.getFactor()], values[op.getInput()], op.getDim() + 1);
}

//===----------------------------------------------------------------------===//
// Blending
//===----------------------------------------------------------------------===//

static Value apply(DagBroadcastKind kind, OpBuilder &n, Location loc,
                   Value left, Value right) {
  switch (kind) {
  case DagBroadcastKind::Add:
    return arith::AddFOp::create(n, loc, left, right);
  case DagBroadcastKind::Sub:
    return arith::SubFOp::create(n, loc, left, right);
  case DagBroadcastKind::Mul:
    return arith::MulFOp::create(n, loc, left, right);
  case DagBroadcastKind::Min:
    return arith::MinimumFOp::create(n, loc, left, right);
  case DagBroadcastKind::Max:
    return arith::MaximumFOp::create(n, loc, left, right);
  }
  llvm_unreachable("all kinds are above");
}

/// The right operand keeps its shape where the left block is as large as some
/// last dimensions of the right one; otherwise both blocks become loops over
/// repetitions and elements of the left block.
FailureOr<Value> KernelEmitter::emit(DagBroadcastOp op,
                                     ArrayRef<int64_t> shape) {
  Value left = values[op.getLeft()], right = values[op.getRight()];
  int64_t numFirst = op.getCommon()[0] + 1, numLast = op.getCommon()[1];
  ArrayRef<int64_t> first = shape.take_front(numFirst);
  ArrayRef<int64_t> last = shape.take_back(numLast);
  ArrayRef<int64_t> block = shape.drop_front(numFirst).drop_back(numLast);
  int64_t leftBlock = getProduct(
      TensorSteps::getShape(left).drop_front(numFirst).drop_back(numLast));
  int64_t rightBlock = getProduct(block);
  if (rightBlock % leftBlock != 0)
    return op.emitOpError("requires a left block that divides ")
           << rightBlock << " (K3), got " << leftBlock;
  size_t numShared = 0;
  while (numShared < block.size() &&
         getProduct(block.take_back(numShared)) < leftBlock)
    ++numShared;
  // Shape of the loops: prefix, repetitions, left block, suffix.
  Shape pairs(first);
  if (getProduct(block.take_back(numShared)) == leftBlock) {
    llvm::append_range(pairs, block);
  } else {
    numShared = 1;
    pairs.push_back(rightBlock / leftBlock);
    pairs.push_back(leftBlock);
  }
  llvm::append_range(pairs, last);
  // The left operand is read along all loops but the repetitions.
  SmallVector<int64_t> reads = getRange(0, numFirst);
  llvm::append_range(
      reads, getRange(pairs.size() - numLast - numShared, pairs.size()));
  Shape leftShape;
  for (int64_t dim : reads)
    leftShape.push_back(pairs[dim]);
  AffineMap maps[] = {getMap(pairs.size(), reads),
                      b.getMultiDimIdentityMap(pairs.size())};
  Value result = steps.map(
      pairs, {steps.view(left, leftShape), steps.view(right, pairs)}, maps,
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        return apply(op.getKind(), nested, loc, arguments[0], arguments[1]);
      });
  return steps.view(result, shape);
}

/// One batched contraction; the samples are part of `matrices`. A transposition
/// is in the indexing maps, so nothing is copied.
FailureOr<Value> KernelEmitter::emit(DagMatMulOp op, ArrayRef<int64_t> shape) {
  auto [rowDims, innerDims] = op.getMatrix(/*isRight=*/false);
  FailureOr<Shape> rowShape = getSizes(rowDims);
  FailureOr<Shape> innerShape = getSizes(innerDims);
  FailureOr<Shape> columnShape = getSizes(op.getMatrix(true).second);
  if (failed(rowShape) || failed(innerShape) || failed(columnShape))
    return failure();
  int64_t rows = getProduct(*rowShape), inner = getProduct(*innerShape);
  int64_t columns = getProduct(*columnShape);
  int64_t matrices = getProduct(shape) / (rows * columns);
  // Loops: matrix, row, column, inner.
  Shape leftShape = {matrices, rows, inner};
  SmallVector<int64_t> leftLoops = {0, 1, 3}, rightLoops = {0, 3, 2};
  Shape rightShape = {matrices, inner, columns};
  if (op.getTransposeLeft()) {
    std::swap(leftShape[1], leftShape[2]);
    std::swap(leftLoops[1], leftLoops[2]);
  }
  if (op.getTransposeRight()) {
    std::swap(rightShape[1], rightShape[2]);
    std::swap(rightLoops[1], rightLoops[2]);
  }
  Value result = steps.contract(
      {matrices, rows, columns}, 1, steps.view(values[op.getLeft()], leftShape),
      getMap(4, leftLoops), steps.view(values[op.getRight()], rightShape),
      getMap(4, rightLoops));
  result = steps.view(result, shape);
  return op.getScaled() ? steps.scale(result, 1 / std::sqrt(double(inner)))
                        : result;
}
