//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets functions compute a part of a batch: changes the number of samples in
// all tensors of a function, and notes how many parts there are, for
// `-kas-loop-over-batch`. Functions for which that is not possible or brings
// nothing stay as they are. docs/internals/code-generation.md, "Batches".
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionTarget.h"
#include "BatchFunctions.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/Common/PerSample.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/DebugLog.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASSPLITBATCHPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

#define DEBUG_TYPE "kas-split-batch"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

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

struct SplitBatch : kas::codegen::impl::KasSplitBatchPassBase<SplitBatch> {
  using KasSplitBatchPassBase::KasSplitBatchPassBase;

  void runOnOperation() override {
    if (failed(checkOption("size", size)) ||
        failed(checkOption("threads", threads)))
      return signalPassFailure();
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (function.isPublic() && !function.isExternal() &&
          !isPartOfBatch(function) && isOnBatch(function) &&
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
  /// Changes `function`, or leaves it as it is where parts are not possible or
  /// gain too little (`choosePartSize` returns the whole batch).
  void split(func::FuncOp function);
};

} // namespace

void SplitBatch::split(func::FuncOp function) {
  // A size that was requested overrules schedules.
  if (!hasPlainElements(function) || (size == 0 && hasSchedules(function)))
    return;
  FailureOr<SamplePositions> samples = failure();
  {
    // Most functions on batches mix samples or are no networks. `findSamples`
    // reports what mixes samples as an error, which it is none here.
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
    part = choosePartSize(collectBatchWork(function, *samples),
                          getContractionTarget(getOperation(), 0), threads);
  // Parts are of one size: a function has static shapes.
  if (part >= samples->batch || samples->batch % part != 0 ||
      samples->batch / part > maxBatchParts)
    return;
  setNumSamples(function, *samples, part);
  // After the shapes have changed: the bytes of one part.
  SmallVector<int64_t> bytes = getPartBytes(function);
  MLIRContext *context = &getContext();
  function->setAttr(KasCPUDialect::batchPartsName,
                    BatchPartsAttr::get(context, samples->batch / part, bytes));
  // Threads share the parts, not the loops of each.
  function->setAttr(KasCPUDialect::serialName, UnitAttr::get(context));
  ++numSplit;
}
