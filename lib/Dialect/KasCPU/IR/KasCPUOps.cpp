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
  // A group is 32 bits wide: four int8 or two bf16.
  bool isOfInt8 = elements.getElementType().isInteger(8);
  int64_t lanes = sum.getDimSize(0), size = isOfInt8 ? 4 : 2;
  if (elements.getDimSize(0) != size * lanes) // D1
    return emitOpError() << "expected " << size * lanes
                         << (isOfInt8 ? " bytes" : " bf16") << " for " << lanes
                         << " lanes of the sum, got " << elements.getDimSize(0);
  if (isOfInt8 != sum.getElementType().isInteger(32)) // D2
    return emitOpError() << "expected a sum of " << (isOfInt8 ? "i32" : "f32")
                         << " for products of " << elements.getElementType()
                         << ", got " << sum;
  return success();
}

/// Two bf16 as one 32-bit element; without gaps, or the view would need strides
/// of half an element.
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
  return success();
}
