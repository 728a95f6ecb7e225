//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that stage two matrices through workgroup memory: for sums of
// products.
//
// Source: Kerr et al., "CUTLASS: Fast Linear Algebra in CUDA C++", NVIDIA 2017
// (tiles of blocks and threads, double buffering), with the addresses of any
// operator where that has those of a matrix (implicit matrix product: Chetlur
// et al., "cuDNN: Efficient Primitives for Deep Learning", 2014, section 3).
// The tiles of a kernel:
//       columns (data)          A block computes block[0] x block[1] sums. For
//      +--------------+         `depth` steps it copies the parts of both
//   r  |  block       |         matrices to workgroup memory, step-major:
//   o  |   +------+   |           left [depth][block[0] + padding]
//   w  |   | tile |   |           right[depth][block[1] + padding]
//   s  |   +------+   |         A thread multiplies tile[0] rows with tile[1]
//      +--------------+         columns of them, in registers.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/MatrixView.h"
#include "KernelEmitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Elements of one matrix that a block copies for `depth` steps. Thread t
/// copies the vectors t, t + threads, ... of the block's part.
struct Side {
  /// Tensors whose product it is, and the axes that number its lines through.
  ArrayRef<unsigned> tensors;
  ArrayRef<unsigned> axes;
  int64_t numLines, blockLines;
  /// The part is `depth` lines of `blockLines` and some padding.
  int64_t pitch;
  /// Whether neighbouring threads copy neighbouring steps, not lines.
  bool stepsFirst;
  /// Elements of a vector, neighbours along the lines or the steps.
  int64_t copyWidth;
  Value memory;
  /// The first line of the block.
  AffineExpr begin;
  /// For each vector that a thread copies: the place of its first element in
  /// the part.
  SmallVector<AffineExpr> lines, steps;
  /// Whether the thread has the last of these; null: always.
  Value hasLast;
};

/// Emits the body of one kernel. Lines are rows on the left side and columns on
/// the right one.
class StagedKernelEmitter : GPUKernelEmitter {
public:
  StagedKernelEmitter(OpBuilder &builder, Location loc,
                      const GPUKernelProblem &problem, GPUScheduleAttr schedule,
                      const LaunchShape &launch, gpu::GPUFuncOp kernel)
      : GPUKernelEmitter(builder, loc, problem, schedule, launch,
                         kernel.getArguments()),
        kernel(kernel), coordinates(problem.coordinates),
        view(*MatrixView::get(coordinates)), depth(schedule.getDepth()) {
    view.orderSteps(coordinates, depth);
    numSteps = MatrixView::getExtent(coordinates, view.steps);
    numBlocks = llvm::divideCeil(numSteps, depth);
    // The widest vectors that divide the register tile: SPIR-V has at most four
    // lanes.
    width = {1, 1};
    for (unsigned i = 0; i < 2; ++i)
      for (int64_t lanes : {2, 4})
        if (schedule.getTile()[i] % lanes == 0)
          width[i] = lanes;
  }

  void emit();

private:
  int64_t getTile(unsigned i) const { return schedule.getTile()[i]; }
  int64_t getBlock(unsigned i) const { return schedule.getBlock()[i]; }

  /// Sets both sides, and which batch, rows, columns and elements of the copies
  /// belong to this block and thread.
  void addSides();
  Side makeSide(unsigned number, ArrayRef<unsigned> tensors,
                ArrayRef<unsigned> axes);
  void addCopies(Side &side);
  int64_t getCopyWidth(const Side &side) const;

  /// The axes at step `step` of block `block` of steps.
  void setSteps(SmallVectorImpl<AffineExpr> &axes, AffineExpr block,
                AffineExpr step) const;
  /// What thread-local copy `i` of `side` reads for block `block` of steps.
  Value emitElements(const Side &side, unsigned i, AffineExpr block);
  /// All copies of this thread for one block of steps, in registers.
  SmallVector<Value> emitLoads(AffineExpr block);
  void emitCopied(const Side &side, Value values, Value address);
  /// Stores what `emitLoads` gave to workgroup memory, in half `buffer` (0 or
  /// 1) of it; null: there is one half only.
  void emitStores(ArrayRef<Value> values, Value buffer);
  SmallVector<Value> emitProducts(ValueRange sums, Value buffer);
  SmallVector<Value> emitOnePhase(ValueRange sums);
  SmallVector<Value> emitTwoPhases(ValueRange sums);
  /// Elements of the result that one store writes along a side.
  int64_t getStoreWidth(unsigned side) const;
  /// The sum of one row and one column of the thread's tile.
  Value getSum(ArrayRef<Value> sums, int64_t row, int64_t column);
  SmallVector<int64_t> getExtents(ArrayRef<unsigned> axes) const {
    return llvm::map_to_vector(
        axes, [&](unsigned axis) { return coordinates.axes[axis].extent; });
  }
  void finish(ArrayRef<Value> sums);

  /// The first of the lanes number `i` of this thread in its block.
  AffineExpr getLine(unsigned side, int64_t i) const {
    // Vectors of a tile are interleaved among threads: those of one subgroup
    // read consecutive vectors, which avoids bank conflicts. With 8 threads,
    // width 4 and a tile of 8, thread 1 has lines 4 to 7 and 36 to 39.
    int64_t groups = getBlock(side) / getTile(side);
    return threadIndex[side] * width[side] +
           (i / width[side]) * groups * width[side] + i % width[side];
  }
  /// Of `lanes` elements of workgroup memory that begin at a multiple of
  /// `lanes` in a line.
  llvm::MaybeAlign getAlignment(const Side &side, int64_t lanes) const {
    // Lines begin at multiples of a vector where their lengths are such.
    if (side.pitch % lanes != 0)
      return std::nullopt;
    return llvm::Align(lanes * computeType.getIntOrFloatBitWidth() / 8);
  }
  Value emitVector(const Side &side, AffineExpr address, Value offset,
                   int64_t lanes);

  gpu::GPUFuncOp kernel;
  const Coordinates &coordinates;
  MatrixView view;
  int64_t depth, numSteps, numBlocks;
  /// Lanes of the vectors in which rows and columns are read.
  std::array<int64_t, 2> width;
  AffineExpr thread;
  std::array<AffineExpr, 2> threadIndex;
  SmallVector<AffineExpr> batch;
  Side left, right;
};

} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Side StagedKernelEmitter::makeSide(unsigned number, ArrayRef<unsigned> tensors,
                                   ArrayRef<unsigned> axes) {
  Side side;
  side.tensors = tensors;
  side.axes = axes;
  side.numLines = MatrixView::getExtent(coordinates, axes);
  side.blockLines = getBlock(number);
  side.pitch = side.blockLines + schedule.getPadding();
  // Threads follow the dimension that is contiguous in the tensors, so that
  // loads coalesce; lines win where both are.
  side.stepsFirst =
      !isContiguous(tensors, axes) && isContiguous(tensors, view.steps);
  side.copyWidth = getCopyWidth(side);
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  // With two stages, two halves of the same memory.
  auto type = MemRefType::get({schedule.getStages() * depth * side.pitch},
                              computeType, MemRefLayoutAttrInterface(), space);
  side.memory = kernel.addWorkgroupAttribution(type, b.getLoc());
  return side;
}

/// Vectors of four where that leaves no thread without one, or nothing but one
/// access each; none of products of several tensors.
int64_t StagedKernelEmitter::getCopyWidth(const Side &side) const {
  std::optional<unsigned> axis =
      getInnerAxis(side.stepsFirst ? ArrayRef(view.steps) : side.axes);
  // Products of several weights are multiplied element by element.
  if (!axis || side.tensors.size() != 1)
    return 1;
  int64_t width = getReadWidth(side.tensors.front(), *axis, 4);
  int64_t fast = side.stepsFirst ? depth : side.blockLines;
  while (fast % width != 0 ||
         (width > 1 && side.blockLines * depth < width * launch.block[0]))
    width /= 2;
  return width;
}

void StagedKernelEmitter::addCopies(Side &side) {
  int64_t threads = launch.block[0];
  // Vectors of this side in a block of steps.
  int64_t elements = side.blockLines * depth / side.copyWidth;
  int64_t copies = llvm::divideCeil(elements, threads);
  for (int64_t i = 0; i < copies; ++i) {
    AffineExpr element = thread + i * threads;
    if ((i + 1) * threads > elements) {
      // Threads without a vector copy the last one, and do not store it.
      Value position = index.emit(element);
      side.hasLast =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, position,
                                index.createConstant(elements));
      Value inside = arith::MinUIOp::create(b, position,
                                            index.createConstant(elements - 1));
      element = index.add(inside, {i * threads, elements - 1});
    }
    int64_t fast = (side.stepsFirst ? depth : side.blockLines) / side.copyWidth;
    int64_t slow = side.stepsFirst ? side.blockLines : depth;
    // Values of their own: what is divided is divided once.
    auto add = [&](AffineExpr expr, int64_t extent) {
      return index.add(index.emit(index.simplify(expr)), {0, extent - 1});
    };
    AffineExpr low = add(element % fast, fast) * side.copyWidth;
    AffineExpr high = add(element.floorDiv(fast), slow);
    side.lines.push_back(side.stepsFirst ? high : low);
    side.steps.push_back(side.stepsFirst ? low : high);
  }
}

void StagedKernelEmitter::addSides() {
  left = makeSide(0, view.left, view.rows);
  right = makeSide(1, view.right, view.columns);
  int64_t numBatches = MatrixView::getExtent(coordinates, view.batches);
  auto count = [](const Side &side) -> int64_t {
    return llvm::divideCeil(side.numLines, side.blockLines);
  };
  SmallVector<int64_t> counts{numBatches, count(left), count(right)};
  int64_t used = counts[0] * counts[1] * counts[2];
  SmallVector<AffineExpr> digits =
      delinearize(addRepeatedBlockId(used), counts);
  for (AffineExpr &digit : digits)
    digit = index.simplify(digit);
  auto add = [&](AffineExpr expr, int64_t extent) {
    return index.add(index.emit(expr), {0, extent - 1});
  };
  AffineExpr batchNumber = add(digits[0], counts[0]);
  left.begin = add(digits[1], counts[1]) * left.blockLines;
  right.begin = add(digits[2], counts[2]) * right.blockLines;
  SmallVector<int64_t> extents;
  for (unsigned axis : view.batches)
    extents.push_back(coordinates.axes[axis].extent);
  batch = delinearize(batchNumber, extents);

  thread = addThreadId();
  int64_t across = getBlock(1) / getTile(1), down = getBlock(0) / getTile(0);
  threadIndex[0] = add(thread.floorDiv(across), down);
  threadIndex[1] = add(thread % across, across);
  addCopies(left);
  addCopies(right);
}

//===----------------------------------------------------------------------===//
// From the tensors to workgroup memory
//===----------------------------------------------------------------------===//

void StagedKernelEmitter::setSteps(SmallVectorImpl<AffineExpr> &axes,
                                   AffineExpr block, AffineExpr step) const {
  // Steps are numbered through all reductions, the last one fastest.
  SmallVector<int64_t> extents;
  for (unsigned axis : view.steps)
    extents.push_back(coordinates.axes[axis].extent);
  SmallVector<AffineExpr> digits;
  if (!extents.empty() && extents.back() % depth == 0) {
    // All steps of a block have the same outer indices.
    SmallVector<int64_t> blocks(extents);
    blocks.back() /= depth;
    digits = delinearize(block, blocks);
    digits.back() = digits.back() * depth + step;
  } else {
    digits = delinearize(block * depth + step, extents);
  }
  for (auto [axis, digit] : llvm::zip_equal(view.steps, digits))
    axes[axis] = digit;
}

/// `copyWidth` elements as a vector, or one by itself.
Value StagedKernelEmitter::emitElements(const Side &side, unsigned i,
                                        AffineExpr block) {
  AffineExpr zero = b.getAffineConstantExpr(0);
  SmallVector<AffineExpr> axes(coordinates.axes.size(), zero);
  for (auto [axis, expr] : llvm::zip_equal(view.batches, batch))
    axes[axis] = expr;
  // A line beyond the matrix and a step beyond the last block count as zero.
  AffineExpr line = side.begin + side.lines[i];
  AffineExpr step = block * depth + side.steps[i];
  SmallVector<Value> conditions{index.emitGuard({line, side.numLines}),
                                index.emitGuard({step, numSteps})};
  SmallVector<int64_t> extents;
  for (unsigned axis : side.axes)
    extents.push_back(coordinates.axes[axis].extent);
  for (auto [axis, digit] :
       llvm::zip_equal(side.axes, delinearize(line, extents)))
    axes[axis] = digit;
  setSteps(axes, block, side.steps[i]);
  auto substitute = [&](AffineExpr expr) { return expr.replaceDims(axes); };
  // Guards are checked once, with the data. Where one does not hold, a weight
  // is multiplied with zero, but its address may be outside.
  bool hasData = side.tensors.front() == 0;
  if (hasData)
    for (const Guard &guard : coordinates.guards)
      conditions.push_back(
          index.emitGuard({substitute(guard.expr), guard.extent}));
  Value condition = emitAnd(conditions);
  Value product;
  for (unsigned tensor : side.tensors) {
    Value value =
        emitLoad(tensor, llvm::map_to_vector(getIndices(tensor), substitute),
                 condition, /*isSufficient=*/hasData, side.copyWidth);
    product = product ? Value(arith::MulFOp::create(b, product, value)) : value;
  }
  if (!condition)
    return product;
  Value nothing =
      arith::ConstantOp::create(b, b.getZeroAttr(product.getType()));
  // SPIR-V selects vectors by vectors.
  if (side.copyWidth > 1)
    condition = vector::BroadcastOp::create(
        b, VectorType::get({side.copyWidth}, b.getI1Type()), condition);
  return arith::SelectOp::create(b, condition, product, nothing);
}

SmallVector<Value> StagedKernelEmitter::emitLoads(AffineExpr block) {
  SmallVector<Value> values;
  for (const Side *side : {&left, &right})
    for (unsigned i = 0; i < side->lines.size(); ++i)
      values.push_back(emitElements(*side, i, block));
  return values;
}

/// Adds the offset of a buffer to an address; null: none.
static Value addOffset(ImplicitLocOpBuilder &b, Value address, Value offset) {
  return offset ? Value(arith::AddIOp::create(b, address, offset)) : address;
}

/// Stores what was copied as a vector to workgroup memory.
void StagedKernelEmitter::emitCopied(const Side &side, Value values,
                                     Value address) {
  if (side.copyWidth == 1) {
    memref::StoreOp::create(b, values, side.memory, address);
  } else if (!side.stepsFirst) {
    vector::StoreOp::create(b, values, side.memory, ValueRange(address),
                            /*nontemporal=*/false,
                            getAlignment(side, side.copyWidth));
  } else {
    // Neighbouring steps of one line are `pitch` apart in workgroup memory.
    for (int64_t lane = 0; lane < side.copyWidth; ++lane) {
      Value at =
          lane == 0 ? address
                    : Value(arith::AddIOp::create(
                          b, address, index.createConstant(lane * side.pitch)));
      memref::StoreOp::create(
          b, vector::ExtractOp::create(b, values, ArrayRef<int64_t>{lane}),
          side.memory, at);
    }
  }
}

void StagedKernelEmitter::emitStores(ArrayRef<Value> values, Value buffer) {
  for (const Side *side : {&left, &right}) {
    Value offset;
    if (buffer)
      offset = arith::MulIOp::create(b, buffer,
                                     index.createConstant(depth * side->pitch));
    for (unsigned i = 0; i < side->lines.size(); ++i) {
      Value address = addOffset(
          b, index.emit(side->steps[i] * side->pitch + side->lines[i]), offset);
      bool isLast = i + 1 == side->lines.size();
      OpBuilder::InsertionGuard guard(b);
      if (isLast && side->hasLast) {
        auto branch =
            scf::IfOp::create(b, side->hasLast, /*withElseRegion=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      emitCopied(*side, values.front(), address);
      values = values.drop_front();
    }
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value StagedKernelEmitter::emitVector(const Side &side, AffineExpr expr,
                                      Value offset, int64_t lanes) {
  Value address = addOffset(b, index.emit(expr), offset);
  if (lanes == 1)
    return memref::LoadOp::create(b, side.memory, address);
  return vector::LoadOp::create(b, VectorType::get({lanes}, computeType),
                                side.memory, ValueRange(address),
                                /*nontemporal=*/false,
                                getAlignment(side, lanes));
}

/// Adds the products of one block of steps, a step at a time. Sums are ordered
/// by rows; each is a vector of columns.
SmallVector<Value> StagedKernelEmitter::emitProducts(ValueRange sums,
                                                     Value buffer) {
  auto loop = scf::ForOp::create(b, index.createConstant(0),
                                 index.createConstant(depth),
                                 index.createConstant(1), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  AffineExpr step = index.add(loop.getInductionVar(), {0, depth - 1});
  // Vectors of rows and of columns at this step; each is read once and used for
  // all sums of the tile.
  std::array<SmallVector<Value>, 2> vectors;
  const std::array<const Side *, 2> sides{&left, &right};
  for (auto [number, side] : llvm::enumerate(sides)) {
    Value offset;
    if (buffer)
      offset = arith::MulIOp::create(b, buffer,
                                     index.createConstant(depth * side->pitch));
    for (int64_t i = 0; i < getTile(number); i += width[number])
      vectors[number].push_back(
          emitVector(*side, step * side->pitch + getLine(number, i), offset,
                     width[number]));
  }
  // An outer product: each row element times all vectors of columns.
  SmallVector<Value> results;
  for (int64_t row = 0; row < getTile(0); ++row) {
    Value factor = vectors[0][row / width[0]];
    if (width[0] > 1)
      factor = vector::ExtractOp::create(b, factor,
                                         ArrayRef<int64_t>{row % width[0]});
    if (width[1] > 1)
      factor = vector::BroadcastOp::create(
          b, VectorType::get({width[1]}, computeType), factor);
    for (Value columns : vectors[1])
      results.push_back(math::FmaOp::create(
          b, factor, columns, loop.getRegionIterArgs()[results.size()]));
  }
  scf::YieldOp::create(b, results);
  return SmallVector<Value>(loop.getResults());
}

/// Copies a block of steps, then multiplies it, with a barrier after each.
/// Takes half of the workgroup memory of two stages.
SmallVector<Value> StagedKernelEmitter::emitOnePhase(ValueRange sums) {
  auto loop = scf::ForOp::create(b, index.createConstant(0),
                                 index.createConstant(numBlocks),
                                 index.createConstant(1), sums);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  AffineExpr block = index.add(loop.getInductionVar(), {0, numBlocks - 1});
  emitStores(emitLoads(block), Value());
  gpu::BarrierOp::create(b);
  SmallVector<Value> results = emitProducts(loop.getRegionIterArgs(), Value());
  // No thread may overwrite what another one still reads.
  gpu::BarrierOp::create(b);
  scf::YieldOp::create(b, results);
  return SmallVector<Value>(loop.getResults());
}

/// Loads a block of steps, multiplies the one before, then stores what was
/// loaded to the other half of the memory: loads take time while products are
/// computed, and there is one barrier for each block.
SmallVector<Value> StagedKernelEmitter::emitTwoPhases(ValueRange sums) {
  emitStores(emitLoads(b.getAffineConstantExpr(0)), Value());
  gpu::BarrierOp::create(b);
  SmallVector<Value> carried(sums);
  Value two = index.createConstant(2);
  // The loop computes all blocks but the last, which has no successor to load.
  if (numBlocks > 1) {
    auto loop = scf::ForOp::create(b, index.createConstant(0),
                                   index.createConstant(numBlocks - 1),
                                   index.createConstant(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar();
    AffineExpr block = index.add(number, {0, numBlocks - 2});
    // Issued first, so that the latency of memory is hidden by the products.
    SmallVector<Value> loaded = emitLoads(block + 1);
    Value own = arith::RemUIOp::create(b, number, two);
    SmallVector<Value> results = emitProducts(loop.getRegionIterArgs(), own);
    Value other = arith::SubIOp::create(b, index.createConstant(1), own);
    // The other half was read in the iteration before, which a barrier ended:
    // no second barrier is needed.
    emitStores(loaded, other);
    gpu::BarrierOp::create(b);
    scf::YieldOp::create(b, results);
    carried = loop.getResults();
  }
  return emitProducts(carried, index.createConstant((numBlocks - 1) % 2));
}

void StagedKernelEmitter::emit() {
  OpBuilder::InsertionGuard guard(b);
  addSides();
  Value zero = createConstant(0);
  if (width[1] > 1)
    zero = vector::BroadcastOp::create(
        b, VectorType::get({width[1]}, computeType), zero);
  SmallVector<Value> sums(getTile(0) * getTile(1) / width[1], zero);
  finish(schedule.getStages() == 1 ? emitOnePhase(sums) : emitTwoPhases(sums));
}

/// How many rows (0) or columns (1) of a thread are stored at once: the lanes
/// of a vector lie in one line, and so they do in the result.
int64_t StagedKernelEmitter::getStoreWidth(unsigned side) const {
  std::optional<unsigned> axis =
      getInnerAxis(side == 0 ? view.rows : view.columns);
  if (!axis)
    return 1;
  SmallVector<AffineExpr> axes;
  for (unsigned i = 0; i < coordinates.numOutputs; ++i)
    axes.push_back(getAffineDimExpr(i, b.getContext()));
  return getVectorWidth(linearize(axes, problem.output, b.getContext()), *axis,
                        width[side]);
}

Value StagedKernelEmitter::getSum(ArrayRef<Value> sums, int64_t row,
                                  int64_t column) {
  Value value = sums[(row * getTile(1) + column) / width[1]];
  if (width[1] == 1)
    return value;
  return vector::ExtractOp::create(b, value,
                                   ArrayRef<int64_t>{column % width[1]});
}

void StagedKernelEmitter::finish(ArrayRef<Value> sums) {
  int64_t down = getStoreWidth(0), across = getStoreWidth(1);
  // Vectors of the result run along one side only, the one with more lanes.
  (across > down ? down : across) = 1;
  for (int64_t row = 0; row < getTile(0); row += down) {
    AffineExpr line = left.begin + getLine(0, row);
    Value hasRow = index.emitGuard({line, left.numLines});
    for (int64_t column = 0; column < getTile(1); column += across) {
      AffineExpr position = right.begin + getLine(1, column);
      Value exists =
          emitAnd({hasRow, index.emitGuard({position, right.numLines})});
      OpBuilder::InsertionGuard guard(b);
      // A vector is whole or not there: its width divides the extent of its
      // axis.
      if (exists) {
        auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      SmallVector<Value> lanes;
      for (int64_t i = 0; i < down * across; ++i)
        lanes.push_back(getSum(sums, row + i / across, column + i % across));
      Value value = lanes.front();
      if (lanes.size() > 1)
        value = vector::FromElementsOp::create(
            b, VectorType::get({down * across}, computeType), lanes);
      emitResult(value, {{view.batches, batch},
                         {view.rows, delinearize(line, getExtents(view.rows))},
                         {view.columns,
                          delinearize(position, getExtents(view.columns))}});
    }
  }
}

void kas::codegen::emitStagedKernel(OpBuilder &builder, Location loc,
                                    const GPUKernelProblem &problem,
                                    GPUScheduleAttr schedule,
                                    const LaunchShape &launch,
                                    gpu::GPUFuncOp kernel) {
  StagedKernelEmitter(builder, loc, problem, schedule, launch, kernel).emit();
}
