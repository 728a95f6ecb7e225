//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops on buffers among operations on tensors read where they stand.
//
//===----------------------------------------------------------------------===//

#include "kas/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

namespace kas {
#define GEN_PASS_DEF_KEEPREADS
#include "kas/Pipelines/Passes.h.inc"
} // namespace kas

using namespace mlir;

namespace {

struct KeepReads : kas::impl::KeepReadsBase<KeepReads> {
  void runOnOperation() override {
    Builder builder(&getContext());
    int64_t count = 0;
    getOperation().walk([&](bufferization::ToBufferOp op) {
      op->setAttr("kas.read", builder.getI64IntegerAttr(count++));
    });
  }
};

} // namespace
