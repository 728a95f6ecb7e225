//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of structured operations that work element by element, add up or
// take the maximum, each as a structured operation.
// An operation `result[f(i)] (+|max)= term(inputs[g(i)])` gets for its input k
// the operation over the same iterations
//    gradient_k[g_k(i)] += d term / d input_k * gradient[f(i)]
// with the maps exchanged. It is elementwise where g_k is a permutation, and a
// scatter where g_k adds up indices: those of windows go to WindowGradient.cpp.
// Rectifiers and maxima have forms of their own (docs/internals/training.md).
//
//===----------------------------------------------------------------------===//

#include "StructuredGradient.h"
#include "ScalarGradient.h"
#include "WindowGradient.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

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

/// The gradient of one operation by one operand.
class StructuredReverse {
public:
  StructuredReverse(OpBuilder &builder, linalg::LinalgOp op, OpOperand &operand,
                    Value gradient)
      : builder(builder), op(op), operand(operand), gradient(gradient) {}

  FailureOr<OperandGradient> run();

private:
  /// How the body combines its term with the result, or an error.
  FailureOr<Body> matchBody();
  /// By the initial value of the result.
  FailureOr<Value> emitInitGradient(const Body &body);
  /// By an input, over the iterations of the forward operation.
  FailureOr<Value> emitInputGradient(const Body &body);
  /// The body up to its term, for the elements `arguments` of the inputs; the
  /// values of the body are in `mapping` then. `nested` is in an operation with
  /// the same loops, so that `linalg.index` is the same, too.
  Value cloneTerm(OpBuilder &nested, const Body &body, ValueRange arguments,
                  IRMapping &mapping);
  /// The gradient of a maximum, shared out among the elements that equal it.
  Value shareGradient(const Body &body);
  bool isRectifier();
  Value emitRectifierGradient();
  /// One sum for each phase of the stride.
  FailureOr<OperandGradient> emitWindowGradient(const WindowGradient &windows,
                                                const Body &body);
  /// A structured operation to a tensor of `type` that computes the gradient by
  /// the operand from the elements of `inputs`: those of the operation, and
  /// last the gradient of its result.
  FailureOr<Value> emitShares(const Body &body, ValueRange inputs,
                              ArrayRef<AffineMap> maps, RankedTensorType type);

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

/// The last argument of the body is the element of the result.
FailureOr<Body> StructuredReverse::matchBody() {
  Block *block = op.getBlock();
  Value previous = block->getArguments().back();
  Value yielded = block->getTerminator()->getOperand(0);
  if (previous.use_empty())
    return Body{BodyKind::Elementwise, yielded};
  Operation *combine = yielded.getDefiningOp();
  if (previous.hasOneUse() && combine &&
      *previous.getUsers().begin() == combine) {
    // Sums and maxima commute: the element may be either operand.
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

/// An initial value that is overwritten has no gradient, one that is added to
/// has that of the result.
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
  // The steps after the term combine it with the result.
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

/// Two operations: how many elements equal each maximum, and the gradient
/// divided by that.
Value StructuredReverse::shareGradient(const Body &body) {
  // Elements may be equal because they are copies of one element, whose
  // gradient would be counted more than once.
  SmallVector<Value> inputs = op.getDpsInputs();
  inputs.push_back(op->getResult(0));
  // The result is read as an input at the map of the result; the counts are
  // added up at the same.
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
  // gradient / count, elementwise over the result.
  auto shares = linalg::GenericOp::create(
      builder, loc, type, ValueRange{gradient, counts.getResult(0)},
      Value(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                    type.getElementType())),
      ArrayRef{identity, identity, identity}, parallel,
      [](OpBuilder &builder, Location loc, ValueRange arguments) {
        // A maximum equals at least one element, so the count is at least 1.
        Value share =
            arith::DivFOp::create(builder, loc, arguments[0], arguments[1]);
        linalg::YieldOp::create(builder, loc, share);
      });
  return shares.getResult(0);
}

FailureOr<Value> StructuredReverse::emitInputGradient(const Body &body) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  // The operand's map becomes that of the result.
  AffineMap output = maps[operand.getOperandNumber()];
  AffineMap resultMap = maps.back();
  SmallVector<Value> inputs = op.getDpsInputs();
  maps.pop_back();
  // The term is compared with the result to know which elements were taken.
  if (body.kind == BodyKind::Maximum) {
    inputs.push_back(op->getResult(0));
    maps.push_back(resultMap);
  }
  inputs.push_back(body.kind == BodyKind::Maximum ? shareGradient(body)
                                                  : gradient);
  maps.push_back(resultMap);
  maps.push_back(output);

  return emitShares(body, inputs, maps,
                    cast<RankedTensorType>(operand.get().getType()));
}

/// `maps` are those of `inputs` and, last, that of the result; null for a body
/// without derivative, after an error.
FailureOr<Value> StructuredReverse::emitShares(const Body &body,
                                               ValueRange inputs,
                                               ArrayRef<AffineMap> maps,
                                               RankedTensorType type) {
  AffineMap output = maps.back();
  // Where each element is written once, nothing has to be added up.
  bool isSum = !output.isPermutation();
  Value init =
      // A fill would be one pass over memory for nothing.
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
        // The derivative of the term by the argument of the body that is the
        // operand.
        Value share = emitScalarGradient(
            builder, body.term, incoming,
            op.getBlock()->getArgument(operand.getOperandNumber()), mapping);
        isValid = share != nullptr;
        // The body must yield something; the operation is thrown away by the
        // caller.
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
// Windows
//===----------------------------------------------------------------------===//

/// Windows ask for sums with other inputs and maps; the body is the same.
FailureOr<OperandGradient>
StructuredReverse::emitWindowGradient(const WindowGradient &windows,
                                      const Body &body) {
  bool isValid = true;
  auto makeSum = [&](ValueRange inputs, ArrayRef<AffineMap> maps,
                     RankedTensorType type) -> Value {
    FailureOr<Value> sum = emitShares(body, inputs, maps, type);
    isValid &= succeeded(sum);
    // Zeros of the right type let the emission run to its end.
    return succeeded(sum) ? *sum : makeZeros(builder, loc, type);
  };
  Value result = windows.emit(builder, gradient, makeSum);
  if (!isValid)
    return failure();
  return OperandGradient{windows.getTarget(), result};
}

//===----------------------------------------------------------------------===//
// Rectifiers
//===----------------------------------------------------------------------===//

/// Whether the operation is a rectifier: its only input where that is greater
/// than zero, else zero.
/// The form of torch-mlir and of kas's importers: select(x > 0, x, 0).
bool StructuredReverse::isRectifier() {
  Block *block = op.getBlock();
  if (op.getNumDpsInputs() != 1 || op.getNumReductionLoops() != 0 ||
      op.getMatchingIndexingMap(&operand) != op.getIndexingMapsArray().back() ||
      operand.getOperandNumber() != 0)
    return false;
  Value yielded = block->getTerminator()->getOperand(0);
  Value input = block->getArgument(0);
  auto isZero = [](Value value) {
    return matchPattern(value, m_AnyZeroFloat());
  };
  auto select = yielded.getDefiningOp<arith::SelectOp>();
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  return compare &&
         llvm::is_contained(
             {arith::CmpFPredicate::UGT, arith::CmpFPredicate::OGT},
             compare.getPredicate()) &&
         compare.getLhs() == input && isZero(compare.getRhs()) &&
         select.getTrueValue() == input && isZero(select.getFalseValue());
}

/// A rectifier's gradient by its result, which is greater than zero where its
/// input is: then nobody needs the input any more. At zero it is zero.
/// As PyTorch does; NaN compares as greater (UGT) and keeps its gradient.
Value StructuredReverse::emitRectifierGradient() {
  AffineMap identity = builder.getMultiDimIdentityMap(op.getNumParallelLoops());
  auto type = cast<RankedTensorType>(gradient.getType());
  SmallVector<utils::IteratorType> parallel(type.getRank(),
                                            utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, type, ValueRange{op->getResult(0), gradient},
      Value(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                    type.getElementType())),
      ArrayRef{identity, identity, identity}, parallel,
      [&](OpBuilder &builder, Location loc, ValueRange v) {
        Value zero = arith::ConstantOp::create(
            builder, loc, builder.getZeroAttr(v[0].getType()));
        Value isOn = arith::CmpFOp::create(
            builder, loc, arith::CmpFPredicate::UGT, v[0], zero);
        Value share = arith::SelectOp::create(builder, loc, isOn, v[1], zero);
        linalg::YieldOp::create(builder, loc, share);
      });
  return generic.getResult(0);
}

/// The cheapest form that applies: rectifier, windows, then the general one.
FailureOr<OperandGradient> StructuredReverse::run() {
  if (op->getNumResults() != 1 || !op.hasPureTensorSemantics())
    return op->emitError("to differentiate, requires an operation on tensors "
                         "with one result");
  if (isRectifier())
    return OperandGradient{operand.get(), emitRectifierGradient()};
  FailureOr<Body> body = matchBody();
  if (failed(body))
    return failure();
  // Only sums that are linear in the operand can do without its value.
  if (hasContractionBody(op) && !op.isDpsInit(&operand))
    if (auto windows = WindowGradient::match(op, operand))
      return emitWindowGradient(*windows, *body);
  FailureOr<Value> result = op.isDpsInit(&operand) ? emitInitGradient(*body)
                                                   : emitInputGradient(*body);
  if (failed(result))
    return failure();
  return OperandGradient{operand.get(), *result};
}

FailureOr<OperandGradient>
kas::networks::emitStructuredGradient(OpBuilder &builder, linalg::LinalgOp op,
                                      OpOperand &operand, Value gradient) {
  return StructuredReverse(builder, op, operand, gradient).run();
}
