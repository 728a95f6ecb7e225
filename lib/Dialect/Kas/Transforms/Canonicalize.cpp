//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Applies the rewrites R1 and following of docs/reference/dialect.md to
// operators until none matches, and the pass that does so.
// Rules are in CanonicalizePatterns.cpp and ShiftPatterns.cpp, those of kernels
// in CanonicalizeKernel.cpp; test/unittests/Properties compares operators
// before and after with the reference evaluator.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/Canonicalize.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace kas;

namespace kas {
#define GEN_PASS_DEF_KASCANONICALIZEPASS
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"
} // namespace kas

/// The body of an operator is small: no region simplification or constant
/// folding is wanted, only the rules.
static GreedyRewriteConfig makeConfig() {
  return GreedyRewriteConfig()
      .enableFolding(false)
      .enableConstantCSE(false)
      .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
}

LogicalResult kas::canonicalizeOperator(OperatorOp op) {
  RewritePatternSet patterns(op.getContext());
  populateCanonicalizePatterns(patterns);
  return applyPatternsGreedily(op.getBody(), std::move(patterns), makeConfig());
}

namespace {
struct KasCanonicalizePass
    : public kas::impl::KasCanonicalizePassBase<KasCanonicalizePass> {
  using KasCanonicalizePassBase::KasCanonicalizePassBase;

  // Patterns are built once per pass, not once per operator.
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    populateCanonicalizePatterns(set);
    patterns = std::move(set);
    RewritePatternSet kernelSet(context);
    populateKernelCanonicalizePatterns(kernelSet);
    kernelPatterns = std::move(kernelSet);
    return success();
  }

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](OperatorOp op) {
      if (failed(applyPatternsGreedily(op.getBody(), patterns, makeConfig()))) {
        // A cycle of rules would be a mistake of ours, but must not hang a
        // program.
        op.emitOpError("requires the rules of kas-canonicalize to end");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    getOperation()->walk(
        [&](KernelOp kernel) { canonicalizeKernel(kernel, kernelPatterns); });
  }

  FrozenRewritePatternSet patterns, kernelPatterns;
};
} // namespace
