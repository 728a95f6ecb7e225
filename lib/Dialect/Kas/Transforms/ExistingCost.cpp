//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts the multiply-adds of an operator's stages at points that exist,
// padding left out: what times are divided by.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "kas/Dialect/Kas/Analysis/IterationCount.h"
#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace kas;
using namespace kas::schedule;

/// Stages are built for real, in a module that is thrown away: their guards are
/// those of the code that runs.
int64_t kas::countExistingMacs(OperatorOp op, const StagePlan &plan) {
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(op.getLoc());
  OpBuilder builder(scratch->getBodyRegion());
  int64_t macs = 0;
  for (auto [stage, built] :
       llvm::zip_equal(plan.stages, buildStages(builder, op, plan))) {
    // A view has points, but no arithmetic.
    if (stage.isOfWeights || stage.macs == 0)
      continue;
    // As `BasicCost` counts: tensors at a point less one.
    int64_t products = std::max<int64_t>(stage.operands.size() - 1, 1);
    Coordinates coordinates = getCoordinates(built);
    macs += products * countIterations(coordinates.axes, coordinates.guards);
  }
  return macs;
}

FailureOr<int64_t> kas::getExistingMacs(OperatorOp op, const Binding &binding,
                                        EmitErrorFn emitError) {
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(op.getLoc());
  OpBuilder builder(scratch->getBodyRegion());
  FailureOr<OperatorOp> concrete =
      specialize(builder, op, binding, op.getSymName(), emitError);
  if (failed(concrete))
    return failure();
  StagePlanOptions options;
  options.cost = StageCost::Prepared;
  return countExistingMacs(*concrete, planStages(*concrete, options));
}
