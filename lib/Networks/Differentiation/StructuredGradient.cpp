//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StructuredGradient.h"
#include "ScalarGradient.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

Value kas::networks::makeZeros(OpBuilder &builder, Location loc, Type type) {
  auto tensorType = cast<RankedTensorType>(type);
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(tensorType.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, tensorType.getShape(),
                                        tensorType.getElementType());
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

namespace {

enum class BodyKind {
  /// The result does not depend on what was there before.
  Elementwise,
  /// Something is added to it.
  Sum,
  /// The larger of it and something.
  Maximum,
};

/// What the body of an operation does with its operands.
struct Body {
  BodyKind kind = BodyKind::Elementwise;
  /// The value that is yielded, added or compared.
  Value term;
};

class StructuredReverse {
public:
  StructuredReverse(OpBuilder &builder, linalg::LinalgOp op, OpOperand &operand,
                    Value gradient)
      : builder(builder), op(op), operand(operand), gradient(gradient) {}

  FailureOr<Value> run();

private:
  FailureOr<Body> matchBody();
  FailureOr<Value> emitInitGradient(const Body &body);
  FailureOr<Value> emitInputGradient(const Body &body);
  /// The body up to its term, for the elements `arguments` of the inputs; the
  /// values of the body are in `mapping` then.
  Value cloneTerm(OpBuilder &nested, const Body &body, ValueRange arguments,
                  IRMapping &mapping);
  /// The gradient of a maximum, shared out among the elements that equal it.
  Value shareGradient(const Body &body);
  Value emitConvolution(linalg::Conv2DNchwFchwOp convolution);
  Value spread(Value value, ArrayRef<int64_t> strides, int64_t kernelHeight,
               int64_t kernelWidth, ArrayRef<int64_t> dataShape);

  OpBuilder &builder;
  linalg::LinalgOp op;
  OpOperand &operand;
  Value gradient;
  Location loc = op.getLoc();
};

} // namespace

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

FailureOr<Body> StructuredReverse::matchBody() {
  Block *block = op.getBlock();
  Value previous = block->getArguments().back();
  Value yielded = block->getTerminator()->getOperand(0);
  if (previous.use_empty())
    return Body{BodyKind::Elementwise, yielded};
  Operation *combine = yielded.getDefiningOp();
  if (previous.hasOneUse() && combine &&
      *previous.getUsers().begin() == combine) {
    Value term = combine->getOperand(0) == previous ? combine->getOperand(1)
                                                    : combine->getOperand(0);
    if (isa<arith::AddFOp>(combine))
      return Body{BodyKind::Sum, term};
    if (isa<arith::MaximumFOp, arith::MaxNumFOp>(combine))
      return Body{BodyKind::Maximum, term};
  }
  return op->emitError("to differentiate, requires a body that adds to its "
                       "result, takes the maximum or does not read it");
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

FailureOr<Value> StructuredReverse::emitInitGradient(const Body &body) {
  if (body.kind == BodyKind::Elementwise)
    return makeZeros(builder, loc, operand.get().getType());
  if (body.kind == BodyKind::Sum)
    return gradient;
  return op->emitError("to differentiate, requires a maximum that does not "
                       "begin with a value to be differentiated by");
}

/// Parallel are the iterators that index a dimension of the output alone; one
/// that indexes a dimension together with others adds to elements that others
/// add to as well.
static SmallVector<utils::IteratorType> getIterators(AffineMap output) {
  SmallVector<utils::IteratorType> types(output.getNumDims(),
                                         utils::IteratorType::reduction);
  for (AffineExpr expr : output.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      types[dim.getPosition()] = utils::IteratorType::parallel;
  for (AffineExpr expr : output.getResults())
    if (!isa<AffineDimExpr>(expr))
      for (auto [index, type] : llvm::enumerate(types))
        if (expr.isFunctionOfDim(index))
          type = utils::IteratorType::reduction;
  return types;
}

Value StructuredReverse::cloneTerm(OpBuilder &nested, const Body &body,
                                   ValueRange arguments, IRMapping &mapping) {
  Block *block = op.getBlock();
  for (unsigned index = 0; index < op.getNumDpsInputs(); ++index)
    mapping.map(block->getArgument(index), arguments[index]);
  Operation *end = body.term.getDefiningOp();
  if (end && end->getBlock() == block)
    for (Operation &step : *block) {
      nested.clone(step, mapping);
      if (&step == end)
        break;
    }
  return mapping.lookupOrDefault(body.term);
}

static Value isEqual(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, a, b);
}

Value StructuredReverse::shareGradient(const Body &body) {
  // Elements may be equal because they are copies of one element, whose
  // gradient would be counted more than once.
  SmallVector<Value> inputs = op.getDpsInputs();
  inputs.push_back(op->getResult(0));
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.push_back(maps.back());
  auto type = cast<RankedTensorType>(gradient.getType());
  auto counts = linalg::GenericOp::create(
      builder, loc, type, inputs, makeZeros(builder, loc, type), maps,
      op.getIteratorTypesArray(),
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        IRMapping mapping;
        Value term = cloneTerm(builder, body, arguments, mapping);
        Value isTaken =
            isEqual(builder, loc, term, arguments[arguments.size() - 2]);
        Value one = arith::ConstantOp::create(
            builder, loc, builder.getFloatAttr(type.getElementType(), 1));
        Value more = arith::AddFOp::create(builder, loc, arguments.back(), one);
        Value count = arith::SelectOp::create(builder, loc, isTaken, more,
                                              arguments.back());
        linalg::YieldOp::create(builder, loc, count);
      });
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(),
                                            utils::IteratorType::parallel);
  auto shares = linalg::GenericOp::create(
      builder, loc, type, ValueRange{gradient, counts.getResult(0)},
      Value(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                    type.getElementType())),
      ArrayRef{identity, identity, identity}, parallel,
      [](OpBuilder &builder, Location loc, ValueRange arguments) {
        Value share =
            arith::DivFOp::create(builder, loc, arguments[0], arguments[1]);
        linalg::YieldOp::create(builder, loc, share);
      });
  return shares.getResult(0);
}

FailureOr<Value> StructuredReverse::emitInputGradient(const Body &body) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap output = maps[operand.getOperandNumber()];
  AffineMap resultMap = maps.back();
  SmallVector<Value> inputs = op.getDpsInputs();
  maps.pop_back();
  if (body.kind == BodyKind::Maximum) {
    inputs.push_back(op->getResult(0));
    maps.push_back(resultMap);
  }
  inputs.push_back(body.kind == BodyKind::Maximum ? shareGradient(body)
                                                  : gradient);
  maps.push_back(resultMap);
  maps.push_back(output);

  // Where each element is written once, nothing has to be added up.
  bool isSum = !output.isPermutation();
  auto type = cast<RankedTensorType>(operand.get().getType());
  Value init =
      isSum ? makeZeros(builder, loc, type)
            : Value(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                            type.getElementType()));
  bool isValid = true;
  auto generic = linalg::GenericOp::create(
      builder, loc, type, inputs, init, maps, getIterators(output),
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        IRMapping mapping;
        Value term = cloneTerm(builder, body, arguments, mapping);
        Value incoming = arguments[arguments.size() - 2];
        if (body.kind == BodyKind::Maximum) {
          Value isTaken =
              isEqual(builder, loc, term, arguments[arguments.size() - 3]);
          Value zero = arith::ConstantOp::create(
              builder, loc, builder.getZeroAttr(incoming.getType()));
          incoming =
              arith::SelectOp::create(builder, loc, isTaken, incoming, zero);
        }
        Value share = emitScalarGradient(
            builder, body.term, incoming,
            op.getBlock()->getArgument(operand.getOperandNumber()), mapping);
        isValid = share != nullptr;
        if (!isValid)
          share = arguments.back();
        else if (isSum)
          share = arith::AddFOp::create(builder, loc, arguments.back(), share);
        linalg::YieldOp::create(builder, loc, share);
      });
  if (!isValid)
    return failure();
  return generic.getResult(0);
}

//===----------------------------------------------------------------------===//
// Data of convolutions
//===----------------------------------------------------------------------===//

/// `value` with zeros between its elements along rows and columns, and around
/// them, so that a kernel that moves by one point reads what each point of the
/// data went to.
Value StructuredReverse::spread(Value value, ArrayRef<int64_t> strides,
                                int64_t kernelHeight, int64_t kernelWidth,
                                ArrayRef<int64_t> dataShape) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape{type.getDimSize(0), type.getDimSize(1),
                             dataShape[2] + kernelHeight - 1,
                             dataShape[3] + kernelWidth - 1};
  Value zeros = makeZeros(builder, loc, type.clone(shape));
  SmallVector<OpFoldResult> offsets, sizes, steps;
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    int64_t low = index == 2   ? kernelHeight - 1
                  : index == 3 ? kernelWidth - 1
                               : 0;
    offsets.push_back(builder.getIndexAttr(low));
    sizes.push_back(builder.getIndexAttr(size));
    steps.push_back(builder.getIndexAttr(index < 2 ? 1 : strides[index - 2]));
  }
  return tensor::InsertSliceOp::create(builder, loc, value, zeros, offsets,
                                       sizes, steps);
}

/// The weight with both kernel dimensions in reverse, and the channels
/// exchanged.
static Value reverseWeight(OpBuilder &builder, Location loc, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  SmallVector<int64_t> shape{type.getDimSize(1), type.getDimSize(0),
                             type.getDimSize(2), type.getDimSize(3)};
  Value empty =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(4);
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto reversed = linalg::GenericOp::create(
      builder, loc, type.clone(shape), ValueRange(), empty, identity, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange) {
        SmallVector<Value> indices;
        for (unsigned dimension : {1, 0, 2, 3}) {
          Value index = linalg::IndexOp::create(builder, loc, dimension);
          if (dimension >= 2) {
            Value last = arith::ConstantIndexOp::create(builder, loc,
                                                        shape[dimension] - 1);
            index = arith::SubIOp::create(builder, loc, last, index);
          }
          indices.push_back(index);
        }
        Value element =
            tensor::ExtractOp::create(builder, loc, weight, indices);
        linalg::YieldOp::create(builder, loc, element);
      });
  return reversed.getResult(0);
}

/// A convolution again, which the fast strategy knows; null for dilated ones.
Value StructuredReverse::emitConvolution(linalg::Conv2DNchwFchwOp convolution) {
  SmallVector<int64_t> strides(convolution.getStrides().getValues<int64_t>());
  if (llvm::any_of(convolution.getDilations().getValues<int64_t>(),
                   [](int64_t dilation) { return dilation != 1; }))
    return nullptr;
  Value data = convolution.getInputs()[0], weight = convolution.getInputs()[1];
  auto dataType = cast<RankedTensorType>(data.getType());
  auto weightType = cast<RankedTensorType>(weight.getType());
  Value spreadGradient = spread(gradient, strides, weightType.getDimSize(2),
                                weightType.getDimSize(3), dataType.getShape());
  Value reversed = reverseWeight(builder, loc, weight);
  Value zeros = makeZeros(builder, loc, dataType);
  return linalg::Conv2DNchwFchwOp::create(builder, loc, dataType,
                                          ValueRange{spreadGradient, reversed},
                                          zeros)
      .getResult(0);
}

FailureOr<Value> StructuredReverse::run() {
  if (op->getNumResults() != 1 || !op.hasPureTensorSemantics())
    return op->emitError("to differentiate, requires an operation on tensors "
                         "with one result");
  if (op.hasIndexSemantics())
    return op->emitError(
        "to differentiate, requires a body without 'linalg.index'");
  if (auto convolution = dyn_cast<linalg::Conv2DNchwFchwOp>(op.getOperation());
      convolution && operand.getOperandNumber() == 0)
    if (Value result = emitConvolution(convolution))
      return result;
  FailureOr<Body> body = matchBody();
  if (failed(body))
    return failure();
  return op.isDpsInit(&operand) ? emitInitGradient(*body)
                                : emitInputGradient(*body);
}

FailureOr<Value> kas::networks::emitStructuredGradient(OpBuilder &builder,
                                                       linalg::LinalgOp op,
                                                       OpOperand &operand,
                                                       Value gradient) {
  return StructuredReverse(builder, op, operand, gradient).run();
}
