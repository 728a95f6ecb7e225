//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that multiply two matrices with the matrix instructions of
// warpgroups.
//
// One thread asks the copy engine for the next blocks of steps, a ring of
// buffers ahead; each buffer has a barrier that says when it is full. A
// warpgroup begins the products of a block while those of the block before are
// still running. When these are done in all warpgroups, their buffer is filled
// again. All threads run the same code: there are no warps that only copy, as
// one thread's few instructions for a block of 64 steps do not need any.
//
// Source: PTX ISA, "Asynchronous warpgroup level matrix instructions" and
// "Asynchronous copy"; for the ring of buffers, Kerr et al., "CUTLASS", NVIDIA
// 2017.
//
//===----------------------------------------------------------------------===//

#include "WarpgroupKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

WarpgroupKernelEmitter::WarpgroupKernelEmitter(OpBuilder &builder, Location loc,
                                               const GPUKernelProblem &problem,
                                               GPUScheduleAttr schedule,
                                               const LaunchShape &launch,
                                               gpu::GPUFuncOp kernel)
    : GPUKernelEmitter(builder, loc, problem, schedule, launch,
                       kernel.getArguments()),
      kernel(kernel), view(*WarpgroupView::get(problem, getInputType(0))),
      numBlocks(view.numBlocks * llvm::divideCeil(view.numSteps, unit)) {}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// A box has the 64 elements of a line in memory along the innermost dimension,
/// and as much of the block as it may along the other one.
void WarpgroupKernelEmitter::addMap(unsigned number) {
  using Kind = WarpgroupView::Dimension::Kind;
  const WarpgroupView::Side &side = view.sides[number];
  SmallVector<int64_t> sizes, strides, box;
  // One element along other axes, 64 steps, and rows or columns: all of the
  // block where steps are innermost, else 64 per box, since a swizzled line is
  // 128 bytes.
  for (const WarpgroupView::Dimension &dimension : side.dimensions) {
    if (!sizes.empty())
      strides.push_back(dimension.stride);
    sizes.push_back(dimension.size);
    if (dimension.kind == Kind::Axis)
      box.push_back(1);
    else if (dimension.kind == Kind::Step)
      box.push_back(unit);
    else
      box.push_back(side.stepsFirst ? getBlock(number) : unit);
  }
  auto array = [&](ArrayRef<int64_t> entries) {
    return DenseI64ArrayAttr::get(b.getContext(), entries);
  };
  parts[number].map = TensorMapAttr::get(b.getContext(), array(sizes),
                                         array(strides), array(box));
}

void WarpgroupKernelEmitter::addMemory() {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto getType = [&](int64_t elements, Type type) {
    return MemRefType::get({elements}, type, MemRefLayoutAttrInterface(),
                           space);
  };
  // No more buffers than blocks of steps.
  int64_t stages = std::min(schedule.getStages(), numBlocks);
  barriers = kernel.addWorkgroupAttribution(getType(stages, b.getI64Type()),
                                            b.getLoc());
  int64_t bytes = 0;
  for (unsigned i = 0; i < 2; ++i) {
    parts[i].size = getBlock(i) * unit;
    // 2: bytes of an element.
    bytes += stages * parts[i].size * 2;
  }
  tile = planTile(view.batches, view.sides[0].axes, view.sides[1].axes,
                  /*group=*/64);
  if (tile)
    bytes = std::max(bytes, tile->getBytes());
  // Requested at the launch: a ring takes more than the 48 KiB that can be
  // declared. Both parts begin at multiples of 1024 bytes, as swizzling needs.
  kernel->setAttr(KasGPUDialect::dynamicBytesName, b.getI64IntegerAttr(bytes));
  Value memory = gpu::DynamicSharedMemoryOp::create(
      b, getType(ShapedType::kDynamic, b.getI8Type()));
  int64_t offset = 0;
  for (Part &part : parts) {
    int64_t elements = stages * part.size;
    part.memory =
        memref::ViewOp::create(b, getType(elements, getInputType(0)), memory,
                               index.createConstant(offset), ValueRange());
    offset += elements * 2;
  }
  if (tile)
    tileMemory = memref::ViewOp::create(b, tile->getType(space), memory,
                                        index.createConstant(0), ValueRange());
}

// Called twice: before the main loop, and after it with values that went
// through the last wait (see `emit`).
void WarpgroupKernelEmitter::setPositions(AffineExpr newBlock,
                                          AffineExpr newThread) {
  block = newBlock;
  thread = newThread;
  SmallVector<AffineExpr> digits = delinearize(block, counts);
  batch = delinearize(addValue(digits[0], counts[0]), getExtents(view.batches));
  for (unsigned i = 0; i < 2; ++i)
    parts[i].begin = addValue(digits[i + 1], counts[i + 1]) * getBlock(i);
  lane = addValue(thread % 32, 32);
  // 128 threads are a warpgroup; its four warps have 16 rows each of every 64.
  warp = addValue(thread.floorDiv(32) % 4, 4);
  int64_t across = getBlock(1) / getTile(1), down = getBlock(0) / getTile(0);
  AffineExpr warpgroup = thread.floorDiv(128);
  parts[0].warpgroup = addValue(warpgroup.floorDiv(across), down) * getTile(0);
  parts[1].warpgroup = addValue(warpgroup % across, across) * getTile(1);
}

void WarpgroupKernelEmitter::addPositions() {
  counts = {view.numBatches};
  for (unsigned i = 0; i < 2; ++i)
    counts.push_back(llvm::divideCeil(view.sides[i].numLines, getBlock(i)));
  setPositions(addRepeatedBlockId(counts[0] * counts[1] * counts[2]),
               addThreadId());
  isLeader = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                   index.emit(thread), index.createConstant(0));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WarpgroupKernelEmitter::emitIfLeader(llvm::function_ref<void()> emitBody) {
  auto branch = scf::IfOp::create(b, isLeader, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitBody();
}

/// Boxes beyond the last row, column or step are zero.
void WarpgroupKernelEmitter::emitCopy(unsigned number, AffineExpr block,
                                      Value buffer) {
  using Kind = WarpgroupView::Dimension::Kind;
  const WarpgroupView::Side &side = view.sides[number];
  const Part &part = parts[number];
  SmallVector<int64_t> extents = getExtents(view.blocks);
  // Digits: the other reductions, then the block of 64 steps among the steps.
  extents.push_back(llvm::divideCeil(view.numSteps, unit));
  SmallVector<AffineExpr> digits = delinearize(block, extents);
  SmallVector<AffineExpr> axes(problem.coordinates.axes.size(), constant(0));
  for (auto [axis, digit] : llvm::zip(view.blocks, digits))
    axes[axis] = digit;
  for (auto [axis, digit] : llvm::zip_equal(view.batches, batch))
    axes[axis] = digit;
  // One box has all lines where steps are innermost, else 64 lines.
  int64_t perBox = side.stepsFirst ? getBlock(number) : unit;
  for (int64_t line = 0; line < getBlock(number); line += perBox) {
    SmallVector<Value> places;
    for (const WarpgroupView::Dimension &dimension : side.dimensions)
      places.push_back(
          index.emit(dimension.kind == Kind::Axis   ? axes[dimension.axis]
                     : dimension.kind == Kind::Step ? digits.back() * unit
                                                    : part.begin + line));
    // Boxes follow each other in the buffer; 64 elements are one line of
    // memory.
    Value offset =
        arith::MulIOp::create(b, buffer, index.createConstant(part.size));
    if (line != 0)
      offset =
          arith::AddIOp::create(b, offset, index.createConstant(line * unit));
    TensorCopyOp::create(b, inputs[side.tensor], places, part.memory, offset,
                         barriers, buffer, /*descriptor=*/Value(), part.map);
  }
}

/// Requests block `block` of both matrices for buffer `buffer` of the ring; its
/// barrier completes when all bytes have arrived.
void WarpgroupKernelEmitter::emitCopies(AffineExpr block, Value buffer) {
  int64_t bytes = (parts[0].size + parts[1].size) * 2;
  ExpectBytesOp::create(b, barriers, buffer, bytes);
  for (unsigned i = 0; i < 2; ++i)
    emitCopy(i, block, buffer);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The main loop. In iteration i, with a ring of three buffers:
///    wait until block i is in buffer i % 3
///    begin the products of block i
///    wait for the products of block i - 1, then for all warpgroups
///    request block i + 2 into buffer (i + 2) % 3, which held block i - 1
SmallVector<Value> WarpgroupKernelEmitter::emitSteps(ValueRange sums) {
  int64_t stages = schedule.getStages(), ahead = stages - 1;
  // The ring has `stages` places; without as many blocks, the last are not
  // there and not reached.
  emitIfLeader([&] {
    InitBarriersOp::create(b, barriers);
    for (int64_t i = 0; i < std::min(ahead, numBlocks); ++i)
      emitCopies(constant(i), index.createConstant(i));
  });
  // All see the barriers before they wait there.
  gpu::BarrierOp::create(b);
  auto loop = scf::ForOp::create(b, index.createConstant(0),
                                 index.createConstant(numBlocks),
                                 index.createConstant(1), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value ring = index.createConstant(stages);
  // A barrier alternates between two phases; a buffer's phase changes each time
  // the ring has gone round.
  Value own = arith::RemUIOp::create(b, number, ring);
  Value round = arith::DivUIOp::create(b, number, ring);
  Value parity = arith::RemUIOp::create(b, round, index.createConstant(2));
  AwaitPhaseOp::create(b, barriers, own, parity);
  SmallVector<Value> results = emitProducts(loop.getRegionIterArgs(), own);
  // The products of the block before are done, here and in other warpgroups:
  // nobody reads its buffer any more.
  results = emitWait(results, 1);
  gpu::BarrierOp::create(b);
  if (numBlocks > ahead) {
    Value next = arith::AddIOp::create(b, number, index.createConstant(ahead));
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, next,
                                         index.createConstant(numBlocks));
    Value isAsked = arith::AndIOp::create(b, exists, isLeader);
    auto branch = scf::IfOp::create(b, isAsked, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value buffer = arith::RemUIOp::create(b, next, ring);
    emitCopies(index.add(next, {ahead, numBlocks - 1}), buffer);
  }
  scf::YieldOp::create(b, results);
  return SmallVector<Value>(loop.getResults());
}

void WarpgroupKernelEmitter::emit() {
  OpBuilder::InsertionGuard guard(b);
  addMemory();
  addPositions();
  addMap(0);
  addMap(1);
  // Per lane and 64 rows: for each 8 columns, two rows of two neighbours.
  auto type = VectorType::get({getTile(1) / 8, 2, 2}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> sums(getTile(0) / 64, zero);
  SmallVector<Value> values = emitSteps(sums);
  // Where results go is computed after the wait: what LLVM puts between the
  // loop and the wait may make ptxas wait for each product.
  values.append({index.emit(block), index.emit(thread)});
  values = emitWait(values, 0);
  int64_t numThreads = launch.block[0];
  AffineExpr newThread = index.add(values.pop_back_val(), {0, numThreads - 1});
  AffineExpr newBlock = index.add(values.pop_back_val(), index.getRange(block));
  setPositions(newBlock, newThread);
  index.promiseRanges();
  finish(values);
}

void kas::codegen::emitWarpgroupKernel(OpBuilder &builder, Location loc,
                                       const GPUKernelProblem &problem,
                                       GPUScheduleAttr schedule,
                                       const LaunchShape &launch,
                                       gpu::GPUFuncOp kernel) {
  WarpgroupKernelEmitter(builder, loc, problem, schedule, launch, kernel)
      .emit();
}
