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

LogicalResult kas::networks::eraseUnusedOperands(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  return applyPatternsGreedily(function, std::move(patterns));
}
