//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets functions compute a part of a batch.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/BatchParts.h"
#include "PackOperations.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/Common/OperationCost.h"
#include "kas/Codegen/Common/SampleWise.h"
#include "llvm/Support/DebugLog.h"

namespace kas::codegen {
#define GEN_PASS_DEF_SPLITBATCH
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

#define DEBUG_TYPE "kas-split-batch"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

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

static BatchWork collectWork(func::FuncOp function,
                             const SamplePlaces &samples) {
  BatchWork work;
  work.batch = samples.batch;
  for (BlockArgument argument : function.getArguments())
    if (!samples.places.contains(argument))
      work.weightBytes += getBytes(argument.getType());
  function.walk([&](Operation *op) {
    auto hasSamples = [&](Value value) {
      return samples.places.contains(value);
    };
    if (!isStep(op) || llvm::none_of(op->getResults(), hasSamples))
      return;
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

static bool hasFirstDimension(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 && tensor.getDimSize(0) > 1;
}

/// Whether parts of the tensor begin at whole elements of known size.
static bool hasPlainElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isIntOrFloat() &&
         llvm::is_contained({1u, 8u, 16u, 32u, 64u},
                            tensor.getElementTypeBitWidth());
}

/// Schedules were chosen for all of the batch.
static bool hasSchedules(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return op->hasAttr(KasCPUDialect::scheduleName)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

struct SplitBatch : kas::codegen::impl::SplitBatchBase<SplitBatch> {
  using SplitBatchBase::SplitBatchBase;

  void runOnOperation() override {
    if (failed(checkOption("size", size)) ||
        failed(checkOption("threads", threads)))
      return signalPassFailure();
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (function.isPublic() && !function.isExternal() &&
          !function->hasAttr(KasCPUDialect::batchPartsName) &&
          function.getNumArguments() > 0 &&
          hasFirstDimension(function.getArgumentTypes().front()) &&
          SymbolTable::symbolKnownUseEmpty(function, getOperation()))
        split(function);
  }

private:
  LogicalResult checkOption(StringRef name, int64_t value) {
    if (value >= 0)
      return success();
    return emitError(getOperation().getLoc())
           << "option '" << name << "' requires a number of at least 0, got "
           << value;
  }
  void split(func::FuncOp function);
};

} // namespace

void SplitBatch::split(func::FuncOp function) {
  if (!hasPlainElements(function.getArgumentTypes().front()) ||
      !llvm::all_of(function.getResultTypes(), hasPlainElements) ||
      (size == 0 && hasSchedules(function)))
    return;
  FailureOr<SamplePlaces> samples = failure();
  {
    // Most functions on batches mix samples or are no networks.
    ScopedDiagnosticHandler quiet(&getContext(), [&](Diagnostic &diagnostic) {
      LDBG() << function.getName() << ": " << diagnostic.str();
      return success();
    });
    samples = findSamples(function, /*numData=*/1);
  }
  if (failed(samples))
    return;
  int64_t part = size;
  if (part == 0)
    part = choosePartSize(collectWork(function, *samples),
                          getContractionTarget(getOperation(), 0), threads);
  if (part >= samples->batch || samples->batch % part != 0 ||
      samples->batch / part > maxBatchParts)
    return;
  setNumSamples(function, *samples, part);
  SmallVector<int64_t> bytes(function.getNumArguments(), 0);
  bytes.front() = getBytes(function.getArgumentTypes().front());
  for (Type result : function.getResultTypes())
    bytes.push_back(getBytes(result));
  MLIRContext *context = &getContext();
  function->setAttr(KasCPUDialect::batchPartsName,
                    BatchPartsAttr::get(context, samples->batch / part, bytes));
  function->setAttr(KasCPUDialect::serialName, UnitAttr::get(context));
  ++numSplit;
}
