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

#include "KernelEmitter.h"
#include "MatrixView.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace mlir;

namespace {

/// One of the two matrices, and the part of it that a block holds for `depth`
/// steps. Thread t copies the units t, t + threads, ... of `unit` elements.
struct Part {
  SmallVector<unsigned> tensors;
  SmallVector<unsigned> axes;
  int64_t numLines, blockLines;
  /// Whether lines of memory hold neighbouring steps, not rows or columns.
  bool stepsFirst;
  /// Elements from one line of memory to the next, and of a whole part.
  int64_t pitch, size;
  /// So many neighbours have the same indices but for the last one, and so many
  /// of them are read at once.
  int64_t sameDigits, readWidth;
  /// Whether units are copied without registers.
  bool isAsync;
  /// Whether neighbouring threads copy neighbouring rows or columns.
  bool threadsAlongLines;
  Value memory;
  /// The first row or column of the block, in units if these are along it.
  AffineExpr begin;
  /// For each unit that a thread copies: where it is, in lines and steps; the
  /// one along which it lies is in units.
  SmallVector<AffineExpr> lines, steps;
  /// Whether the thread has the last of these; null: always.
  Value hasLast;
};

class TensorCoreKernelEmitter : GPUKernelEmitter {
public:
  TensorCoreKernelEmitter(OpBuilder &builder, Location loc,
                          const GPUKernelProblem &problem,
                          GPUScheduleAttr schedule, const LaunchShape &launch,
                          gpu::GPUFuncOp kernel);
  void emit();

private:
  int64_t getTile(unsigned i) const { return schedule.getTile()[i]; }
  int64_t getBlock(unsigned i) const { return schedule.getBlock()[i]; }
  SmallVector<int64_t> getExtents(ArrayRef<unsigned> axes) const {
    return llvm::map_to_vector(
        axes, [&](unsigned axis) { return coordinates.axes[axis].extent; });
  }
  AffineExpr addValue(AffineExpr expr, int64_t extent) {
    return index.add(index.emit(expr), {0, extent - 1});
  }
  AffineExpr constant(int64_t value) { return b.getAffineConstantExpr(value); }

  // Places.
  void orderSides();
  void addParts();
  void addPart(unsigned number);
  void addMemory();
  void analyzeReads(Part &part);
  int64_t getReadWidth(const Part &part, unsigned axis) const;
  void addUnits(Part &part);

  // Copies.
  SmallVector<AffineExpr> getDigits(AffineExpr units, int64_t offset,
                                    ArrayRef<int64_t> extents,
                                    int64_t same) const;
  void setSteps(SmallVectorImpl<AffineExpr> &axes, const Part &part,
                AffineExpr block, AffineExpr step, int64_t offset) const;
  Value getAxes(const Part &part, unsigned i, AffineExpr block, int64_t offset,
                SmallVectorImpl<AffineExpr> &axes);
  Value emitRead(const Part &part, unsigned i, AffineExpr block,
                 int64_t offset);
  Value emitUnit(const Part &part, unsigned i, AffineExpr block);
  Value emitAsyncCopy(const Part &part, unsigned i, AffineExpr block,
                      Value buffer);
  Value getUnitAddress(const Part &part, unsigned i, Value buffer);
  void emitIfHasUnit(const Part &part, unsigned i,
                     llvm::function_ref<void()> emitBody);
  void emitAsyncCopies(AffineExpr block, Value buffer);
  Value emitGroup();
  SmallVector<Value> emitReads(AffineExpr block);
  void emitStores(ArrayRef<Value> units, Value buffer);

  // Products.
  void addFragmentAddresses();
  Value emitFragment(unsigned number, int64_t line, int64_t step, Value buffer);
  Value emitVector(ArrayRef<Value> registers);
  SmallVector<Value> emitProducts(ValueRange sums, Value buffer);
  SmallVector<Value> emitSteps(ValueRange sums);
  void finish(ArrayRef<Value> sums);
  void emitPair(Value sums, unsigned half, AffineExpr row, AffineExpr column);

  gpu::GPUFuncOp kernel;
  const Coordinates &coordinates;
  MatrixView view;
  int64_t depth, numSteps, numBlocks;
  /// Of the numbers that are multiplied, and the elements of 16 bytes.
  Type factorType;
  int64_t unit;
  /// Steps of one matrix instruction.
  int64_t instructionSteps;
  AffineExpr thread, lane;
  std::array<AffineExpr, 2> warp;
  SmallVector<AffineExpr> batch;
  /// Rows, columns.
  std::array<Part, 2> parts;
  /// What a lane gives to ldmatrix for the fragment at the origin of its warp.
  std::array<AffineExpr, 2> fragment;
  bool hasAsync = false;
};

} // namespace

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

void TensorCoreKernelEmitter::addPart(unsigned number) {
  Part &part = parts[number];
  part.numLines = MatrixView::getExtent(coordinates, part.axes);
  part.blockLines = getBlock(number);
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
  part.isAsync = part.readWidth == unit && elementType == factorType;
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

/// Declared where CUDA allows it, else asked for.
void TensorCoreKernelEmitter::addMemory() {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  int64_t elementBytes = factorType.getIntOrFloatBitWidth() / 8;
  auto getType = [&](int64_t elements, Type type) {
    return MemRefType::get({elements}, type, MemRefLayoutAttrInterface(),
                           space);
  };
  std::array<int64_t, 2> elements;
  for (unsigned i = 0; i < 2; ++i)
    elements[i] = schedule.getStages() * parts[i].size;
  int64_t bytes = (elements[0] + elements[1]) * elementBytes;
  if (bytes <= declaredBytes) {
    for (unsigned i = 0; i < 2; ++i)
      parts[i].memory = kernel.addWorkgroupAttribution(
          getType(elements[i], factorType), b.getLoc());
    return;
  }
  kernel->setAttr(KasGPUDialect::dynamicBytesName, b.getI64IntegerAttr(bytes));
  Value memory = gpu::DynamicSharedMemoryOp::create(
      b, getType(ShapedType::kDynamic, b.getI8Type()));
  for (unsigned i = 0; i < 2; ++i)
    parts[i].memory = memref::ViewOp::create(
        b, getType(elements[i], factorType), memory,
        index.createConstant(i * elements[0] * elementBytes), ValueRange());
}

void TensorCoreKernelEmitter::analyzeReads(Part &part) {
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
    part.readWidth = getReadWidth(part, axes.back());
}

/// How many neighbours along `axis`, beginning at a multiple of that number,
/// are neighbours in the tensor at such a multiple, and exist together.
int64_t TensorCoreKernelEmitter::getReadWidth(const Part &part,
                                              unsigned axis) const {
  if (part.tensors.front() == 0)
    for (const Guard &guard : coordinates.guards)
      if (guard.expr.isFunctionOfDim(axis))
        return 1;
  unsigned tensor = part.tensors.front();
  AffineExpr address =
      linearize(getIndices(tensor), getShape(tensor), b.getContext());
  SmallVector<Interval> ranges;
  for (const Axis &other : coordinates.axes)
    ranges.push_back({0, other.extent - 1});
  for (int64_t width = part.sameDigits; width > 1; width /= 2) {
    // Dimension `axis` counts vectors.
    ranges[axis].upper = coordinates.axes[axis].extent / width - 1;
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

void TensorCoreKernelEmitter::addUnits(Part &part) {
  int64_t threads = launch.block[0];
  int64_t units = part.blockLines * depth / unit;
  int64_t copies = llvm::divideCeil(units, threads);
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

void TensorCoreKernelEmitter::addParts() {
  orderSides();
  addPart(0);
  addPart(1);
  addMemory();
  int64_t numBatches = MatrixView::getExtent(coordinates, view.batches);
  auto count = [](const Part &part) -> int64_t {
    return llvm::divideCeil(part.numLines, part.blockLines);
  };
  SmallVector<int64_t> counts{numBatches, count(parts[0]), count(parts[1])};
  int64_t used = counts[0] * counts[1] * counts[2];
  Value id = emitBlockId(b, index, launch);
  // A grid of several dimensions may have more blocks than are needed: these
  // repeat the last one. Barriers are for all threads, so none may leave.
  if (launch.getNumBlocks() > used)
    id = arith::MinUIOp::create(b, id, index.createConstant(used - 1));
  AffineExpr block = index.add(id, {0, used - 1});
  SmallVector<AffineExpr> digits = delinearize(block, counts);
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
  warp[0] = addValue(thread.floorDiv(32).floorDiv(across), down);
  warp[1] = addValue(thread.floorDiv(32) % across, across);
  for (Part &part : parts)
    addUnits(part);
}

//===----------------------------------------------------------------------===//
// From the tensors to workgroup memory
//===----------------------------------------------------------------------===//

/// The digits of `units * unit + offset`, where `offset` is less than a unit
/// and `same` neighbours differ in the last digit only.
SmallVector<AffineExpr>
TensorCoreKernelEmitter::getDigits(AffineExpr units, int64_t offset,
                                   ArrayRef<int64_t> extents,
                                   int64_t same) const {
  if (same == 1)
    return delinearize(units * unit + offset, extents);
  SmallVector<int64_t> groups(extents);
  size_t last = groups.size();
  while (groups[last - 1] == 1)
    --last;
  groups[last - 1] /= same;
  SmallVector<AffineExpr> digits =
      delinearize(units * (unit / same) + offset / same, groups);
  digits[last - 1] = digits[last - 1] * same + offset % same;
  return digits;
}

void TensorCoreKernelEmitter::setSteps(SmallVectorImpl<AffineExpr> &axes,
                                       const Part &part, AffineExpr block,
                                       AffineExpr step, int64_t offset) const {
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
Value TensorCoreKernelEmitter::getAxes(const Part &part, unsigned i,
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

/// `readWidth` elements as a vector of factors, zero where there is nothing.
Value TensorCoreKernelEmitter::emitRead(const Part &part, unsigned i,
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
    product = arith::TruncFOp::create(b, type, product);
  if (!condition)
    return product;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return arith::SelectOp::create(b, condition, product, zero);
}

Value TensorCoreKernelEmitter::emitUnit(const Part &part, unsigned i,
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

/// Adds the offset of a buffer of the ring to an address; null: none.
static Value addOffset(ImplicitLocOpBuilder &b, Value address, Value buffer,
                       int64_t size) {
  if (!buffer)
    return address;
  Value offset =
      arith::MulIOp::create(b, buffer, arith::ConstantIndexOp::create(b, size));
  return arith::AddIOp::create(b, address, offset);
}

Value TensorCoreKernelEmitter::getUnitAddress(const Part &part, unsigned i,
                                              Value buffer) {
  AffineExpr address = part.stepsFirst
                           ? part.lines[i] * part.pitch + part.steps[i] * unit
                           : part.steps[i] * part.pitch + part.lines[i] * unit;
  return addOffset(b, index.emit(address), buffer, part.size);
}

void TensorCoreKernelEmitter::emitIfHasUnit(
    const Part &part, unsigned i, llvm::function_ref<void()> emitBody) {
  OpBuilder::InsertionGuard guard(b);
  if (part.hasLast && i + 1 == part.lines.size()) {
    auto branch = scf::IfOp::create(b, part.hasLast, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  emitBody();
}

Value TensorCoreKernelEmitter::emitAsyncCopy(const Part &part, unsigned i,
                                             AffineExpr block, Value buffer) {
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
  return nvgpu::DeviceAsyncCopyOp::create(
      b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), part.memory,
      ValueRange(target), inputs[tensor], ValueRange(address),
      b.getIndexAttr(unit), elements, b.getUnitAttr());
}

void TensorCoreKernelEmitter::emitAsyncCopies(AffineExpr block, Value buffer) {
  for (const Part &part : parts)
    if (part.isAsync)
      for (unsigned i = 0; i < part.lines.size(); ++i)
        emitIfHasUnit(part, i, [&] { emitAsyncCopy(part, i, block, buffer); });
}

Value TensorCoreKernelEmitter::emitGroup() {
  return nvgpu::DeviceAsyncCreateGroupOp::create(
      b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), ValueRange());
}

SmallVector<Value> TensorCoreKernelEmitter::emitReads(AffineExpr block) {
  SmallVector<Value> units;
  for (const Part &part : parts)
    if (!part.isAsync)
      for (unsigned i = 0; i < part.lines.size(); ++i)
        units.push_back(emitUnit(part, i, block));
  return units;
}

void TensorCoreKernelEmitter::emitStores(ArrayRef<Value> units, Value buffer) {
  for (const Part &part : parts) {
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

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// ldmatrix reads four matrices of eight lines of 16 bytes; lane l says where
/// line l % 8 of matrix l / 8 begins. In a fragment of rows the first two
/// matrices are rows 0 to 7 and 8 to 15 at the first steps, in one of columns
/// the first two are the steps of columns 0 to 7.
void TensorCoreKernelEmitter::addFragmentAddresses() {
  for (unsigned number = 0; number < 2; ++number) {
    const Part &part = parts[number];
    AffineExpr line = warp[number] * getTile(number);
    AffineExpr step = constant(0);
    if (!part.stepsFirst && unit == 4) {
      // One element for each lane, read without ldmatrix.
      line = line + lane.floorDiv(4);
      step = lane % 4;
    } else {
      AffineExpr low = lane.floorDiv(8) % 2, high = lane.floorDiv(16);
      AffineExpr lineBlock = number == 0 ? low : high;
      AffineExpr stepBlock = number == 0 ? high : low;
      line = line + lineBlock * 8;
      step = stepBlock * unit;
      if (part.stepsFirst)
        line = line + lane % 8;
      else
        step = step + lane % 8;
    }
    fragment[number] = addValue(part.stepsFirst ? line * part.pitch + step
                                                : step * part.pitch + line,
                                part.size);
  }
}

/// 16 rows or columns from `line` on, at the steps of an instruction: four
/// registers, ordered as the matrices of ldmatrix.
Value TensorCoreKernelEmitter::emitFragment(unsigned number, int64_t line,
                                            int64_t step, Value buffer) {
  const Part &part = parts[number];
  auto at = [&](int64_t lines, int64_t steps) {
    int64_t offset = part.stepsFirst ? lines * part.pitch + steps
                                     : steps * part.pitch + lines;
    return addOffset(b, index.emit(fragment[number] + offset), buffer,
                     part.size);
  };
  auto type = VectorType::get({4, 4 / (factorType.getIntOrFloatBitWidth() / 8)},
                              factorType);
  if (part.stepsFirst || unit == 8)
    return nvgpu::LdMatrixOp::create(b, type, part.memory,
                                     ValueRange(at(line, step)),
                                     /*transpose=*/!part.stepsFirst,
                                     /*numTiles=*/4);
  SmallVector<Value> registers;
  for (int64_t i = 0; i < 4; ++i) {
    int64_t low = i % 2, high = i / 2;
    Value address = at(line + 8 * (number == 0 ? low : high),
                       step + 4 * (number == 0 ? high : low));
    Value element = memref::LoadOp::create(b, part.memory, address);
    registers.push_back(vector::BroadcastOp::create(
        b, VectorType::get({1}, factorType), element));
  }
  return emitVector(registers);
}

/// The vector of `registers`, which are vectors.
Value TensorCoreKernelEmitter::emitVector(ArrayRef<Value> registers) {
  auto inner = cast<VectorType>(registers.front().getType());
  auto type = VectorType::get(
      {static_cast<int64_t>(registers.size()), inner.getDimSize(0)},
      factorType);
  Value result = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (auto [i, value] : llvm::enumerate(registers))
    result = vector::InsertOp::create(
        b, value, result, ArrayRef<int64_t>{static_cast<int64_t>(i)});
  return result;
}

/// Adds the products of one block of steps. Sums are ordered by rows, each
/// those of 16 rows and 8 columns.
SmallVector<Value> TensorCoreKernelEmitter::emitProducts(ValueRange sums,
                                                         Value buffer) {
  SmallVector<Value> results(sums);
  int64_t perRow = getTile(1) / 8;
  for (int64_t step = 0; step < depth; step += instructionSteps) {
    SmallVector<Value> rows, columns;
    for (int64_t row = 0; row < getTile(0); row += 16)
      rows.push_back(emitFragment(0, row, step, buffer));
    for (int64_t column = 0; column < getTile(1); column += 16) {
      Value both = emitFragment(1, column, step, buffer);
      for (int64_t half = 0; half < 2; ++half) {
        Value first =
            vector::ExtractOp::create(b, both, ArrayRef<int64_t>{2 * half});
        Value second =
            vector::ExtractOp::create(b, both, ArrayRef<int64_t>{2 * half + 1});
        columns.push_back(emitVector({first, second}));
      }
    }
    for (auto [i, row] : llvm::enumerate(rows))
      for (auto [j, column] : llvm::enumerate(columns)) {
        Value &sum = results[i * perRow + j];
        sum = nvgpu::MmaSyncOp::create(
            b, row, column, sum, ArrayRef<int64_t>{16, 8, instructionSteps},
            /*tf32Enabled=*/unit == 4);
      }
  }
  return results;
}

/// Multiplies one block of steps while those behind it are copied.
SmallVector<Value> TensorCoreKernelEmitter::emitSteps(ValueRange sums) {
  int64_t stages = schedule.getStages(), ahead = stages - 1;
  Value token;
  for (int64_t i = 0; i < ahead; ++i) {
    Value buffer = i ? index.createConstant(i) : Value();
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
  auto type = VectorType::get({2, 2}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> sums(getTile(0) / 16 * (getTile(1) / 8), zero);
  finish(emitSteps(sums));
}

/// Stores the two neighbours of `sums` in row `row`, from `column` on.
void TensorCoreKernelEmitter::emitPair(Value sums, unsigned half,
                                       AffineExpr row, AffineExpr column) {
  for (int64_t i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(b);
    if (Value exists = index.emitGuard({column + i, parts[1].numLines})) {
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value value =
        vector::ExtractOp::create(b, sums, ArrayRef<int64_t>{half, i});
    if (double divisor = coordinates.getMeanDivisor(); divisor != 1)
      value = arith::DivFOp::create(b, value, createConstant(divisor));
    SmallVector<AffineExpr> axes(coordinates.numOutputs);
    auto set = [&](ArrayRef<unsigned> list, ArrayRef<AffineExpr> digits) {
      for (auto [axis, digit] : llvm::zip_equal(list, digits))
        axes[axis] = digit;
    };
    set(view.batches, batch);
    set(parts[0].axes, delinearize(row, getExtents(parts[0].axes)));
    set(parts[1].axes, delinearize(column + i, getExtents(parts[1].axes)));
    emitStore(linearize(axes, problem.output, b.getContext()), value);
  }
}

void TensorCoreKernelEmitter::finish(ArrayRef<Value> sums) {
  auto getFirst = [&](unsigned number) {
    const Part &part = parts[number];
    return part.begin * (part.stepsFirst ? 1 : unit) +
           warp[number] * getTile(number);
  };
  for (int64_t row = 0; row < getTile(0); row += 16)
    for (int64_t column = 0; column < getTile(1); column += 8) {
      for (unsigned half = 0; half < 2; ++half) {
        AffineExpr line = getFirst(0) + lane.floorDiv(4) + (row + 8 * half);
        AffineExpr position = getFirst(1) + lane % 4 * 2 + column;
        OpBuilder::InsertionGuard guard(b);
        if (Value exists = index.emitGuard({line, parts[0].numLines})) {
          auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
          b.setInsertionPointToStart(branch.thenBlock());
        }
        emitPair(sums.front(), half, line, position);
      }
      sums = sums.drop_front();
    }
}

void kas::emitTensorCoreKernel(OpBuilder &builder, Location loc,
                               const GPUKernelProblem &problem,
                               GPUScheduleAttr schedule,
                               const LaunchShape &launch,
                               gpu::GPUFuncOp kernel) {
  TensorCoreKernelEmitter(builder, loc, problem, schedule, launch, kernel)
      .emit();
}
