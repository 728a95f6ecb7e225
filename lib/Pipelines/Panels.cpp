//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits contractions as packed panels and register tiles: the columns of a tile
// are copied once to consecutive memory, for all reductions, and then
// multiplied with all rows, a few rows and vectors at a time, whose sums stay
// in registers. After Goto and van de Geijn: "Anatomy of High-Performance
// Matrix Multiplication", ACM TOMS 34(3), 2008, sections 3 to 5; a convolution
// needs no other treatment than a matrix product because the packing follows
// any indices.
//
//===----------------------------------------------------------------------===//

#include "PanelPlan.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace mlir;

namespace {

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
          const PanelPlan &plan, const PanelTarget &target,
          const PanelOptions &options)
      : builder(builder), loc(loc), contraction(contraction), plan(plan),
        target(target), options(options),
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

  /// All elements of a buffer as one dimension.
  Value flatten(Value buffer, int64_t size) {
    auto type = MemRefType::get({size}, builder.getF32Type());
    return memref::ReinterpretCastOp::create(
        builder, loc, type, buffer, /*offset=*/0, ArrayRef<int64_t>{size},
        ArrayRef<int64_t>{1});
  }
  /// `expr`, of all loops, at the current indices.
  Value evaluate(AffineExpr expr) {
    SmallVector<AffineExpr> dims;
    SmallVector<Value> operands;
    for (Value index : indices) {
      dims.push_back(index ? dim(operands.size())
                           : builder.getAffineConstantExpr(0));
      if (index)
        operands.push_back(index);
    }
    return apply(expr.replaceDims(dims), operands);
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
  void emitPackedVectors(Value panelAddress, int64_t extent);
  void emitPackedColumns(Value panelAddress, Value lower, Value upper);
  void emitGuardedColumns(Value panelAddress, int64_t extent);
  void storeColumn(Value panelAddress, Value column, Value value);
  Value loadProduct();
  Value zeroValue();
  Value isInRange(Value value, int64_t extent);
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
  const PanelPlan &plan;
  const PanelTarget &target;
  const PanelOptions &options;
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
  output = flatten(contraction.output.buffer, contraction.output.size);
  for (const PackedAccess &input : contraction.vectorInputs)
    vectorInputs.push_back(flatten(input.buffer, input.size));
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarInputs.push_back(flatten(input.buffer, input.size));
  numItems = contraction.getExtent(contraction.batches) *
             contraction.getExtent(contraction.columns) / plan.tileColumns *
             plan.rowGroups;

  // One panel for each thread that may run at once. The last vector of a row
  // may reach beyond the panel.
  int64_t panelSize = plan.panelDepth * plan.paddedColumns + 4 * target.lanes;
  int64_t maxPanels = options.threads ? options.threads : 32;
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
  if (options.deallocate)
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

/// The coefficient of `dim` in `expr`, if `expr` is linear in it.
static std::optional<int64_t> getCoefficient(AffineExpr expr, unsigned dim) {
  if (!expr.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add) {
    auto left = getCoefficient(binary.getLHS(), dim);
    auto right = getCoefficient(binary.getRHS(), dim);
    if (left && right)
      return *left + *right;
    return std::nullopt;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  auto scaled = getCoefficient(binary.getLHS(), dim);
  if (binary.getKind() == AffineExprKind::Mul && factor && scaled)
    return *scaled * factor.getValue();
  return std::nullopt;
}

/// Copies the innermost columns, at the current indices.
void Emitter::emitPackedRow(Value panelAddress) {
  unsigned innermost = contraction.columns.back();
  int64_t extent = plan.blockedColumn + 1 == contraction.columns.size()
                       ? plan.columnBlock
                       : contraction.loops[innermost].extent;
  bool contiguous =
      llvm::all_of(contraction.vectorInputs, [&](const PackedAccess &access) {
        return getCoefficient(access.address, innermost) == 1;
      });
  if (contraction.guards.empty()) {
    if (contiguous)
      return emitPackedVectors(panelAddress, extent);
    return emitPackedColumns(panelAddress, constant(0), constant(extent));
  }
  bool intervals = llvm::all_of(contraction.guards, [&](const Guard &guard) {
    return getCoefficient(guard.expr, innermost).value_or(-1) >= 0;
  });
  if (!intervals)
    return emitGuardedColumns(panelAddress, extent);

  // The columns that exist are consecutive: zeros before and behind them.
  Value zero = constant(0), end = constant(extent);
  Value lower = zero, upper = end, valid;
  for (const Guard &guard : contraction.guards) {
    Value base = evaluate(guard.expr);
    int64_t coefficient = *getCoefficient(guard.expr, innermost);
    if (coefficient == 0) {
      Value holds = isInRange(base, guard.extent);
      valid = valid ? arith::AndIOp::create(builder, loc, valid, holds) : holds;
      continue;
    }
    Value first = apply((-dim(0)).ceilDiv(coefficient), {base});
    Value last = apply((guard.extent - dim(0)).ceilDiv(coefficient), {base});
    lower = arith::MaxSIOp::create(builder, loc, lower, first);
    upper = arith::MinSIOp::create(builder, loc, upper, last);
  }
  if (valid)
    lower = arith::SelectOp::create(builder, loc, valid, lower, end);
  lower = arith::MinSIOp::create(builder, loc, lower, end);
  upper = arith::MaxSIOp::create(builder, loc, upper, lower);
  auto clear = [&](Value from, Value to) {
    auto op = scf::ForOp::create(builder, loc, from, to, constant(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(op.getBody());
    storeColumn(panelAddress, op.getInductionVar(), zeroValue());
  };
  clear(zero, lower);
  emitPackedColumns(panelAddress, lower, upper);
  clear(upper, end);
}

Value Emitter::zeroValue() {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
}

void Emitter::storeColumn(Value panelAddress, Value column, Value value) {
  memref::StoreOp::create(builder, loc, value, panel,
                          apply(dim(0) + dim(1), {panelAddress, column}));
}

/// Whether 0 <= `value` < `extent`.
Value Emitter::isInRange(Value value, int64_t extent) {
  // A negative number is a large one without its sign.
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, value,
                               constant(extent));
}

/// The product of the vector inputs at the current indices.
Value Emitter::loadProduct() {
  Value product;
  for (auto [access, flat] :
       llvm::zip(contraction.vectorInputs, vectorInputs)) {
    Value value =
        memref::LoadOp::create(builder, loc, flat, evaluate(access.address));
    product =
        product ? arith::MulFOp::create(builder, loc, product, value) : value;
  }
  if (contraction.factor == 1)
    return product;
  Value factor = arith::ConstantOp::create(
      builder, loc, builder.getF32FloatAttr(contraction.factor));
  return arith::MulFOp::create(builder, loc, product, factor);
}

/// Consecutive columns, all of which exist, as vectors.
void Emitter::emitPackedVectors(Value panelAddress, int64_t extent) {
  for (int64_t done = 0; done < extent; done += target.lanes) {
    int64_t lanes = std::min(target.lanes, extent - done);
    Value product;
    for (auto [access, flat] :
         llvm::zip(contraction.vectorInputs, vectorInputs)) {
      Value index = evaluate(access.address + done), value;
      if (lanes == target.lanes) {
        value = vector::LoadOp::create(builder, loc, vectorType, flat, index);
      } else {
        Value zeros = arith::ConstantOp::create(
            builder, loc, builder.getZeroAttr(vectorType));
        value = vector::MaskedLoadOp::create(builder, loc, vectorType, flat,
                                             index, tailMask(lanes), zeros);
      }
      product =
          product ? arith::MulFOp::create(builder, loc, product, value) : value;
    }
    if (contraction.factor != 1) {
      auto factors = DenseElementsAttr::get(
          vectorType, static_cast<float>(contraction.factor));
      product = arith::MulFOp::create(
          builder, loc, product,
          arith::ConstantOp::create(builder, loc, factors));
    }
    // The lanes behind the tail are overwritten by the next row.
    vector::StoreOp::create(builder, loc, product, panel,
                            apply(dim(0) + done, {panelAddress}));
  }
}

/// The columns from `lower` to `upper`, all of which exist.
void Emitter::emitPackedColumns(Value panelAddress, Value lower, Value upper) {
  unsigned innermost = contraction.columns.back();
  Value start = indices[innermost];
  auto op = scf::ForOp::create(builder, loc, lower, upper, constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value column = op.getInductionVar();
  indices[innermost] = start ? apply(dim(0) + dim(1), {start, column}) : column;
  storeColumn(panelAddress, column, loadProduct());
  indices[innermost] = start;
}

/// Columns that exist or not, one by one.
void Emitter::emitGuardedColumns(Value panelAddress, int64_t extent) {
  unsigned innermost = contraction.columns.back();
  Value start = indices[innermost];
  auto op = scf::ForOp::create(builder, loc, constant(0), constant(extent),
                               constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value column = op.getInductionVar();
  indices[innermost] = start ? apply(dim(0) + dim(1), {start, column}) : column;
  Value exists;
  for (const Guard &guard : contraction.guards) {
    Value holds = isInRange(evaluate(guard.expr), guard.extent);
    exists =
        exists ? arith::AndIOp::create(builder, loc, exists, holds) : holds;
  }
  auto value = scf::IfOp::create(builder, loc, builder.getF32Type(), exists,
                                 /*withElseRegion=*/true);
  builder.setInsertionPointToStart(value.thenBlock());
  scf::YieldOp::create(builder, loc, loadProduct());
  builder.setInsertionPointToStart(value.elseBlock());
  scf::YieldOp::create(builder, loc, zeroValue());
  builder.setInsertionPointAfter(value);
  storeColumn(panelAddress, column, value.getResult(0));
  indices[innermost] = start;
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

/// Tells LLVM neither to vectorize nor to unroll a loop.
static Attribute getFinishedLoop(MLIRContext *context) {
  auto yes = BoolAttr::get(context, true);
  auto vectorize =
      LLVM::LoopVectorizeAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  auto unroll = LLVM::LoopUnrollAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  return LLVM::LoopAnnotationAttr::get(context, {}, vectorize, {}, unroll, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
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
  // It is made of vectors and unrolled already: LLVM need not think about it.
  op->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
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

LogicalResult kas::emitPanels(OpBuilder &builder, Location loc,
                              const Contraction &contraction,
                              const PanelOptions &options) {
  // Half of the registers of AVX-512 hold sums comfortably, so do those of
  // narrower vectors.
  PanelTarget target{options.vectorBits / 32,
                     options.vectorBits >= 512 ? 24 : 12};
  std::optional<CombinedInputs> combined = CombinedInputs::get(contraction);
  const Contraction &nest = combined ? combined->getRemainder() : contraction;
  FailureOr<PanelPlan> plan =
      makePanelPlan(nest, target, options.threads ? options.threads : 8);
  if (failed(plan))
    return failure();
  if (combined)
    combined->emit(builder, loc);
  Emitter(builder, loc, nest, *plan, target, options).emit();
  if (combined && options.deallocate)
    memref::DeallocOp::create(builder, loc, combined->getBuffer());
  return success();
}
