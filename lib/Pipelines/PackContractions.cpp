//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers contractions to packed panels and register tiles: the columns of a
// tile are copied once to consecutive memory, for all reductions, and then
// multiplied with all rows, a few rows and vectors at a time, whose sums stay
// in registers. After Goto and van de Geijn: "Anatomy of High-Performance
// Matrix Multiplication", ACM TOMS 34(3), 2008, sections 3 to 5; a convolution
// needs no other treatment than a matrix product because the packing follows
// any strides.
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "kas/Pipelines/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "kas-pack-contractions"

namespace kas {
#define GEN_PASS_DEF_PACKCONTRACTIONS
#include "kas/Pipelines/Passes.h.inc"
} // namespace kas

using namespace kas;
using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// Registers of the target.
struct Target {
  int64_t lanes;
  int64_t accumulators;
};

/// How a contraction is cut.
struct Plan {
  /// Position in `columns` of the loop that is cut into blocks; the loops
  /// behind it are in the tile as a whole, those before it outside.
  unsigned blockedColumn = 0;
  int64_t columnBlock = 1;
  /// Columns of a tile, and with those that fill the last vector.
  int64_t tileColumns = 1, paddedColumns = 1;
  /// Iterations of the outermost reduction that are packed at once.
  int64_t reductionBlock = 1;
  /// All reductions of one block.
  int64_t panelDepth = 1;
  /// Registers: rows times vectors.
  int64_t registerRows = 1, registerVectors = 1;
  /// In how many groups the rows are cut, so that all threads find work.
  int64_t rowGroups = 1;
};

int64_t largestDivisor(int64_t value, int64_t limit) {
  for (int64_t divisor = std::min(value, limit); divisor > 1; --divisor)
    if (value % divisor == 0)
      return divisor;
  return 1;
}

/// The least time by a simple model: an instruction per product or load, and
/// at least the latency of a sum.
void chooseRegisters(Plan &plan, int64_t rows, int64_t vectors,
                     const Target &target) {
  constexpr int64_t latency = 8;
  int64_t best = std::numeric_limits<int64_t>::max();
  auto time = [&](int64_t r, int64_t v) {
    return r && v ? std::max({r * v, latency, 2 * (r + v)}) + 1 : 0;
  };
  for (int64_t v = 1; v <= std::min<int64_t>(4, vectors); ++v)
    for (int64_t r = 1; r <= std::min<int64_t>(12, rows); ++r) {
      if (r * v > target.accumulators)
        continue;
      int64_t total = (rows / r) * (vectors / v) * time(r, v) +
                      (rows / r) * time(r, vectors % v) +
                      (vectors / v) * time(rows % r, v) +
                      time(rows % r, vectors % v);
      if (total < best) {
        best = total;
        plan.registerRows = r;
        plan.registerVectors = v;
      }
    }
}

/// Cuts the columns into tiles of at most `maxColumns` that lie together in the
/// output. False if none is large enough to pay.
bool chooseColumns(Plan &plan, const Contraction &contraction,
                   const Target &target) {
  constexpr int64_t maxColumns = 128;
  ArrayRef<unsigned> columns = contraction.columns;
  int64_t inner = 1;
  plan.blockedColumn = columns.size() - 1;
  for (unsigned position = columns.size(); position-- > 0;) {
    unsigned dim = columns[position];
    int64_t extent = contraction.loops[dim].extent;
    // Only what is contiguous in the output can be stored as vectors.
    if (contraction.output.strides[dim] != inner)
      break;
    int64_t block = largestDivisor(extent, maxColumns / inner);
    plan.blockedColumn = position;
    plan.columnBlock = block;
    inner *= block;
    if (block != extent)
      break;
  }
  plan.tileColumns = inner;
  plan.paddedColumns = llvm::alignTo(inner, target.lanes);
  return plan.tileColumns * 2 >= target.lanes;
}

FailureOr<Plan> makePlan(const Contraction &contraction, const Target &target,
                         int64_t threads) {
  constexpr int64_t maxPanelElements = 96 * 1024;
  Plan plan;
  if (!chooseColumns(plan, contraction, target))
    return failure();
  int64_t depth = contraction.getExtent(contraction.reductions);
  int64_t outer = contraction.loops[contraction.reductions.front()].extent;
  int64_t inner = depth / outer;
  plan.reductionBlock = largestDivisor(
      outer,
      std::max<int64_t>(1, maxPanelElements / (plan.paddedColumns * inner)));
  plan.panelDepth = plan.reductionBlock * inner;
  if (plan.panelDepth * plan.paddedColumns > 4 * maxPanelElements)
    return failure();

  unsigned rowLoop = contraction.rows.back();
  int64_t rows = contraction.loops[rowLoop].extent;
  int64_t items = contraction.getExtent(contraction.batches) *
                  contraction.getExtent(contraction.columns) / plan.tileColumns;
  // Every group packs again: not more groups than needed, nor small ones.
  while (items * plan.rowGroups < threads && rows % (plan.rowGroups * 2) == 0 &&
         rows / plan.rowGroups >= 32)
    plan.rowGroups *= 2;
  chooseRegisters(plan, rows / plan.rowGroups,
                  plan.paddedColumns / target.lanes, target);
  return plan;
}

//===----------------------------------------------------------------------===//
// The code
//===----------------------------------------------------------------------===//

/// A loop over reductions around the products: how far its step moves in the
/// panel, in rows, and in each scalar input.
struct KernelLoop {
  int64_t extent = 1, panelRows = 1;
  SmallVector<int64_t> scalarStrides;
};

/// Emits the loops of one contraction.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, const Contraction &contraction,
          const Plan &plan, const Target &target, int64_t threads)
      : builder(builder), loc(loc), contraction(contraction), plan(plan),
        target(target), threads(threads),
        vectorType(VectorType::get({target.lanes}, builder.getF32Type())),
        indices(contraction.loops.size()) {
    makeKernelLoops();
  }

  void emit();

private:
  using Body = function_ref<void(Value)>;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// `map` of `operands`, folded where it can be.
  Value apply(AffineExpr expr, ArrayRef<Value> operands) {
    auto map = AffineMap::get(operands.size(), 0, expr);
    return affine::makeComposedAffineApply(builder, loc, map,
                                           getAsOpFoldResult(operands));
  }
  AffineExpr dim(unsigned position) {
    return builder.getAffineDimExpr(position);
  }

  /// Calls `body` in a loop from 0 below `extent`; without one for extent 1.
  void loop(int64_t extent, int64_t step, Body body) {
    if (extent <= step)
      return body(constant(0));
    auto op = scf::ForOp::create(builder, loc, constant(0), constant(extent),
                                 constant(step));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(op.getBody());
    body(op.getInductionVar());
  }
  /// Nested loops over `dims`, which get their indices.
  void loops(ArrayRef<unsigned> dims, function_ref<void()> body) {
    if (dims.empty())
      return body();
    loop(contraction.loops[dims.front()].extent, 1, [&](Value index) {
      indices[dims.front()] = index;
      loops(dims.drop_front(), body);
    });
  }

  /// All elements of the buffer behind `access` as one dimension.
  Value flatten(const StridedAccess &access) {
    auto type = MemRefType::get({access.size}, builder.getF32Type());
    return memref::ReinterpretCastOp::create(
        builder, loc, type, access.buffer, /*offset=*/0,
        ArrayRef<int64_t>{access.size}, ArrayRef<int64_t>{1});
  }
  /// The address at the current indices; loops without an index count as 0.
  Value address(const StridedAccess &access, int64_t offset = 0) {
    AffineExpr expr = builder.getAffineConstantExpr(access.base + offset);
    SmallVector<Value> operands;
    for (auto [stride, index] : llvm::zip_equal(access.strides, indices)) {
      if (!stride || !index)
        continue;
      expr = expr + dim(operands.size()) * stride;
      operands.push_back(index);
    }
    return apply(expr, operands);
  }

  void emitItems(Value first, Value step, Value panelBase);
  void emitItem(Value item, Value panelBase);
  void emitPacking(Value panelBase);
  void emitPackedRow(Value panelAddress);
  void emitRows(Value panelBase, Value rowBase);
  void emitVectors(Value panelBase, int64_t rows);
  void emitKernel(Value panelBase, Value column, int64_t rows, int64_t vectors,
                  bool last);
  void makeKernelLoops();
  SmallVector<Value> emitReduction(ArrayRef<KernelLoop> nest,
                                   Value panelAddress,
                                   ArrayRef<Value> scalarAddresses,
                                   ValueRange sums, int64_t rows,
                                   int64_t vectors);
  SmallVector<Value> emitProducts(Value panelAddress,
                                  ArrayRef<Value> scalarAddresses,
                                  ValueRange sums, int64_t rows,
                                  int64_t vectors);
  Value tailMask(int64_t lanes);

  OpBuilder &builder;
  Location loc;
  const Contraction &contraction;
  const Plan &plan;
  const Target &target;
  int64_t threads;
  VectorType vectorType;
  /// The index of each loop where it is known.
  SmallVector<Value> indices;
  Value panel, output;
  SmallVector<Value> vectorInputs, scalarInputs;
  SmallVector<KernelLoop> kernelLoops;
  int64_t numItems = 1;
};

} // namespace

/// A mask of the first `lanes` lanes.
Value Emitter::tailMask(int64_t lanes) {
  auto type = VectorType::get({target.lanes}, builder.getI1Type());
  return vector::ConstantMaskOp::create(builder, loc, type,
                                        ArrayRef<int64_t>{lanes});
}

void Emitter::emit() {
  output = flatten(contraction.output);
  for (const StridedAccess &input : contraction.vectorInputs)
    vectorInputs.push_back(flatten(input));
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarInputs.push_back(flatten(input));
  numItems = contraction.getExtent(contraction.batches) *
             contraction.getExtent(contraction.columns) / plan.tileColumns *
             plan.rowGroups;

  // One panel for each thread that may run at once. The last vector of a row
  // may reach beyond the panel.
  int64_t panelSize = plan.panelDepth * plan.paddedColumns + 4 * target.lanes;
  int64_t maxPanels = threads == 1 ? 1 : threads ? threads : 32;
  int64_t numPanels = std::min(numItems, maxPanels);
  auto type = MemRefType::get({numPanels * panelSize}, builder.getF32Type());
  panel = memref::AllocOp::create(builder, loc, type,
                                  builder.getI64IntegerAttr(64));
  if (numPanels == 1) {
    emitItems(constant(0), constant(1), constant(0));
  } else {
    auto parallel = scf::ParallelOp::create(
        builder, loc, ValueRange{constant(0)}, ValueRange{constant(numPanels)},
        ValueRange{constant(1)});
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(parallel.getBody());
    Value index = parallel.getInductionVars().front();
    emitItems(index, constant(numPanels), apply(dim(0) * panelSize, {index}));
  }
  memref::DeallocOp::create(builder, loc, panel);
}

/// The items `first`, `first + step`, ... one after the other.
void Emitter::emitItems(Value first, Value step, Value panelBase) {
  auto items =
      scf::ForOp::create(builder, loc, first, constant(numItems), step);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(items.getBody());
  emitItem(items.getInductionVar(), panelBase);
}

/// One tile of columns times one group of rows, for one batch.
void Emitter::emitItem(Value item, Value panelBase) {
  AffineExpr rest = dim(0);
  auto take = [&](int64_t extent) {
    AffineExpr index = rest % extent;
    rest = rest.floorDiv(extent);
    return index;
  };
  unsigned rowLoop = contraction.rows.back();
  int64_t groupRows = contraction.loops[rowLoop].extent / plan.rowGroups;
  Value rowBase = apply(take(plan.rowGroups) * groupRows, {item});
  unsigned blocked = contraction.columns[plan.blockedColumn];
  indices[blocked] =
      apply(take(contraction.loops[blocked].extent / plan.columnBlock) *
                plan.columnBlock,
            {item});
  for (unsigned column : llvm::reverse(
           ArrayRef(contraction.columns).take_front(plan.blockedColumn)))
    indices[column] = apply(take(contraction.loops[column].extent), {item});
  for (unsigned batch : llvm::reverse(contraction.batches))
    indices[batch] = apply(take(contraction.loops[batch].extent), {item});

  unsigned outer = contraction.reductions.front();
  loop(contraction.loops[outer].extent, plan.reductionBlock, [&](Value start) {
    indices[outer] = start;
    emitPacking(panelBase);
    indices[outer] = start;
    emitRows(panelBase, rowBase);
  });
}

/// Copies the products of the vector inputs at all reductions of the block and
/// all columns of the tile to the panel: a row of columns for each reduction.
void Emitter::emitPacking(Value panelBase) {
  ArrayRef<unsigned> reductions = contraction.reductions;
  ArrayRef<unsigned> columns =
      ArrayRef(contraction.columns).drop_front(plan.blockedColumn);
  Value reductionStart = indices[reductions.front()];
  Value columnStart = indices[columns.front()];
  // `offset` is the position in the panel in iterations of the loops so far.
  std::function<void(ArrayRef<unsigned>, Value, bool)> nest =
      [&](ArrayRef<unsigned> dims, Value offset, bool inRow) {
        if (dims.empty()) {
          if (inRow)
            return emitPackedRow(offset);
          return nest(
              columns,
              apply(dim(0) * plan.paddedColumns + dim(1), {offset, panelBase}),
              true);
        }
        unsigned loopDim = dims.front();
        bool isReductionStart = !inRow && loopDim == reductions.front();
        bool isColumnStart = inRow && loopDim == columns.front();
        // The innermost columns are copied as vectors.
        if (inRow && dims.size() == 1)
          return emitPackedRow(offset);
        int64_t extent = isReductionStart ? plan.reductionBlock
                         : isColumnStart  ? plan.columnBlock
                                          : contraction.loops[loopDim].extent;
        int64_t scale = 1;
        if (inRow)
          for (unsigned inner : dims.drop_front())
            scale *= contraction.loops[inner].extent;
        loop(extent, 1, [&](Value index) {
          Value start = isReductionStart ? reductionStart
                        : isColumnStart  ? columnStart
                                         : Value();
          indices[loopDim] =
              start ? apply(dim(0) + dim(1), {start, index}) : index;
          Value next = inRow ? apply(dim(0) + dim(1) * scale, {offset, index})
                             : apply(dim(0) * extent + dim(1), {offset, index});
          nest(dims.drop_front(), next, inRow);
          indices[loopDim] = start;
        });
      };
  nest(reductions, constant(0), false);
  // Whatever is inside of the tile starts at 0 again.
  for (unsigned reduction : reductions.drop_front())
    indices[reduction] = Value();
}

/// Copies the innermost columns, at the current indices.
void Emitter::emitPackedRow(Value panelAddress) {
  unsigned innermost = contraction.columns.back();
  int64_t extent = plan.blockedColumn + 1 == contraction.columns.size()
                       ? plan.columnBlock
                       : contraction.loops[innermost].extent;
  bool contiguous =
      llvm::all_of(contraction.vectorInputs, [&](const StridedAccess &access) {
        return access.strides[innermost] == 1;
      });
  if (contiguous) {
    for (int64_t done = 0; done < extent; done += target.lanes) {
      int64_t lanes = std::min(target.lanes, extent - done);
      Value product;
      for (auto [access, flat] :
           llvm::zip(contraction.vectorInputs, vectorInputs)) {
        Value index = address(access, done), value;
        if (lanes == target.lanes) {
          value = vector::LoadOp::create(builder, loc, vectorType, flat, index);
        } else {
          Value zeros = arith::ConstantOp::create(
              builder, loc, builder.getZeroAttr(vectorType));
          value = vector::MaskedLoadOp::create(builder, loc, vectorType, flat,
                                               index, tailMask(lanes), zeros);
        }
        product = product ? arith::MulFOp::create(builder, loc, product, value)
                          : value;
      }
      // The lanes behind the tail are overwritten by the next row.
      vector::StoreOp::create(builder, loc, product, panel,
                              apply(dim(0) + done, {panelAddress}));
    }
    return;
  }
  Value start = indices[innermost];
  loop(extent, 1, [&](Value index) {
    indices[innermost] = start ? apply(dim(0) + dim(1), {start, index}) : index;
    Value product;
    for (auto [access, flat] :
         llvm::zip(contraction.vectorInputs, vectorInputs)) {
      Value value = memref::LoadOp::create(builder, loc, flat, address(access));
      product =
          product ? arith::MulFOp::create(builder, loc, product, value) : value;
    }
    memref::StoreOp::create(builder, loc, product, panel,
                            apply(dim(0) + dim(1), {panelAddress, index}));
    indices[innermost] = start;
  });
}

/// All rows of the group, a register tile at a time.
void Emitter::emitRows(Value panelBase, Value rowBase) {
  ArrayRef<unsigned> rows = contraction.rows;
  unsigned rowLoop = rows.back();
  int64_t groupRows = contraction.loops[rowLoop].extent / plan.rowGroups;
  int64_t remainder = groupRows % plan.registerRows;
  loops(rows.drop_back(), [&] {
    loop(groupRows - remainder, plan.registerRows, [&](Value row) {
      indices[rowLoop] = apply(dim(0) + dim(1), {rowBase, row});
      emitVectors(panelBase, plan.registerRows);
    });
    if (remainder) {
      indices[rowLoop] = apply(dim(0) + (groupRows - remainder), {rowBase});
      emitVectors(panelBase, remainder);
    }
  });
}

/// All vectors of the tile for some rows.
void Emitter::emitVectors(Value panelBase, int64_t rows) {
  int64_t whole = plan.tileColumns / target.lanes;
  int64_t vectors = plan.paddedColumns / target.lanes;
  int64_t step = plan.registerVectors;
  // The last vector, if it is not full, is stored with a mask: not in a loop.
  int64_t looped = whole / step * step;
  if (looped)
    loop(looped, step, [&](Value vector) {
      emitKernel(panelBase, apply(dim(0) * target.lanes, {vector}), rows, step,
                 /*last=*/false);
    });
  if (vectors > looped)
    emitKernel(panelBase, constant(looped * target.lanes), rows,
               vectors - looped, /*last=*/true);
}

/// The loops that run inside of the registers: those of one reduction block,
/// joined where the scalar inputs allow it.
void Emitter::makeKernelLoops() {
  int64_t panelRows = plan.panelDepth;
  for (unsigned reduction : contraction.reductions) {
    KernelLoop loop;
    loop.extent = reduction == contraction.reductions.front()
                      ? plan.reductionBlock
                      : contraction.loops[reduction].extent;
    panelRows /= loop.extent;
    loop.panelRows = panelRows;
    for (const StridedAccess &input : contraction.scalarInputs)
      loop.scalarStrides.push_back(input.strides[reduction]);
    bool joins = !kernelLoops.empty() &&
                 llvm::all_of(llvm::zip(kernelLoops.back().scalarStrides,
                                        loop.scalarStrides),
                              [&](auto strides) {
                                auto [outer, inner] = strides;
                                return outer == inner * loop.extent;
                              });
    if (joins) {
      loop.extent *= kernelLoops.back().extent;
      kernelLoops.pop_back();
    }
    kernelLoops.push_back(std::move(loop));
  }
}

/// The sums of `rows` times `vectors` at `column` of the tile, from the output
/// to the output.
void Emitter::emitKernel(Value panelBase, Value column, int64_t rows,
                         int64_t vectors, bool last) {
  int64_t tail = plan.tileColumns % target.lanes;
  int64_t rowStride = contraction.output.strides[contraction.rows.back()];
  Value outputBase =
      apply(dim(0) + dim(1), {address(contraction.output), column});
  SmallVector<Value> sums, places;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v) {
      Value place =
          apply(dim(0) + (r * rowStride + v * target.lanes), {outputBase});
      places.push_back(place);
      bool masked = last && tail && v + 1 == vectors;
      if (!masked) {
        sums.push_back(
            vector::LoadOp::create(builder, loc, vectorType, output, place));
        continue;
      }
      Value zeros = arith::ConstantOp::create(builder, loc,
                                              builder.getZeroAttr(vectorType));
      sums.push_back(vector::MaskedLoadOp::create(
          builder, loc, vectorType, output, place, tailMask(tail), zeros));
    }

  Value panelStart = apply(dim(0) + dim(1), {panelBase, column});
  SmallVector<Value> scalarStarts;
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarStarts.push_back(address(input));
  sums =
      emitReduction(kernelLoops, panelStart, scalarStarts, sums, rows, vectors);

  for (auto [index, place] : llvm::enumerate(places)) {
    bool masked = last && tail && (index + 1) % vectors == 0;
    if (masked)
      vector::MaskedStoreOp::create(builder, loc, output, place, tailMask(tail),
                                    sums[index]);
    else
      vector::StoreOp::create(builder, loc, sums[index], output, place);
  }
}

/// Nested loops that carry the sums; inside, one step of all of them.
SmallVector<Value> Emitter::emitReduction(ArrayRef<KernelLoop> nest,
                                          Value panelAddress,
                                          ArrayRef<Value> scalarAddresses,
                                          ValueRange sums, int64_t rows,
                                          int64_t vectors) {
  if (nest.empty())
    return emitProducts(panelAddress, scalarAddresses, sums, rows, vectors);
  const KernelLoop &loop = nest.front();
  auto op = scf::ForOp::create(builder, loc, constant(0), constant(loop.extent),
                               constant(1), sums);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value index = op.getInductionVar();
  Value panelNext =
      apply(dim(0) + dim(1) * (loop.panelRows * plan.paddedColumns),
            {panelAddress, index});
  SmallVector<Value> scalarNext;
  for (auto [start, stride] : llvm::zip(scalarAddresses, loop.scalarStrides))
    scalarNext.push_back(apply(dim(0) + dim(1) * stride, {start, index}));
  scf::YieldOp::create(builder, loc,
                       emitReduction(nest.drop_front(), panelNext, scalarNext,
                                     op.getRegionIterArgs(), rows, vectors));
  return SmallVector<Value>(op.getResults());
}

SmallVector<Value> Emitter::emitProducts(Value panelAddress,
                                         ArrayRef<Value> scalarAddresses,
                                         ValueRange sums, int64_t rows,
                                         int64_t vectors) {
  unsigned rowLoop = contraction.rows.back();
  SmallVector<Value> columns, results;
  for (int64_t v = 0; v < vectors; ++v)
    columns.push_back(vector::LoadOp::create(
        builder, loc, vectorType, panel,
        apply(dim(0) + v * target.lanes, {panelAddress})));
  for (int64_t r = 0; r < rows; ++r) {
    Value product;
    for (auto [access, flat, start] :
         llvm::zip(contraction.scalarInputs, scalarInputs, scalarAddresses)) {
      Value factor = memref::LoadOp::create(
          builder, loc, flat,
          apply(dim(0) + r * access.strides[rowLoop], {start}));
      product = product ? arith::MulFOp::create(builder, loc, product, factor)
                        : factor;
    }
    Value row = vector::BroadcastOp::create(builder, loc, vectorType, product);
    for (int64_t v = 0; v < vectors; ++v)
      results.push_back(vector::FMAOp::create(builder, loc, row, columns[v],
                                              sums[r * vectors + v]));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct PackContractions : kas::impl::PackContractionsBase<PackContractions> {
  using PackContractionsBase::PackContractionsBase;

  void runOnOperation() override {
    // Half of the registers of AVX-512 hold sums comfortably, so do those of
    // narrower vectors.
    Target target{vectorBits / 32, vectorBits >= 512 ? 24 : 12};
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics() &&
          !op->getParentOfType<scf::ParallelOp>())
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops)
      lower(op, target);
  }

  void lower(linalg::LinalgOp op, const Target &target) {
    FailureOr<Contraction> contraction =
        Contraction::match(op, [&](const Twine &reason) {
          LDBG() << op->getName() << " is not packed: " << reason.str();
        });
    if (failed(contraction))
      return;
    FailureOr<Plan> plan =
        makePlan(*contraction, target, threads ? threads : 8);
    if (failed(plan))
      return;
    OpBuilder builder(op);
    Emitter(builder, op.getLoc(), *contraction, *plan, target, threads).emit();
    op->erase();
  }
};

} // namespace
