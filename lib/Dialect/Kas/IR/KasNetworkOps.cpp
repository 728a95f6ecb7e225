//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/KasNetworkOps.h"

using namespace kas;
using namespace mlir;

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
