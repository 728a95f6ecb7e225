//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds accesses to workgroup memory that no barrier orders.
//
// Barriers divide the work of a block into phases. A shadow of the memory knows
// of each two bytes who wrote and who read them last, and in which phase: two
// threads, one of which writes, must not meet in one phase. On a device such a
// race gives wrong values now and then; threads that run one after another may
// never show it.
// What the copy engine writes is ordered by barriers of its own (mbarrier),
// which must have been made before a thread waits there. It must not
// replace what was read in the same phase, though, and products of warpgroups
// are such reads: they end when they are waited for, which kernels do in the
// next phase.
//
// Source: Savage et al., "Eraser: A Dynamic Data Race Detector for
// Multithreaded Programs", 1997 (shadow words); here the phases take the place
// of locks.
//
//===----------------------------------------------------------------------===//

#include "LaneEmitter.h"
#include "WarpEmulation.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

enum class Access { Read, Write, Copy };

/// Adds the shadow to one kernel, before operations of warps are emulated.
class ShadowBuilder {
public:
  ShadowBuilder(ModuleOp module, gpu::GPUFuncOp kernel)
      : module(module), kernel(kernel), builder(kernel.getContext()),
        b(kernel.getLoc(), builder) {}

  void build();

private:
  /// Where `memory` begins in the shadow; nothing for other memory.
  std::optional<int64_t> getBegin(Value memory);
  void findMemory();
  void addState();
  /// Of `elements` of `memory` from `element` on, by this thread. An access
  /// that goes on `later` is one of the next phase as well.
  void check(Access access, Value memory, Value element, int64_t elements,
             bool later = false);
  void check(Operation *op);
  void checkLanes(Access access, Value memory, Value element, int64_t matrices);
  void checkProducts(WarpgroupMmaOp op, bool isRows);
  func::FuncOp getFunction(Access access);
  Value createI64(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  /// What follows is done by threads where `condition` holds.
  void enterIf(Value condition) {
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value isZero(Value value) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value,
                                 LaneEmitter(b).constant(0));
  }

  ModuleOp module;
  gpu::GPUFuncOp kernel;
  OpBuilder builder;
  ImplicitLocOpBuilder b;
  /// In units of two bytes; the memory that a launch asks for is null.
  llvm::DenseMap<Value, int64_t> begins;
  int64_t dynamicBegin = 0, size = 0;
  /// Of each unit: the number of the phase times `numStates`, plus one more
  /// than the thread, or `numStates` - 1 for several threads.
  Value writes, reads, phase, thread;
  int64_t numStates = 0;
};

} // namespace

void ShadowBuilder::findMemory() {
  auto add = [&](int64_t bytes) {
    int64_t begin = size;
    size += llvm::divideCeil(bytes, int64_t(2));
    return begin;
  };
  for (BlockArgument memory : kernel.getWorkgroupAttributions()) {
    auto type = cast<MemRefType>(memory.getType());
    begins[memory] = add(type.getNumElements() *
                         llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  }
  if (auto bytes =
          kernel->getAttrOfType<IntegerAttr>(KasGPUDialect::dynamicBytesName))
    dynamicBegin = add(bytes.getInt());
}

std::optional<int64_t> ShadowBuilder::getBegin(Value memory) {
  if (auto view = memory.getDefiningOp<memref::ViewOp>()) {
    APInt offset;
    if (!matchPattern(view.getByteShift(), m_ConstantInt(&offset)))
      return std::nullopt;
    auto base = view.getSource().getDefiningOp<gpu::DynamicSharedMemoryOp>()
                    ? std::optional(dynamicBegin)
                    : getBegin(view.getSource());
    if (!base)
      return std::nullopt;
    return *base + offset.getSExtValue() / 2;
  }
  auto found = begins.find(memory);
  return found == begins.end() ? std::nullopt : std::optional(found->second);
}

void ShadowBuilder::addState() {
  int64_t threads = 1;
  for (int32_t number : kernel.getKnownBlockSizeAttr().asArrayRef())
    threads *= number;
  numStates = threads + 2;
  auto add = [&](int64_t elements) -> Value {
    return kernel.addWorkgroupAttribution(
        MemRefType::get({elements}, b.getI64Type()), b.getLoc());
  };
  writes = add(size);
  reads = add(size);
  phase = add(1);
  // Ids are values of the kernel itself: the emulation does not look for them
  // in branches.
  b.setInsertionPointToStart(&kernel.getBody().front());
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  for (gpu::Dimension dimension : {gpu::Dimension::y, gpu::Dimension::z})
    block =
        arith::OrIOp::create(b, block, gpu::BlockIdOp::create(b, dimension));
  Operation *start = block.getDefiningOp();
  // The first thread of all clears the shadow, that of each block begins a
  // phase, and so does the first one after a barrier: threads run in order.
  auto addPhase = [&] {
    LaneEmitter e(b);
    Value next = arith::AddIOp::create(
        b, memref::LoadOp::create(b, phase, ValueRange(e.constant(0))),
        createI64(1));
    memref::StoreOp::create(b, next, phase, ValueRange(e.constant(0)));
  };
  SmallVector<gpu::BarrierOp> barriers;
  kernel.walk([&](gpu::BarrierOp barrier) { barriers.push_back(barrier); });
  for (gpu::BarrierOp barrier : barriers) {
    b.setInsertionPointAfter(barrier);
    enterIf(isZero(thread));
    addPhase();
  }
  b.setInsertionPointAfter(start);
  enterIf(isZero(thread));
  {
    OpBuilder::InsertionGuard guard(b);
    enterIf(isZero(block));
    LaneEmitter e(b);
    memref::StoreOp::create(b, createI64(0), phase, ValueRange(e.constant(0)));
    Value unit = e.loop(size);
    for (Value shadow : {writes, reads})
      memref::StoreOp::create(b, createI64(0), shadow, unit);
  }
  addPhase();
}

/// Arguments: both shadows, the number of the phase times `numStates`, the own
/// state, that of several threads, the first unit and how many.
func::FuncOp ShadowBuilder::getFunction(Access access) {
  static constexpr StringLiteral names[] = {"read", "write", "copy"};
  std::string name =
      ("kas_check_" + names[static_cast<int>(access)] + "_" + Twine(size))
          .str();
  if (auto existing = module.lookupSymbol<func::FuncOp>(name))
    return existing;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  Type shadow = MemRefType::get({size}, b.getI64Type()), i64 = b.getI64Type(),
       index = b.getIndexType();
  auto function = func::FuncOp::create(
      b, name,
      b.getFunctionType({shadow, shadow, i64, i64, i64, index, index},
                        TypeRange()));
  function.setPrivate();
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  auto end = func::ReturnOp::create(b);
  b.setInsertionPoint(end);
  LaneEmitter e(b);
  Value first = body->getArgument(2), own = body->getArgument(3);
  Value unit = e.loop(body->getArgument(5),
                      e.add(body->getArgument(5), body->getArgument(6)));
  auto isForeign = [&](Value state) -> Value {
    return arith::AndIOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, state, first),
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, state, own));
  };
  auto require = [&](Value foreign, StringRef text) {
    Value none = arith::XOrIOp::create(
        b, foreign, arith::ConstantOp::create(b, b.getBoolAttr(true)));
    cf::AssertOp::create(b, none, text);
  };
  Value reader = memref::LoadOp::create(b, body->getArgument(1), unit);
  Value isRead = isForeign(reader);
  if (access != Access::Copy) {
    Value writer = memref::LoadOp::create(b, body->getArgument(0), unit);
    require(isForeign(writer),
            "expected a barrier after a thread writes workgroup memory that "
            "another one accesses, got none");
  }
  if (access != Access::Read)
    require(isRead, "expected a barrier after a thread reads workgroup memory "
                    "that is written then, got none");
  if (access == Access::Write)
    memref::StoreOp::create(b, own, body->getArgument(0), unit);
  if (access == Access::Read) {
    Value next = arith::SelectOp::create(b, isRead, body->getArgument(4), own);
    memref::StoreOp::create(b, next, body->getArgument(1), unit);
  }
  return function;
}

void ShadowBuilder::check(Access access, Value memory, Value element,
                          int64_t elements, bool later) {
  std::optional<int64_t> begin = getBegin(memory);
  if (!begin)
    return;
  LaneEmitter e(b);
  int64_t units = llvm::divideCeil(
      cast<MemRefType>(memory.getType()).getElementTypeBitWidth(), 16);
  Value number = memref::LoadOp::create(b, phase, ValueRange(e.constant(0)));
  if (later)
    number = arith::AddIOp::create(b, number, createI64(1));
  Value first = arith::MulIOp::create(b, number, createI64(numStates));
  Value id = arith::IndexCastOp::create(b, b.getI64Type(), thread);
  Value own = arith::AddIOp::create(b, first,
                                    arith::AddIOp::create(b, id, createI64(1)));
  Value several = arith::AddIOp::create(b, first, createI64(numStates - 1));
  func::CallOp::create(b, getFunction(access),
                       ValueRange{writes, reads, first, own, several,
                                  e.add(e.times(element, units), *begin),
                                  e.constant(elements * units)});
}

/// Of `ldmatrix` and `stmatrix`: eight numbers of 16 bits, or four of 32, for
/// each lane whose address counts.
void ShadowBuilder::checkLanes(Access access, Value memory, Value element,
                               int64_t matrices) {
  OpBuilder::InsertionGuard guard(b);
  LaneEmitter e(b);
  if (matrices < 4)
    enterIf(e.isBelow(e.mod(thread, 32), 8 * matrices));
  int64_t bits = cast<MemRefType>(memory.getType()).getElementTypeBitWidth();
  check(access, memory, element, 128 / bits);
}

/// The lines of 128 bytes that a product of a warpgroup reads, by its first
/// thread and once more by the next one, as they are of all.
void ShadowBuilder::checkProducts(WarpgroupMmaOp op, bool isRows) {
  Value memory = isRows ? op.getRowMemory() : op.getColumnMemory();
  Value descriptor = isRows ? op.getRows() : op.getColumns();
  bool isTransposed = isRows ? op.getTransposeRows() : op.getTransposeColumns();
  int64_t lines =
      isRows ? 64 : cast<VectorType>(op.getSums().getType()).getDimSize(0) * 8;
  OpBuilder::InsertionGuard guard(b);
  LaneEmitter e(b);
  enterIf(e.isBelow(e.mod(thread, 128), 2));
  auto getField = [&](int64_t shift) -> Value {
    Value bits = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, descriptor, createI64(shift)),
        createI64(0x3fff));
    return arith::IndexCastUIOp::create(b, b.getIndexType(), bits);
  };
  // Fields count 16 bytes, eight numbers. Where steps are lines there are 16 of
  // them for each 64 rows or columns, else one line for each row or column.
  Value start = e.times(e.by(getField(0), 8), 64);
  int64_t parts = isTransposed ? llvm::divideCeil(lines, int64_t(64)) : 1;
  for (int64_t part = 0; part < parts; ++part)
    check(Access::Read, memory,
          e.add(start, e.times(e.times(getField(16), 8), part)),
          (isTransposed ? 16 : lines) * 64, /*later=*/true);
}

void ShadowBuilder::check(Operation *op) {
  b.setInsertionPoint(op);
  LaneEmitter e(b);
  auto count = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.getNumElements() : 1;
  };
  if (auto load = dyn_cast<memref::LoadOp>(op);
      load && load.getIndices().size() == 1)
    check(Access::Read, load.getMemref(), load.getIndices().front(), 1);
  else if (auto store = dyn_cast<memref::StoreOp>(op);
           store && store.getIndices().size() == 1)
    check(Access::Write, store.getMemref(), store.getIndices().front(), 1);
  else if (auto load = dyn_cast<vector::LoadOp>(op);
           load && load.getIndices().size() == 1)
    check(Access::Read, load.getBase(), load.getIndices().front(),
          count(load.getType()));
  else if (auto store = dyn_cast<vector::StoreOp>(op);
           store && store.getIndices().size() == 1)
    check(Access::Write, store.getBase(), store.getIndices().front(),
          count(store.getValueToStore().getType()));
  else if (auto load = dyn_cast<nvgpu::LdMatrixOp>(op))
    checkLanes(Access::Read, load.getSrcMemref(), load.getIndices().front(),
               load.getNumTiles());
  else if (auto store = dyn_cast<StoreMatrixOp>(op))
    checkLanes(Access::Write, store.getMemory(), store.getAddress(),
               cast<VectorType>(store.getFragments().getType()).getDimSize(0));
  else if (auto copy = dyn_cast<TensorCopyOp>(op))
    check(Access::Copy, copy.getMemory(), copy.getOffset(),
          copy.getMap().getBoxElements());
  else if (auto init = dyn_cast<InitBarriersOp>(op))
    check(Access::Write, init.getBarriers(), e.constant(0),
          cast<MemRefType>(init.getBarriers().getType()).getNumElements());
  else if (auto await = dyn_cast<AwaitPhaseOp>(op))
    check(Access::Read, await.getBarriers(), await.getNumber(), 1);
  else if (auto mma = dyn_cast<WarpgroupMmaOp>(op))
    for (bool isRows : {true, false})
      checkProducts(mma, isRows);
}

void ShadowBuilder::build() {
  findMemory();
  if (size == 0)
    return;
  SmallVector<Operation *> accesses;
  kernel.walk([&](Operation *op) {
    if (isa<memref::LoadOp, memref::StoreOp, vector::LoadOp, vector::StoreOp,
            nvgpu::LdMatrixOp, StoreMatrixOp, TensorCopyOp, WarpgroupMmaOp,
            InitBarriersOp, AwaitPhaseOp>(op))
      accesses.push_back(op);
  });
  addState();
  for (Operation *op : accesses)
    check(op);
}

void kas::codegen::addRaceShadow(ModuleOp module, gpu::GPUFuncOp kernel) {
  ShadowBuilder(module, kernel).build();
}
