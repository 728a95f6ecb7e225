//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The facts about a function that computing a batch part by part needs: the
// work and bytes for each sample, and which arguments differ from part to part.
// `choosePartSize` (Strategy/BatchParts.cpp) estimates from this how large a
// part should be.
//
//===----------------------------------------------------------------------===//

#include "BatchFunctions.h"
#include "kas/Codegen/Common/OperationCost.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The bytes of a tensor of static shape, elements of less than 8 bits as a
/// byte each; 0 for what has no known size.
static int64_t getBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrFloat())
    return 0;
  return tensor.getNumElements() *
         llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

/// What is fused with other operations is no step.
static bool isStep(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp ? linalgOp.getNumReductionLoops() > 0 : isa<ApplyOp>(op);
}

/// The stages that an operator becomes are steps of their own; those on weights
/// alone are done ahead. `op` is the operator that `apply` names. Numbers are
/// divided by the batch: those of a `BatchWork::Step` are of one sample.
static void addStages(ApplyOp apply, OperatorOp op, BatchWork &work) {
  // The same plan that `-kas-rfactor` makes later with prepacked weights.
  schedule::StagePlanOptions options;
  options.cost = schedule::StageCost::Prepared;
  options.traffic = schedule::usualTraffic;
  schedule::StagePlan plan = planStages(op, options);
  auto getElements = [&](const schedule::StageOperand &operand) -> int64_t {
    if (operand.kind == schedule::StageOperand::Kind::Stage)
      return plan.stages[operand.index].elements;
    return apply.getData().getType().getNumElements();
  };
  int64_t elementBytes =
      llvm::divideCeil(apply.getData().getType().getElementTypeBitWidth(), 8);
  for (const schedule::Stage &stage : plan.stages) {
    if (stage.isOfWeights)
      continue;
    // What the stage reads and what it writes; weights are counted for the
    // whole function.
    int64_t elements = getElements(stage.operands.front()) +
                       static_cast<int64_t>(stage.elements);
    work.steps.push_back({static_cast<int64_t>(2 * stage.macs) / work.batch,
                          elementBytes * elements / work.batch});
  }
}

BatchWork kas::codegen::collectBatchWork(func::FuncOp function,
                                         const SamplePositions &samples) {
  BatchWork work;
  work.batch = samples.batch;
  for (BlockArgument argument : function.getArguments())
    if (!samples.places.contains(argument))
      work.weightBytes += getBytes(argument.getType());
  // One step on images makes it false.
  work.isOfChannels = true;
  function.walk([&](Operation *op) {
    auto hasSamples = [&](Value value) {
      return samples.places.contains(value);
    };
    // What has no samples is computed from weights alone, once per call.
    if (!isStep(op) || llvm::none_of(op->getResults(), hasSamples))
      return;
    auto apply = dyn_cast<ApplyOp>(op);
    work.isOfChannels &= apply && apply.getData().getType().getRank() == 2;
    if (apply)
      // An operator that is not concrete, or whose data has no samples, counts
      // like any other operation.
      if (OperatorOp called = apply.getOperator();
          called && called.isConcrete() && hasSamples(apply.getData()))
        return addStages(apply, called, work);
    int64_t bytes = 0;
    for (Value value : op->getOperands())
      bytes += hasSamples(value) ? getBytes(value.getType()) : 0;
    for (Value value : op->getResults())
      bytes += getBytes(value.getType());
    work.steps.push_back(
        {countFlops(op).value_or(0) / samples.batch, bytes / samples.batch});
  });
  return work;
}

bool kas::codegen::isPartOfBatch(func::FuncOp function) {
  return function->hasAttr(KasCPUDialect::batchPartsName) ||
         function->hasAttr(KasCPUDialect::batchVersionName);
}

bool kas::codegen::isOnBatch(func::FuncOp function) {
  if (function.getNumArguments() == 0)
    return false;
  // A batch of one cannot be cut.
  auto data = dyn_cast<RankedTensorType>(function.getArgumentTypes().front());
  return data && data.getRank() > 0 && data.getDimSize(0) > 1;
}

bool kas::codegen::hasPlainElements(func::FuncOp function) {
  auto isPlain = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isIntOrFloat() &&
           // Widths whose tensors have a whole number of bytes per element in
           // memory (i1 is stored as a byte).
           llvm::is_contained({1u, 8u, 16u, 32u, 64u},
                              tensor.getElementTypeBitWidth());
  };
  return isPlain(function.getArgumentTypes().front()) &&
         llvm::all_of(function.getResultTypes(), isPlain);
}

/// The pointers are the arguments, then one per result. Of the arguments only
/// the first one, the data, moves.
SmallVector<int64_t> kas::codegen::getPartBytes(func::FuncOp function) {
  SmallVector<int64_t> bytes(function.getNumArguments(), 0);
  bytes.front() = getBytes(function.getArgumentTypes().front());
  for (Type result : function.getResultTypes())
    bytes.push_back(getBytes(result));
  return bytes;
}
