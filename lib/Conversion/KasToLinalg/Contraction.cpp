//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One contraction as a linalg operation: a named one where it is one, else a
// `linalg.generic`.
//
// The body is that of a contraction in the form that upstream's matchers know:
// add(out, mul(a, b)) over an output filled with the neutral element. Scale and
// narrowing come in an element-wise op of their own, which fusion takes in.
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

/// Element types below 32 bits are accumulated in f32.
static Type getComputeType(Type elementType) {
  return elementType.getIntOrFloatBitWidth() < 32
             ? Type(Float32Type::get(elementType.getContext()))
             : elementType;
}

static Value extend(OpBuilder &b, Location loc, Value value, Type type) {
  return value.getType() == type ? value
                                 : arith::ExtFOp::create(b, loc, type, value);
}

namespace {
/// Emits a linalg.generic.
/// Loops are the outputs, then the reductions; maps come from the labels.
class GenericEmitter {
public:
  GenericEmitter(ImplicitLocOpBuilder &b, const StageContraction &contraction)
      : b(b), contraction(contraction) {
    for (Value output : contraction.outputs)
      addIterator(output, utils::IteratorType::parallel);
    for (Value reduction : contraction.reductions)
      addIterator(reduction, utils::IteratorType::reduction);
  }

  Value emit(Value init) {
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (const LabelledTensor &operand : contraction.operands) {
      inputs.push_back(operand.value);
      maps.push_back(getMap(operand.dims));
    }
    if (Value shape = createShapeOperand(maps))
      inputs.push_back(shape);
    SmallVector<Label> outputLabels =
        llvm::map_to_vector(contraction.outputs, getSoleLabel);
    maps.push_back(getMap(outputLabels));
    auto body = [&](OpBuilder &nested, Location loc, ValueRange arguments) {
      emitBody(nested, loc, arguments);
    };
    return linalg::GenericOp::create(b, init.getType(), inputs, init, maps,
                                     iterators, body)
        .getResult(0);
  }

private:
  void addIterator(Value coordinate, utils::IteratorType type) {
    positions[coordinate] = getAffineDimExpr(iterators.size(), b.getContext());
    iterators.push_back(type);
  }

  /// Label {h: 2, k: 1} becomes `2 * d_h + d_k`. Divisions never occur.
  AffineMap getMap(ArrayRef<Label> labels) {
    SmallVector<AffineExpr> results;
    for (const Label &label : labels) {
      AffineExpr sum = b.getAffineConstantExpr(0);
      for (auto [coordinate, coefficient] : label)
        sum = sum + positions.lookup(coordinate) * coefficient;
      results.push_back(sum);
    }
    return AffineMap::get(iterators.size(), 0, results, b.getContext());
  }

  /// linalg takes the extent of a loop from a dimension that the loop alone
  /// indexes. Loops that have none get one here, of a tensor that is not read.
  Value createShapeOperand(SmallVectorImpl<AffineMap> &maps) {
    SmallVector<Label> labels;
    SmallVector<int64_t> shape;
    for (Value reduction : contraction.reductions) {
      AffineExpr position = positions.lookup(reduction);
      if (llvm::any_of(maps, [&](AffineMap map) {
            return llvm::is_contained(map.getResults(), position);
          }))
        continue;
      labels.push_back(getSoleLabel(reduction));
      shape.push_back(getConcreteSize(reduction));
    }
    if (shape.empty())
      return {};
    maps.push_back(getMap(labels));
    return tensor::EmptyOp::create(
        b, shape, getElementTypeOrSelf(contraction.operands[0].value));
  }

  /// The arguments are the operands', maybe that of the shape (not used), and
  /// the output's, whose type is the one to compute in.
  void emitBody(OpBuilder &nested, Location loc, ValueRange arguments) {
    Type type = arguments.back().getType();
    auto contract = arith::FastMathFlagsAttr::get(
        nested.getContext(), arith::FastMathFlags::contract);
    Value product;
    for (size_t operand = 0; operand < contraction.operands.size(); ++operand) {
      Value factor = extend(nested, loc, arguments[operand], type);
      product = product ? arith::MulFOp::create(nested, loc, product, factor,
                                                contract)
                        : factor;
    }
    // Without reductions the op is element-wise and does not read its output.
    if (!contraction.reductions.empty()) {
      Value sum = arguments.back();
      product =
          contraction.isMax
              ? Value(arith::MaximumFOp::create(nested, loc, sum, product))
              : Value(
                    arith::AddFOp::create(nested, loc, sum, product, contract));
    }
    linalg::YieldOp::create(nested, loc, product);
  }

  ImplicitLocOpBuilder &b;
  const StageContraction &contraction;
  llvm::SmallDenseMap<Value, AffineExpr> positions;
  SmallVector<utils::IteratorType> iterators;
};
} // namespace

/// Multiplies by the scale and brings to the element type of the operands.
/// Nothing to do for a sum in the type of its operands.
static Value finish(ImplicitLocOpBuilder &b,
                    const StageContraction &contraction, Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  Type elementType = getElementTypeOrSelf(contraction.operands[0].value);
  if (contraction.scale == 1 && elementType == type.getElementType())
    return result;
  Value init = tensor::EmptyOp::create(b, type.getShape(), elementType);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange arguments) {
    Value value = arguments[0];
    if (contraction.scale != 1) {
      Value scale = arith::ConstantOp::create(
          nested, loc, nested.getFloatAttr(value.getType(), contraction.scale));
      value = arith::MulFOp::create(nested, loc, value, scale);
    }
    if (value.getType() != elementType)
      value = arith::TruncFOp::create(nested, loc, elementType, value);
    linalg::YieldOp::create(nested, loc, value);
  };
  return linalg::GenericOp::create(b, init.getType(), result, init, maps,
                                   iterators, body)
      .getResult(0);
}

/// Emits the linalg op, the outputs being `contraction.outputs`.
static Value emitReduced(ImplicitLocOpBuilder &b,
                         const StageContraction &contraction, bool namedOps) {
  SmallVector<int64_t> shape =
      llvm::map_to_vector(contraction.outputs, getConcreteSize);
  Type type =
      getComputeType(getElementTypeOrSelf(contraction.operands[0].value));
  Value init = tensor::EmptyOp::create(b, shape, type);
  Value result;
  if (!contraction.reductions.empty()) {
    // Of maxima minus infinity, so that NaN and every value win.
    double neutral =
        contraction.isMax ? -std::numeric_limits<double>::infinity() : 0.0;
    Value value = arith::ConstantOp::create(b, b.getFloatAttr(type, neutral));
    init = linalg::FillOp::create(b, value, init).getResult(0);
    if (namedOps)
      result = emitNamedOp(b, contraction, init);
  }
  if (!result)
    result = GenericEmitter(b, contraction).emit(init);
  return finish(b, contraction, result);
}

Value kas::emitContraction(ImplicitLocOpBuilder &b,
                           const StageContraction &contraction, bool namedOps) {
  // Outputs that nothing depends on repeat one result; it is computed once.
  StageContraction reduced = contraction;
  SmallVector<int64_t> repeated;
  reduced.outputs.clear();
  for (auto [position, output] : llvm::enumerate(contraction.outputs)) {
    if (llvm::any_of(contraction.operands, [&](const LabelledTensor &operand) {
          return operand.mentions(output);
        }))
      reduced.outputs.push_back(output);
    else
      repeated.push_back(static_cast<int64_t>(position));
  }
  // A copy that repeats is one op already; two would copy twice.
  bool isCopy = contraction.operands.size() == 1 &&
                contraction.reductions.empty() && contraction.scale == 1;
  if (repeated.empty() || isCopy)
    return emitReduced(b, contraction, namedOps);
  Value result = emitReduced(b, reduced, namedOps);
  SmallVector<int64_t> shape =
      llvm::map_to_vector(contraction.outputs, getConcreteSize);
  Value init = tensor::EmptyOp::create(b, shape, getElementTypeOrSelf(result));
  return linalg::BroadcastOp::create(b, result, init, repeated)->getResult(0);
}
