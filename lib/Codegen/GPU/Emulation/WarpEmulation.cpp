//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The matrix operations of a warp and asynchronous copies on a CPU: loops over
// all lanes, with the element of each lane and register as the PTX ISA gives
// it, so that a kernel whose fragments are wrong computes wrong values.
//
// Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix", "Warp-level
// matrix store instruction: stmatrix", "Matrix
// fragments for mma.m16n8k16 with floating point type", "Matrix fragments for
// mma.m16n8k8", "Alternate floating-point data formats".
//
//===----------------------------------------------------------------------===//

#include "WarpEmulation.h"
#include "LaneEmitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

bool kas::codegen::isWarpOperation(Operation *op) {
  return isa<nvgpu::LdMatrixOp, nvgpu::MmaSyncOp, StoreMatrixOp,
             WarpgroupMmaOp>(op);
}

/// The type of the value that each thread has in `buffer`.
static VectorType getValueType(Value buffer) {
  return cast<VectorType>(cast<MemRefType>(buffer.getType()).getElementType());
}

/// For how many threads `buffer` has a value.
static Value emitCount(ImplicitLocOpBuilder &b, Value buffer) {
  return arith::ConstantIndexOp::create(
      b, cast<MemRefType>(buffer.getType()).getNumElements());
}

/// The vector of `elements`, in order.
static Value emitVector(ImplicitLocOpBuilder &b, VectorType type,
                        ArrayRef<Value> elements) {
  Value result = arith::ConstantOp::create(b, b.getZeroAttr(type));
  int64_t across = type.getDimSize(1);
  for (auto [number, element] : llvm::enumerate(elements)) {
    auto i = static_cast<int64_t>(number);
    result = vector::InsertOp::create(
        b, element, result, ArrayRef<int64_t>{i / across, i % across});
  }
  return result;
}

/// Arguments: the memory, the address of each thread, the results. Lane l gets
/// of each 8x8 matrix the elements of row l / 4 from 2 (l mod 4) on (4 bytes),
/// or those of the transposed matrix; lane 8 m + r of the warp has the address
/// of row r of matrix m.
static void emitLdMatrix(ImplicitLocOpBuilder &b, ValueRange arguments,
                         bool isTransposed) {
  LaneEmitter e(b);
  Value memory = arguments[0], addresses = arguments[1], result = arguments[2];
  VectorType type = getValueType(result);
  int64_t perRegister = type.getDimSize(1);
  Value thread = e.loop(e.constant(0), emitCount(b, result));
  Value lane = e.mod(thread, 32);
  // The first thread of this warp.
  Value first = arith::SubIOp::create(b, thread, lane);
  SmallVector<Value> elements;
  for (int64_t matrix = 0; matrix < type.getDimSize(0); ++matrix)
    for (int64_t i = 0; i < perRegister; ++i) {
      Value high = e.by(lane, 4);
      Value low = e.add(e.times(e.mod(lane, 4), perRegister), i);
      Value row = isTransposed ? low : high, column = isTransposed ? high : low;
      Value address = memref::LoadOp::create(
          b, addresses, e.add(e.add(first, row), 8 * matrix));
      elements.push_back(
          memref::LoadOp::create(b, memory, e.add(address, column)));
    }
  memref::StoreOp::create(b, emitVector(b, type, elements), result, thread);
}

/// Arguments: the fragments of each thread, the memory, the address of each
/// thread. The inverse of `emitLdMatrix`.
static void emitStoreMatrix(ImplicitLocOpBuilder &b, ValueRange arguments) {
  LaneEmitter e(b);
  Value fragments = arguments[0], memory = arguments[1],
        addresses = arguments[2];
  VectorType type = getValueType(fragments);
  Value thread = e.loop(e.constant(0), emitCount(b, fragments));
  Value lane = e.mod(thread, 32);
  Value first = arith::SubIOp::create(b, thread, lane);
  Value row = e.by(lane, 4), column = e.times(e.mod(lane, 4), 2);
  Value fragment = memref::LoadOp::create(b, fragments, thread);
  for (int64_t matrix = 0; matrix < type.getDimSize(0); ++matrix)
    for (int64_t i = 0; i < 2; ++i) {
      Value address = memref::LoadOp::create(
          b, addresses, e.add(e.add(first, row), 8 * matrix));
      Value value =
          vector::ExtractOp::create(b, fragment, ArrayRef<int64_t>{matrix, i});
      memref::StoreOp::create(b, value, memory,
                              ValueRange(e.add(e.add(address, column), i)));
    }
}

/// `value` as f32, as the matrix instruction sees it. Where it `isRounded` to
/// tf32 nothing is done before the instruction, which ignores other bits.
static Value emitFactor(ImplicitLocOpBuilder &b, Value value, bool isRounded) {
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  if (!value.getType().isF32())
    return arith::ExtFOp::create(b, f32, value);
  auto constant = [&](int64_t number) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(i32, APInt(32, number, /*isSigned=*/false)));
  };
  Value bits = arith::BitcastOp::create(b, i32, value);
  if (isRounded)
    return arith::BitcastOp::create(
        b, f32, arith::AndIOp::create(b, bits, constant(0xffffe000)));
  // 10 bits after the point, to nearest, ties away from zero.
  // Half of the last place that is kept, then the 13 bits below it are cleared.
  Value rounded =
      arith::AndIOp::create(b, arith::AddIOp::create(b, bits, constant(0x1000)),
                            constant(0xffffe000));
  Value exponent = arith::AndIOp::create(b, bits, constant(0x7f800000));
  // Rounding the bits of a NaN could make infinity or zero of it.
  Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, exponent,
                                         constant(0x7f800000));
  return arith::SelectOp::create(
      b, isFinite, arith::BitcastOp::create(b, f32, rounded), value);
}

/// Arguments: the rows, the columns, the sums, the results of each thread.
static void emitMma(ImplicitLocOpBuilder &b, ValueRange arguments,
                    nvgpu::MmaSyncOp op) {
  int64_t steps = op.getMmaShapeAsArray()[2];
  LaneEmitter e(b);
  Value result = arguments[3];
  Type f32 = b.getF32Type();
  Value rows = memref::AllocaOp::create(b, MemRefType::get({16, steps}, f32));
  Value columns = memref::AllocaOp::create(b, MemRefType::get({steps, 8}, f32));
  // First all lanes put their elements into the whole matrices, then each lane
  // computes the sums that it holds: lane l = 4 high + low.
  Value warp = e.loop(e.constant(0), emitCount(b, result), 32);
  Value end = e.add(warp, 32);
  {
    OpBuilder::InsertionGuard guard(b);
    Value thread = e.loop(warp, end);
    Value lane = e.mod(thread, 32), high = e.by(lane, 4), low = e.mod(lane, 4);
    for (unsigned number = 0; number < 2; ++number) {
      Value fragment = memref::LoadOp::create(b, arguments[number], thread);
      VectorType type = getValueType(arguments[number]);
      int64_t perRegister = type.getDimSize(1);
      for (int64_t i = 0; i < type.getDimSize(0); ++i)
        for (int64_t j = 0; j < perRegister; ++j) {
          Value value = emitFactor(
              b,
              vector::ExtractOp::create(b, fragment, ArrayRef<int64_t>{i, j}),
              KasGPUDialect::isRounded(op, number));
          // Registers of A: rows 0-7 and 8-15 at the first half of the steps,
          // then both at the second half; registers of B: first and second
          // half.
          int64_t stepBlock = number == 0 ? i / 2 : i;
          Value step =
              e.add(e.times(low, perRegister), j + stepBlock * 4 * perRegister);
          Value line = number == 0 ? e.add(high, i % 2 * 8) : high;
          memref::StoreOp::create(b, value, number == 0 ? rows : columns,
                                  number == 0 ? ValueRange{line, step}
                                              : ValueRange{step, line});
        }
    }
  }
  Value thread = e.loop(warp, end);
  Value lane = e.mod(thread, 32), high = e.by(lane, 4), low = e.mod(lane, 4);
  Value sums = memref::LoadOp::create(b, arguments[2], thread);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      Value row = e.add(high, 8 * i), column = e.add(e.times(low, 2), j);
      Value sum = vector::ExtractOp::create(b, sums, ArrayRef<int64_t>{i, j});
      // In order of the steps, one by one; a tensor core adds in another order,
      // which tests allow for by exact inputs or a tolerance.
      auto loop = scf::ForOp::create(b, e.constant(0), e.constant(steps),
                                     e.constant(1), sum);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value step = loop.getInductionVar();
      Value product = arith::MulFOp::create(
          b, memref::LoadOp::create(b, rows, ValueRange{row, step}),
          memref::LoadOp::create(b, columns, ValueRange{step, column}));
      Value next =
          arith::AddFOp::create(b, loop.getRegionIterArgs()[0], product);
      scf::YieldOp::create(b, next);
      elements.push_back(loop.getResult(0));
    }
  memref::StoreOp::create(b, emitVector(b, getValueType(result), elements),
                          result, thread);
}

/// Of the function that computes operations such as `op`.
static std::string getFunctionName(Operation *op) {
  if (auto mma = dyn_cast<WarpgroupMmaOp>(op))
    return getWarpgroupMmaName(mma);
  std::string name;
  llvm::raw_string_ostream text(name);
  if (auto ldmatrix = dyn_cast<nvgpu::LdMatrixOp>(op)) {
    text << "kas_ldmatrix_"
         << ldmatrix.getSrcMemref().getType().getElementType() << "_x"
         << ldmatrix.getNumTiles()
         << (ldmatrix.getTranspose() ? "_transposed" : "");
    return name;
  }
  if (auto store = dyn_cast<StoreMatrixOp>(op)) {
    auto type = cast<VectorType>(store.getFragments().getType());
    text << "kas_store_matrix_" << type.getElementType() << "_x"
         << type.getDimSize(0);
    return name;
  }
  auto mma = cast<nvgpu::MmaSyncOp>(op);
  text << "kas_mma_k" << mma.getMmaShapeAsArray()[2] << "_"
       << cast<VectorType>(mma.getMatrixA().getType()).getElementType();
  for (int64_t number : {0, 1})
    if (KasGPUDialect::isRounded(mma, number))
      text << "_rounded" << number;
  return name;
}

static void emitBody(ImplicitLocOpBuilder &b, Operation *op,
                     ValueRange arguments) {
  if (auto mma = dyn_cast<WarpgroupMmaOp>(op))
    emitWarpgroupMma(b, mma, arguments);
  else if (auto ldmatrix = dyn_cast<nvgpu::LdMatrixOp>(op))
    emitLdMatrix(b, arguments, ldmatrix.getTranspose());
  else if (isa<StoreMatrixOp>(op))
    emitStoreMatrix(b, arguments);
  else
    emitMma(b, arguments, cast<nvgpu::MmaSyncOp>(op));
}

/// The function that computes operations such as `op`, made where there is
/// none.
static func::FuncOp getFunction(ImplicitLocOpBuilder &b, Operation *op,
                                TypeRange types) {
  std::string name = getFunctionName(op);
  // Buffers of static size become plain pointers.
  for (Type type : types)
    name += "_" + std::to_string(cast<MemRefType>(type).getNumElements());
  auto module =
      b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  // One function for all operations of the kind: kernels stay short, since an
  // unrolled main loop has hundreds of them.
  if (auto existing = module.lookupSymbol<func::FuncOp>(name))
    return existing;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  auto function =
      func::FuncOp::create(b, name, b.getFunctionType(types, TypeRange()));
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  auto end = func::ReturnOp::create(b);
  b.setInsertionPoint(end);
  emitBody(b, op, function.getArguments());
  return function;
}

void kas::codegen::emulateWarpOperation(ImplicitLocOpBuilder &b, Operation *op,
                                        ValueRange operands, Value result) {
  SmallVector<Value> arguments(operands);
  if (result)
    arguments.push_back(result);
  func::FuncOp function = getFunction(b, op, TypeRange(ValueRange(arguments)));
  func::CallOp::create(b, function, arguments);
}

/// Copies of `copy` in its place: what is read, then zeros.
static void emitCopy(nvgpu::DeviceAsyncCopyOp copy) {
  OpBuilder builder(copy);
  ImplicitLocOpBuilder b(copy.getLoc(), builder);
  LaneEmitter e(b);
  Value count = e.constant(copy.getDstElements().getSExtValue());
  Value existing = copy.getSrcElements() ? copy.getSrcElements() : count;
  auto emitLoop = [&](Value begin, Value end,
                      llvm::function_ref<Value(Value)> getElement) {
    OpBuilder::InsertionGuard guard(b);
    Value i = e.loop(begin, end);
    Value value = getElement(i);
    memref::StoreOp::create(b, value, copy.getDst(),
                            e.add(copy.getDstIndices().front(), i));
  };
  emitLoop(e.constant(0), existing, [&](Value i) -> Value {
    return memref::LoadOp::create(b, copy.getSrc(),
                                  e.add(copy.getSrcIndices().front(), i));
  });
  Type type = cast<MemRefType>(copy.getDst().getType()).getElementType();
  emitLoop(existing, count, [&](Value) -> Value {
    return arith::ConstantOp::create(b, b.getZeroAttr(type));
  });
}

void kas::codegen::emulateAsyncCopies(gpu::GPUFuncOp kernel) {
  SmallVector<Operation *> waits, groups, copies;
  kernel.walk([&](Operation *op) {
    if (isa<nvgpu::DeviceAsyncWaitOp>(op))
      waits.push_back(op);
    else if (isa<nvgpu::DeviceAsyncCreateGroupOp>(op))
      groups.push_back(op);
    else if (isa<nvgpu::DeviceAsyncCopyOp>(op))
      copies.push_back(op);
  });
  // A copy that is done at once satisfies any wait, so waits and groups go
  // away. A missing wait is therefore not found here.
  for (Operation *copy : copies)
    emitCopy(cast<nvgpu::DeviceAsyncCopyOp>(copy));
  for (ArrayRef<Operation *> ops :
       {ArrayRef(waits), ArrayRef(groups), ArrayRef(copies)})
    for (Operation *op : ops)
      op->erase();
}
