//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes versions of functions for parts of batches of any size: one to three
// clones, each for another number of samples, from which `-kas-dispatch-batch`
// later combines a batch. Unlike `-kas-split-batch` this was requested, so that
// what does not suit is an error. docs/internals/code-generation.md, "Batches".
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionTarget.h"
#include "BatchFunctions.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASBATCHVERSIONSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Says what keeps the function from taking a batch of any size.
static LogicalResult checkFunction(func::FuncOp function, Operation *module) {
  if (function.getNumArguments() == 0 || function.getNumResults() == 0 ||
      !isOnBatch(function))
    return function.emitError("requires data with at least 2 samples first, to "
                              "take batches of any size, got ")
           << function.getFunctionType();
  if (!hasPlainElements(function))
    return function.emitError("requires elements of 1, 8, 16, 32 or 64 bits, "
                              "to take batches of any size, got ")
           << function.getFunctionType();
  // A caller inside the module would go on to pass a batch of the old size.
  if (!SymbolTable::symbolKnownUseEmpty(function, module))
    return function.emitError("requires a function that no other one uses, to "
                              "take batches of any size");
  return success();
}

namespace {

struct BatchVersions
    : kas::codegen::impl::KasBatchVersionsPassBase<BatchVersions> {
  using KasBatchVersionsPassBase::KasBatchVersionsPassBase;

  void runOnOperation() override {
    if (threads < 0) {
      emitError(getOperation().getLoc())
          << "option 'threads' requires a number of at least 0, got "
          << threads.getValue();
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      // Private functions are compiled with what calls them.
      if (function.isPublic() && !function.isExternal() &&
          !isPartOfBatch(function) && failed(replace(function)))
        return signalPassFailure();
  }

private:
  LogicalResult replace(func::FuncOp function);
  LogicalResult makeVersion(SymbolTable &symbols, func::FuncOp function,
                            const BatchVersion &version, int64_t most);
};

} // namespace

LogicalResult BatchVersions::replace(func::FuncOp function) {
  if (failed(checkFunction(function, getOperation())))
    return failure();
  FailureOr<SamplePositions> samples = findSamples(function, /*numData=*/1);
  if (failed(samples))
    return failure();
  // A batch of single samples needs a slot for a message of each of them, on
  // the stack.
  if (samples->batch > maxBatchParts)
    return function.emitError("requires at most ")
           << maxBatchParts << " samples, to take batches of any size, got "
           << samples->batch;
  SmallVector<BatchVersion> versions = chooseBatchVersions(
      collectBatchWork(function, *samples),
      getContractionTarget(getOperation(), /*vectorBits=*/0), threads);
  SymbolTable symbols(getOperation());
  for (const BatchVersion &version : versions)
    if (failed(makeVersion(symbols, function, version, samples->batch)))
      return failure();
  symbols.erase(function);
  ++numFunctions;
  return success();
}

/// Clones `function` as `@NAME_batchN` for `version.samples` samples. `most` is
/// the batch of `function`, the largest that the plan of `-kas-dispatch-batch`
/// has a row for.
LogicalResult BatchVersions::makeVersion(SymbolTable &symbols,
                                         func::FuncOp function,
                                         const BatchVersion &version,
                                         int64_t most) {
  func::FuncOp part = function.clone();
  part.setSymName(
      (function.getName() + "_batch" + Twine(version.samples)).str());
  symbols.insert(part, function->getIterator());
  // Those of `function` are of its own values.
  FailureOr<SamplePositions> samples = findSamples(part, /*numData=*/1);
  if (failed(samples))
    return failure();
  // The clone has `most` samples already.
  if (version.samples != most)
    setNumSamples(part, *samples, version.samples);
  MLIRContext *context = &getContext();
  part->setAttr(KasCPUDialect::batchVersionName,
                BatchVersionAttr::get(context, function.getName(),
                                      version.samples, most, version.cycles,
                                      getPartBytes(part)));
  // Threads share several calls of such a version instead of its loops.
  if (version.isSerial)
    part->setAttr(KasCPUDialect::serialName, UnitAttr::get(context));
  return success();
}
