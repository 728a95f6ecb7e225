//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass -kas-pack-dot-products: lays operands of int8 and bf16 contractions
// out in the groups of 32 bits that dot-product instructions read.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/DotProducts.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-dot-products"

namespace kas::codegen {
#define GEN_PASS_DEF_PACKDOTPRODUCTS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {
struct PackDotProducts
    : kas::codegen::impl::PackDotProductsBase<PackDotProducts> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      auto product = DotProduct::match(op);
      // Operands that are in this layout already stay as they are.
      if (product && !findVNNILoop(op, product->getVNNIGroupSize()))
        ops.push_back(op);
    });
    // What cannot be laid out stays and becomes plain loops.
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      (void)packDotProducts(rewriter, op, [&](const Twine &reason) {
        LDBG() << op.getLoc() << ": not packed: " << reason.str();
      });
  }
};
} // namespace
