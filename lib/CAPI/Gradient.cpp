//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/ExecutionEngine/Signature.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace kas::reference;
using namespace mlir;

/// How often an element is used, on average: multiply-adds per element of all
/// tensors. With few uses moving the elements is what takes the time, and the
/// windows that structured operations may copy cost more than their tiles gain.
static double getReuse(OperatorOp op) {
  FailureOr<Cost> cost = getCost(op, Binding(), [&] { return op.emitError(); });
  if (failed(cost))
    return 0;
  OperatorShapes shapes = getShapes(op);
  double elements = static_cast<double>(
      ShapedType::getNumElements(shapes.data) +
      ShapedType::getNumElements(shapes.output) + cost->parameters);
  return static_cast<double>(cost->flopsUnprepared) / 2 / elements;
}

/// Null where the operator or its gradient has no structured form.
static OwningOpRef<ModuleOp> createStructuredGradient(OperatorOp op,
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
  OwningOpRef<ModuleOp> module = createOperatorModule(op);
  PassManager lower(context, ModuleOp::getOperationName());
  KasRFactorPassOptions stages;
  stages.cost = solver::StageCost::Training;
  lower.addPass(createKasRFactorPass(stages));
  lower.addPass(createKasToLinalgPass());
  if (failed(lower.run(*module)))
    return {};
  WalkResult left =
      module->walk([](ApplyOp) { return WalkResult::interrupt(); });
  auto forward = module->lookupSymbol<func::FuncOp>(operatorFunctionName);
  if (left.wasInterrupted() || !forward)
    return {};
  FailureOr<func::FuncOp> gradient =
      makeGradientFunction(forward, gradientFunctionName, {tensor});
  if (failed(gradient))
    return {};
  // Only the gradient is requested.
  gradient->getBody().front().getTerminator()->eraseOperand(0);
  if (failed(gradient->eraseResult(0)))
    return {};
  gradient->setArgAttr(gradient->getNumArguments() - 1,
                       KasDialect::argumentNameAttrName,
                       StringAttr::get(context, "gradient"));
  forward.erase();
  PassManager clean(context, ModuleOp::getOperationName());
  clean.addPass(createCanonicalizerPass());
  clean.addPass(createCSEPass());
  if (failed(clean.run(*module)))
    return {};
  return module;
}

OwningOpRef<ModuleOp>
kas::createFastGradientModule(OperatorOp op, unsigned tensor,
                              KasGradientStrategy strategy, bool parallel) {
  // Measured on the named operators: see docs/reports/gradients.md.
  constexpr double leastReuse = 5;
  bool isWorthIt =
      strategy == KasGradientStrategyStructured ||
      (strategy == KasGradientStrategyAuto && getReuse(op) >= leastReuse);
  if (isWorthIt)
    if (OwningOpRef<ModuleOp> module = createStructuredGradient(op, tensor))
      return module;
  if (strategy == KasGradientStrategyStructured)
    return {};
  return createGradientModule(op, tensor, {.parallel = parallel});
}
