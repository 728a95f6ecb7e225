//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that replaces those functions of the math dialect by polynomials
// that GPU targets do not have.
// The same polynomials as on CPUs, so that results agree between targets within
// rounding, and none depends on a driver's or libdevice's accuracy.
//
//===----------------------------------------------------------------------===//

#include "../../Common/ExpandMath.h"
#include "kas/Codegen/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUEXPANDMATHPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {
struct GPUExpandMath
    : kas::codegen::impl::KasGPUExpandMathPassBase<GPUExpandMath> {
  void runOnOperation() override {
    // All but the square roots, which every device has.
    auto isApproximated = [](StringRef name) {
      return name != math::SqrtOp::getOperationName() &&
             name != math::RsqrtOp::getOperationName();
    };
    // Divisions are those of indices that the program computes.
    if (failed(expandMath(getOperation(),
                          {isApproximated,
                           {"exp2", "powf", "rsqrt", "sinh", "cosh", "tan",
                            "asinh", "acosh", "atanh", "fpowi", "round"},
                           /*divisions=*/true})))
      signalPassFailure();
  }
};
} // namespace
