//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that replaces functions of the math dialect by polynomials on CPUs
// (Common/ExpandMath.h has the polynomials).
//
//===----------------------------------------------------------------------===//

#include "../../Common/ExpandMath.h"
#include "../Strategy/ContractionTarget.h"
#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/TargetParser/Triple.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASEXPANDMATHPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {
struct ExpandMath : kas::codegen::impl::KasExpandMathPassBase<ExpandMath> {
  void runOnOperation() override {
    Operation *module = getOperation()->getParentOp();
    Target target = getContractionTarget(module, /*vectorBits=*/0);
    // Without them each of the multiply-adds would be a call.
    bool hasFMA = target.hasFMA;
    // The functions whose polynomials LLVM vectorizes; all others stay calls of
    // the C library or instructions.
    auto isApproximated = [=](StringRef name) {
      return hasFMA && (name == math::ExpOp::getOperationName() ||
                        name == math::ErfOp::getOperationName() ||
                        name == math::TanhOp::getOperationName());
    };
    MathExpansions expansions{isApproximated};
    // `log1p` and `expm1` on every target: LLVM would compute them as `log(1 +
    // x)` and `exp(x) - 1`, which loses all digits near zero.
    expansions.differences = true;
    llvm::Triple triple(target.triple);
    // Targets of 32 bits without instructions for rounding.
    expansions.roundings = triple.isARM() || triple.isThumb() ||
                           triple.getArch() == llvm::Triple::riscv32;
    if (failed(expandMath(getOperation(), expansions)))
      signalPassFailure();
  }
};
} // namespace
