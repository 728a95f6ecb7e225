//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns kernels into functions of loops over blocks and threads on the CPU,
// split where threads synchronize, so that tests run device code without a
// device.
// The method is loop fission at barriers (Stratton et al., "MCUDA", LCPC 2008).
// A kernel `A; barrier; B` becomes
//
//    for each block { for each thread { A }  for each thread { B } }
//
// and a value of A that B reads is kept in an array with an element per thread.
// Operations of a whole warp, such as `mma.sync`, end a segment like a barrier.
//
//===----------------------------------------------------------------------===//

#include "WarpEmulation.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUTOCPULOOPSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Makes the function of one kernel.
class KernelSerializer {
public:
  KernelSerializer(gpu::GPUFuncOp kernel, OpBuilder &builder)
      : kernel(kernel), b(kernel.getLoc(), builder) {}

  FailureOr<func::FuncOp> serialize();

private:
  using Sizes = std::array<int64_t, 3>;

  /// Whether threads meet at `op` or inside.
  static bool hasBarrier(Operation *op) {
    return op
        ->walk([](Operation *inner) {
          return isa<gpu::BarrierOp>(inner) || isWarpOperation(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }
  static FailureOr<Sizes> getSizes(gpu::GPUFuncOp kernel,
                                   DenseI32ArrayAttr sizes, StringRef what);

  /// Emits the operations of a block, segments between barriers as loops over
  /// the threads. Fails, with an error, where a barrier is in a branch.
  LogicalResult emitBlock(Block *block);
  /// A loop with a barrier inside runs once for all threads, so its bounds must
  /// not depend on the thread.
  LogicalResult emitLoop(scf::ForOp loop);
  void emitWarpOperation(Operation *op);
  /// Makes buffers of workgroup memory, declared or requested, and of its
  /// parts, which may overlap as they do on a device.
  LogicalResult mapWorkgroupMemory();
  /// One loop over the threads around operations without a barrier.
  void emitSegment(ArrayRef<Operation *> segment);
  /// A loop over the threads of a block around what `emitBody` emits.
  void emitThreads(function_ref<void(IRMapping &)> emitBody);
  /// Nested loops; the values of x, y and z.
  std::array<Value, 3> emitLoops(const Sizes &sizes);

  /// Makes what `op` and the ops inside of it read available in `mapping`.
  void mapOperands(Operation *op, IRMapping &mapping);
  void mapValue(Value value, IRMapping &mapping);
  /// Memory for the value of each thread.
  Value getMemory(Value value);
  Value createConstant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }

  gpu::GPUFuncOp kernel;
  ImplicitLocOpBuilder b;
  Sizes grid, block;
  /// Where memory is allocated.
  Operation *start = nullptr;
  /// What is the same for all threads.
  IRMapping uniform;
  /// The array of each value that threads keep between segments.
  llvm::DenseMap<Value, Value> memory;
  /// Ids of the block and thread that is being computed; `thread` is the linear
  /// id, the index into these arrays.
  std::array<Value, 3> blockIds, threadIds;
  Value thread;
};

} // namespace

FailureOr<KernelSerializer::Sizes>
KernelSerializer::getSizes(gpu::GPUFuncOp kernel, DenseI32ArrayAttr sizes,
                           StringRef what) {
  if (!sizes)
    return kernel.emitError()
           << "expected a kernel whose " << what << " is known, got none";
  return Sizes{sizes[0], sizes[1], sizes[2]};
}

std::array<Value, 3> KernelSerializer::emitLoops(const Sizes &sizes) {
  std::array<Value, 3> ids;
  // x is innermost, as consecutive threads are on a device.
  for (unsigned i = 3; i-- > 0;) {
    if (sizes[i] == 1) {
      ids[i] = createConstant(0);
      continue;
    }
    auto loop = scf::ForOp::create(b, createConstant(0),
                                   createConstant(sizes[i]), createConstant(1));
    ids[i] = loop.getInductionVar();
    b.setInsertionPointToStart(loop.getBody());
  }
  return ids;
}

FailureOr<func::FuncOp> KernelSerializer::serialize() {
  FailureOr<Sizes> gridSizes =
      getSizes(kernel, kernel.getKnownGridSizeAttr(), "grid");
  FailureOr<Sizes> blockSizes =
      getSizes(kernel, kernel.getKnownBlockSizeAttr(), "block");
  if (failed(gridSizes) || failed(blockSizes))
    return failure();
  grid = *gridSizes;
  block = *blockSizes;

  auto function =
      func::FuncOp::create(b, kernel.getName(), kernel.getFunctionType());
  function.setPrivate();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(function.addEntryBlock());
  uniform.map(kernel.getArguments(), function.getArguments());
  if (failed(mapWorkgroupMemory())) {
    function.erase();
    return failure();
  }
  start = func::ReturnOp::create(b);
  b.setInsertionPoint(start);
  blockIds = emitLoops(grid);
  if (failed(emitBlock(&kernel.getBody().front()))) {
    function.erase();
    return failure();
  }
  return function;
}

LogicalResult KernelSerializer::emitBlock(Block *source) {
  // Operations since the last barrier.
  SmallVector<Operation *> segment;
  auto finish = [&] {
    emitSegment(segment);
    segment.clear();
  };
  for (Operation &op : *source) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (!hasBarrier(&op)) {
      segment.push_back(&op);
      continue;
    }
    finish();
    if (isa<gpu::BarrierOp>(op))
      continue;
    if (isWarpOperation(&op)) {
      emitWarpOperation(&op);
      continue;
    }
    auto loop = dyn_cast<scf::ForOp>(op);
    // An `scf.if` with a barrier would be undefined where threads disagree on
    // it.
    if (!loop)
      return op.emitError()
             << "expected barriers and operations of warps in kernels and in "
                "scf.for only, got one in "
             << op.getName();
    if (failed(emitLoop(loop)))
      return failure();
  }
  finish();
  return success();
}

LogicalResult KernelSerializer::mapWorkgroupMemory() {
  // One array, reused by each block. 64 bytes are the alignment of a cache
  // line, more than any vector of a kernel needs.
  auto allocate = [&](MemRefType type) -> Value {
    return memref::AllocaOp::create(
        b, MemRefType::get(type.getShape(), type.getElementType()),
        b.getI64IntegerAttr(64));
  };
  for (BlockArgument shared : kernel.getWorkgroupAttributions())
    uniform.map(shared, allocate(cast<MemRefType>(shared.getType())));
  auto bytes =
      kernel->getAttrOfType<IntegerAttr>(KasGPUDialect::dynamicBytesName);
  Value dynamic;
  if (bytes)
    dynamic = allocate(MemRefType::get({bytes.getInt()}, b.getI8Type()));
  WalkResult result = kernel.walk([&](memref::ViewOp view) {
    Value source = uniform.lookupOrNull(view.getSource());
    if (view.getSource().getDefiningOp<gpu::DynamicSharedMemoryOp>())
      source = dynamic;
    APInt offset;
    if (!source || !matchPattern(view.getByteShift(), m_ConstantInt(&offset))) {
      view.emitOpError() << "expected a part of workgroup memory at a constant "
                            "offset";
      return WalkResult::interrupt();
    }
    auto type = MemRefType::get(view.getType().getShape(),
                                view.getType().getElementType());
    uniform.map(view.getResult(),
                memref::ViewOp::create(b, type, source,
                                       createConstant(offset.getSExtValue()),
                                       ValueRange())
                    .getResult());
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// All lanes have computed their operands before any has the result.
void KernelSerializer::emitWarpOperation(Operation *op) {
  SmallVector<Value> buffers;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    bool isMemory = isa<MemRefType>(operand.getType());
    if (isMemory && uniform.contains(operand)) {
      buffers.push_back(uniform.lookup(operand));
      continue;
    }
    // What needs no memory elsewhere needs it here.
    if (uniform.contains(operand) ||
        (source && (source->hasTrait<OpTrait::ConstantLike>() ||
                    isa<gpu::ThreadIdOp, gpu::BlockIdOp>(source))))
      emitThreads([&](IRMapping &mapping) {
        mapValue(operand, mapping);
        memref::StoreOp::create(b, mapping.lookup(operand), getMemory(operand),
                                thread);
      });
    buffers.push_back(getMemory(operand));
  }
  emulateWarpOperation(b, op, buffers,
                       op->getNumResults() ? getMemory(op->getResult(0))
                                           : Value());
}

LogicalResult KernelSerializer::emitLoop(scf::ForOp loop) {
  SmallVector<Value> bounds;
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}) {
    APInt value;
    if (uniform.contains(bound))
      bounds.push_back(uniform.lookup(bound));
    else if (matchPattern(bound, m_ConstantInt(&value)))
      bounds.push_back(createConstant(value.getSExtValue()));
    else
      return loop.emitError() << "expected bounds that are the same for all "
                                 "threads of a loop with a barrier, got "
                              << bound;
  }
  // What the loop carries is in memory; its results are read there.
  auto assign = [&](ValueRange values) {
    if (values.empty())
      return;
    emitThreads([&](IRMapping &mapping) {
      SmallVector<Value> read;
      for (Value value : values) {
        mapValue(value, mapping);
        read.push_back(mapping.lookup(value));
      }
      for (auto [value, argument] :
           llvm::zip_equal(read, loop.getRegionIterArgs()))
        memref::StoreOp::create(b, value, getMemory(argument), thread);
    });
  };
  assign(loop.getInitArgs());
  // The result of the loop is what its iteration argument has at last: one
  // array for both.
  for (auto [argument, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults()))
    memory[result] = getMemory(argument);
  auto copy = scf::ForOp::create(b, bounds[0], bounds[1], bounds[2]);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  uniform.map(loop.getInductionVar(), copy.getInductionVar());
  if (failed(emitBlock(loop.getBody())))
    return failure();
  assign(loop.getBody()->getTerminator()->getOperands());
  return success();
}

void KernelSerializer::emitThreads(function_ref<void(IRMapping &)> emitBody) {
  OpBuilder::InsertionGuard guard(b);
  threadIds = emitLoops(block);
  thread = threadIds[2];
  for (unsigned i : {1, 0})
    thread = arith::AddIOp::create(
        b, arith::MulIOp::create(b, thread, createConstant(block[i])),
        threadIds[i]);
  IRMapping mapping(uniform);
  emitBody(mapping);
}

void KernelSerializer::emitSegment(ArrayRef<Operation *> segment) {
  llvm::SmallPtrSet<Operation *, 16> inside(segment.begin(), segment.end());
  // A value that only this segment reads stays a value.
  auto isReadAfter = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !inside.contains(
          value.getParentBlock()->findAncestorOpInBlock(*user));
    });
  };
  // Emitted again where they are read (`mapValue`), so they need no array.
  auto isFree = [&](Operation *op) {
    return isa<gpu::ThreadIdOp, gpu::BlockIdOp, gpu::DynamicSharedMemoryOp>(
               op) ||
           (op->getNumResults() == 1 && uniform.contains(op->getResult(0))) ||
           op->hasTrait<OpTrait::ConstantLike>();
  };
  if (llvm::all_of(segment, isFree))
    return;
  emitThreads([&](IRMapping &mapping) {
    for (Operation *op : segment) {
      if (isFree(op))
        continue;
      mapOperands(op, mapping);
      b.clone(*op, mapping);
      for (Value result : op->getResults())
        if (isReadAfter(result))
          memref::StoreOp::create(b, mapping.lookup(result), getMemory(result),
                                  thread);
    }
  });
}

void KernelSerializer::mapOperands(Operation *op, IRMapping &mapping) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *owner = operand.getParentBlock()->getParentOp();
      if (!op->isAncestor(owner))
        mapValue(operand, mapping);
    }
  });
}

void KernelSerializer::mapValue(Value value, IRMapping &mapping) {
  if (mapping.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  if (op && op->hasTrait<OpTrait::ConstantLike>()) {
    mapping.map(value, b.clone(*op)->getResult(0));
  } else if (auto id = dyn_cast_or_null<gpu::ThreadIdOp>(op)) {
    mapping.map(value, threadIds[static_cast<unsigned>(id.getDimension())]);
  } else if (auto id = dyn_cast_or_null<gpu::BlockIdOp>(op)) {
    mapping.map(value, blockIds[static_cast<unsigned>(id.getDimension())]);
  } else {
    mapping.map(
        value, memref::LoadOp::create(b, getMemory(value), thread).getResult());
  }
}

Value KernelSerializer::getMemory(Value value) {
  Value &buffer = memory[value];
  if (buffer)
    return buffer;
  OpBuilder::InsertionGuard guard(b);
  // Allocated once, at the start of the function, not in the loops over blocks.
  b.setInsertionPointToStart(start->getBlock());
  auto type =
      MemRefType::get({block[0] * block[1] * block[2]}, value.getType());
  return buffer = memref::AllocaOp::create(b, type);
}

namespace {

struct GPUToCPULoops
    : kas::codegen::impl::KasGPUToCPULoopsPassBase<GPUToCPULoops> {
  using KasGPUToCPULoopsPassBase::KasGPUToCPULoopsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder builder(&getContext());
    SmallVector<gpu::GPUModuleOp> kernelModules(
        module.getOps<gpu::GPUModuleOp>());
    for (gpu::GPUModuleOp kernels : kernelModules) {
      builder.setInsertionPoint(kernels);
      for (auto kernel : kernels.getOps<gpu::GPUFuncOp>()) {
        // Copies become loads and stores first, so that the serializer sees no
        // asynchronous operation.
        emulateAsyncCopies(kernel);
        if (checkRaces)
          addRaceShadow(module, kernel);
        emulateTensorCopies(kernel);
        if (failed(KernelSerializer(kernel, builder).serialize()))
          return signalPassFailure();
      }
    }
    SmallVector<gpu::LaunchFuncOp> launches;
    module->walk([&](gpu::LaunchFuncOp op) { launches.push_back(op); });
    // A launch is a call: the grid and block sizes are known to the kernel.
    for (gpu::LaunchFuncOp launch : launches) {
      builder.setInsertionPoint(launch);
      func::CallOp::create(builder, launch.getLoc(), launch.getKernelName(),
                           TypeRange(), launch.getKernelOperands());
      launch.erase();
    }
    for (gpu::GPUModuleOp kernels : kernelModules)
      kernels.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }
};

} // namespace
