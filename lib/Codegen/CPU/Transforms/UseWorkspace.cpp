//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buffers of a function at places of one that its caller gives it: for targets
// without `malloc`, and for callers that want no allocation. Buffers whose
// times of use do not overlap share memory. The offsets are found by a greedy
// heuristic of memory planners, the largest buffer first, each at the lowest
// offset that is free during its time.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASUSEWORKSPACEPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

namespace {

/// Of buffers, as `malloc` of this pipeline has it.
constexpr int64_t alignment = 64;

/// Bytes that are in use from one operation of a function to another. `first`
/// and `last` are positions in a pre-order walk of the function, `offset` where
/// it was placed in the workspace; `op` allocates the buffer, or calls a
/// function that takes a part of the workspace.
struct Interval {
  Operation *op;
  int64_t first, last;
  int64_t bytes;
  int64_t offset = 0;
};

/// Of half-open ranges.
bool overlaps(int64_t begin, int64_t end, int64_t otherBegin,
              int64_t otherEnd) {
  return begin < otherEnd && otherBegin < end;
}

/// Places intervals, the largest first, each as low as those at the same time
/// allow; returns how many bytes that takes. O(n^2 log n) for n
/// intervals.
int64_t place(SmallVectorImpl<Interval> &intervals) {
  SmallVector<Interval *> order;
  for (Interval &interval : intervals)
    order.push_back(&interval);
  // Ties are broken by the position: the result does not depend on addresses.
  llvm::sort(order, [](Interval *a, Interval *b) {
    return std::pair(-a->bytes, a->first) < std::pair(-b->bytes, b->first);
  });
  int64_t total = 0;
  for (auto [index, interval] : llvm::enumerate(order)) {
    // Those placed already that are in use at the same time, by offset: the
    // interval moves past each one that it would overlap.
    SmallVector<Interval *> others;
    for (Interval *other : ArrayRef(order).take_front(index))
      if (overlaps(interval->first, interval->last + 1, other->first,
                   other->last + 1))
        others.push_back(other);
    llvm::sort(others,
               [](Interval *a, Interval *b) { return a->offset < b->offset; });
    for (Interval *other : others)
      if (overlaps(interval->offset, interval->offset + interval->bytes,
                   other->offset, other->offset + other->bytes))
        interval->offset = other->offset + other->bytes;
    total = std::max(total, interval->offset + interval->bytes);
  }
  return total;
}

/// The buffer that a view is of.
Value getBuffer(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Whether a view of the buffer leaves the block in which the buffer is made.
bool escapes(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [](Operation *user) {
    if (isa<ViewLikeOpInterface>(user))
      return llvm::any_of(user->getResults(), escapes);
    // Its result may be either buffer.
    if (isa<arith::SelectOp>(user))
      return true;
    return user->hasTrait<OpTrait::IsTerminator>();
  });
}

/// Plans and rewrites the functions of a module, callees before callers.
class Workspaces {
public:
  explicit Workspaces(ModuleOp module) : module(module) {}

  /// Errors say what a workspace cannot hold; a function that calls itself
  /// would need one of unknown size.
  LogicalResult plan(func::FuncOp function);
  void apply(func::FuncOp function);
  int64_t getBytes(func::FuncOp function) const {
    return plans.at(function).bytes;
  }
  /// Whether the function gets a workspace. Public ones without arguments say
  /// how many elements something has, and take nothing.
  bool takesOne(func::FuncOp function) const {
    return getBytes(function) > 0 ||
           (function.isPublic() && function.getNumArguments() > 0);
  }

private:
  /// What a function needs; `bytes` is the size of its workspace.
  struct Plan {
    SmallVector<Interval> intervals;
    SmallVector<memref::DeallocOp> deallocations;
    int64_t bytes = 0;
  };

  FailureOr<int64_t> getSize(memref::AllocOp op) const;
  LogicalResult collect(func::FuncOp function, Plan &plan);

  ModuleOp module;
  llvm::DenseMap<Operation *, Plan> plans;
  /// Those whose calls are looked at.
  llvm::SmallPtrSet<Operation *, 4> planning;
};

} // namespace

/// The bytes of the buffer, a multiple of the alignment, or an error.
FailureOr<int64_t> Workspaces::getSize(memref::AllocOp op) const {
  MemRefType type = op.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return op.emitError("requires buffers of static shape for a workspace, "
                        "got ")
           << type;
  if (isa<func::FuncOp>(op->getParentOp()) ||
      !op->getParentOfType<scf::ParallelOp>()) {
    // Parallel loops of either dialect: each thread would need a buffer of its
    // own.
    for (Operation *parent = op->getParentOp(); parent;
         parent = parent->getParentOp())
      if (parent->getName().getDialectNamespace() == "omp")
        return op.emitError("requires serial code for a workspace "
                            "(threads=1), got a buffer in a parallel loop");
  } else {
    return op.emitError("requires serial code for a workspace (threads=1), "
                        "got a buffer in a parallel loop");
  }
  if (escapes(op))
    return op.emitError("requires buffers that one block makes and uses for a "
                        "workspace, got one that leaves it");
  // Buffers without elements have a place, too: an address must be valid.
  int64_t size = DataLayout(module).getTypeSize(type.getElementType());
  return llvm::alignTo(std::max<int64_t>(1, type.getNumElements() * size),
                       alignment);
}

/// Finds the intervals of all buffers and calls. Those inside of a loop are
/// made and freed in each iteration, so that their positions are enough.
LogicalResult Workspaces::collect(func::FuncOp function, Plan &plan) {
  llvm::DenseMap<Operation *, int64_t> positions;
  int64_t count = 0;
  function.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { positions[op] = count++; });
  llvm::DenseMap<Operation *, size_t> places;
  WalkResult result = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    int64_t at = positions[op];
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      FailureOr<int64_t> size = getSize(alloc);
      if (failed(size))
        return WalkResult::interrupt();
      places[op] = plan.intervals.size();
      // Until the end, unless a deallocation is found below.
      plan.intervals.push_back({op, at, count, *size});
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      // It has memory of its own.
      if (!callee || callee.isExternal())
        return WalkResult::advance();
      if (planning.contains(callee)) {
        call.emitError("requires functions that do not call themselves for a "
                       "workspace, got a call of '")
            << call.getCallee() << "' within it";
        return WalkResult::interrupt();
      }
      if (failed(this->plan(callee)))
        return WalkResult::interrupt();
      // In use during the call only.
      if (takesOne(callee))
        plan.intervals.push_back({op, at, at, getBytes(callee)});
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  llvm::DenseMap<Operation *, int64_t> ends;
  result = function.walk([&](memref::DeallocOp op) {
    Operation *buffer = getBuffer(op.getMemref()).getDefiningOp();
    if (!buffer || !places.contains(buffer)) {
      op.emitError("requires buffers that one block makes and frees for a "
                   "workspace, got another one");
      return WalkResult::interrupt();
    }
    // Several paths may free it.
    ends[buffer] = std::max(ends.lookup(buffer), positions[op]);
    plan.deallocations.push_back(op);
    return WalkResult::advance();
  });
  for (auto [buffer, end] : ends)
    plan.intervals[places[buffer]].last = end;
  return failure(result.wasInterrupted());
}

LogicalResult Workspaces::plan(func::FuncOp function) {
  if (plans.contains(function))
    return success();
  Plan plan;
  planning.insert(function);
  if (failed(collect(function, plan)))
    return failure();
  planning.erase(function);
  plan.bytes = place(plan.intervals);
  plans[function] = std::move(plan);
  return success();
}

void Workspaces::apply(func::FuncOp function) {
  Plan &plan = plans[function];
  OpBuilder builder(function.getContext());
  auto getType = [&](int64_t bytes) {
    return MemRefType::get({bytes}, builder.getI8Type());
  };
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, getType(plan.bytes), {},
                                     function.getLoc())))
    llvm_unreachable("a function takes any argument");
  Value workspace = function.getArgument(index);
  for (memref::DeallocOp op : plan.deallocations)
    op.erase();
  for (Interval &interval : plan.intervals) {
    builder.setInsertionPoint(interval.op);
    Location loc = interval.op->getLoc();
    Value offset =
        arith::ConstantIndexOp::create(builder, loc, interval.offset);
    auto take = [&](MemRefType type) -> Value {
      return memref::ViewOp::create(builder, loc, type, workspace, offset,
                                    ValueRange());
    };
    if (auto alloc = dyn_cast<memref::AllocOp>(interval.op)) {
      alloc.replaceAllUsesWith(take(alloc.getType()));
      alloc.erase();
      continue;
    }
    // The callee has got its argument, or will: `apply` runs over all
    // functions.
    interval.op->insertOperands(interval.op->getNumOperands(),
                                take(getType(interval.bytes)));
  }
}

/// Adds `NAME_workspace_bytes`, which returns a constant.
static void addCount(func::FuncOp function, int64_t bytes) {
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfter(function);
  auto count =
      func::FuncOp::create(builder, function.getLoc(),
                           (function.getName() + "_workspace_bytes").str(),
                           builder.getFunctionType({}, {builder.getI64Type()}));
  builder.setInsertionPointToStart(count.addEntryBlock());
  Value value = arith::ConstantOp::create(builder, function.getLoc(),
                                          builder.getI64IntegerAttr(bytes));
  func::ReturnOp::create(builder, function.getLoc(), value);
}

namespace {
struct UseWorkspace
    : kas::codegen::impl::KasUseWorkspacePassBase<UseWorkspace> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Workspaces workspaces(module);
    SmallVector<func::FuncOp> functions;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      if (failed(workspaces.plan(function)))
        return signalPassFailure();
      functions.push_back(function);
    }
    // What is made changes which functions have arguments.
    llvm::erase_if(functions, [&](func::FuncOp function) {
      return !workspaces.takesOne(function);
    });
    for (func::FuncOp function : functions)
      workspaces.apply(function);
    for (func::FuncOp function : functions) {
      if (!function.isPublic() || function.getName().ends_with("_prepack"))
        continue;
      int64_t bytes = workspaces.getBytes(function);
      auto prepack = module.lookupSymbol<func::FuncOp>(
          (function.getName() + "_prepack").str());
      if (prepack && llvm::is_contained(functions, prepack))
        // Both may be given the same workspace, one after the other.
        bytes = std::max(bytes, workspaces.getBytes(prepack));
      addCount(function, bytes);
    }
  }
};
} // namespace
