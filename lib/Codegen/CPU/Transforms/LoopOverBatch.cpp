//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls functions that compute a part of a batch for all of it.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kas::codegen {
#define GEN_PASS_DEF_LOOPOVERBATCH
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// A function that calls another one for each part of a batch.
class BatchLoop {
public:
  /// `part` gets another name, and `whole` has the one that it had.
  BatchLoop(LLVM::LLVMFuncOp part, LLVM::LLVMFuncOp whole, int64_t threads)
      : part(part), whole(whole), parts(part->getAttrOfType<BatchPartsAttr>(
                                      KasCPUDialect::batchPartsName)),
        threads(threads), b(part.getLoc(), part.getContext()) {}

  void emit();

private:
  bool hasMessages() {
    return !isa<LLVM::LLVMVoidType>(part.getFunctionType().getReturnType());
  }
  Value makeInt(int64_t value) {
    return LLVM::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  void emitParallel();
  /// A loop in blocks of its own, with the number of the iteration.
  void emitSerial(function_ref<void(Value)> body);
  void emitCall(Value number);
  void emitReturn();
  Value getMessage(Value number) {
    return LLVM::GEPOp::create(b, messages.getType(), messages.getType(),
                               messages, number);
  }

  LLVM::LLVMFuncOp part, whole;
  BatchPartsAttr parts;
  int64_t threads;
  ImplicitLocOpBuilder b;
  /// What each part returned, for the first one that failed to be found.
  Value messages;
};

} // namespace

void BatchLoop::emit() {
  Block *entry = whole.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  if (hasMessages()) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    messages =
        LLVM::AllocaOp::create(b, pointer, pointer, makeInt(parts.getCount()));
  }
  if (threads == 1)
    emitSerial([&](Value number) { emitCall(number); });
  else
    emitParallel();
  emitReturn();
}

void BatchLoop::emitParallel() {
  Value zero = makeInt(0), one = makeInt(1), count = makeInt(parts.getCount());
  omp::ParallelOperands operands;
  if (threads != 0)
    operands.numThreads =
        LLVM::ConstantOp::create(b, b.getI32IntegerAttr(threads));
  auto parallel = omp::ParallelOp::create(b, operands);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&parallel.getRegion());
  auto loop = omp::WsloopOp::create(b, omp::WsloopOperands());
  omp::TerminatorOp::create(b);
  b.createBlock(&loop.getRegion());
  omp::LoopNestOperands bounds;
  bounds.loopLowerBounds = {zero};
  bounds.loopUpperBounds = {count};
  bounds.loopSteps = {one};
  auto nest = omp::LoopNestOp::create(b, bounds);
  Block *body =
      b.createBlock(&nest.getRegion(), {}, {b.getI64Type()}, {b.getLoc()});
  emitCall(body->getArgument(0));
  omp::YieldOp::create(b, ValueRange());
}

void BatchLoop::emitSerial(function_ref<void(Value)> body) {
  Block *before = b.getInsertionBlock();
  Region *region = before->getParent();
  Value zero = makeInt(0), one = makeInt(1), count = makeInt(parts.getCount());
  Block *loop =
      b.createBlock(region, region->end(), {b.getI64Type()}, {b.getLoc()});
  Block *after = b.createBlock(region, region->end());
  b.setInsertionPointToEnd(before);
  LLVM::BrOp::create(b, zero, loop);
  b.setInsertionPointToStart(loop);
  Value number = loop->getArgument(0);
  body(number);
  Value next = LLVM::AddOp::create(b, number, one);
  Value isLast = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, next, count);
  LLVM::CondBrOp::create(b, isLast, after, ValueRange(), loop, next);
  b.setInsertionPointToStart(after);
}

void BatchLoop::emitCall(Value number) {
  SmallVector<Value> arguments;
  for (BlockArgument argument : whole.getArguments()) {
    unsigned index = argument.getArgNumber();
    int64_t bytes =
        index < parts.getBytes().size() ? parts.getBytes()[index] : 0;
    Value pointer = argument;
    if (bytes != 0) {
      Value offset = LLVM::MulOp::create(b, number, makeInt(bytes));
      pointer = LLVM::GEPOp::create(b, argument.getType(), b.getI8Type(),
                                    argument, offset);
    }
    arguments.push_back(pointer);
  }
  auto call = LLVM::CallOp::create(b, part, arguments);
  if (hasMessages())
    LLVM::StoreOp::create(b, call.getResult(), getMessage(number));
}

/// The first message, in the order of the parts.
void BatchLoop::emitReturn() {
  if (!hasMessages()) {
    LLVM::ReturnOp::create(b, ValueRange());
    return;
  }
  auto pointer = messages.getType();
  Value none = LLVM::ZeroOp::create(b, pointer);
  Value found = LLVM::AllocaOp::create(b, pointer, pointer, makeInt(1));
  LLVM::StoreOp::create(b, none, found);
  Value last = makeInt(parts.getCount() - 1);
  emitSerial([&](Value number) {
    Value backward = LLVM::SubOp::create(b, last, number);
    Value message = LLVM::LoadOp::create(b, pointer, getMessage(backward));
    Value isNone =
        LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, message, none);
    Value before = LLVM::LoadOp::create(b, pointer, found);
    LLVM::StoreOp::create(b, LLVM::SelectOp::create(b, isNone, before, message),
                          found);
  });
  Value message = LLVM::LoadOp::create(b, pointer, found);
  LLVM::ReturnOp::create(b, message);
}

namespace {

struct LoopOverBatch : kas::codegen::impl::LoopOverBatchBase<LoopOverBatch> {
  using LoopOverBatchBase::LoopOverBatchBase;

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
  static bool isOnPointers(LLVM::LLVMFuncOp part) {
    Type result = part.getFunctionType().getReturnType();
    return !part.isExternal() &&
           isa<LLVM::LLVMVoidType, LLVM::LLVMPointerType>(result) &&
           llvm::all_of(part.getArgumentTypes(),
                        llvm::IsaPred<LLVM::LLVMPointerType>);
  }
  void loop(SymbolTable &symbols, LLVM::LLVMFuncOp part) {
    LLVM::LLVMFuncOp whole = part.cloneWithoutRegions();
    for (StringRef name :
         {KasCPUDialect::batchPartsName, KasCPUDialect::serialName})
      whole->removeAttr(name);
    symbols.remove(part);
    part.setSymName((part.getName() + "_part").str());
    part.setLinkage(LLVM::Linkage::Internal);
    part.setPrivate();
    symbols.insert(part);
    symbols.insert(whole, std::next(part->getIterator()));
    BatchLoop(part, whole, threads).emit();
    part->removeAttr(KasCPUDialect::batchPartsName);
  }
};

} // namespace
