//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The function that a pass of networks works on, and the removal of operands
// that no body reads.
//
//===----------------------------------------------------------------------===//

#include "FindFunction.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

/// `added` is the name of the function that the pass is going to add; null
/// after an error.
func::FuncOp kas::networks::findFunction(ModuleOp module, StringRef name,
                                         StringRef added) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function || function.isDeclaration()) {
    module.emitError("option 'function' requires a function with a body, got '")
        << name << "'";
    return nullptr;
  }
  if (module.lookupSymbol(added)) {
    module.emitError("requires a module without '") << added << "'";
    return nullptr;
  }
  return function;
}

/// Gradients are emitted with all operands of the forward operation, also those
/// that the derivative does not depend on, as of a sum: without this they would
/// be read for nothing and keep tensors alive.
LogicalResult kas::networks::eraseUnusedOperands(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  return applyPatternsGreedily(function, std::move(patterns));
}
