//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of warpgroups and of the copy engine, on a CPU: descriptors
// are decoded, and addresses in workgroup memory are exchanged bit by bit.
//
// Source: PTX ISA, "Asynchronous warpgroup level matrix instructions" (shared
// memory matrix layout, matrix descriptor format, fragments of
// wgmma.m64nNk16), "Tensors" (bounding boxes, out-of-boundary access,
// swizzling modes), "mbarrier".
//
//===----------------------------------------------------------------------===//

#include "LaneEmitter.h"
#include "WarpEmulation.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Elements of 16 bits: bits 4 to 6 of the address in bytes are combined by
/// exclusive or with bits 7 to 9, which number the line of 128 bytes among
/// eight ("128-byte swizzling").
static Value emitSwizzle(ImplicitLocOpBuilder &b, Value element) {
  LaneEmitter e(b);
  // An element has two bytes, so bits 7 to 9 of the byte address are bits 6 to
  // 8 of the element's, moved to bits 3 to 5.
  Value line = arith::ShRUIOp::create(b, element, e.constant(3));
  Value unit = arith::AndIOp::create(b, line, e.constant(7 << 3));
  return arith::XOrIOp::create(b, element, unit);
}

//===----------------------------------------------------------------------===//
// Barriers and copies
//===----------------------------------------------------------------------===//

// A barrier has the number of phases that have ended in the upper half, and the
// bytes that are missing in the lower half.
static constexpr int64_t phase = int64_t(1) << 32;

static Value createI64(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

// Phase 0, no bytes missing.
static void emulate(ImplicitLocOpBuilder &b, InitBarriersOp op) {
  auto type = cast<MemRefType>(op.getBarriers().getType());
  LaneEmitter e(b);
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    memref::StoreOp::create(b, createI64(b, 0), op.getBarriers(),
                            ValueRange(e.constant(i)));
}

static void emulate(ImplicitLocOpBuilder &b, ExpectBytesOp op) {
  Value state = memref::LoadOp::create(b, op.getBarriers(), op.getNumber());
  Value next = arith::AddIOp::create(
      b, state, createI64(b, static_cast<int64_t>(op.getBytes())));
  memref::StoreOp::create(b, next, op.getBarriers(),
                          ValueRange(op.getNumber()));
}

/// A GPU would wait forever where nothing is on its way.
static void emulate(ImplicitLocOpBuilder &b, AwaitPhaseOp op) {
  Value state = memref::LoadOp::create(b, op.getBarriers(), op.getNumber());
  Value phases = arith::ShRUIOp::create(b, state, createI64(b, 32));
  // `parity` names a phase that must be over: its number's last bit then
  // differs from that of the phases that have ended.
  Value current = arith::AndIOp::create(b, phases, createI64(b, 1));
  Value parity =
      arith::IndexCastUIOp::create(b, b.getI64Type(), op.getParity());
  Value hasEnded =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, current, parity);
  cf::AssertOp::create(b, hasEnded,
                       "expected a phase that has ended, got one whose bytes "
                       "are not there");
}

/// Copies the box element by element, then counts its bytes down at the
/// barrier.
static void emulate(ImplicitLocOpBuilder &b, TensorCopyOp op) {
  TensorMapAttr map = op.getMap();
  LaneEmitter e(b);
  ArrayRef<int64_t> box = map.getBox(), sizes = map.getSizes(),
                    strides = map.getOuterStrides();
  {
    OpBuilder::InsertionGuard guard(b);
    // `element` numbers the box row-major, the innermost dimension fastest;
    // `source` is the address in the tensor. Coordinates below zero are very
    // large as unsigned numbers, so `isBelow` covers both ends.
    Value element = e.constant(0), source = e.constant(0), exists;
    for (size_t d = box.size(); d-- > 0;) {
      Value i = e.loop(box[d]);
      element = e.add(e.times(element, box[d]), i);
      Value place = e.add(op.getCoordinates()[d], i);
      source = e.add(source, d == 0 ? place : e.times(place, strides[d - 1]));
      Value inside = e.isBelow(place, sizes[d]);
      exists =
          exists ? Value(arith::AndIOp::create(b, exists, inside)) : inside;
    }
    Type type = cast<MemRefType>(op.getMemory().getType()).getElementType();
    auto branch = scf::IfOp::create(b, TypeRange(type), exists,
                                    /*withElseRegion=*/true);
    Value target = emitSwizzle(b, e.add(op.getOffset(), element));
    memref::StoreOp::create(b, branch.getResult(0), op.getMemory(),
                            ValueRange(target));
    b.setInsertionPointToStart(&branch.getThenRegion().front());
    Value value = memref::LoadOp::create(b, op.getBuffer(), source);
    scf::YieldOp::create(b, value);
    b.setInsertionPointToStart(&branch.getElseRegion().front());
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    scf::YieldOp::create(b, zero);
  }
  Value state = memref::LoadOp::create(b, op.getBarriers(), op.getNumber());
  // 2 bytes per element. When none is missing the phase ends: the upper half
  // counts up, the lower half is zero again.
  state =
      arith::SubIOp::create(b, state, createI64(b, map.getBoxElements() * 2));
  Value missing = arith::AndIOp::create(b, state, createI64(b, phase - 1));
  Value isFull = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, missing,
                                       createI64(b, 0));
  Value ended = arith::AddIOp::create(b, state, createI64(b, phase));
  state = arith::SelectOp::create(b, isFull, ended, state);
  memref::StoreOp::create(b, state, op.getBarriers(),
                          ValueRange(op.getNumber()));
}

/// Workgroup memory begins at address 0.
static Value emulate(ImplicitLocOpBuilder &b, MatrixDescriptorOp op) {
  LaneEmitter e(b);
  // The address field has 14 bits and counts 16 bytes.
  Value units = e.by(e.mod(e.times(op.getOffset(), 2), 1 << 18), 16);
  Value address = arith::IndexCastUIOp::create(b, b.getI64Type(), units);
  return arith::OrIOp::create(b, address, createI64(b, op.getFixedBits()));
}

void kas::codegen::emulateTensorCopies(gpu::GPUFuncOp kernel) {
  SmallVector<Operation *> done;
  kernel.walk([&](Operation *op) {
    OpBuilder builder(op);
    ImplicitLocOpBuilder b(op->getLoc(), builder);
    if (auto init = dyn_cast<InitBarriersOp>(op))
      emulate(b, init);
    else if (auto expect = dyn_cast<ExpectBytesOp>(op))
      emulate(b, expect);
    else if (auto await = dyn_cast<AwaitPhaseOp>(op))
      emulate(b, await);
    else if (auto copy = dyn_cast<TensorCopyOp>(op))
      emulate(b, copy);
    else if (auto descriptor = dyn_cast<MatrixDescriptorOp>(op))
      op->getResult(0).replaceAllUsesWith(emulate(b, descriptor));
    else if (isa<WarpgroupWaitOp>(op))
      op->replaceAllUsesWith(op->getOperands());
    else if (!isa<WarpgroupFenceOp, WarpgroupCommitOp>(op))
      return;
    done.push_back(op);
  });
  for (Operation *op : done)
    op->erase();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {
/// A matrix in workgroup memory, by its descriptor.
class DescribedMatrix {
public:
  DescribedMatrix(ImplicitLocOpBuilder &b, Value descriptor, Value memory,
                  bool isTransposed)
      : b(b), memory(memory), isTransposed(isTransposed) {
    auto field = [&](int64_t shift) -> Value {
      Value bits = arith::AndIOp::create(
          b, arith::ShRUIOp::create(b, descriptor, createI64(b, shift)),
          createI64(b, 0x3fff));
      // In elements: eight for each unit.
      return LaneEmitter(b).times(
          arith::IndexCastUIOp::create(b, b.getIndexType(), bits), 8);
    };
    start = field(0);
    leading = field(16);
    stride = field(32);
  }

  /// As f32.
  Value load(Value line, Value step) {
    LaneEmitter e(b);
    Value outer, inner;
    // In memory, lines of 64 elements are steps: 64 rows or columns per line,
    // the next 64 `leading` apart, the next eight steps `stride` apart.
    if (isTransposed) {
      outer = e.add(e.times(e.by(line, 64), leading),
                    e.times(e.by(step, 8), stride));
      inner = e.add(e.mod(line, 64), e.times(e.mod(step, 8), 64));
    } else {
      // Lines are rows or columns, 64 steps each; the next eight lines are
      // `stride` apart.
      outer = e.times(e.by(line, 8), stride);
      inner = e.add(step, e.times(e.mod(line, 8), 64));
    }
    Value address = emitSwizzle(b, e.add(start, e.add(outer, inner)));
    Value value = memref::LoadOp::create(b, memory, address);
    return arith::ExtFOp::create(b, b.getF32Type(), value);
  }

private:
  ImplicitLocOpBuilder &b;
  Value memory, start, leading, stride;
  bool isTransposed;
};
} // namespace

/// The products of 64 rows and all columns, in `tile`.
static void emitTile(ImplicitLocOpBuilder &b, DescribedMatrix &rows,
                     DescribedMatrix &columns, Value left, Value right,
                     Value tile) {
  LaneEmitter e(b);
  int64_t numColumns = cast<MemRefType>(tile.getType()).getDimSize(1);
  // Each factor is looked up once.
  for (bool isLeft : {true, false}) {
    OpBuilder::InsertionGuard guard(b);
    Value line = e.loop(isLeft ? 64 : numColumns), step = e.loop(16);
    Value value = (isLeft ? rows : columns).load(line, step);
    memref::StoreOp::create(b, value, isLeft ? left : right,
                            ValueRange{line, step});
  }
  OpBuilder::InsertionGuard guard(b);
  Value row = e.loop(64), column = e.loop(numColumns);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  auto loop =
      scf::ForOp::create(b, e.constant(0), e.constant(16), e.constant(1), zero);
  memref::StoreOp::create(b, loop.getResult(0), tile, ValueRange{row, column});
  b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar();
  Value product = arith::MulFOp::create(
      b, memref::LoadOp::create(b, left, ValueRange{row, step}),
      memref::LoadOp::create(b, right, ValueRange{column, step}));
  Value next = arith::AddFOp::create(b, loop.getRegionIterArgs()[0], product);
  scf::YieldOp::create(b, next);
}

void kas::codegen::emitWarpgroupMma(ImplicitLocOpBuilder &b, WarpgroupMmaOp op,
                                    ValueRange arguments) {
  LaneEmitter e(b);
  Value sums = arguments[4], results = arguments[5];
  auto type = cast<VectorType>(op.getSums().getType());
  int64_t numColumns = type.getDimSize(0) * 8;
  int64_t count = cast<MemRefType>(sums.getType()).getNumElements();
  auto allocate = [&](ArrayRef<int64_t> shape) -> Value {
    return memref::AllocaOp::create(b, MemRefType::get(shape, b.getF32Type()));
  };
  Value left = allocate({64, 16}), right = allocate({numColumns, 16});
  Value tile = allocate({64, numColumns});
  // One warpgroup after the other.
  Value first = e.loop(e.constant(0), e.constant(count), 128);
  // All threads of a warpgroup have the same descriptors; the first one's is
  // read.
  DescribedMatrix rows(b, memref::LoadOp::create(b, arguments[0], first),
                       arguments[1], op.getTransposeRows());
  DescribedMatrix columns(b, memref::LoadOp::create(b, arguments[2], first),
                          arguments[3], op.getTransposeColumns());
  emitTile(b, rows, columns, left, right, tile);
  // Then each thread adds the elements of its fragment to its sums.
  Value thread = e.loop(first, e.add(first, 128));
  Value warp = e.by(e.mod(thread, 128), 32), lane = e.mod(thread, 32);
  Value row = e.add(e.times(warp, 16), e.by(lane, 4));
  Value column = e.times(e.mod(lane, 4), 2);
  Value vector = memref::LoadOp::create(b, sums, thread);
  for (int64_t i = 0; i < type.getDimSize(0); ++i)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t k = 0; k < 2; ++k) {
        std::array<int64_t, 3> place{i, half, k};
        Value product = memref::LoadOp::create(
            b, tile,
            ValueRange{e.add(row, 8 * half), e.add(column, 8 * i + k)});
        Value sum = vector::ExtractOp::create(b, vector, ArrayRef(place));
        sum = arith::AddFOp::create(b, sum, product);
        vector = vector::InsertOp::create(b, sum, vector, ArrayRef(place));
      }
  memref::StoreOp::create(b, vector, results, ValueRange(thread));
}

std::string kas::codegen::getWarpgroupMmaName(WarpgroupMmaOp op) {
  std::string name;
  llvm::raw_string_ostream text(name);
  text << "kas_wgmma_"
       << cast<MemRefType>(op.getRowMemory().getType()).getElementType();
  for (bool isTransposed : {op.getTransposeRows(), op.getTransposeColumns()})
    text << (isTransposed ? "_transposed" : "_plain");
  text << "_n" << cast<VectorType>(op.getSums().getType()).getDimSize(0) * 8;
  return name;
}
