//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loads of the tiles of direct contractions, each vector once. `loadVector`
// and `loadScalar` get the same element again from several products of
// a step; caches keyed by constant offsets from the tile's addresses answer
// them.
//
// Data of stride 2 is read row by row: the elements of two vectors are
// separated into those of even and of odd numbers, and the positions of the
// window take one of these, moved by some lanes. With 4 lanes and a window of
// 3:
//
//     loaded      0 1 2 3 | 4 5 6 7 | 8 ..
//     position 0  0 2 4 6     even
//     position 1  1 3 5 7     odd
//     position 2  2 4 6 8     even, moved by one lane
//
// Where an instruction moves elements only within the halves of a vector, as in
// AVX2, these are taken as they come, and so are the sums: their second and
// third quarters change places before they are stored. Moved ones are loaded
// from there.
//
//===----------------------------------------------------------------------===//

#include "DirectEmitter.h"
#include "mlir/IR/Matchers.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

StepLoads::StepLoads(DirectEmitter &tile, ArrayRef<Piece> pieces)
    : tile(tile), builder(tile.builder), loc(tile.loc),
      contraction(tile.contraction), pieces(pieces),
      offsets(contraction.loops.size()) {
  // Guards of all segments get one numbering: those of segment `s` are
  // `firstGuards[s]` up to `firstGuards[s + 1]`.
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
/// one. `pieceOffset` is where the vector begins, relative to the tile, along
/// the vector loop.
int64_t StepLoads::getOffset(AffineExpr expr, int64_t pieceOffset) const {
  int64_t sum = pieceOffset * *getCoefficient(expr, tile.plan.vectorLoop);
  for (auto [loop, offset] : llvm::enumerate(offsets))
    if (offset)
      sum += offset * *getCoefficient(expr, loop);
  return sum;
}

/// The guards of a segment that some lane may fail; nothing if all lanes fail
/// one. Decided by interval arithmetic over all tiles (`tile.ranges`), so that
/// interior vectors need no mask.
std::optional<SmallVector<StepLoads::Test>>
StepLoads::getTests(Piece piece, unsigned segment) const {
  SmallVector<Test> tests;
  for (unsigned number = firstGuards[segment];
       number < firstGuards[segment + 1]; ++number) {
    const Guard &guard = guards[number];
    Interval range = getInterval(guard.expr, tile.ranges);
    int64_t offset = getOffset(guard.expr, piece.offset);
    // How far the guard's expression moves from the first to the last active
    // lane.
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

/// The value of a guard's expression at offsets of zero, evaluated once per
/// step.
Value StepLoads::getStart(unsigned guard) {
  Value &start = guardStarts[guard];
  if (!start)
    start = tile.evaluate(guards[guard].expr);
  return start;
}

/// Where a guard that changes from lane to lane holds.
Value StepLoads::testLanes(Piece piece, Test test, int64_t coefficient) {
  const Guard &guard = guards[test.guard];
  Interval range = getInterval(guard.expr, tile.ranges);
  // The same for all tiles: the mask is a constant.
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

/// Whether a guard holds that is the same for all lanes.
Value StepLoads::testScalar(Test test) {
  return arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::ult,
      tile.apply(tile.dim(0) + test.offset, {getStart(test.guard)}),
      tile.constant(guards[test.guard].extent));
}

/// The lanes that exist and pass all tests.
Value StepLoads::getMask(Piece piece, ArrayRef<Test> tests) {
  // A mask depends on the piece's size and tests; within a step its number
  // stands for the former.
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
    add(vector::BroadcastOp::create(builder, loc, type, testScalar(test)));
  }
  return mask;
}

/// The address of a vector input at offsets of zero.
Value StepLoads::getVectorStart(unsigned input, unsigned segment) {
  Value &start =
      vectorStarts[segment * contraction.vectorInputs.size() + input];
  if (!start)
    start = tile.evaluate(contraction.segments[segment].addresses[input]);
  return start;
}

/// Whether an input is read a page or more from its elements where a test that
/// all lanes share fails.
bool StepLoads::isFar(Test test, AffineExpr address) const {
  // Elements of f32 in a page of 4 KiB.
  constexpr int64_t page = 4096 / sizeof(float);
  const Guard &guard = guards[test.guard];
  if (*getCoefficient(guard.expr, tile.plan.vectorLoop))
    return false;
  Interval range = getInterval(guard.expr, tile.ranges);
  // The most by which the guard is missed; the address misses its tensor by as
  // many steps of the loop, times the loop's stride in the tensor.
  int64_t outside = std::max(-(range.lower + test.offset),
                             range.upper + test.offset - (guard.extent - 1));
  for (unsigned loop = 0; loop < contraction.loops.size(); ++loop)
    if (int64_t steps = *getCoefficient(guard.expr, loop))
      if (std::abs(*getCoefficient(address, loop) * outside) >=
          std::abs(steps) * page)
        return true;
  return false;
}

/// The same, but an address within the tensor where tests fail and it would be
/// far away: nothing is loaded then, but a masked load takes hundreds of cycles
/// where there is no page, as there may be none after a tensor.
Value StepLoads::getVectorStart(unsigned input, unsigned segment,
                                ArrayRef<Test> tests) {
  Value start = getVectorStart(input, segment);
  AffineExpr address = contraction.segments[segment].addresses[input];
  SmallVector<Test> shared;
  for (Test test : tests)
    if (isFar(test, address))
      shared.push_back(test);
  // Also the case of all tests that differ between lanes: their lanes are close
  // to elements that exist.
  if (shared.empty())
    return start;
  Value &chosen = chosenStarts[{input, segment, shared}];
  if (chosen)
    return chosen;
  Value holds;
  for (Test test : shared) {
    Value one = testScalar(test);
    holds = holds ? arith::AndIOp::create(builder, loc, holds, one).getResult()
                  : one;
  }
  // What is added to it may be negative.
  int64_t within = 0;
  for (auto [number, loop] : llvm::enumerate(contraction.loops))
    within += std::max<int64_t>(0, -*getCoefficient(address, number)) *
              (loop.extent - 1);
  return chosen = arith::SelectOp::create(builder, loc, holds, start,
                                          tile.constant(within));
}

/// One vector input at the lanes of a segment that pass the tests, and `others`
/// at the other ones. A chain over the segments merges them: no lane is in two
/// of them.
Value StepLoads::loadSegment(unsigned input, unsigned number, const Part &part,
                             Value others) {
  AffineExpr address = contraction.segments[part.segment].addresses[input];
  // Stride 2 occurs with one segment only, so that there is nothing to merge.
  if (*getCoefficient(address, tile.plan.vectorLoop) != 1)
    return loadEverySecond(input, number);
  Piece piece = pieces[number];
  Value flat = tile.vectorInputs[input];
  Value place = tile.apply(tile.dim(0) + getOffset(address, piece.offset),
                           {getVectorStart(input, part.segment, part.tests)});
  VectorType type = tile.getVectorType(piece.lanes);
  if (part.tests.empty() && piece.active == piece.lanes)
    return vector::LoadOp::create(builder, loc, type, flat, place);
  if (!others)
    others = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, flat, place,
                                      getMask(piece, part.tests), others);
}

//===----------------------------------------------------------------------===//
// Stride 2
//===----------------------------------------------------------------------===//

/// The line that the current place of the window reads, as its first place
/// does.
StepLoads::Line StepLoads::getLine(unsigned input, unsigned number) {
  std::optional<unsigned> loop = tile.plan.imageRowLoop;
  // Computes all offsets as if the window were at its first position, then puts
  // the current one back.
  int64_t place = loop ? std::exchange(offsets[*loop], 0) : 0;
  int64_t pieceOffset = pieces[number].offset;
  const ColumnSegment &segment = contraction.segments.front();
  Line line{
      input, number, getOffset(segment.addresses[input], pieceOffset), {}};
  for (auto [index, guard] : llvm::enumerate(segment.guards))
    line.guards.push_back(
        {static_cast<unsigned>(index), getOffset(guard.expr, pieceOffset)});
  if (loop)
    offsets[*loop] = place;
  return line;
}

/// The last element of a line that some lane reads at some place of the window.
/// Relative to the first element of the piece. Nothing after it may be read: it
/// may lie beyond the tensor.
int64_t StepLoads::getLastElement(Piece piece, unsigned input) const {
  int64_t last = 2 * (piece.active - 1);
  std::optional<unsigned> loop = tile.plan.imageRowLoop;
  if (!loop)
    return last;
  AffineExpr address = contraction.segments.front().addresses[input];
  return last + *getCoefficient(address, *loop) *
                    (contraction.loops[*loop].extent - 1);
}

/// Which of `lanes` elements from `first` on exist; null if all of them do, and
/// a vector of false if none does. Guards step with the elements, or are the
/// same for all of them: else only those of even numbers are read. Gives the
/// guards that are tested, too.
Value StepLoads::getElementMask(const Line &line, int64_t first, int64_t lanes,
                                SmallVectorImpl<Test> &tests) {
  auto step = [&](Test test) {
    return *getCoefficient(guards[test.guard].expr, tile.plan.vectorLoop);
  };
  // A guard that moves by 2 per output moves by 1 per element of the row, and
  // so holds for odd elements, too. One that moves otherwise
  // says it only of the elements that outputs are at.
  bool isWhole = llvm::all_of(line.guards, [&](Test test) {
    return step(test) == 0 || step(test) == 2;
  });
  auto getValue = [&](Test test, int64_t lane) {
    return test.offset + step(test) * (first + lane) / 2;
  };
  // Known at compile time: beyond the last one that is read, or outside for all
  // tiles. The tests remain for what depends on the tile.
  int64_t last = getLastElement(pieces[line.number], line.input);
  SmallVector<bool> exists;
  for (int64_t lane = 0; lane < lanes; ++lane)
    exists.push_back(first + lane <= last &&
                     (isWhole || (first + lane) % 2 == 0));
  for (Test test : line.guards) {
    int64_t extent = guards[test.guard].extent;
    Interval range = getInterval(guards[test.guard].expr, tile.ranges);
    bool mayFail = false;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t value = getValue(test, lane);
      if (range.upper + value < 0 || range.lower + value >= extent)
        exists[lane] = false;
      mayFail |= exists[lane] &&
                 (range.lower + value < 0 || range.upper + value >= extent);
    }
    if (mayFail)
      tests.push_back(test);
  }
  auto type = VectorType::get({lanes}, builder.getI1Type());
  Value mask;
  if (llvm::is_contained(exists, false))
    mask = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef(exists)));
  if (!llvm::is_contained(exists, true))
    return mask;
  for (Test test : tests) {
    Value holds;
    if (step(test)) {
      SmallVector<int64_t> values;
      for (int64_t lane = 0; lane < lanes; ++lane)
        values.push_back(getValue(test, lane));
      holds = tile.testLanes(getStart(test.guard), values,
                             guards[test.guard].extent);
    } else {
      holds = vector::BroadcastOp::create(builder, loc, type, testScalar(test));
    }
    mask = mask ? arith::AndIOp::create(builder, loc, mask, holds).getResult()
                : holds;
  }
  return mask;
}

/// `lanes` elements of a line from `first` on, with zeros where they do not
/// exist.
Value StepLoads::loadElements(const Line &line, int64_t first, int64_t lanes) {
  VectorType type = tile.getVectorType(lanes);
  SmallVector<Test> tests;
  Value mask = getElementMask(line, first, lanes, tests);
  Value flat = tile.vectorInputs[line.input];
  Value place = tile.apply(tile.dim(0) + (line.offset + first),
                           {getVectorStart(line.input, /*segment=*/0, tests)});
  if (!mask)
    return vector::LoadOp::create(builder, loc, type, flat, place);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  if (matchPattern(mask, m_Zero()))
    return zero;
  return vector::MaskedLoadOp::create(builder, loc, type, flat, place, mask,
                                      zero);
}

/// What depends on the line and on `part` of it only.
std::vector<int64_t> StepLoads::Line::getKey(int64_t part) const {
  // Equal offsets of all guards mean equal masks.
  std::vector<int64_t> key{input, number, offset, part};
  for (Test test : guards)
    key.push_back(test.offset);
  return key;
}

/// As `loadElements`, from the cache if it was loaded in this step.
Value StepLoads::loadOnce(const Line &line, int64_t first, int64_t lanes) {
  Value &loaded = elements[line.getKey(first)];
  if (!loaded)
    loaded = loadElements(line, first, lanes);
  return loaded;
}

/// A lane for each element of a piece of a line, from `start` on, whose number
/// from there is even (`parity` 0) or odd (1).
Value StepLoads::loadParity(const Line &line, int64_t parity, int64_t start) {
  int64_t lanes = pieces[line.number].lanes;
  // In one vector, if that is large enough.
  int64_t size = 2 * lanes <= tile.target.lanes ? 2 * lanes : lanes;
  SmallVector<Value> parts;
  for (int64_t first = 0; first < 2 * lanes; first += size)
    parts.push_back(loadOnce(line, start + first, size));
  SmallVector<int64_t> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(2 * lane + parity);
  if (tile.exchangesQuarters(pieces[line.number]))
    // From the first halves of both parts, then from the second ones.
    numbers = DirectEmitter::exchangeQuarters(numbers);
  return vector::ShuffleOp::create(builder, loc, parts.front(), parts.back(),
                                   numbers);
}

/// Every second element of a line from that after `moved` elements on, in the
/// order of sums whose quarters are exchanged.
Value StepLoads::loadMovedParity(const Line &line, int64_t moved) {
  // What two places load is loaded once, and nothing is loaded after the last
  // element that is read: places of odd numbers take it from one before them,
  // and so does the last place.
  int64_t lanes = pieces[line.number].lanes;
  int64_t last = getLastElement(pieces[line.number], line.input);
  bool isLast = moved + 2 * lanes - 1 > last;
  int64_t parity = moved % 2 || (moved && isLast) ? 1 : 0;
  Value &value = parities[line.getKey(moved)];
  if (!value)
    value = loadParity(line, parity, moved - parity);
  return value;
}

/// Every second element of a line, from that on which the current place of the
/// window begins with.
Value StepLoads::loadEverySecond(unsigned input, unsigned number) {
  Piece piece = pieces[number];
  Line line = getLine(input, number);
  AffineExpr address = contraction.segments.front().addresses[input];
  // In elements of the row; the position of the window is at `steps` elements
  // of its parity.
  int64_t moved = getOffset(address, piece.offset) - line.offset;
  if (tile.exchangesQuarters(piece))
    return loadMovedParity(line, moved);
  int64_t parity = moved % 2, steps = moved / 2;
  auto getParity = [&](unsigned number) {
    Line there = getLine(input, number);
    Value &value = parities[there.getKey(parity)];
    if (!value)
      value = loadParity(there, parity);
    return value;
  };
  Value here = getParity(number);
  if (steps == 0)
    return here;
  // The last lanes are the first ones of the next piece, or lie after it.
  // Otherwise a third vector has them, not yet separated: element `i` of the
  // parity is its lane `2 i + parity`.
  bool hasNext = number + 1 < pieces.size() &&
                 pieces[number + 1].offset == piece.offset + piece.lanes &&
                 pieces[number + 1].lanes == piece.lanes;
  Value next = hasNext ? getParity(number + 1)
                       : loadOnce(line, 2 * piece.lanes, piece.lanes);
  SmallVector<int64_t> numbers;
  for (int64_t lane = steps; lane < piece.lanes + steps; ++lane)
    numbers.push_back(lane < piece.lanes || hasNext
                          ? lane
                          : piece.lanes + 2 * (lane - piece.lanes) + parity);
  return vector::ShuffleOp::create(builder, loc, here, next, numbers);
}

/// The product of the vector inputs for one piece, with zeros where it does not
/// exist; null if it exists nowhere.
Value StepLoads::loadVector(unsigned number) {
  Piece piece = pieces[number];
  SmallVector<Part> parts;
  // All that the emitted code depends on: the segments, addresses and tests.
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
      value = loadSegment(input, number, part, value);
    product =
        product ? arith::MulFOp::create(builder, loc, product, value) : value;
  }
  return product;
}

/// The product of the scalar inputs as a vector; null if there are none.
Value StepLoads::loadScalar(int64_t lanes) {
  if (contraction.scalarInputs.empty())
    return Value();
  // The number of lanes, then the constant part of each address.
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

//===----------------------------------------------------------------------===//
// Images beyond the second-level cache
//===----------------------------------------------------------------------===//

/// Tiles walk along some lines of an image at once, a few vectors of each, and
/// then begin with the lines below: so many short streams that processors
/// recognize none, and wait for every line of an image that is in no near
/// cache. Two blocks of lines ahead is far enough: a 5x5 depthwise convolution
/// of 64 channels at 56x56 takes 57 us on a Zen 5 instead of 212 where its
/// image comes from memory (one block: 93, four: 56; 3x3 in groups of 4
/// channels: 184, 251 and 242 instead of 405), and where it is in the
/// second-level cache as long as before.
void StepLoads::fetchAhead() {
  constexpr int64_t numBlocks = 2;
  // Elements of f32 in a line of a cache.
  constexpr int64_t cacheLine = 64 / sizeof(float);
  const DirectPlan &plan = tile.plan;
  if (contraction.segments.size() != 1 || !plan.columnLoop ||
      plan.unrolled.empty())
    return;
  int64_t products = plan.registerRows * plan.registerColumns *
                     contraction.getExtent(plan.unrolled) * pieces.size();
  if (plan.imageRowLoop)
    products *= contraction.loops[*plan.imageRowLoop].extent;
  for (auto [input, address] :
       llvm::enumerate(contraction.segments.front().addresses)) {
    int64_t ofColumn = *getCoefficient(address, *plan.columnLoop);
    int64_t ofLine = *getCoefficient(address, plan.unrolled.front());
    int64_t ofLane = *getCoefficient(address, plan.vectorLoop);
    if (ofColumn <= 0 || ofLine <= 0 || ofLane <= 0)
      continue;
    int64_t block = plan.registerColumns * ofColumn;
    int64_t width = (pieces.back().offset + pieces.back().lanes) * ofLane;
    // Fetches are loads as others: small windows, of pooling for instance,
    // would pay for them where the image is near.
    int64_t fetches = llvm::divideCeilSigned(block, ofLine) *
                      llvm::divideCeilSigned(width, cacheLine);
    if (2 * fetches > products)
      continue;
    Value start = getVectorStart(input, /*segment=*/0);
    for (int64_t line = 0; line < block; line += ofLine)
      for (int64_t part = 0; part < width; part += cacheLine)
        // What is past the end of the image has no effect.
        memref::PrefetchOp::create(
            builder, loc, tile.vectorInputs[input],
            tile.apply(tile.dim(0) + (numBlocks * block + line + part),
                       {start}),
            /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
  }
}
