//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that multiply two matrices with the matrix instructions of a warp.
//
// Both matrices go through workgroup memory, in a ring of buffers that is
// filled some blocks of steps ahead: by copies that need no registers where 16
// bytes are neighbours in a tensor and in memory, else through registers.
// Padding lets the eight rows that ldmatrix reads at once lie in different
// banks.
//
// Source: PTX ISA, "Warp-level matrix multiply-accumulate instructions"
// (fragments of mma.m16n8k16, mma.m16n8k8, ldmatrix) and "Asynchronous copy";
// for the ring of buffers, Kerr et al., "CUTLASS", NVIDIA 2017.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreKernel.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

TensorCoreKernelEmitter::TensorCoreKernelEmitter(
    OpBuilder &builder, Location loc, const GPUKernelProblem &problem,
    GPUScheduleAttr schedule, const LaunchShape &launch, gpu::GPUFuncOp kernel)
    : GPUKernelEmitter(builder, loc, problem, schedule, launch,
                       kernel.getArguments()),
      kernel(kernel), coordinates(problem.coordinates),
      view(*MatrixView::get(coordinates)), depth(schedule.getDepth()) {
  view.orderSteps(coordinates, depth);
  numSteps = MatrixView::getExtent(coordinates, view.steps);
  numBlocks = llvm::divideCeil(numSteps, depth);
  switch (schedule.getPrecision()) {
  case GPUPrecision::F16:
    factorType = b.getF16Type();
    break;
  case GPUPrecision::BF16:
    factorType = b.getBF16Type();
    break;
  default:
    factorType = b.getF32Type();
    break;
  }
  // Elements of 16 bytes; `mma` takes 16 steps of 16 bits or 8 of tf32.
  unit = factorType.isF32() ? 4 : 8;
  instructionSteps = 2 * unit;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Columns are neighbours in a fragment of sums, so they should be in the
/// result.
void TensorCoreKernelEmitter::orderSides() {
  parts[0].tensors = view.left;
  parts[0].axes = view.rows;
  parts[1].tensors = view.right;
  parts[1].axes = view.columns;
  if (view.areRowsInner(coordinates))
    std::swap(parts[0], parts[1]);
}

/// Decides how one matrix lies in workgroup memory and how it gets there.
void TensorCoreKernelEmitter::addPart(unsigned number) {
  TensorCorePart &part = parts[number];
  part.numLines = MatrixView::getExtent(coordinates, part.axes);
  part.blockLines = getBlock(number);
  // Memory keeps the contiguous dimension of the tensor, so that units of 16
  // bytes are copied as they are; ldmatrix transposes where lines come first.
  part.stepsFirst = !isContiguous(part.tensors, part.axes) &&
                    isContiguous(part.tensors, view.steps);
  part.threadsAlongLines = !part.stepsFirst;
  analyzeReads(part);
  if (part.readWidth == 1) {
    // A thread then collects steps of one row or column, whose indices and
    // guards are the same, and its neighbours read what is nearest in memory.
    part.stepsFirst = true;
    part.threadsAlongLines = getDistance(part.tensors, part.axes) <=
                             getDistance(part.tensors, view.steps);
    analyzeReads(part);
    part.readWidth = 1;
  }
  part.isAsync = part.readWidth == unit &&
                 llvm::all_of(part.tensors, [&](unsigned tensor) {
                   return getInputType(tensor) == factorType;
                 });
  hasAsync |= part.isAsync;
  int64_t padding = schedule.getPadding();
  if (part.stepsFirst) {
    part.pitch = depth + padding;
    part.size = part.blockLines * part.pitch;
  } else {
    // Lanes read four steps of eight neighbours then.
    part.pitch = part.blockLines + (unit == 4 ? 2 : 1) * padding;
    part.size = depth * part.pitch;
  }
}

/// Declared where CUDA allows it, else requested. Both matrices are views of
/// the one memory that a kernel can request, and so are the results.
void TensorCoreKernelEmitter::addMemory() {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto getType = [&](int64_t elements, Type type) {
    return MemRefType::get({elements}, type, MemRefLayoutAttrInterface(),
                           space);
  };
  auto getBytes = [](MemRefType type) -> int64_t {
    return type.getNumElements() * type.getElementTypeBitWidth() / 8;
  };
  std::array<MemRefType, 2> types;
  for (unsigned i = 0; i < 2; ++i)
    // No more buffers than blocks of steps.
    types[i] = getType(
        std::min(schedule.getStages(), numBlocks) * parts[i].size, factorType);
  int64_t bytes = getBytes(types[0]) + getBytes(types[1]);
  MemRefType tileType;
  if (tile) {
    tileType = tile->getType(space);
    bytes = std::max(bytes, tile->getBytes());
  }
  Value memory;
  if (bytes <= declaredBytes) {
    memory = kernel.addWorkgroupAttribution(getType(bytes, b.getI8Type()),
                                            b.getLoc());
  } else {
    // The manifest tells the launcher how many bytes to request.
    kernel->setAttr(KasGPUDialect::dynamicBytesName,
                    b.getI64IntegerAttr(bytes));
    memory = gpu::DynamicSharedMemoryOp::create(
        b, getType(ShapedType::kDynamic, b.getI8Type()));
  }
  auto addView = [&](MemRefType type, int64_t offset) -> Value {
    return memref::ViewOp::create(b, type, memory, index.createConstant(offset),
                                  ValueRange());
  };
  parts[0].memory = addView(types[0], 0);
  parts[1].memory = addView(types[1], getBytes(types[0]));
  if (tile)
    tileMemory = addView(tileType, 0);
}

/// Sets `sameDigits`, how many neighbours of a unit differ in one digit only,
/// and `readWidth`, how many of them one load reads. Products of several
/// tensors are read one by one.
void TensorCoreKernelEmitter::analyzeReads(TensorCorePart &part) {
  part.sameDigits = part.readWidth = 1;
  // The innermost axis along which units lie.
  ArrayRef<unsigned> axes = part.stepsFirst ? ArrayRef(view.steps) : part.axes;
  while (!axes.empty() && coordinates.axes[axes.back()].extent == 1)
    axes = axes.drop_back();
  if (axes.empty())
    return;
  int64_t extent = coordinates.axes[axes.back()].extent;
  while (part.sameDigits < unit && extent % (2 * part.sameDigits) == 0)
    part.sameDigits *= 2;
  if (part.tensors.size() == 1)
    part.readWidth =
        getReadWidth(part.tensors.front(), axes.back(), part.sameDigits);
}

/// Sets which units this thread copies: t, t + threads, ..., along lines or
/// steps.
void TensorCoreKernelEmitter::addUnits(TensorCorePart &part) {
  int64_t threads = launch.block[0];
  int64_t units = part.blockLines * depth / unit;
  int64_t copies = llvm::divideCeil(units, threads);
  // Units along the lines: a unit spans several lines where they come first.
  int64_t numLines = part.blockLines / (part.stepsFirst ? 1 : unit);
  int64_t across = part.threadsAlongLines ? numLines : units / numLines;
  int64_t down = units / across;
  for (int64_t i = 0; i < copies; ++i) {
    AffineExpr number = thread + i * threads;
    if ((i + 1) * threads > units) {
      // Threads without a unit read the last one, and do not store it.
      Value position = index.emit(number);
      part.hasLast = arith::CmpIOp::create(
          b, arith::CmpIPredicate::ult, position, index.createConstant(units));
      Value inside =
          arith::MinUIOp::create(b, position, index.createConstant(units - 1));
      number = index.add(inside, {i * threads, units - 1});
    }
    // Values of their own: what is divided is divided once.
    AffineExpr low = addValue(number % across, across);
    AffineExpr high = addValue(number.floorDiv(across), down);
    part.lines.push_back(part.threadsAlongLines ? low : high);
    part.steps.push_back(part.threadsAlongLines ? high : low);
  }
}

/// Splits the block's id into batch, rows and columns, and the thread's id into
/// warp and lane; lays out both matrices.
void TensorCoreKernelEmitter::addParts() {
  bool areLinesWhole = view.keepLinesWhole(
      coordinates,
      codegen::getInputType(ArrayRef(inputs).take_front(getNumInputs())),
      schedule.getBlock());
  orderSides();
  addPart(0);
  addPart(1);
  tile = planTile(view.batches, parts[0].axes, parts[1].axes, /*group=*/16,
                  areLinesWhole);
  addMemory();
  int64_t numBatches = MatrixView::getExtent(coordinates, view.batches);
  auto count = [](const TensorCorePart &part) -> int64_t {
    return llvm::divideCeil(part.numLines, part.blockLines);
  };
  SmallVector<int64_t> counts{numBatches, count(parts[0]), count(parts[1])};
  int64_t used = counts[0] * counts[1] * counts[2];
  SmallVector<AffineExpr> digits =
      delinearize(addRepeatedBlockId(used), counts);
  AffineExpr batchNumber = addValue(digits[0], counts[0]);
  for (unsigned i = 0; i < 2; ++i) {
    AffineExpr number = addValue(digits[i + 1], counts[i + 1]);
    parts[i].begin =
        number * (parts[i].blockLines / (parts[i].stepsFirst ? 1 : unit));
  }
  batch = delinearize(batchNumber, getExtents(view.batches));

  thread = addThreadId();
  lane = addValue(thread % 32, 32);
  int64_t across = getBlock(1) / getTile(1), down = getBlock(0) / getTile(0);
  // Warps are numbered across the columns first.
  warp[0] = addValue(thread.floorDiv(32).floorDiv(across), down);
  warp[1] = addValue(thread.floorDiv(32) % across, across);
  for (TensorCorePart &part : parts)
    addUnits(part);
}
//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The main loop: multiplies one block of steps while those `stages - 1` ahead
/// are copied. In iteration i (stages = 3):
///    wait for the copies of block i; barrier
///    begin the copies of block i + 2 into buffer (i + 2) % 3
///    multiply block i from buffer i % 3
/// The one barrier also says that all warps have multiplied block i - 1, whose
/// buffer the copies of i + 2 overwrite.
SmallVector<Value> TensorCoreKernelEmitter::emitSteps(ValueRange sums) {
  int64_t stages = schedule.getStages(), ahead = stages - 1;
  Value token;
  for (int64_t i = 0; i < ahead; ++i) {
    Value buffer = i ? index.createConstant(i) : Value();
    // Prologue: blocks 0 to `ahead - 1`. A short reduction has fewer.
    if (i < numBlocks) {
      emitAsyncCopies(constant(i), buffer);
      emitStores(emitReads(constant(i)), buffer);
    }
    if (hasAsync)
      token = emitGroup();
  }
  auto loop = scf::ForOp::create(b, index.createConstant(0),
                                 index.createConstant(numBlocks),
                                 index.createConstant(1), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value ring = index.createConstant(stages);
  // All but the last groups are there, of this and of all other threads.
  if (hasAsync)
    nvgpu::DeviceAsyncWaitOp::create(
        b, token, b.getI32IntegerAttr(static_cast<int32_t>(stages - 2)));
  gpu::BarrierOp::create(b);
  Value own = arith::RemUIOp::create(b, number, ring);
  Value next = arith::AddIOp::create(b, number, index.createConstant(ahead));
  Value nextBuffer = arith::RemUIOp::create(b, next, ring);
  SmallVector<Value> units, results;
  if (numBlocks > ahead) {
    // The last rounds read the last block again, where nothing needs it.
    Value last = index.createConstant(numBlocks - 1);
    AffineExpr block = index.add(arith::MinUIOp::create(b, next, last),
                                 {ahead, numBlocks - 1});
    // Asynchronous copies beyond the end are left out: nothing would wait for
    // them before the kernel ends.
    if (hasAsync) {
      Value exists =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ule, next, last);
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      emitAsyncCopies(block, nextBuffer);
    }
    units = emitReads(block);
  }
  if (hasAsync)
    // Also where nothing was copied, so that the number of groups in flight
    // stays the same.
    emitGroup();
  results = emitProducts(loop.getRegionIterArgs(), own);
  if (numBlocks > ahead)
    emitStores(units, nextBuffer);
  scf::YieldOp::create(b, results);
  return SmallVector<Value>(loop.getResults());
}

void TensorCoreKernelEmitter::emit() {
  OpBuilder::InsertionGuard guard(b);
  addParts();
  addFragmentAddresses();
  // Per lane and 16x8 block of sums: two rows of two neighbours.
  auto type = VectorType::get({2, 2}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> sums(getTile(0) / 16 * (getTile(1) / 8), zero);
  finish(emitSteps(sums));
}

void kas::codegen::emitTensorCoreKernel(OpBuilder &builder, Location loc,
                                        const GPUKernelProblem &problem,
                                        GPUScheduleAttr schedule,
                                        const LaunchShape &launch,
                                        gpu::GPUFuncOp kernel) {
  TensorCoreKernelEmitter(builder, loc, problem, schedule, launch, kernel)
      .emit();
}
