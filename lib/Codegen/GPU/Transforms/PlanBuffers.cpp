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
// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep
// Neural Net Inference", 2020): the largest buffer first, each at the lowest
// offset that is free of those that live at the same time, where that paper
// takes the smallest gap. At least quadratic in the number of buffers.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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
  explicit BufferPlanner(Block &block) : block(block) {}

  /// Whether there is anything to plan.
  bool collect();
  /// Sets all offsets; returns the bytes of all together.
  int64_t place();
  void rewrite(int64_t bytes);

private:
  /// Extends the life of `buffer` to all users of `value` and of views of it.
  void extendLife(PlannedBuffer &buffer, Value value);

  Block &block;
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
    BufferPlanner planner(getOperation().getBody().front());
    if (planner.collect())
      planner.rewrite(planner.place());
  }
};
} // namespace
