//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace kas::codegen {
#define GEN_PASS_DEF_GPUEXPANDMATH
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {
struct GPUExpandMath : kas::codegen::impl::GPUExpandMathBase<GPUExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    // Not the ones that every device has.
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name != math::SqrtOp::getOperationName() &&
             name != math::RsqrtOp::getOperationName();
    });
    math::populateExpansionPatterns(patterns, {"exp2", "powf", "rsqrt", "sinh",
                                               "cosh", "tan", "asinh", "acosh",
                                               "atanh", "fpowi", "round"});
    // Of indices that the program computes.
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
