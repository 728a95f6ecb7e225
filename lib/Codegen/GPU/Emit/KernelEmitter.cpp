//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by emitters of GPU kernels: launch shapes, thread and block
// numbers, addresses, guarded loads of an operator's tensors.
// Buffers are one-dimensional, so each access has one linear address. Where an
// element does not exist (the padding of a convolution), the address is
// replaced by 0, which is always inside, and the caller replaces the value by
// zero: no branch, and no access out of bounds.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "Epilogue.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

GPUKernelEmitter::GPUKernelEmitter(OpBuilder &builder, Location loc,
                                   const GPUKernelProblem &problem,
                                   GPUScheduleAttr schedule,
                                   const LaunchShape &launch,
                                   ValueRange arguments)
    : b(loc, builder), index(b), problem(problem), schedule(schedule),
      launch(launch), inputs(arguments.drop_back()), output(arguments.back()) {
  // Sums of 16-bit elements are accumulated in f32 and rounded once, when they
  // are stored.
  elementType = cast<MemRefType>(output.getType()).getElementType();
  computeType = elementType.getIntOrFloatBitWidth() < 32
                    ? Type(Float32Type::get(b.getContext()))
                    : elementType;
}

Value kas::codegen::emitBlockId(ImplicitLocOpBuilder &b, IndexEmitter &index,
                                const LaunchShape &launch) {
  Value id = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  int64_t stride = launch.grid[0];
  for (auto [dimension, size] :
       {std::pair(gpu::Dimension::y, launch.grid[1]),
        std::pair(gpu::Dimension::z, launch.grid[2])}) {
    // A dimension of one block has the id 0: no special register is read.
    if (size == 1)
      continue;
    Value outer = gpu::BlockIdOp::create(b, dimension);
    Value offset =
        arith::MulIOp::create(b, outer, index.createConstant(stride));
    id = arith::AddIOp::create(b, id, offset);
    stride *= size;
  }
  return id;
}

AffineExpr GPUKernelEmitter::addBlockId(int64_t numBlocks) {
  return index.add(emitBlockId(b, index, launch), {0, numBlocks - 1});
}

// A thread that returned before a barrier would let the others of its block
// wait forever; a repeated block only writes the same values again.
AffineExpr GPUKernelEmitter::addRepeatedBlockId(int64_t numBlocks) {
  Value id = emitBlockId(b, index, launch);
  if (launch.getNumBlocks() > numBlocks)
    id = arith::MinUIOp::create(b, id, index.createConstant(numBlocks - 1));
  return index.add(id, {0, numBlocks - 1});
}

AffineExpr GPUKernelEmitter::addThreadId() {
  Value id = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  return index.add(id, {0, launch.block[0] - 1});
}

Value GPUKernelEmitter::createConstant(double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(computeType, value));
}

Value GPUKernelEmitter::emitAnd(ValueRange conditions) {
  Value all;
  for (Value condition : conditions)
    if (condition)
      all = all ? Value(arith::AndIOp::create(b, all, condition)) : condition;
  return all;
}

// `range` is what index arithmetic proves. If it is inside of the buffer
// whatever the guards, there is nothing to select.
Value GPUKernelEmitter::emitAddress(unsigned number,
                                    ArrayRef<AffineExpr> indices,
                                    Value condition, bool isSufficient,
                                    int64_t width) {
  AffineExpr expr =
      index.simplify(linearize(indices, getShape(number), b.getContext()));
  Value address = index.emit(expr);
  Interval range = index.getRange(expr);
  int64_t size = cast<MemRefType>(inputs[number].getType()).getNumElements();
  bool mayBeOutside = range.lower < 0 || range.upper > size - width;
  if (!mayBeOutside || (!condition && isSufficient))
    return address;
  // The condition does not imply that the address is inside: the address itself
  // is compared. As an unsigned number a negative one is too large as well.
  if (!isSufficient)
    condition = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, address,
                                      index.createConstant(size - width + 1));
  return arith::SelectOp::create(b, condition, address,
                                 index.createConstant(0));
}

Value GPUKernelEmitter::emitLoad(unsigned number, ArrayRef<AffineExpr> indices,
                                 Value condition, bool isSufficient,
                                 int64_t width) {
  Value address = emitAddress(number, indices, condition, isSufficient, width);
  if (width > 1) {
    Type type = getInputType(number);
    int64_t bytes = width * type.getIntOrFloatBitWidth() / 8;
    Value values = vector::LoadOp::create(
        b, VectorType::get({width}, type), inputs[number], ValueRange(address),
        // Buffers begin at multiples of 16 bytes by the interface of kernels,
        // so a vector at a multiple of its width is aligned, at most to 16.
        /*nontemporal=*/false, llvm::MaybeAlign(std::min<int64_t>(bytes, 16)));
    if (type != computeType)
      values = arith::ExtFOp::create(b, VectorType::get({width}, computeType),
                                     values);
    return values;
  }
  Value value = memref::LoadOp::create(b, inputs[number], address);
  if (value.getType() != computeType)
    value = arith::ExtFOp::create(b, computeType, value);
  return value;
}

std::optional<unsigned>
GPUKernelEmitter::getInnerAxis(ArrayRef<unsigned> axes) const {
  for (unsigned axis : llvm::reverse(axes))
    if (problem.coordinates.axes[axis].extent != 1)
      return axis;
  return std::nullopt;
}

// Tries 2^k neighbours from `most` downwards. A width suits if the address of
// each group of neighbours is a multiple of it and grows by one per element.
// Example: `d1 + 6 * d0` with d1 < 6 gives 2, as 4 does not divide the extent.
int64_t GPUKernelEmitter::getVectorWidth(AffineExpr address, unsigned axis,
                                         int64_t most) const {
  ArrayRef<Axis> all = problem.coordinates.axes;
  SmallVector<Interval> ranges;
  for (const Axis &other : all)
    ranges.push_back({0, other.extent - 1});
  for (int64_t width = most; width > 1; width /= 2) {
    if (all[axis].extent % width != 0)
      continue;
    // Dimension `axis` counts vectors.
    ranges[axis].upper = all[axis].extent / width - 1;
    AffineExpr dimension = getAffineDimExpr(axis, b.getContext());
    auto at = [&](int64_t offset) {
      return simplifyInRanges(
          address.replace(dimension, dimension * width + offset), ranges);
    };
    AffineExpr start = at(0);
    bool isVector = start.isMultipleOf(width);
    for (int64_t i = 1; i < width && isVector; ++i)
      isVector = simplifyInRanges(at(i) - start, ranges) == i;
    if (isVector)
      return width;
  }
  return 1;
}

int64_t GPUKernelEmitter::getReadWidth(unsigned number, unsigned axis,
                                       int64_t most) const {
  // Guards belong to the data: weights exist everywhere.
  if (number == 0)
    for (const Guard &guard : problem.coordinates.guards)
      if (guard.expr.isFunctionOfDim(axis))
        return 1;
  return getVectorWidth(
      linearize(getIndices(number), getShape(number), b.getContext()), axis,
      most);
}

// A distance is used to choose along which axis neighbouring threads read, so
// that their accesses coalesce. `INT64_MAX`: not linear at the origin, or one
// element only.
int64_t GPUKernelEmitter::getDistance(ArrayRef<unsigned> tensors,
                                      ArrayRef<unsigned> axes) const {
  // The tensor with the most elements decides.
  unsigned largest = tensors.front();
  for (unsigned tensor : tensors)
    if (ShapedType::getNumElements(getShape(tensor)) >
        ShapedType::getNumElements(getShape(largest)))
      largest = tensor;
  AffineExpr address =
      linearize(getIndices(largest), getShape(largest), b.getContext());
  ArrayRef<Axis> all = problem.coordinates.axes;
  for (unsigned axis : llvm::reverse(axes)) {
    if (all[axis].extent == 1)
      continue;
    SmallVector<AffineExpr> at0, at1;
    for (unsigned i = 0; i < all.size(); ++i) {
      at0.push_back(getAffineConstantExpr(0, b.getContext()));
      at1.push_back(getAffineConstantExpr(i == axis, b.getContext()));
    }
    auto difference = dyn_cast<AffineConstantExpr>(address.replaceDims(at1) -
                                                   address.replaceDims(at0));
    return difference ? std::abs(difference.getValue()) : INT64_MAX;
  }
  return INT64_MAX;
}

// A mean is a sum until here: one division per output instead of one per term.
Value GPUKernelEmitter::emitMean(Value sum) {
  double divisor = problem.coordinates.getMeanDivisor();
  if (divisor == 1)
    return sum;
  Value count = createConstant(divisor);
  if (isa<VectorType>(sum.getType()))
    count = vector::BroadcastOp::create(b, sum.getType(), count);
  return arith::DivFOp::create(b, sum, count);
}

AffineExpr
GPUKernelEmitter::getResultOffset(ArrayRef<unsigned> axes,
                                  ArrayRef<AffineExpr> values) const {
  SmallVector<AffineExpr> all(problem.coordinates.numOutputs,
                              getAffineConstantExpr(0, b.getContext()));
  for (auto [axis, value] : llvm::zip_equal(axes, values))
    all[axis] = value;
  return linearize(all, problem.output, b.getContext());
}

int64_t GPUKernelEmitter::getResultWidth(ArrayRef<unsigned> batches,
                                         ArrayRef<unsigned> rows,
                                         ArrayRef<unsigned> columns) const {
  int64_t most = 16 / (elementType.getIntOrFloatBitWidth() / 8);
  int64_t width = getResultSide(columns).getWidth(most);
  return getResultSide(batches).getAlignment(
      getResultSide(rows).getAlignment(width));
}

void GPUKernelEmitter::emitResult(Value sum, ArrayRef<AxisValues> values) {
  SmallVector<AffineExpr> coordinates = getCoordinates(values);
  emitStore(linearize(coordinates, problem.output, b.getContext()),
            emitEpilogue(emitMean(sum), coordinates));
}

SmallVector<AffineExpr>
GPUKernelEmitter::getCoordinates(ArrayRef<AxisValues> values) const {
  SmallVector<AffineExpr> coordinates(problem.coordinates.numOutputs,
                                      getAffineConstantExpr(0, b.getContext()));
  for (const auto &[axes, exprs] : values)
    for (auto [axis, expr] : llvm::zip_equal(axes, exprs))
      coordinates[axis] = expr;
  return coordinates;
}

Value GPUKernelEmitter::emitEpilogue(Value value,
                                     ArrayRef<AffineExpr> coordinates) {
  if (!problem.epilogue)
    return value;
  return codegen::emitEpilogue(b, index, *problem.epilogue, problem.output,
                               ArrayRef(inputs).drop_front(getNumInputs()),
                               value, coordinates);
}

void GPUKernelEmitter::emitStore(AffineExpr address, Value value) {
  if (auto type = dyn_cast<VectorType>(value.getType())) {
    if (type.getElementType() != elementType)
      // Rounds to nearest even, to the type of the output.
      value = arith::TruncFOp::create(b, type.clone(elementType), value);
    int64_t bytes =
        type.getNumElements() * elementType.getIntOrFloatBitWidth() / 8;
    vector::StoreOp::create(b, value, output, ValueRange(index.emit(address)),
                            /*nontemporal=*/false,
                            llvm::MaybeAlign(std::min<int64_t>(bytes, 16)));
    return;
  }
  if (value.getType() != elementType)
    value = arith::TruncFOp::create(b, elementType, value);
  memref::StoreOp::create(b, value, output, index.emit(address));
}
