//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Places the temporary buffers of a function in one allocation: buffers that do
// not live at the same time share memory.
//
// Launches that read weights and constants alone, such as copies of weights to
// another order, come first, and what they write is kept: it is the same in the
// next call, which may leave them out.
//
// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep
// Neural Net Inference", 2020): the largest buffer first, each at the lowest
// offset that is free of those that live at the same time, where that paper
// takes the smallest gap. At least quadratic in the number of buffers.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUPLANBUFFERSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Suits every device as the start of a buffer: Vulkan's
/// minStorageBufferOffsetAlignment is at most this.
static constexpr int64_t alignment = 256;

//===----------------------------------------------------------------------===//
// Launches that prepack weights
//===----------------------------------------------------------------------===//

namespace {

/// Finds the launches of a function that every call would repeat with the same
/// results while its weights stay.
class PrepackOrder {
public:
  explicit PrepackOrder(func::FuncOp function)
      : function(function), block(function.getBody().front()) {}

  /// Moves them to the beginning, in order, and counts them on the function.
  void run();

private:
  /// Counts who writes each buffer.
  void countWriters();
  bool isPrepack(gpu::LaunchFuncOp launch);
  /// Moves an operation and what it needs before `place`.
  void moveBefore(Operation *op, Operation *place);
  /// Whether the launch writes an operand; it may where its kernel is unknown.
  static bool isWritten(gpu::GPUFuncOp kernel, size_t operand);

  func::FuncOp function;
  Block &block;
  llvm::DenseMap<Value, unsigned> writers;
  /// Buffers that these launches write.
  llvm::DenseSet<Value> prepacked;
};

} // namespace

/// What `value` is a view of.
static Value getRoot(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

static gpu::GPUFuncOp getKernel(gpu::LaunchFuncOp launch) {
  return SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(
      launch, launch.getKernelAttr());
}

bool PrepackOrder::isWritten(gpu::GPUFuncOp kernel, size_t operand) {
  auto access = kernel ? kernel.getArgAttrOfType<StringAttr>(
                             operand, KasGPUDialect::accessName)
                       : StringAttr();
  return !access || access.getValue() != "read";
}

void PrepackOrder::countWriters() {
  function.walk([&](gpu::LaunchFuncOp launch) {
    gpu::GPUFuncOp kernel = getKernel(launch);
    for (auto [i, operand] : llvm::enumerate(launch.getKernelOperands()))
      if (isWritten(kernel, i))
        ++writers[getRoot(operand)];
  });
}

bool PrepackOrder::isPrepack(gpu::LaunchFuncOp launch) {
  gpu::GPUFuncOp kernel = getKernel(launch);
  // What waits for other operations stays where it is.
  if (!kernel || launch.getAsyncToken() ||
      !launch.getAsyncDependencies().empty())
    return false;
  for (auto [i, operand] : llvm::enumerate(launch.getKernelOperands())) {
    Value root = getRoot(operand);
    // Results must be written in each call: they are the caller's.
    if (isWritten(kernel, i)) {
      if (!root.getDefiningOp<memref::AllocOp>() || writers.lookup(root) != 1)
        return false;
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(root);
    bool isWeight = argument && !isData(argument) && !writers.contains(root);
    if (!isWeight && !root.getDefiningOp<memref::GetGlobalOp>() &&
        !prepacked.contains(root))
      return false;
  }
  return true;
}

void PrepackOrder::moveBefore(Operation *op, Operation *place) {
  if (op->getBlock() != &block || op->isBeforeInBlock(place))
    return;
  for (Value operand : op->getOperands())
    if (Operation *producer = operand.getDefiningOp())
      moveBefore(producer, place);
  op->moveBefore(place);
}

void PrepackOrder::run() {
  countWriters();
  SmallVector<gpu::LaunchFuncOp> launches;
  // The first launch of each call.
  gpu::LaunchFuncOp first;
  for (auto launch : block.getOps<gpu::LaunchFuncOp>()) {
    if (!isPrepack(launch)) {
      if (!first)
        first = launch;
      continue;
    }
    launches.push_back(launch);
    for (Value operand : launch.getKernelOperands())
      if (writers.contains(getRoot(operand)))
        prepacked.insert(getRoot(operand));
  }
  if (launches.empty())
    return;
  if (first)
    for (gpu::LaunchFuncOp launch : launches)
      moveBefore(launch, first);
  function->setAttr(KasGPUDialect::numPrepackLaunchesName,
                    OpBuilder(function).getI64IntegerAttr(
                        static_cast<int64_t>(launches.size())));
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

namespace {

/// A buffer, the operations of the function between which it is needed, both
/// included, and its place.
struct PlannedBuffer {
  memref::AllocOp alloc;
  int64_t bytes;
  unsigned first, last;
  int64_t offset = 0;

  bool livesWith(const PlannedBuffer &other) const {
    return first <= other.last && other.first <= last;
  }
};

class BufferPlanner {
public:
  /// What the first `numPrepack` launches write lives on to the next call.
  BufferPlanner(Block &block, int64_t numPrepack) : block(block) {
    for (auto launch : block.getOps<gpu::LaunchFuncOp>()) {
      if (numPrepack-- <= 0)
        break;
      lastPrepack = launch;
    }
  }

  /// Whether there is anything to plan.
  bool collect();
  /// Sets all offsets; returns the bytes of all together.
  int64_t place();
  void rewrite(int64_t bytes);

private:
  /// Extends the life of `buffer` to all users of `value` and of views of it.
  void extendLife(PlannedBuffer &buffer, Value value);

  Block &block;
  /// The last launch that prepacks weights; null: there is none.
  Operation *lastPrepack = nullptr;
  llvm::DenseMap<Operation *, unsigned> positions;
  SmallVector<PlannedBuffer> buffers;
};

} // namespace

void BufferPlanner::extendLife(PlannedBuffer &buffer, Value value) {
  for (Operation *user : value.getUsers()) {
    unsigned position = positions.lookup(block.findAncestorOpInBlock(*user));
    buffer.first = std::min(buffer.first, position);
    buffer.last = std::max(buffer.last, position);
    if (auto view = dyn_cast<ViewLikeOpInterface>(user))
      extendLife(buffer, view.getViewDest());
  }
}

bool BufferPlanner::collect() {
  for (auto [position, op] : llvm::enumerate(block))
    positions[&op] = position;
  for (auto alloc : block.getOps<memref::AllocOp>()) {
    MemRefType type = alloc.getType();
    // Other buffers, and scratch memory that was planned before, stay.
    if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
        !type.getElementType().isIntOrFloat() ||
        alloc->hasAttr(KasGPUDialect::scratchName))
      continue;
    int64_t bytes = type.getNumElements() *
                    llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    PlannedBuffer buffer{alloc, bytes, UINT32_MAX, 0};
    extendLife(buffer, alloc);
    // Written before the call's own launches, read by them.
    if (lastPrepack && buffer.first <= positions.lookup(lastPrepack) &&
        buffer.last > positions.lookup(lastPrepack))
      buffer.last = positions.lookup(&block.back());
    // A buffer that nothing uses has an empty range; it is left to other
    // passes.
    if (buffer.first <= buffer.last)
      buffers.push_back(buffer);
  }
  return !buffers.empty();
}

int64_t BufferPlanner::place() {
  SmallVector<std::pair<int64_t, size_t>> order;
  for (auto [i, buffer] : llvm::enumerate(buffers))
    // The index breaks ties, so that the plan is deterministic.
    order.emplace_back(-buffer.bytes, i);
  llvm::sort(order);
  int64_t total = 0;
  SmallVector<PlannedBuffer *> placed;
  for (auto [negated, i] : order) {
    PlannedBuffer &buffer = buffers[i];
    // The lowest gap between those that live at the same time.
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (PlannedBuffer *other : placed)
      if (buffer.livesWith(*other))
        taken.emplace_back(other->offset, other->offset + other->bytes);
    llvm::sort(taken);
    for (auto [begin, end] : taken) {
      if (buffer.offset + buffer.bytes <= begin)
        break;
      buffer.offset =
          std::max<int64_t>(buffer.offset, llvm::alignTo(end, alignment));
    }
    placed.push_back(&buffer);
    total = std::max(total, buffer.offset + buffer.bytes);
  }
  return total;
}

void BufferPlanner::rewrite(int64_t bytes) {
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  Location loc = buffers.front().alloc.getLoc();
  auto scratch = memref::AllocOp::create(
      builder, loc, MemRefType::get({bytes}, builder.getI8Type()),
      builder.getI64IntegerAttr(alignment));
  scratch->setAttr(KasGPUDialect::scratchName, builder.getUnitAttr());
  for (PlannedBuffer &buffer : buffers) {
    builder.setInsertionPoint(buffer.alloc);
    Value offset = arith::ConstantIndexOp::create(
        builder, buffer.alloc.getLoc(), buffer.offset);
    Value view = memref::ViewOp::create(builder, buffer.alloc.getLoc(),
                                        buffer.alloc.getType(), scratch, offset,
                                        ValueRange());
    buffer.alloc.replaceAllUsesWith(view);
    buffer.alloc.erase();
  }
}

namespace {
struct GPUPlanBuffers
    : kas::codegen::impl::KasGPUPlanBuffersPassBase<GPUPlanBuffers> {
  void runOnOperation() override {
    // Lives are positions in one block; nothing else reaches this pass with
    // buffers.
    if (getOperation().isExternal() || !getOperation().getBody().hasOneBlock())
      return;
    PrepackOrder(getOperation()).run();
    auto count = getOperation()->getAttrOfType<IntegerAttr>(
        KasGPUDialect::numPrepackLaunchesName);
    BufferPlanner planner(getOperation().getBody().front(),
                          count ? count.getInt() : 0);
    if (planner.collect())
      planner.rewrite(planner.place());
  }
};
} // namespace
