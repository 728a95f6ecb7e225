//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
// Emits contractions as register tiles that read the inputs where they are. A
// tile is some rows times some columns times some vectors of sums; what several
// of its products read is loaded once. Points that do not exist are lanes of
// masked loads, or left out where that is known beforehand.
//
//===----------------------------------------------------------------------===//

#include "ContractionEmitter.h"
#include "DirectPlan.h"
#include <map>

using namespace kas;
using namespace mlir;

namespace {

class StepEmitter;

/// The loops over tiles and, in each, the looped reductions.
class DirectEmitter : ContractionEmitter {
  friend class StepEmitter;

public:
  DirectEmitter(OpBuilder &builder, Location loc,
                const Contraction &contraction, const DirectPlan &plan,
                const ContractionTarget &target,
                const ContractionOptions &options)
      : ContractionEmitter(builder, loc, contraction, target, options),
        plan(plan), ranges(contraction.loops.size(), Interval{0, 0}) {}

  void emit();

private:
  void emitItem(Value item);
  void emitBlocks(std::optional<unsigned> loop, Value groupStart,
                  int64_t groups, int64_t block, function_ref<void()> body);
  void emitVectors();
  SmallVector<Piece> getRest(int64_t start) const;
  void emitTile(ArrayRef<Piece> pieces);
  SmallVector<Value> emitReduction(ArrayRef<unsigned> loops, ValueRange sums,
                                   ArrayRef<Piece> pieces);

  const DirectPlan &plan;
  /// What the indices may be, without the offsets of the tile.
  SmallVector<Interval> ranges;
};

/// The products of one step of the looped reductions.
class StepEmitter {
public:
  StepEmitter(DirectEmitter &tile, ArrayRef<Piece> pieces)
      : tile(tile), builder(tile.builder), loc(tile.loc),
        contraction(tile.contraction), pieces(pieces),
        offsets(contraction.loops.size()) {
    addGuards();
  }

  SmallVector<Value> emit(ValueRange sums);

private:
  /// A guard that must be tested: its expression at the first lane is that of
  /// the tile plus `offset`.
  struct Test {
    unsigned guard;
    int64_t offset;
    bool operator<(const Test &other) const {
      return std::tie(guard, offset) < std::tie(other.guard, other.offset);
    }
  };

  void addGuards();
  int64_t getOffset(AffineExpr expr, int64_t pieceOffset) const;
  std::optional<SmallVector<Test>> getTests(Piece piece,
                                            unsigned segment) const;
  Value getStart(unsigned guard);
  Value getMask(Piece piece, ArrayRef<Test> tests);
  Value testLanes(Piece piece, Test test, int64_t coefficient);
  Value loadVector(unsigned number);
  Value loadSegment(unsigned input, unsigned segment, Piece piece,
                    ArrayRef<Test> tests, Value others);
  Value loadStrided(Value flat, Value place, int64_t step, Piece piece,
                    ArrayRef<Test> tests);
  Value getStridedMask(int64_t part, int64_t step, Piece piece,
                       ArrayRef<Test> tests);
  Value loadScalar(int64_t lanes);
  void emitProducts(MutableArrayRef<Value> sums, unsigned row, unsigned column);

  DirectEmitter &tile;
  OpBuilder &builder;
  Location loc;
  const Contraction &contraction;
  ArrayRef<Piece> pieces;
  /// What the tile and the unrolled reductions add to the indices.
  SmallVector<int64_t> offsets;
  /// The guards of all segments, and where those of each begin.
  SmallVector<Guard> guards;
  SmallVector<unsigned> firstGuards;
  /// Values at offsets of zero, made when they are needed.
  SmallVector<Value> vectorStarts, scalarStarts, guardStarts;
  /// What has been loaded, by what it depends on.
  std::map<std::vector<int64_t>, Value> vectors, scalars;
  std::map<std::pair<unsigned, SmallVector<Test>>, Value> masks;
};

} // namespace

//===----------------------------------------------------------------------===//
// Loops over tiles
//===----------------------------------------------------------------------===//

void DirectEmitter::emit() {
  flattenBuffers();
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
/// the loops that are not in registers.
void DirectEmitter::emitItem(Value item) {
  AffineExpr rest = dim(0);
  auto take = [&](int64_t extent) { return takeIndex(rest, extent); };
  auto takeStart = [&](std::optional<unsigned> loop, int64_t groups) {
    int64_t size = loop ? contraction.loops[*loop].extent / groups : 1;
    AffineExpr group = take(groups);
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
void DirectEmitter::emitBlocks(std::optional<unsigned> loop, Value groupStart,
                               int64_t groups, int64_t block,
                               function_ref<void()> body) {
  if (!loop)
    return body();
  int64_t extent = contraction.loops[*loop].extent;
  int64_t size = extent / groups;
  ranges[*loop] = {0, groups == 1 && size == block ? 0 : extent - block};
  indices[*loop] = groupStart;
  if (size == block)
    return body();
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

/// The vectors behind `start`, fewer than the tile has. The last one is
/// narrower or begins earlier or has lanes that do not exist.
SmallVector<Piece> DirectEmitter::getRest(int64_t start) const {
  SmallVector<Piece> pieces;
  int64_t width = contraction.loops[plan.vectorLoop].extent;
  for (; width - start >= plan.lanes; start += plan.lanes)
    pieces.push_back({start, plan.lanes, plan.lanes});
  if (start == width)
    return pieces;
  int64_t lanes = target.getLanes(width - start);
  if (lanes != width - start && !contraction.accumulates && width >= lanes)
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
  if (whole == block) {
    emitTile(pieces);
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

/// The sums of the tile at the current indices: rows, then columns, then
/// vectors.
void DirectEmitter::emitTile(ArrayRef<Piece> pieces) {
  ArrayRef<int64_t> strides = contraction.output.strides;
  int64_t rowStride = plan.rowLoop ? strides[*plan.rowLoop] : 0;
  int64_t columnStride = plan.columnLoop ? strides[*plan.columnLoop] : 0;
  Value start = address(contraction.output);
  SmallVector<Value> sums, places;
  for (int64_t row = 0; row < plan.registerRows; ++row)
    for (int64_t column = 0; column < plan.registerColumns; ++column)
      for (Piece piece : pieces) {
        places.push_back(apply(
            dim(0) + (row * rowStride + column * columnStride + piece.offset),
            {start}));
        sums.push_back(loadSum(places.back(), piece, contraction.accumulates));
      }
  sums = emitReduction(plan.looped, sums, pieces);
  for (auto [index, sum, place] : llvm::enumerate(sums, places)) {
    Piece piece = pieces[index % pieces.size()];
    if (contraction.factor != 1) {
      auto factors = DenseElementsAttr::get(
          getVectorType(piece.lanes), static_cast<float>(contraction.factor));
      sum = arith::MulFOp::create(
          builder, loc, sum, arith::ConstantOp::create(builder, loc, factors));
    }
    storeSum(sum, place, piece);
  }
}

/// Nested loops that carry the sums; inside, one step of all of them.
SmallVector<Value> DirectEmitter::emitReduction(ArrayRef<unsigned> loops,
                                                ValueRange sums,
                                                ArrayRef<Piece> pieces) {
  if (loops.empty())
    return StepEmitter(*this, pieces).emit(sums);
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

void StepEmitter::addGuards() {
  ArrayRef<ColumnSegment> segments = contraction.segments;
  for (const ColumnSegment &segment : segments) {
    firstGuards.push_back(guards.size());
    llvm::append_range(guards, segment.guards);
  }
  firstGuards.push_back(guards.size());
  guardStarts.resize(guards.size());
  vectorStarts.resize(segments.size() * contraction.vectorInputs.size());
}

/// How much the offsets add to `expr`, which is linear in the loops that have
/// one.
int64_t StepEmitter::getOffset(AffineExpr expr, int64_t pieceOffset) const {
  int64_t sum = pieceOffset * *getCoefficient(expr, tile.plan.vectorLoop);
  for (auto [loop, offset] : llvm::enumerate(offsets))
    if (offset)
      sum += offset * *getCoefficient(expr, loop);
  return sum;
}

/// The guards of a segment that some lane may fail; nothing if all lanes fail
/// one.
std::optional<SmallVector<StepEmitter::Test>>
StepEmitter::getTests(Piece piece, unsigned segment) const {
  SmallVector<Test> tests;
  for (unsigned number = firstGuards[segment];
       number < firstGuards[segment + 1]; ++number) {
    const Guard &guard = guards[number];
    Interval range = getInterval(guard.expr, tile.ranges);
    int64_t offset = getOffset(guard.expr, piece.offset);
    int64_t lanes =
        *getCoefficient(guard.expr, tile.plan.vectorLoop) * (piece.active - 1);
    int64_t lower = range.lower + offset + std::min<int64_t>(lanes, 0);
    int64_t upper = range.upper + offset + std::max<int64_t>(lanes, 0);
    if (upper < 0 || lower >= guard.extent)
      return std::nullopt;
    if (lower < 0 || upper >= guard.extent)
      tests.push_back({number, offset});
  }
  return tests;
}

Value StepEmitter::getStart(unsigned guard) {
  Value &start = guardStarts[guard];
  if (!start)
    start = tile.evaluate(guards[guard].expr);
  return start;
}

/// Where a guard that changes from lane to lane holds.
Value StepEmitter::testLanes(Piece piece, Test test, int64_t coefficient) {
  const Guard &guard = guards[test.guard];
  Interval range = getInterval(guard.expr, tile.ranges);
  if (range.lower == range.upper) {
    SmallVector<bool> holds;
    for (int64_t lane = 0; lane < piece.lanes; ++lane) {
      int64_t value = range.lower + test.offset + coefficient * lane;
      holds.push_back(value >= 0 && value < guard.extent &&
                      lane < piece.active);
    }
    auto type = VectorType::get({piece.lanes}, builder.getI1Type());
    return arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef(holds)));
  }
  SmallVector<int64_t> steps;
  for (int64_t lane = 0; lane < piece.lanes; ++lane)
    steps.push_back(coefficient * lane + test.offset);
  return tile.testLanes(getStart(test.guard), steps, guard.extent);
}

/// The lanes that exist and pass all tests.
Value StepEmitter::getMask(Piece piece, ArrayRef<Test> tests) {
  unsigned number = llvm::find_if(pieces,
                                  [&](const Piece &other) {
                                    return other.offset == piece.offset;
                                  }) -
                    pieces.begin();
  Value &mask = masks[{number, SmallVector<Test>(tests)}];
  if (mask)
    return mask;
  auto type = VectorType::get({piece.lanes}, builder.getI1Type());
  auto add = [&](Value lanes) {
    mask = mask ? arith::AndIOp::create(builder, loc, mask, lanes).getResult()
                : lanes;
  };
  if (piece.active != piece.lanes)
    add(tile.tailMask(piece.active, piece.lanes));
  for (Test test : tests) {
    const Guard &guard = guards[test.guard];
    int64_t coefficient = *getCoefficient(guard.expr, tile.plan.vectorLoop);
    if (coefficient) {
      add(testLanes(piece, test, coefficient));
      continue;
    }
    Value holds = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult,
        tile.apply(tile.dim(0) + test.offset, {getStart(test.guard)}),
        tile.constant(guard.extent));
    add(vector::BroadcastOp::create(builder, loc, type, holds));
  }
  return mask;
}

/// One vector input at the lanes of a segment that pass the tests, and `others`
/// at the other ones.
Value StepEmitter::loadSegment(unsigned input, unsigned segment, Piece piece,
                               ArrayRef<Test> tests, Value others) {
  AffineExpr address = contraction.segments[segment].addresses[input];
  Value &start =
      vectorStarts[segment * contraction.vectorInputs.size() + input];
  if (!start)
    start = tile.evaluate(address);
  Value flat = tile.vectorInputs[input];
  Value place =
      tile.apply(tile.dim(0) + getOffset(address, piece.offset), {start});
  int64_t step = *getCoefficient(address, tile.plan.vectorLoop);
  if (step != 1)
    return loadStrided(flat, place, step, piece, tests);
  VectorType type = tile.getVectorType(piece.lanes);
  if (tests.empty() && piece.active == piece.lanes)
    return vector::LoadOp::create(builder, loc, type, flat, place);
  if (!others)
    others = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, flat, place,
                                      getMask(piece, tests), others);
}

/// The lanes of one of the vectors that `loadStrided` reads: every `step`-th is
/// one of the piece, if that is there and passes all tests.
Value StepEmitter::getStridedMask(int64_t part, int64_t step, Piece piece,
                                  ArrayRef<Test> tests) {
  int64_t first = part * piece.lanes / step;
  auto type = VectorType::get({piece.lanes}, builder.getI1Type());
  SmallVector<bool> exists;
  for (int64_t lane = 0; lane < piece.lanes; ++lane)
    exists.push_back(lane % step == 0 && first + lane / step < piece.active);
  SmallVector<Value> others;
  for (Test test : tests) {
    const Guard &guard = guards[test.guard];
    Interval range = getInterval(guard.expr, tile.ranges);
    int64_t coefficient = *getCoefficient(guard.expr, tile.plan.vectorLoop);
    SmallVector<int64_t> steps;
    for (int64_t lane = 0; lane < piece.lanes; ++lane)
      steps.push_back(test.offset + coefficient * (first + lane / step));
    if (range.lower == range.upper) {
      for (auto [lane, offset] : llvm::enumerate(steps)) {
        int64_t value = range.lower + offset;
        exists[lane] = exists[lane] && value >= 0 && value < guard.extent;
      }
      continue;
    }
    others.push_back(tile.testLanes(getStart(test.guard), steps, guard.extent));
  }
  if (!llvm::is_contained(exists, true))
    return Value();
  Value mask = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef(exists)));
  for (Value other : others)
    mask = arith::AndIOp::create(builder, loc, mask, other);
  return mask;
}

/// Every `step`-th element from `place` on, `step` being 2: the even lanes of
/// two vectors, whose other lanes are not read.
Value StepEmitter::loadStrided(Value flat, Value place, int64_t step,
                               Piece piece, ArrayRef<Test> tests) {
  VectorType type = tile.getVectorType(piece.lanes);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  SmallVector<Value> parts;
  for (int64_t part = 0; part < step; ++part) {
    Value mask = getStridedMask(part, step, piece, tests);
    parts.push_back(
        mask ? vector::MaskedLoadOp::create(
                   builder, loc, type, flat,
                   tile.apply(tile.dim(0) + part * piece.lanes, {place}), mask,
                   zero)
                   .getResult()
             : zero);
  }
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < piece.lanes; ++lane)
    lanes.push_back(lane * step);
  return vector::ShuffleOp::create(builder, loc, parts[0], parts[1], lanes);
}

/// The product of the vector inputs for one piece, with zeros where it does not
/// exist; null if it exists nowhere.
Value StepEmitter::loadVector(unsigned number) {
  Piece piece = pieces[number];
  struct Part {
    unsigned segment;
    SmallVector<Test> tests;
  };
  SmallVector<Part> parts;
  std::vector<int64_t> key{number};
  for (auto [index, segment] : llvm::enumerate(contraction.segments)) {
    std::optional<SmallVector<Test>> tests = getTests(piece, index);
    if (!tests)
      continue;
    key.push_back(index);
    for (AffineExpr address : segment.addresses)
      key.push_back(getOffset(address, piece.offset));
    for (Test test : *tests) {
      key.push_back(test.guard);
      key.push_back(test.offset);
    }
    parts.push_back({static_cast<unsigned>(index), std::move(*tests)});
  }
  if (parts.empty())
    return Value();
  Value &product = vectors[key];
  if (product)
    return product;
  for (unsigned input = 0; input < tile.vectorInputs.size(); ++input) {
    Value value;
    for (const Part &part : parts)
      value = loadSegment(input, part.segment, piece, part.tests, value);
    product =
        product ? arith::MulFOp::create(builder, loc, product, value) : value;
  }
  return product;
}

/// The product of the scalar inputs as a vector; null if there are none.
Value StepEmitter::loadScalar(int64_t lanes) {
  if (contraction.scalarInputs.empty())
    return Value();
  std::vector<int64_t> key{lanes};
  for (const StridedAccess &access : contraction.scalarInputs) {
    int64_t offset = 0;
    for (auto [stride, step] : llvm::zip_equal(access.strides, offsets))
      offset += stride * step;
    key.push_back(offset);
  }
  Value &row = scalars[key];
  if (row)
    return row;
  if (scalarStarts.empty())
    for (const StridedAccess &access : contraction.scalarInputs)
      scalarStarts.push_back(tile.address(access));
  Value product;
  for (auto [number, flat] : llvm::enumerate(tile.scalarInputs)) {
    Value place =
        tile.apply(tile.dim(0) + key[number + 1], {scalarStarts[number]});
    Value factor = memref::LoadOp::create(builder, loc, flat, place);
    product =
        product ? arith::MulFOp::create(builder, loc, product, factor) : factor;
  }
  return row = vector::BroadcastOp::create(builder, loc,
                                           tile.getVectorType(lanes), product);
}

/// The products of one column at one unrolled step.
void StepEmitter::emitProducts(MutableArrayRef<Value> sums, unsigned row,
                               unsigned column) {
  const DirectPlan &plan = tile.plan;
  if (plan.columnLoop)
    offsets[*plan.columnLoop] = column;
  if (plan.rowLoop)
    offsets[*plan.rowLoop] = row;
  for (auto [number, piece] : llvm::enumerate(pieces)) {
    Value column = loadVector(number);
    if (!column)
      continue;
    Value &sum = sums[number];
    if (Value factor = loadScalar(piece.lanes))
      sum = tile.multiplyAdd(factor, column, sum);
    else
      sum = arith::AddFOp::create(builder, loc, sum, column);
  }
}

SmallVector<Value> StepEmitter::emit(ValueRange start) {
  const DirectPlan &plan = tile.plan;
  SmallVector<Value> sums(start);
  int64_t steps = contraction.getExtent(plan.unrolled);
  auto products = [&](int64_t row, int64_t column, int64_t step) {
    if (!plan.unrolled.empty())
      offsets[plan.unrolled.front()] = step;
    int64_t first = (row * plan.registerColumns + column) * pieces.size();
    emitProducts(MutableArrayRef(sums).slice(first, pieces.size()), row,
                 column);
  };
  // What stays in registers meanwhile is either the rows of all steps or the
  // vectors of all columns.
  if (plan.columnsOutside) {
    for (int64_t column = 0; column < plan.registerColumns; ++column)
      for (int64_t step = 0; step < steps; ++step)
        for (int64_t row = 0; row < plan.registerRows; ++row)
          products(row, column, step);
    return sums;
  }
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t row = 0; row < plan.registerRows; ++row)
      for (int64_t column = 0; column < plan.registerColumns; ++column)
        products(row, column, step);
  return sums;
}

void kas::emitDirect(OpBuilder &builder, Location loc,
                     const Contraction &contraction, const DirectPlan &plan,
                     const ContractionTarget &target,
                     const ContractionOptions &options) {
  DirectEmitter(builder, loc, contraction, plan, target, options).emit();
}
