//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows a value through views, transpositions and scalings back to its
// origin, element by element: which weight a layer reads.
// An element of a tensor is a copy of one of the origin wherever there are only
// views, transpositions, slices, and scalings and biases between. With a table
// of all elements (`ViewTrace::elements`) a matcher can ask for positions
// instead of forms.
//
//===----------------------------------------------------------------------===//

#include "ViewTrace.h"
#include "Matching.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;
using namespace kas;
using namespace kas::networks;

/// Null where the body yields an argument.
Operation *kas::networks::getYielded(linalg::LinalgOp op, unsigned index) {
  return op.getBlock()->getTerminator()->getOperand(index).getDefiningOp();
}

/// The input that `value` of the body is the element of, or null.
OpOperand *kas::networks::getInputOperand(linalg::LinalgOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBlock() ||
      int64_t(argument.getArgNumber()) >= op.getNumDpsInputs())
    return nullptr;
  return op.getDpsInputOperand(argument.getArgNumber());
}

/// The number that `value` of the body always is: a constant, or an input that
/// is filled with one.
std::optional<double> kas::networks::getConstantNumber(linalg::LinalgOp op,
                                                       Value value) {
  if (OpOperand *operand = getInputOperand(op, value)) {
    value = operand->get();
    if (auto fill = value.getDefiningOp<linalg::FillOp>())
      value = fill.value();
  }
  Operation *producer = value.getDefiningOp();
  // Rounded constants of exporters.
  if (isa_and_nonnull<arith::TruncFOp, arith::ExtFOp>(producer))
    return getConstantNumber(op, producer->getOperand(0));
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(attr))
    attr = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValueAsDouble();
  return std::nullopt;
}

namespace {
/// The input of a step on single elements, with what happens to it.
/// element = input * scale + bias
struct ElementStep {
  Value input;
  double scale = 1;
  Value bias;
};
} // namespace

/// The input whose elements the step reads where it writes.
static bool isReadInPlace(linalg::LinalgOp op, OpOperand *operand) {
  return operand && op.getMatchingIndexingMap(operand).isIdentity();
}

/// A sum with a weight, or a product with or a quotient by a number.
/// Nothing for any other body.
static std::optional<ElementStep> getElementStep(linalg::LinalgOp op) {
  if (op.getNumLoops() != op.getNumParallelLoops() ||
      op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics() ||
      !op.getIndexingMapsArray().back().isIdentity())
    return std::nullopt;
  Operation *step = getYielded(op);
  if (!isa_and_nonnull<arith::AddFOp, arith::MulFOp, arith::DivFOp>(step))
    return std::nullopt;
  // Either operand may be the data, but a divisor.
  for (unsigned side : {0u, 1u}) {
    OpOperand *data = getInputOperand(op, step->getOperand(side));
    Value other = step->getOperand(1 - side);
    if (!isReadInPlace(op, data))
      continue;
    if (isa<arith::AddFOp>(step)) {
      OpOperand *bias = getInputOperand(op, other);
      // Two tensors of data are a residual, no bias.
      if (bias && !traceWeight(data->get()) && traceWeight(bias->get()))
        return ElementStep{data->get(), 1, bias->get()};
      continue;
    }
    std::optional<double> number = getConstantNumber(op, other);
    if (!number || *number == 0)
      continue;
    if (isa<arith::MulFOp>(step))
      return ElementStep{data->get(), *number, Value()};
    if (side == 0)
      return ElementStep{data->get(), 1 / *number, Value()};
  }
  return std::nullopt;
}

/// For each element of the result of `op`, which one of its input.
static std::vector<int64_t> getTransposed(linalg::TransposeOp op) {
  ArrayRef<int64_t> from = cast<ShapedType>(op.getInput().getType()).getShape();
  SmallVector<int64_t> strides = computeStrides(from);
  ArrayRef<int64_t> permutation = op.getPermutation();
  auto to = applyPermutation<int64_t>(from, permutation);
  auto steps = applyPermutation<int64_t>(strides, permutation);
  // Strides of the result.
  SmallVector<int64_t> places = computeStrides(to);
  std::vector<int64_t> elements(computeProduct(to));
  for (auto [element, source] : llvm::enumerate(elements)) {
    source = 0;
    for (auto [dim, place] : llvm::enumerate(places))
      source += int64_t(element) / place % to[dim] * steps[dim];
  }
  return elements;
}

/// The same for a slice, with its strides; nothing where numbers are dynamic.
static std::optional<std::vector<int64_t>>
getSliced(tensor::ExtractSliceOp op) {
  if (!op.getSourceType().hasStaticShape() ||
      llvm::any_of(op.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(op.getStaticStrides(), ShapedType::isDynamic) ||
      llvm::any_of(op.getStaticSizes(), ShapedType::isDynamic))
    return std::nullopt;
  SmallVector<int64_t> strides = computeStrides(op.getSourceType().getShape());
  // Dimensions that are dropped have one element.
  ArrayRef<int64_t> sizes = op.getStaticSizes();
  SmallVector<int64_t> places = computeStrides(sizes);
  std::vector<int64_t> elements(computeProduct(sizes));
  for (auto [element, source] : llvm::enumerate(elements)) {
    source = 0;
    for (auto [dim, place] : llvm::enumerate(places))
      source +=
          (op.getStaticOffsets()[dim] +
           int64_t(element) / place % sizes[dim] * op.getStaticStrides()[dim]) *
          strides[dim];
  }
  return elements;
}

/// Moves `elements` one step back: `moves[i]` is the element of the producer's
/// input that element i of its result is.
static void follow(std::vector<int64_t> &elements,
                   const std::vector<int64_t> &moves) {
  for (int64_t &element : elements)
    element = moves[element];
}

/// Stops at the first operation of another kind, the origin. Operations on the
/// way are added to `ops`. `elements` is empty for tensors that are too large
/// or dynamic.
ViewTrace
kas::networks::traceViews(Value value,
                          llvm::SmallSetVector<Operation *, 32> &ops) {
  // 256 MiB of indices.
  constexpr int64_t maxElements = int64_t(1) << 25;
  ViewTrace trace;
  trace.origin = value;
  auto type = cast<ShapedType>(value.getType());
  if (!type.hasStaticShape() || type.getNumElements() > maxElements)
    return trace;
  trace.elements.resize(type.getNumElements());
  // At the start each element is itself.
  std::iota(trace.elements.begin(), trace.elements.end(), 0);
  while (Operation *op = trace.origin.getDefiningOp()) {
    Value input;
    // Reshapes keep the order of elements.
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      input = op->getOperand(0);
    } else if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      input = transpose.getInput();
      follow(trace.elements, getTransposed(transpose));
    } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      std::optional<std::vector<int64_t>> moves = getSliced(slice);
      if (!moves)
        return trace;
      input = slice.getSource();
      follow(trace.elements, *moves);
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      std::optional<ElementStep> step = getElementStep(linalgOp);
      if (!step)
        return trace;
      input = step->input;
      // Scalings commute with views; biases are only noted.
      trace.scale *= step->scale;
      if (step->bias)
        trace.biases.push_back(step->bias);
    } else {
      return trace;
    }
    ops.insert(op);
    trace.origin = input;
  }
  return trace;
}
