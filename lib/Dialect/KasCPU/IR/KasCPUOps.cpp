//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The requirements of dot products of narrow elements.
// Dot products of AVX-512 VNNI (four int8 to an i32) and BF16 (two bf16 to an
// f32): each lane of the sum takes one VNNI group of either operand.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/KasCPU/IR/KasCPUOps.h"
#include "mlir/IR/OpImplementation.h"

using namespace kas;
using namespace mlir;

#define GET_OP_CLASSES
#include "kas/Dialect/KasCPU/IR/KasCPUOps.cpp.inc"

void KasCPUDialect::addKasCPUOps() {
  addOperations<
#define GET_OP_LIST
#include "kas/Dialect/KasCPU/IR/KasCPUOps.cpp.inc"
      >();
}

LogicalResult DotOp::verify() {
  auto elements = cast<VectorType>(getLhs().getType());
  auto sum = cast<VectorType>(getSum().getType());
  // A group is 32 bits wide: four int8, two i16 or two bf16.
  Type element = elements.getElementType();
  bool isOfIntegers = element.isInteger();
  int64_t lanes = sum.getDimSize(0);
  int64_t size = 32 / element.getIntOrFloatBitWidth();
  if (elements.getDimSize(0) != size * lanes) // D1
    return emitOpError() << "expected " << size * lanes << " elements of "
                         << element << " for " << lanes
                         << " lanes of the sum, got " << elements.getDimSize(0);
  if (isOfIntegers != sum.getElementType().isInteger(32)) // D2
    return emitOpError() << "expected a sum of "
                         << (isOfIntegers ? "i32" : "f32")
                         << " for products of " << elements.getElementType()
                         << ", got " << sum;
  return success();
}

/// Two bf16 or i16 as one 32-bit element; without gaps, or the view would need
/// strides of half an element.
LogicalResult ViewVNNIGroupsOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  auto result = cast<MemRefType>(getResult().getType());
  if (!source.hasStaticShape() || !result.hasStaticShape() ||
      source.getDimSize(0) != 2 * result.getDimSize(0) ||
      !source.getLayout().isIdentity() ||
      !result.getLayout().isIdentity()) // D3
    return emitOpError()
           << "expected half as many VNNI groups as elements without "
              "holes, got "
           << result << " of " << source;
  bool isOfIntegers = source.getElementType().isInteger();
  if (isOfIntegers != result.getElementType().isInteger()) // D4
    return emitOpError() << "expected VNNI groups of "
                         << (isOfIntegers ? "i32" : "f32") << " for "
                         << source.getElementType() << ", got "
                         << result.getElementType();
  return success();
}
