//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls functions that compute a part of a batch for all of it.
// `-kas-split-batch` has made the functions; this is the last step, on plain
// pointers, so that no pass in between knows of parts. `@f` becomes `@f_part`,
// and the new `@f` with the same signature loops over the parts.
// docs/internals/code-generation.md, "Batches".
//
//===----------------------------------------------------------------------===//

#include "BatchCalls.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASLOOPOVERBATCHPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Lets `whole` call `part` for all parts of a batch.
static void emitCalls(LLVM::LLVMFuncOp whole, LLVM::LLVMFuncOp part,
                      int64_t threads) {
  // How many parts there are, and how far they are apart in each argument.
  auto parts =
      part->getAttrOfType<BatchPartsAttr>(KasCPUDialect::batchPartsName);
  ImplicitLocOpBuilder b(part.getLoc(), part.getContext());
  Block *entry = whole.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  PartCalls calls{
      part,
      llvm::to_vector_of<Value>(whole.getArguments()),
      parts.getBytes(),
      LLVM::ConstantOp::create(b, b.getI64IntegerAttr(parts.getCount())),
      threads,
      /*messages=*/Value()};
  // One slot per part; `maxBatchParts` bounds what that takes of the stack.
  if (hasMessages(part)) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    calls.messages = LLVM::AllocaOp::create(b, pointer, pointer, calls.count);
  }
  Value message = calls.emit(b);
  // The same result type as the part: nothing, or the first message.
  LLVM::ReturnOp::create(b, message ? ValueRange(message) : ValueRange());
}

namespace {

struct LoopOverBatch
    : kas::codegen::impl::KasLoopOverBatchPassBase<LoopOverBatch> {
  using KasLoopOverBatchPassBase::KasLoopOverBatchPassBase;

  void runOnOperation() override {
    SmallVector<LLVM::LLVMFuncOp> functions;
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (function->hasAttr(KasCPUDialect::batchPartsName))
        functions.push_back(function);
    SymbolTable symbols(getOperation());
    for (LLVM::LLVMFuncOp part : functions) {
      if (!isOnPointers(part)) {
        emitError(part.getLoc())
            << "expected a function with a body that takes pointers and "
               "returns nothing or a pointer, for "
            << KasCPUDialect::batchPartsName << " of '@" << part.getName()
            << "' got " << part.getFunctionType();
        return signalPassFailure();
      }
      loop(symbols, part);
    }
  }

private:
  /// Makes `part` the internal `@NAME_part` and gives its name to the caller.
  void loop(SymbolTable &symbols, LLVM::LLVMFuncOp part) {
    // Has the name, the linkage and the attributes by which callers know it.
    LLVM::LLVMFuncOp whole = part.cloneWithoutRegions();
    for (StringRef name :
         {KasCPUDialect::batchPartsName, KasCPUDialect::serialName})
      whole->removeAttr(name);
    // The name must be free before the caller takes it.
    symbols.remove(part);
    part.setSymName((part.getName() + "_part").str());
    part.setLinkage(LLVM::Linkage::Internal);
    part.setPrivate();
    symbols.insert(part);
    symbols.insert(whole, std::next(part->getIterator()));
    emitCalls(whole, part, threads);
    part->removeAttr(KasCPUDialect::batchPartsName);
  }
};

} // namespace
