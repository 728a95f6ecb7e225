//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the products of narrow elements require.
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
  int64_t bytes = cast<VectorType>(getLhs().getType()).getDimSize(0);
  int64_t lanes = cast<VectorType>(getSum().getType()).getDimSize(0);
  if (bytes != 4 * lanes) // D1
    return emitOpError() << "expected " << 4 * lanes << " bytes for " << lanes
                         << " lanes of the sum, got " << bytes;
  return success();
}
