//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the calls of a function on parts of a batch, one after the other or by
// several threads, and returns the first assertion message.
//
// Used by `-kas-loop-over-batch` and `-kas-dispatch-batch`, after everything
// was lowered to the LLVM dialect: functions take plain pointers, so that a
// part is an offset in bytes. docs/internals/code-generation.md, "Batches".
//
//===----------------------------------------------------------------------===//

#include "BatchCalls.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"

using namespace kas::codegen;
using namespace mlir;

bool kas::codegen::isOnPointers(LLVM::LLVMFuncOp function) {
  Type result = function.getFunctionType().getReturnType();
  // Declarations have no part that could be called.
  return !function.isExternal() &&
         isa<LLVM::LLVMVoidType, LLVM::LLVMPointerType>(result) &&
         llvm::all_of(function.getArgumentTypes(),
                      llvm::IsaPred<LLVM::LLVMPointerType>);
}

bool kas::codegen::hasMessages(LLVM::LLVMFuncOp function) {
  return !isa<LLVM::LLVMVoidType>(function.getFunctionType().getReturnType());
}

static Value makeInt(ImplicitLocOpBuilder &b, int64_t value) {
  return LLVM::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

/// A loop of `count` iterations in blocks of its own. `body` gets the number of
/// the iteration, and what the one before returned, at first `start`. `count`
/// is at least 1: the condition is tested after the body. A null `start`
/// carries nothing. Returns what the last iteration returned.
///
///     before:      br loop(0, start)
///     loop(i, c):  r = body(i, c)
///                  cond_br i + 1 == count, after, loop(i + 1, r)
///     after:       the builder's insertion point
static Value
emitSerialLoop(ImplicitLocOpBuilder &b, Value count, Value start,
               function_ref<Value(Value number, Value carried)> body) {
  Block *before = b.getInsertionBlock();
  Region *region = before->getParent();
  SmallVector<Type> types = {b.getI64Type()};
  SmallVector<Value> values = {makeInt(b, 0)};
  Value one = makeInt(b, 1);
  if (start) {
    types.push_back(start.getType());
    values.push_back(start);
  }
  SmallVector<Location> locations(types.size(), b.getLoc());
  Block *loop =
      b.createBlock(region, std::next(before->getIterator()), types, locations);
  Block *after = b.createBlock(region, std::next(loop->getIterator()));
  b.setInsertionPointToEnd(before);
  LLVM::BrOp::create(b, values, loop);
  b.setInsertionPointToStart(loop);
  Value number = loop->getArgument(0);
  // The body may add blocks; the branch belongs to the last of them.
  Value result = body(number, start ? loop->getArgument(1) : Value());
  values.front() = LLVM::AddOp::create(b, number, one);
  if (start)
    values.back() = result;
  Value isLast =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, values.front(), count);
  LLVM::CondBrOp::create(b, isLast, after, ValueRange(), loop, values);
  b.setInsertionPointToStart(after);
  return result;
}

Value PartCalls::emit(ImplicitLocOpBuilder &b) const {
  if (threads == 1)
    emitSerialLoop(b, count, Value(), [&](Value number, Value) {
      emitCall(b, number);
      return Value();
    });
  else
    emitParallel(b);
  return hasMessages(part) ? emitFirstMessage(b) : Value();
}

/// One OpenMP region with one worksharing loop, as upstream lowers
/// `scf.parallel`; each part is one iteration.
void PartCalls::emitParallel(ImplicitLocOpBuilder &b) const {
  Value zero = makeInt(b, 0), one = makeInt(b, 1);
  omp::ParallelOperands operands;
  // Of unknown threads the runtime takes as many as it has.
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
  emitCall(b, body->getArgument(0));
  omp::YieldOp::create(b, ValueRange());
}

void PartCalls::emitCall(ImplicitLocOpBuilder &b, Value number) const {
  SmallVector<Value> pointers;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    // `bytes` may end before the arguments, whose rest is the same for all
    // parts.
    int64_t distance = index < bytes.size() ? bytes[index] : 0;
    Value pointer = argument;
    if (distance != 0) {
      Value offset = LLVM::MulOp::create(b, number, makeInt(b, distance));
      pointer = LLVM::GEPOp::create(b, argument.getType(), b.getI8Type(),
                                    argument, offset);
    }
    pointers.push_back(pointer);
  }
  // Each part has its own slot: threads need no synchronization, and the order
  // of messages is that of the parts.
  auto call = LLVM::CallOp::create(b, part, pointers);
  if (hasMessages(part))
    LLVM::StoreOp::create(b, call.getResult(),
                          LLVM::GEPOp::create(b, messages.getType(),
                                              messages.getType(), messages,
                                              number));
}

/// Goes through the slots backwards: the last message that it keeps is the
/// first one.
Value PartCalls::emitFirstMessage(ImplicitLocOpBuilder &b) const {
  Type pointer = messages.getType();
  Value none = LLVM::ZeroOp::create(b, pointer);
  Value last = LLVM::SubOp::create(b, count, makeInt(b, 1));
  return emitSerialLoop(b, count, none, [&](Value number, Value later) {
    Value backward = LLVM::SubOp::create(b, last, number);
    Value place = LLVM::GEPOp::create(b, pointer, pointer, messages, backward);
    Value message = LLVM::LoadOp::create(b, pointer, place);
    Value isNone =
        LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, message, none);
    return LLVM::SelectOp::create(b, isNone, later, message).getResult();
  });
}
