//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

LogicalResult kas::codegen::expandMath(Operation *root,
                                       const MathExpansions &expansions) {
  RewritePatternSet patterns(root->getContext());
  populateMathPolynomialApproximationPatterns(patterns,
                                              expansions.approximated);
  if (expansions.approximated(math::ErfOp::getOperationName()))
    populateErfPatterns(patterns);
  // No names would be all of them.
  if (!expansions.expanded.empty())
    math::populateExpansionPatterns(patterns, expansions.expanded);
  if (expansions.divisions)
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  return applyPatternsGreedily(root, std::move(patterns));
}
