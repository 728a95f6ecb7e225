//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies of tensor-core kernels, from tensors to workgroup memory.
// A unit is 16 bytes of one matrix, 8 factors of 16 bits or 4 of tf32. It takes
// one of three ways: `cp.async` straight from the tensor where all of it is
// contiguous and needs no rounding; vectors of `readWidth` elements through
// registers, rounded; or element by element, as for the windows of a
// convolution. PTX ISA, "Asynchronous copy" (cp.async with `src-size`: the rest
// is filled with zeros).
//
//===----------------------------------------------------------------------===//

#include "TensorCoreKernel.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The digits of `units * unit + offset`, where `offset` is less than a unit
/// and `same` neighbours differ in the last digit only.
SmallVector<AffineExpr>
TensorCoreKernelEmitter::getDigits(AffineExpr units, int64_t offset,
                                   ArrayRef<int64_t> extents,
                                   int64_t same) const {
  if (same == 1)
    return delinearize(units * unit + offset, extents);
  // Digits of groups of `same` neighbours: the division is by a group, so that
  // all elements of a group share it, and only the last digit gets an offset.
  SmallVector<int64_t> groups(extents);
  size_t last = groups.size();
  // Unit axes at the end have no digit to split.
  while (groups[last - 1] == 1)
    --last;
  groups[last - 1] /= same;
  SmallVector<AffineExpr> digits =
      delinearize(units * (unit / same) + offset / same, groups);
  digits[last - 1] = digits[last - 1] * same + offset % same;
  return digits;
}

/// Sets the reduction axes of element `offset` of the unit at `step` in block
/// `block`.
void TensorCoreKernelEmitter::setSteps(SmallVectorImpl<AffineExpr> &axes,
                                       const TensorCorePart &part,
                                       AffineExpr block, AffineExpr step,
                                       int64_t offset) const {
  SmallVector<int64_t> extents = getExtents(view.steps);
  AffineExpr inBlock = part.stepsFirst ? step * unit + offset : step;
  SmallVector<AffineExpr> digits;
  if (!extents.empty() && extents.back() % depth == 0) {
    // All steps of a block have the same outer indices.
    extents.back() /= depth;
    digits = delinearize(block, extents);
    digits.back() = digits.back() * depth + inBlock;
  } else if (part.stepsFirst) {
    digits = getDigits(block * (depth / unit) + step, offset, extents,
                       part.sameDigits);
  } else {
    digits = delinearize(block * depth + inBlock, extents);
  }
  for (auto [axis, digit] : llvm::zip_equal(view.steps, digits))
    axes[axis] = digit;
}

/// Sets the axes of element `offset` of unit `i` in block `block` of steps;
/// returns whether there is such an element, null: always.
Value TensorCoreKernelEmitter::getAxes(const TensorCorePart &part, unsigned i,
                                       AffineExpr block, int64_t offset,
                                       SmallVectorImpl<AffineExpr> &axes) {
  axes.assign(coordinates.axes.size(), constant(0));
  for (auto [axis, expr] : llvm::zip_equal(view.batches, batch))
    axes[axis] = expr;
  AffineExpr line = part.begin + part.lines[i], step = part.steps[i];
  SmallVector<int64_t> extents = getExtents(part.axes);
  AffineExpr lineNumber = part.stepsFirst ? line : line * unit + offset;
  AffineExpr stepNumber =
      block * depth + (part.stepsFirst ? step * unit + offset : step);
  SmallVector<Value> conditions{index.emitGuard({lineNumber, part.numLines}),
                                index.emitGuard({stepNumber, numSteps})};
  SmallVector<AffineExpr> digits =
      part.stepsFirst ? delinearize(line, extents)
                      : getDigits(line, offset, extents, part.sameDigits);
  for (auto [axis, digit] : llvm::zip_equal(part.axes, digits))
    axes[axis] = digit;
  setSteps(axes, part, block, step, offset);
  // Guards are checked once, with the data. Where one does not hold, a weight
  // is multiplied with zero, but its address may be outside.
  if (part.tensors.front() == 0)
    for (const Guard &guard : coordinates.guards)
      conditions.push_back(
          index.emitGuard({guard.expr.replaceDims(axes), guard.extent}));
  return emitAnd(conditions);
}

/// `readWidth` elements as a vector of factors, zero where the element does not
/// exist. The condition of the first one holds for all: `analyzeReads` only
/// widens reads that exist as a whole.
Value TensorCoreKernelEmitter::emitRead(const TensorCorePart &part, unsigned i,
                                        AffineExpr block, int64_t offset) {
  SmallVector<AffineExpr> axes;
  Value condition = getAxes(part, i, block, offset, axes);
  bool hasData = part.tensors.front() == 0;
  Value product;
  for (unsigned tensor : part.tensors) {
    auto indices =
        llvm::map_to_vector(getIndices(tensor), [&](AffineExpr expr) {
          return expr.replaceDims(axes);
        });
    Value value = emitLoad(tensor, indices, condition, hasData, part.readWidth);
    product = product ? Value(arith::MulFOp::create(b, product, value)) : value;
  }
  auto type = VectorType::get({part.readWidth}, factorType);
  if (part.readWidth == 1)
    product = vector::BroadcastOp::create(
        b, VectorType::get({1}, product.getType()), product);
  if (product.getType() != type)
    // `computeType` is f32; tf32 keeps it and is rounded when a fragment is
    // read.
    product = arith::TruncFOp::create(b, type, product);
  if (!condition)
    return product;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return arith::SelectOp::create(b, condition, product, zero);
}

/// The 16 bytes of unit `i`, in registers.
Value TensorCoreKernelEmitter::emitUnit(const TensorCorePart &part, unsigned i,
                                        AffineExpr block) {
  SmallVector<Value> elements;
  auto type = VectorType::get({unit}, factorType);
  if (part.readWidth == unit)
    return emitRead(part, i, block, 0);
  for (int64_t offset = 0; offset < unit; offset += part.readWidth) {
    Value read = emitRead(part, i, block, offset);
    for (int64_t lane = 0; lane < part.readWidth; ++lane)
      elements.push_back(
          vector::ExtractOp::create(b, read, ArrayRef<int64_t>{lane}));
  }
  return vector::FromElementsOp::create(b, type, elements);
}

Value TensorCoreKernelEmitter::addOffset(Value address, Value buffer,
                                         int64_t size) {
  if (!buffer)
    return address;
  Value offset =
      arith::MulIOp::create(b, buffer, arith::ConstantIndexOp::create(b, size));
  return arith::AddIOp::create(b, address, offset);
}

/// Where unit `i` lies in workgroup memory, in elements.
Value TensorCoreKernelEmitter::getUnitAddress(const TensorCorePart &part,
                                              unsigned i, Value buffer) {
  AffineExpr address = part.stepsFirst
                           ? part.lines[i] * part.pitch + part.steps[i] * unit
                           : part.steps[i] * part.pitch + part.lines[i] * unit;
  return addOffset(index.emit(address), buffer, part.size);
}

/// Emits the body, for the last unit of a thread only if it has one: units need
/// not be a multiple of the threads.
void TensorCoreKernelEmitter::emitIfHasUnit(
    const TensorCorePart &part, unsigned i,
    llvm::function_ref<void()> emitBody) {
  OpBuilder::InsertionGuard guard(b);
  if (part.hasLast && i + 1 == part.lines.size()) {
    auto branch = scf::IfOp::create(b, part.hasLast, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  emitBody();
}

/// Copies unit `i` without registers. Where it does not exist, zero elements
/// are read and 16 bytes of zeros written, from an address that is inside.
Value TensorCoreKernelEmitter::emitAsyncCopy(const TensorCorePart &part,
                                             unsigned i, AffineExpr block,
                                             Value buffer) {
  SmallVector<AffineExpr> axes;
  Value condition = getAxes(part, i, block, 0, axes);
  unsigned tensor = part.tensors.front();
  auto indices = llvm::map_to_vector(getIndices(tensor), [&](AffineExpr expr) {
    return expr.replaceDims(axes);
  });
  Value address = emitAddress(tensor, indices, condition, tensor == 0);
  Value elements;
  if (condition)
    elements = arith::SelectOp::create(b, condition, index.createConstant(unit),
                                       index.createConstant(0));
  Value target = getUnitAddress(part, i, buffer);
  // The last attribute bypasses L1: one thread of the block reads each unit.
  return nvgpu::DeviceAsyncCopyOp::create(
      b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), part.memory,
      ValueRange(target), inputs[tensor], ValueRange(address),
      b.getIndexAttr(unit), elements, b.getUnitAttr());
}

void TensorCoreKernelEmitter::emitAsyncCopies(AffineExpr block, Value buffer) {
  for (const TensorCorePart &part : parts)
    if (part.isAsync)
      for (unsigned i = 0; i < part.lines.size(); ++i)
        emitIfHasUnit(part, i, [&] { emitAsyncCopy(part, i, block, buffer); });
}

/// Closes a group of asynchronous copies, also an empty one: waiting counts
/// groups, so each block of steps must have one.
Value TensorCoreKernelEmitter::emitGroup() {
  return nvgpu::DeviceAsyncCreateGroupOp::create(
      b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), ValueRange());
}

/// Units that go through registers, of both matrices. The loads are issued
/// before the products and stored after them.
SmallVector<Value> TensorCoreKernelEmitter::emitReads(AffineExpr block) {
  SmallVector<Value> units;
  for (const TensorCorePart &part : parts)
    if (!part.isAsync)
      for (unsigned i = 0; i < part.lines.size(); ++i)
        units.push_back(emitUnit(part, i, block));
  return units;
}

/// Stores the units of `emitReads`, in the same order.
void TensorCoreKernelEmitter::emitStores(ArrayRef<Value> units, Value buffer) {
  for (const TensorCorePart &part : parts) {
    if (part.isAsync)
      continue;
    for (unsigned i = 0; i < part.lines.size(); ++i) {
      Value address = getUnitAddress(part, i, buffer);
      emitIfHasUnit(part, i, [&] {
        vector::StoreOp::create(b, units[i], part.memory, ValueRange(address),
                                /*nontemporal=*/false, llvm::MaybeAlign(16));
      });
    }
    units = units.drop_front(part.lines.size());
  }
}
