//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses how the gradient of an operator is lowered for the C interface: as
// gradients of its stages, or as one loop nest where a maximum is taken.
// Structured gradients (lib/Networks/Differentiation) become register tiles;
// the loop nest of lib/Conversion/KasGradient adds up in a fixed order and
// works for every operator. The test of each strategy compares with the
// reference evaluator's.
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace kas;
using namespace kas::networks;
using namespace mlir;

/// The gradients of the stages in which the operator trains, as
/// `kas.apply_gradient`; null for operators with maxima.
static OwningOpRef<ModuleOp> createStagedGradient(OperatorOp op,
                                                  unsigned tensor) {
  MLIRContext *context = op.getContext();
  // A structured maximum gives each of several equal values all of its
  // gradient; ours share it.
  if (llvm::any_of(getReductions(op), [](ReduceOp reduction) {
        return reduction.getKind() == ReduceKind::Max;
      }))
    return {};
  // The reason is of no concern to the caller, who has another lowering path.
  ScopedDiagnosticHandler quiet(context,
                                [](Diagnostic &) { return success(); });
  // What gradients are made of.
  context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                       tensor::TensorDialect>();
  // Forward in the stages with the least work of a training, then reverse
  // accumulation over them: intermediates between stages are kept, not computed
  // twice.
  OwningOpRef<ModuleOp> module = createOperatorModule(op);
  PassManager lower(context, ModuleOp::getOperationName());
  KasRFactorPassOptions stages;
  // The intermediates of these stages are what the backward pass reads again.
  stages.cost = schedule::StageCost::Training;
  stages.traffic = schedule::usualTraffic;
  lower.addPass(createKasRFactorPass(stages));
  if (failed(lower.run(*module)))
    return {};
  auto forward = module->lookupSymbol<func::FuncOp>(operatorFunctionName);
  if (!forward)
    return {};
  FailureOr<func::FuncOp> gradient =
      makeGradientFunction(forward, gradientFunctionName, {tensor});
  if (failed(gradient))
    return {};
  // Only the gradient is requested.
  // The function returns the operator's result first; without it, what only the
  // result needs is dead code, and the clean-up below removes it.
  gradient->getBody().front().getTerminator()->eraseOperand(0);
  if (failed(gradient->eraseResult(0)))
    return {};
  gradient->setArgAttr(gradient->getNumArguments() - 1,
                       KasDialect::argumentNameAttrName,
                       StringAttr::get(context, "gradient"));
  // Compiling it, too, would double the time.
  forward.erase();
  PassManager clean(context, ModuleOp::getOperationName());
  // The forward operations that only the erased result needed go here.
  clean.addPass(createCanonicalizerPass());
  clean.addPass(createCSEPass());
  if (failed(clean.run(*module)))
    return {};
  return module;
}

/// Null where only the structured form will do and there is none.
OwningOpRef<ModuleOp>
kas::createFastGradientModule(OperatorOp op, unsigned tensor,
                              KasGradientStrategy strategy, bool parallel) {
  if (strategy != KasGradientStrategyLoops)
    if (OwningOpRef<ModuleOp> module = createStagedGradient(op, tensor))
      return module;
  if (strategy == KasGradientStrategyStructured)
    return {};
  return createGradientModule(op, tensor, {.parallel = parallel});
}
