//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of direct contractions, and the order of the products in a tile.
// DirectPlan.cpp chooses the tile, DirectLoads.cpp loads what it reads.
//
// The nest is: items (shared by threads), blocks of columns, blocks of rows,
// vectors along the output's last dimension, looped reductions; inside, one
// step with all unrolled reductions. The sums of a tile are iteration arguments
// of the reductions' loops, so that they stay in registers.
//
//===----------------------------------------------------------------------===//

#include "DirectEmitter.h"
#include "EmitContraction.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Loops over tiles
//===----------------------------------------------------------------------===//

void DirectEmitter::emit() {
  flattenBuffers();
  flattenEpilogue();
  // Everything that is not in registers is a digit of the item's number.
  int64_t numItems = plan.rowGroups * plan.columnGroups;
  for (ArrayRef<unsigned> loops :
       {ArrayRef(contraction.batches), ArrayRef(contraction.columns),
        ArrayRef(contraction.rows)})
    for (unsigned loop : loops)
      if (loop != plan.vectorLoop && loop != plan.rowLoop &&
          loop != plan.columnLoop)
        numItems *= contraction.loops[loop].extent;
  parallelLoop(numItems, [&](Value item) { emitItem(item); });
}

/// All iterations of one group of rows and one of columns, for one iteration of
/// the loops that are not in registers. The digits of `item`, from the fastest:
/// group of rows, group of columns, other rows, other columns, batches.
/// `takeIndex` takes them in this order.
void DirectEmitter::emitItem(Value item) {
  AffineExpr rest = dim(0);
  auto take = [&](int64_t extent) { return takeIndex(rest, extent); };
  auto takeStart = [&](std::optional<unsigned> loop, int64_t groups) {
    int64_t size = loop ? contraction.loops[*loop].extent / groups : 1;
    AffineExpr group = take(groups);
    // No value means 0, and saves the addition.
    return groups == 1 ? Value() : apply(group * size, {item});
  };
  Value rowStart = takeStart(plan.rowLoop, plan.rowGroups);
  Value columnStart = takeStart(plan.columnLoop, plan.columnGroups);
  for (ArrayRef<unsigned> loops :
       {ArrayRef(contraction.rows), ArrayRef(contraction.columns),
        ArrayRef(contraction.batches)})
    for (unsigned loop : llvm::reverse(loops)) {
      if (loop == plan.vectorLoop || loop == plan.rowLoop ||
          loop == plan.columnLoop)
        continue;
      int64_t extent = contraction.loops[loop].extent;
      indices[loop] = apply(take(extent), {item});
      ranges[loop] = {0, extent - 1};
    }
  emitBlocks(plan.columnLoop, columnStart, plan.columnGroups,
             plan.registerColumns, [&] {
               emitBlocks(plan.rowLoop, rowStart, plan.rowGroups,
                          plan.registerRows, [&] { emitVectors(); });
             });
}

/// Blocks of `loop` within a group of its iterations. The last one begins
/// earlier, and computes some values again, where it would reach beyond.
/// `groupStart` is the first iteration of the group, `block` how many
/// iterations a tile has. 7 iterations in blocks of 4 begin at 0 and 3. Plans
/// cut only such loops with a remainder whose outputs may be computed twice.
void DirectEmitter::emitBlocks(std::optional<unsigned> loop, Value groupStart,
                               int64_t groups, int64_t block,
                               function_ref<void()> body) {
  if (!loop)
    return body();
  int64_t extent = contraction.loops[*loop].extent;
  int64_t size = extent / groups;
  // Where a tile may begin, over all groups: the tests of guards rely on it.
  ranges[*loop] = {0, groups == 1 && size == block ? 0 : extent - block};
  indices[*loop] = groupStart;
  if (size == block)
    return body();
  if (groups == 1 && hasEdges(*loop))
    return emitEdges(*loop, size, block, /*hasLast=*/true, body);
  this->loop(size, block, [&](Value start) {
    if (size % block)
      start =
          arith::MinSIOp::create(builder, loc, start, constant(size - block));
    indices[*loop] =
        groupStart ? apply(dim(0) + dim(1), {groupStart, start}) : start;
    body();
  });
  indices[*loop] = Value();
}

/// Whether tiles at the borders of `loop` are to be code of their own, so that
/// those inside test nothing: where masks take time.
bool DirectEmitter::hasEdges(unsigned loop) const {
  return !target.hasMaskRegisters &&
         llvm::any_of(contraction.segments, [&](const ColumnSegment &segment) {
           return llvm::any_of(segment.guards, [&](const Guard &guard) {
             return getCoefficient(guard.expr, loop) != 0;
           });
         });
}

/// Blocks of `loop` up to `end`: the first one, those inside, and if there is
/// one (`hasLast`) that at the other border, which begins earlier where it
/// would reach beyond.
void DirectEmitter::emitEdges(unsigned loop, int64_t end, int64_t block,
                              bool hasLast, function_ref<void()> body) {
  int64_t inside = (llvm::divideCeil(end, block) - (hasLast ? 2 : 1)) * block;
  auto emitAt = [&](int64_t start) {
    ranges[loop] = {start, start};
    indices[loop] = constant(start);
    body();
  };
  emitAt(0);
  if (inside == block) {
    emitAt(block);
  } else if (inside) {
    ranges[loop] = {block, inside};
    this->loop(inside, block, [&](Value start) {
      indices[loop] = apply(dim(0) + block, {start});
      body();
    });
  }
  if (hasLast)
    emitAt(end - block);
  indices[loop] = Value();
}

/// The vectors after `start`, fewer than the tile has. The last one is narrower
/// or begins earlier or has lanes that do not exist. With 8 lanes and a width
/// of 21, 5 columns are left after 16: a vector of 8 that begins at 13 or,
/// where sums are added to what the output holds and must not be added twice,
/// one at 16 with 5 active lanes.
SmallVector<Piece> DirectEmitter::getRest(int64_t start) const {
  SmallVector<Piece> pieces;
  int64_t width = contraction.loops[plan.vectorLoop].extent;
  for (; width - start >= plan.lanes; start += plan.lanes)
    pieces.push_back({start, plan.lanes, plan.lanes});
  if (start == width)
    return pieces;
  int64_t lanes = target.getLanes(width - start);
  bool mayComputeTwice = bias || !contraction.accumulates;
  if (lanes != width - start && mayComputeTwice && width >= lanes)
    start = width - lanes;
  pieces.push_back({start, lanes, std::min(lanes, width - start)});
  return pieces;
}

/// All vectors, some of them at a time.
void DirectEmitter::emitVectors() {
  int64_t width = contraction.loops[plan.vectorLoop].extent;
  int64_t block = plan.lanes * plan.registerVectors;
  int64_t whole = width / block * block;
  SmallVector<Piece> pieces;
  for (int64_t offset = 0; offset < block; offset += plan.lanes)
    pieces.push_back({offset, plan.lanes, plan.lanes});
  // One tile needs neither a loop nor an index.
  if (whole == block) {
    emitTile(pieces);
  } else if (whole && hasEdges(plan.vectorLoop)) {
    emitEdges(plan.vectorLoop, whole, block, /*hasLast=*/whole == width,
              [&] { emitTile(pieces); });
    ranges[plan.vectorLoop] = {0, 0};
  } else if (whole) {
    ranges[plan.vectorLoop] = {0, whole - block};
    loop(whole, block, [&](Value start) {
      indices[plan.vectorLoop] = start;
      emitTile(pieces);
    });
    indices[plan.vectorLoop] = Value();
    ranges[plan.vectorLoop] = {0, 0};
  }
  SmallVector<Piece> rest = getRest(whole);
  if (!rest.empty())
    emitTile(rest);
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

/// The value of one channel in all lanes, `row` and `column` after the tile's
/// first ones.
Value DirectEmitter::loadChannel(Value buffer, ArrayRef<int64_t> strides,
                                 int64_t row, int64_t column, int64_t lanes) {
  StridedAccess access;
  // The indices of the tile's loops are those of its first row and column.
  access.strides.assign(strides.begin(), strides.end());
  int64_t offset = (plan.rowLoop ? row * strides[*plan.rowLoop] : 0) +
                   (plan.columnLoop ? column * strides[*plan.columnLoop] : 0);
  Value value =
      memref::LoadOp::create(builder, loc, buffer, address(access, offset));
  return vector::BroadcastOp::create(builder, loc, getVectorType(buffer, lanes),
                                     value);
}

/// What the elementwise operation makes of the sums at `place`.
Value DirectEmitter::emitEpilogue(Value sums, Value place, int64_t row,
                                  int64_t column, Piece piece) {
  if (!options.epilogue || !options.epilogue->elementwise)
    return sums;
  SmallVector<Value> inputs;
  for (auto [buffer, input] :
       llvm::zip_equal(epilogueInputs, options.epilogue->inputs))
    inputs.push_back(
        !buffer ? sums
        : input.strides.empty()
            ? loadPiece(buffer, place, piece)
            : loadChannel(buffer, input.strides, row, column, piece.lanes));
  return emitElementwise(builder, loc, options.epilogue->elementwise, inputs);
}

/// Calls `body` with each row, column and piece of a tile.
static void
forEachSum(const DirectPlan &plan, ArrayRef<Piece> pieces,
           function_ref<void(int64_t row, int64_t column, Piece)> body) {
  for (int64_t row = 0; row < plan.registerRows; ++row)
    for (int64_t column = 0; column < plan.registerColumns; ++column)
      for (Piece piece : pieces)
        body(row, column, piece);
}

/// Whether sums are kept with their second and third quarters exchanged, as
/// instructions that work on the halves of vectors make them of data of stride
/// 2 (DirectLoads.cpp). Vectors of AVX-512 have instructions for all orders.
bool DirectEmitter::exchangesQuarters(Piece piece) const {
  if (piece.lanes != 8 || target.lanes != 8 || contraction.segments.size() != 1)
    return false;
  return llvm::all_of(contraction.segments.front().addresses,
                      [&](AffineExpr address) {
                        return getCoefficient(address, plan.vectorLoop) == 2;
                      });
}

SmallVector<int64_t>
DirectEmitter::exchangeQuarters(ArrayRef<int64_t> numbers) {
  size_t quarter = numbers.size() / 4;
  SmallVector<int64_t> exchanged;
  for (size_t part : {0, 2, 1, 3})
    llvm::append_range(exchanged, numbers.slice(part * quarter, quarter));
  return exchanged;
}

Value DirectEmitter::exchangeQuarters(Value values) {
  int64_t lanes = cast<VectorType>(values.getType()).getDimSize(0);
  return vector::ShuffleOp::create(
      builder, loc, values, values,
      exchangeQuarters(llvm::to_vector(llvm::seq<int64_t>(lanes))));
}

/// The sums of the tile at the current indices: rows, then columns, then
/// vectors.
void DirectEmitter::emitTile(ArrayRef<Piece> pieces) {
  // All addresses are that of the first sum plus constants, which instructions
  // take as displacements.
  ArrayRef<int64_t> strides = contraction.output.strides;
  int64_t rowStride = plan.rowLoop ? strides[*plan.rowLoop] : 0;
  int64_t columnStride = plan.columnLoop ? strides[*plan.columnLoop] : 0;
  Value start = address(contraction.output);
  SmallVector<Value> sums, places;
  forEachSum(plan, pieces, [&](int64_t row, int64_t column, Piece piece) {
    places.push_back(
        apply(dim(0) + (row * rowStride + column * columnStride + piece.offset),
              {start}));
    sums.push_back(
        bias ? loadChannel(bias, options.epilogue->biasStrides, row, column,
                           piece.lanes)
             : loadSum(places.back(), piece, contraction.accumulates));
    if (contraction.accumulates && !bias && exchangesQuarters(piece))
      sums.back() = exchangeQuarters(sums.back());
  });
  sums = emitReduction(plan.looped, sums, pieces);
  unsigned index = 0;
  forEachSum(plan, pieces, [&](int64_t row, int64_t column, Piece piece) {
    Value sum = sums[index], place = places[index];
    ++index;
    if (exchangesQuarters(piece))
      sum = exchangeQuarters(sum);
    // Once per sum rather than once per product.
    if (contraction.factor != 1) {
      auto factors = DenseElementsAttr::get(
          getVectorType(piece.lanes), static_cast<float>(contraction.factor));
      sum = arith::MulFOp::create(
          builder, loc, sum, arith::ConstantOp::create(builder, loc, factors));
    }
    storeSum(emitEpilogue(sum, place, row, column, piece), place, piece);
  });
}

/// Nested loops that carry the sums; inside, one step of all of them. Takes and
/// returns the sums, in the order of `forEachSum`. While a loop is being
/// emitted its index is known and `ranges` covers all of its iterations;
/// outside it counts as 0.
SmallVector<Value> DirectEmitter::emitReduction(ArrayRef<unsigned> loops,
                                                ValueRange sums,
                                                ArrayRef<Piece> pieces) {
  if (loops.empty())
    return emitStep(sums, pieces);
  unsigned loop = loops.front();
  int64_t extent = contraction.loops[loop].extent;
  auto op = scf::ForOp::create(builder, loc, constant(0), constant(extent),
                               constant(1), sums);
  op->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.getBody());
  indices[loop] = op.getInductionVar();
  ranges[loop] = {0, extent - 1};
  scf::YieldOp::create(
      builder, loc,
      emitReduction(loops.drop_front(), op.getRegionIterArgs(), pieces));
  indices[loop] = Value();
  ranges[loop] = {0, 0};
  return SmallVector<Value>(op.getResults());
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// Adds the products of one row and one column to its sums.
void DirectEmitter::emitProducts(StepLoads &loads, MutableArrayRef<Value> sums,
                                 ArrayRef<Piece> pieces) {
  for (auto [number, piece] : llvm::enumerate(pieces)) {
    Value column = loads.loadVector(number);
    // No lane exists here, for instance at the padding of an image.
    if (!column)
      continue;
    Value &sum = sums[number];
    if (Value factor = loads.loadScalar(piece.lanes))
      sum = multiplyAdd(factor, column, sum);
    // An input without a partner: a plain sum, as in average pooling.
    else
      sum = add(sum, column);
  }
}

/// All columns and unrolled steps of a tile, those that read the same data next
/// to one another, so that it is in registers only then. The steps of a column
/// keep their order.
SmallVector<std::pair<int64_t, int64_t>>
DirectEmitter::getStepsByLine(int64_t columns, int64_t steps) const {
  SmallVector<std::pair<int64_t, int64_t>> all;
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t step = 0; step < steps; ++step)
      all.emplace_back(column, step);
  if (!plan.columnLoop || plan.unrolled.empty())
    return all;
  AffineExpr address = contraction.segments.front().addresses.front();
  int64_t ofColumn = *getCoefficient(address, *plan.columnLoop);
  int64_t ofStep = *getCoefficient(address, plan.unrolled.front());
  // Else the first step of a column reads its last line.
  if (ofStep > 0)
    llvm::sort(all, [&](auto a, auto b) {
      return std::pair(a.first * ofColumn + a.second * ofStep, a) <
             std::pair(b.first * ofColumn + b.second * ofStep, b);
    });
  return all;
}

/// Calls `body` with each row, column, place along the lines, and step. `row`
/// and `column` are those within the tile, `place` is the position in the
/// window along the vectors, `step` the iteration of the unrolled reduction.
/// The order decides how long loaded vectors stay alive, and so whether
/// registers suffice.
void DirectEmitter::forEachProduct(
    llvm::function_ref<void(int64_t, int64_t, int64_t, int64_t)> body) {
  int64_t rows = plan.registerRows, columns = plan.registerColumns;
  int64_t steps = contraction.getExtent(plan.unrolled);
  int64_t places =
      plan.imageRowLoop ? contraction.loops[*plan.imageRowLoop].extent : 1;
  // Places that share what is loaded for a line follow one another; others are
  // like iterations of a loop.
  int64_t inner = plan.sharesImageRows ? places : 1;
  for (int64_t outer = 0; outer < places; outer += inner) {
    auto forEachPosition = [&](function_ref<void(int64_t)> body) {
      for (int64_t place = outer; place < outer + inner; ++place)
        body(place);
    };
    // What stays in registers meanwhile is either the rows of all steps or the
    // vectors of all columns.
    if (plan.columnsOutside) {
      for (auto [column, step] : getStepsByLine(columns, steps))
        forEachPosition([&, column = column, step = step](int64_t place) {
          for (int64_t row = 0; row < rows; ++row)
            body(row, column, place, step);
        });
      continue;
    }
    for (int64_t step = 0; step < steps; ++step)
      forEachPosition([&](int64_t place) {
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < columns; ++column)
            body(row, column, place, step);
      });
  }
}

/// The products of one step of the looped reductions.
SmallVector<Value> DirectEmitter::emitStep(ValueRange start,
                                           ArrayRef<Piece> pieces) {
  SmallVector<Value> sums(start);
  // It lives for one step only: what it loaded dominates nothing outside.
  StepLoads loads(*this, pieces);
  loads.fetchAhead();
  auto setOffset = [&](std::optional<unsigned> loop, int64_t offset) {
    if (loop)
      loads.setOffset(*loop, offset);
  };
  forEachProduct([&](int64_t row, int64_t column, int64_t place, int64_t step) {
    setOffset(plan.rowLoop, row);
    setOffset(plan.columnLoop, column);
    setOffset(plan.imageRowLoop, place);
    if (!plan.unrolled.empty())
      loads.setOffset(plan.unrolled.front(), step);
    // The position of the sums of this row and column in the order of
    // `forEachSum`.
    int64_t first = (row * plan.registerColumns + column) * pieces.size();
    emitProducts(loads, MutableArrayRef(sums).slice(first, pieces.size()),
                 pieces);
  });
  return sums;
}

void kas::codegen::emitDirect(OpBuilder &builder, Location loc,
                              const StridedContraction &contraction,
                              const DirectPlan &plan,
                              const ContractionTarget &target,
                              const ContractionOptions &options) {
  DirectEmitter(builder, loc, contraction, plan, target, options).emit();
}
