//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers, types and text of operations of networks: batch normalization,
// dropout, gradients of applied operators.
// Constraints are numbered in the descriptions of the ops (B, P, G).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace mlir;

/// Samples times pixels: what the statistics divide by.
int64_t BatchNormOp::getNumElementsOfChannel() {
  auto type = cast<RankedTensorType>(getData().getType());
  return type.getNumElements() / type.getDimSize(1);
}

LogicalResult BatchNormOp::verify() {
  auto type = cast<RankedTensorType>(getData().getType());
  if (type.getRank() < 2 || getResult().getType() != type)
    return emitOpError("B1: requires data of samples and channels at least, "
                       "and a result of its type, got ")
           << type << " and " << getResult().getType();
  RankedTensorType channels =
      RankedTensorType::get({type.getDimSize(1)}, type.getElementType());
  for (Value value : {getScale(), getOffset(), getMean(), getVariance()})
    if (value.getType() != channels)
      return emitOpError("B2: requires scale, offset and statistics of type ")
             << channels << ", got " << value.getType();
  // The variance of one element is 0, whatever it is.
  if (type.getNumElements() == 0 || getNumElementsOfChannel() < 2)
    return emitOpError("B3: requires two elements or more in each channel, "
                       "got data of type ")
           << type;
  APFloat epsilon = getEpsilon();
  if (!epsilon.isFinite() || epsilon.isNegative() || epsilon.isZero())
    return emitOpError("B4: requires an epsilon greater than zero, got ")
           << getEpsilonAttr();
  return success();
}

/// Seed and stream come together: without either the op is that of evaluation.
LogicalResult DropoutOp::verify() {
  APFloat probability = getProbability();
  // Not a number is in no range.
  if (!(probability.convertToDouble() >= 0 &&
        probability.convertToDouble() < 1))
    return emitOpError("P1: requires a probability of at least 0 and less than "
                       "1, got ")
           << getProbabilityAttr();
  if (Value seed = getSeed()) {
    auto type = cast<RankedTensorType>(seed.getType());
    Type element = type.getElementType();
    if (type.getRank() != 1 || type.getDimSize(0) != 2 ||
        (!element.isF32() && !element.isF64()))
      return emitOpError("P2: requires a seed of two numbers of f32 or f64, "
                         "got ")
             << type;
    if (!getStream())
      return emitOpError("P2: requires a stream with the seed, got none");
  }
  std::optional<int64_t> stream = getStream();
  if (stream && !getSeed())
    return emitOpError("P3: requires a seed with the stream, got none");
  if (stream && !llvm::isUInt<32>(*stream))
    return emitOpError("P3: requires a stream of at least 0 and less than "
                       "2^32, got ")
           << *stream;
  return success();
}

//===----------------------------------------------------------------------===//
// ApplyGradientOp
//===----------------------------------------------------------------------===//

OperatorOp ApplyGradientOp::getOperator() {
  return SymbolTable::lookupNearestSymbolFrom<OperatorOp>(*this,
                                                          getCalleeAttr());
}

static SmallVector<int64_t> getShape(ArrayRef<SizeAttr> sizes) {
  return llvm::map_to_vector(
      sizes, [](SizeAttr size) { return *size.getConstantValue(); });
}

/// Operands are all tensors of the operator but the one that the gradient is
/// by, then the gradient of the result; the result has the shape of the missing
/// one.
LogicalResult
ApplyGradientOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto op =
      symbolTable.lookupNearestSymbolFrom<OperatorOp>(*this, getCalleeAttr());
  bool hasMax = op && llvm::any_of(getReductions(op), [](ReduceOp reduction) {
                  return reduction.getKind() == ReduceKind::Max;
                });
  // The gradient of a maximum depends on values, and is expanded at once
  // instead.
  if (!op || !op.isConcrete() || hasMax)
    return emitOpError("G1: requires a concrete kas.operator without maxima, "
                       "got '@")
           << getCallee() << "'";
  SmallVector<SmallVector<int64_t>> shapes{getShape(op.getDataSizes())};
  for (ArrayRef<SizeAttr> sizes : op.getWeightSizes())
    shapes.push_back(getShape(sizes));
  int64_t number = getTensor();
  if (number < 0 || number >= int64_t(shapes.size()))
    return emitOpError("G2: requires the number of a tensor, less than ")
           << shapes.size() << ", got " << number;
  SmallVector<int64_t> wanted = shapes[number];
  shapes.erase(shapes.begin() + number);
  shapes.push_back(getShape(op.getOutputSizes()));
  if (shapes.size() != getInputs().size())
    return emitOpError("G3: requires ")
           << shapes.size() << " operands, got " << getInputs().size();
  shapes.push_back(wanted);
  auto result = cast<RankedTensorType>(getResult().getType());
  for (auto [shape, type] : llvm::zip_equal(
           shapes, llvm::concat<const Type>(getInputs().getTypes(),
                                            ArrayRef<Type>(result))))
    if (type != result.clone(shape))
      return emitOpError("G3: requires a tensor of type ")
             << result.clone(shape) << ", got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// BatchNormOp
//===----------------------------------------------------------------------===//

/// `tensor<8x16x4x4xf32>, tensor<16xf32>`: the data and the result, then all
/// that has one element for each channel.
static ParseResult parseBatchNormTypes(OpAsmParser &parser, Type &data,
                                       Type &scale, Type &offset, Type &result,
                                       Type &mean, Type &variance) {
  if (parser.parseType(data) || parser.parseComma() || parser.parseType(scale))
    return failure();
  result = data;
  offset = mean = variance = scale;
  return success();
}

static void printBatchNormTypes(OpAsmPrinter &printer, Operation *, Type data,
                                Type scale, Type, Type, Type, Type) {
  printer << data << ", " << scale;
}

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasNetworkOps.cpp.inc"
