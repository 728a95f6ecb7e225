//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Failing assertions end the function that has them, and its callers, with a
// message instead of the process: a library must not end the program that calls
// it. Runs when structured control flow has become branches, but while parallel
// loops are regions of the OpenMP dialect, out of which no branch may leave.
//
// The order is: find what can fail, also by calls (`findFailing`); give
// functions a result for the message (`addResults`); in each region, split
// blocks after each operation that can fail (`rewriteRegion`). A failure frees
// the buffers that exist, found by a data-flow analysis (`LiveBuffers`).
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/Common/Assertions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/DebugLog.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASRETURNASSERTIONSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

#define DEBUG_TYPE "kas-return-assertions"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

namespace {

/// The messages of all assertions of a module, one after the other in one
/// global: a message is known by its offset as well as by its address.
class Messages {
public:
  static constexpr StringLiteral globalName = "kas_assertion_messages";

  explicit Messages(ModuleOp module) : module(module) {}

  /// Gives each assertion its message, in the order of the program.
  void collect() {
    llvm::StringMap<int64_t> known;
    module.walk([&](cf::AssertOp op) {
      std::string message = getAssertionText(op.getLoc(), op.getMsg());
      // Equal messages share their text.
      auto [entry, isNew] = known.try_emplace(message, text.size());
      if (isNew) {
        text += message;
        text += '\0';
      }
      offsets[op] = entry->second;
    });
  }

  bool empty() const { return offsets.empty(); }
  int64_t getOffset(cf::AssertOp op) const { return offsets.lookup(op); }
  int64_t getSize() const { return static_cast<int64_t>(text.size()); }

  void define() {
    OpBuilder b(module.getContext());
    b.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(
        b, module.getLoc(),
        LLVM::LLVMArrayType::get(b.getI8Type(), text.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, chooseName(),
        b.getStringAttr(text));
  }

  /// The address of the first message.
  Value getAddress(ImplicitLocOpBuilder &b) {
    return LLVM::AddressOfOp::create(b, global);
  }

private:
  std::string chooseName() {
    std::string name = globalName.str();
    // The module may have a global of that name from another compilation.
    while (module.lookupSymbol(name))
      name += "_";
    return name;
  }

  ModuleOp module;
  LLVM::GlobalOp global;
  std::string text;
  DenseMap<Operation *, int64_t> offsets;
};

} // namespace

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The owned memory that `buffer` is all or part of: of an allocation, or of a
/// call, whose results belong to the caller; null if it is not known.
static Value findOwner(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return isa_and_present<memref::AllocOp, func::CallOp>(buffer.getDefiningOp())
             ? buffer
             : Value();
}

namespace {

/// Which buffers of a region surely exist at a point: made on each path to it,
/// neither freed nor passed on.
class LiveBuffers {
public:
  using Set = llvm::SetVector<Value>;

  explicit LiveBuffers(Region &region);

  /// Those that exist just before `op`, a child of the region.
  Set getBefore(Operation *op) const;

private:
  /// What `op` changes in the set of buffers that exist.
  static void transfer(Operation &op, Set &live);

  /// At the starts of blocks; those that are not reached have none.
  DenseMap<Block *, Set> atStart;
};

} // namespace

void LiveBuffers::transfer(Operation &op, Set &live) {
  if (isa<memref::AllocOp, func::CallOp>(op)) {
    for (Value result : op.getResults())
      if (isa<MemRefType>(result.getType()))
        live.insert(result);
    return;
  }
  // In regions, too: a loop may free a buffer that was made before it.
  op.walk([&](memref::DeallocOp dealloc) {
    live.remove(findOwner(dealloc.getMemref()));
  });
  // Whoever gets a buffer from a branch may free it.
  if (op.hasTrait<OpTrait::IsTerminator>())
    for (Value operand : op.getOperands())
      if (isa<MemRefType>(operand.getType()))
        live.remove(findOwner(operand));
}

LiveBuffers::LiveBuffers(Region &region) {
  // Forwards from the entry; where paths meet, only buffers of both remain.
  // Sets only shrink, so that this ends.
  SmallVector<Block *> worklist = {&region.front()};
  atStart.try_emplace(&region.front());
  while (!worklist.empty()) {
    Block *block = worklist.pop_back_val();
    Set live = atStart[block];
    for (Operation &op : *block)
      transfer(op, live);
    for (Block *next : block->getSuccessors()) {
      auto [entry, isNew] = atStart.try_emplace(next, live);
      if (isNew || entry->second.remove_if(
                       [&](Value buffer) { return !live.contains(buffer); }))
        worklist.push_back(next);
    }
  }
}

/// Replays the block up to `op`.
LiveBuffers::Set LiveBuffers::getBefore(Operation *op) const {
  Set live = atStart.lookup(op->getBlock());
  for (Operation &other :
       llvm::make_range(op->getBlock()->begin(), op->getIterator()))
    transfer(other, live);
  return live;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {

/// An operation that may fail, and what exists then.
struct FailurePoint {
  Operation *op;
  LiveBuffers::Set live;
};

/// Rewrites the functions of a module that can fail.
class Rewriter {
public:
  Rewriter(ModuleOp module, Messages &messages)
      : module(module), messages(messages) {}

  void run();

private:
  void findFailing();
  bool canFail(Operation *op);
  void addResults();
  func::CallOp updateCall(func::CallOp call);
  void rewriteRegion(Region &region,
                     function_ref<void(ImplicitLocOpBuilder &, Value)> leave);
  Value rewriteParallel(ImplicitLocOpBuilder &b, Operation *op);
  Value computeFailure(ImplicitLocOpBuilder &b, Operation *op);

  ModuleOp module;
  Messages &messages;
  /// Operations that have an assertion or a call of such a function in them.
  DenseSet<Operation *> failing;
  /// Functions that return a message.
  DenseSet<Operation *> returning;
};

} // namespace

/// An assertion, or a call of a function that has one.
bool Rewriter::canFail(Operation *op) {
  if (isa<cf::AssertOp>(op))
    return true;
  auto call = dyn_cast<func::CallOp>(op);
  return call && failing.contains(module.lookupSymbol(call.getCallee()));
}

/// Marks functions and other operations around what can fail, also by calls.
void Rewriter::findFailing() {
  size_t before;
  do {
    before = failing.size();
    module.walk([&](Operation *op) {
      if (!canFail(op))
        return;
      for (Operation *at = op; at && !isa<ModuleOp>(at); at = at->getParentOp())
        failing.insert(at);
    });
  } while (failing.size() != before);
}

/// Public functions without results return a message, whether or not they can
/// fail, so that callers need not know; of the others those that can.
void Rewriter::addResults() {
  auto type = LLVM::LLVMPointerType::get(module.getContext());
  for (auto function : module.getOps<func::FuncOp>()) {
    bool isEntry = function.isPublic() && !function.isExternal() &&
                   function.getNumResults() == 0;
    if (!isEntry && !failing.contains(function))
      continue;
    returning.insert(function);
    (void)function.insertResult(function.getNumResults(), type, {});
    function.walk([&](func::ReturnOp op) {
      OpBuilder b(op);
      // Existing returns succeed: null.
      Value none = LLVM::ZeroOp::create(b, op.getLoc(), type);
      op.getOperandsMutable().append(none);
    });
  }
  SmallVector<func::CallOp> calls;
  module.walk([&](func::CallOp call) {
    if (returning.contains(module.lookupSymbol(call.getCallee())))
      calls.push_back(call);
  });
  for (func::CallOp call : calls)
    updateCall(call);
}

/// The call with the message as its last result.
func::CallOp Rewriter::updateCall(func::CallOp call) {
  OpBuilder b(call);
  auto callee = cast<func::FuncOp>(module.lookupSymbol(call.getCallee()));
  auto updated =
      func::CallOp::create(b, call.getLoc(), callee, call.getOperands());
  call->replaceAllUsesWith(updated->getResults().drop_back());
  // The set holds operations by address.
  if (failing.erase(call))
    failing.insert(updated);
  call.erase();
  return updated;
}

/// The number of this iteration of a loop nest, in the order of the serial
/// loops.
static Value computeIteration(ImplicitLocOpBuilder &b, omp::LoopNestOp loops) {
  Value number = arith::ConstantIndexOp::create(b, 0);
  for (auto [iv, lower, upper, step] :
       llvm::zip_equal(loops.getIVs(), loops.getLoopLowerBounds(),
                       loops.getLoopUpperBounds(), loops.getLoopSteps())) {
    // Mixed-radix number: the counts of inner loops are the bases.
    Value range = arith::SubIOp::create(b, upper, lower);
    Value count = arith::CeilDivSIOp::create(b, range, step);
    Value distance = arith::SubIOp::create(b, iv, lower);
    Value index = arith::DivSIOp::create(b, distance, step);
    number = arith::MulIOp::create(b, number, count);
    number = arith::AddIOp::create(b, number, index);
  }
  return arith::IndexCastOp::create(b, b.getI64Type(), number);
}

static Value createI64(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

/// Results of a function or block that failed: nobody reads them.
static SmallVector<Value> createPoison(ImplicitLocOpBuilder &b,
                                       TypeRange types) {
  return llvm::map_to_vector(
      types, [&](Type type) -> Value { return ub::PoisonOp::create(b, type); });
}

/// Gives the end of `region` a block of its own, whose arguments it yields.
static Block *splitExit(Region &region) {
  auto last = llvm::find_if(
      region, [](Block &block) { return block.getNumSuccessors() == 0; });
  Operation *end = last->getTerminator();
  // A failure branches to it with poison as arguments; worksharing loops must
  // end in one place.
  Block *exit = last->splitBlock(end);
  ImplicitLocOpBuilder b(end->getLoc(), end->getContext());
  b.setInsertionPointToEnd(&*last);
  cf::BranchOp::create(b, exit, end->getOperands());
  for (OpOperand &operand : end->getOpOperands())
    operand.set(exit->addArgument(operand.get().getType(), end->getLoc()));
  return exit;
}

/// Rewrites `op`, which has regions: iterations that fail end and leave their
/// number and the message's offset, as one integer of which the least counts;
/// the message of the first iteration, as if they had run in order, comes out.
Value Rewriter::rewriteParallel(ImplicitLocOpBuilder &b, Operation *op) {
  auto pointerType = LLVM::LLVMPointerType::get(b.getContext());
  // The slot is freed again: the loop may be inside of a sequential one.
  Value stack = LLVM::StackSaveOp::create(b, pointerType);
  Value slot =
      LLVM::AllocaOp::create(b, pointerType, b.getI64Type(), createI64(b, 1));
  // As an unsigned number the largest of all keys: no failure.
  Value none = createI64(b, -1);
  LLVM::StoreOp::create(b, none, slot);

  SmallVector<Operation *> bodies;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    // The innermost regions with code, such as `omp.loop_nest`.
    bool isWrapper = isa<omp::ParallelOp, omp::WsloopOp>(inner);
    if (isWrapper || inner->getNumRegions() == 0)
      return WalkResult::advance();
    bodies.push_back(inner);
    return WalkResult::skip();
  });
  for (Operation *body : bodies) {
    if (!failing.contains(body))
      continue;
    auto loops = dyn_cast<omp::LoopNestOp>(body);
    auto record = [&](ImplicitLocOpBuilder &b, Value message) {
      Value base =
          LLVM::PtrToIntOp::create(b, b.getI64Type(), messages.getAddress(b));
      Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), message);
      // `iteration * size of all messages + offset`: the least key is the first
      // iteration and, in it, one message.
      Value key = arith::SubIOp::create(b, address, base);
      if (loops) {
        Value first = arith::MulIOp::create(b, computeIteration(b, loops),
                                            createI64(b, messages.getSize()));
        key = arith::AddIOp::create(b, first, key);
      }
      // Threads compete for the slot; the loop's barrier makes the result
      // visible.
      LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umin, slot, key,
                                LLVM::AtomicOrdering::monotonic);
    };
    Block *exit = splitExit(body->getRegion(0));
    rewriteRegion(body->getRegion(0), [&](ImplicitLocOpBuilder &b,
                                          Value message) {
      record(b, message);
      cf::BranchOp::create(b, exit, createPoison(b, exit->getArgumentTypes()));
    });
  }

  b.setInsertionPointAfter(op);
  Value key = LLVM::LoadOp::create(b, b.getI64Type(), slot);
  LLVM::StackRestoreOp::create(b, stack);
  Value isNone = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, key, none);
  Value offset =
      arith::RemUIOp::create(b, key, createI64(b, messages.getSize()));
  Value message = LLVM::GEPOp::create(b, pointerType, b.getI8Type(),
                                      messages.getAddress(b), offset);
  return arith::SelectOp::create(b, isNone,
                                 LLVM::ZeroOp::create(b, pointerType), message);
}

/// The message after `op`, or null; `b` is after it then.
Value Rewriter::computeFailure(ImplicitLocOpBuilder &b, Operation *op) {
  b.setInsertionPoint(op);
  if (isa<func::CallOp>(op)) {
    b.setInsertionPointAfter(op);
    return op->getResults().back();
  }
  return rewriteParallel(b, op);
}

/// Lets each operation of `region` that can fail end it: `leave` gets the
/// message, when what was allocated is freed, and ends the block.
void Rewriter::rewriteRegion(
    Region &region, function_ref<void(ImplicitLocOpBuilder &, Value)> leave) {
  LiveBuffers buffers(region);
  // Found before the first block is split: the analysis needs the region as it
  // was.
  SmallVector<FailurePoint> points;
  for (Operation &op : region.getOps())
    // A call that fails has made nothing.
    if (failing.contains(&op))
      points.push_back({&op, buffers.getBefore(&op)});
  auto pointerType = LLVM::LLVMPointerType::get(module.getContext());
  for (FailurePoint &point : points) {
    Operation *op = point.op;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Value holds, message;
    if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
      holds = assertion.getArg();
    } else {
      message = computeFailure(b, op);
      holds = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, message,
                                   LLVM::ZeroOp::create(b, pointerType));
    }
    Block *block = b.getBlock();
    // An assertion is the first operation of `rest`, a call or a loop the last
    // one of `block`.
    Block *rest = block->splitBlock(b.getInsertionPoint());
    Block *failure = b.createBlock(&region);
    b.setInsertionPointToEnd(block);
    cf::CondBranchOp::create(b, holds, rest, failure);

    b.setInsertionPointToStart(failure);
    if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
      message = LLVM::GEPOp::create(
          b, pointerType, b.getI8Type(), messages.getAddress(b),
          ArrayRef<LLVM::GEPArg>{int32_t(messages.getOffset(assertion))});
      failing.erase(assertion);
      assertion.erase();
    }
    for (Value buffer : llvm::reverse(point.live))
      memref::DeallocOp::create(b, buffer);
    leave(b, message);
  }
}

void Rewriter::run() {
  findFailing();
  addResults();
  // No assertion in the module; entry functions return null all the same.
  if (messages.empty())
    return;
  messages.define();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!failing.contains(function))
      continue;
    LDBG() << "'" << function.getSymName() << "' returns its failures";
    rewriteRegion(function.getBody(),
                  [&](ImplicitLocOpBuilder &b, Value message) {
                    SmallVector<Value> results =
                        createPoison(b, function.getResultTypes().drop_back());
                    results.push_back(message);
                    func::ReturnOp::create(b, results);
                  });
  }
}

namespace {
struct ReturnAssertions
    : kas::codegen::impl::KasReturnAssertionsPassBase<ReturnAssertions> {
  void runOnOperation() override {
    Messages messages(getOperation());
    messages.collect();
    Rewriter(getOperation(), messages).run();
  }
};
} // namespace
