//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomOperator.h"
#include "RandomSizes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::test;

namespace {

/// A coordinate that nothing uses yet.
struct Coordinate {
  Value value;
  /// The reductions that it depends on, as bits.
  uint32_t reductions = 0;
};

/// Draws one operator. `run` gives up, leaving nothing, when the dice
/// fall so that a limit would be exceeded.
class Generator : RandomSizes {
public:
  Generator(OpBuilder &builder, uint64_t seed,
            const RandomOperatorOptions &options)
      : RandomSizes(builder.getContext(), seed, options.maxExtent,
                    options.maxPoints),
        builder(builder), options(options) {}

  std::optional<RandomOperator> run(StringRef name) {
    OperatorOp op = createOperator(name);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&op.getBody().front());
    // The largest number counts twice: empty weights are left out at the end.
    weights.resize(
        std::min<unsigned>(below(options.maxWeights + 2), options.maxWeights));
    unsigned numSteps = 1 + below(options.maxPrimitives);
    // A step that finds no operand is tried again with another primitive.
    for (unsigned attempts = 0;
         numPrimitives < numSteps && attempts < 10 * numSteps; ++attempts)
      addPrimitive();
    if (!finish(op)) {
      op.erase();
      return std::nullopt;
    }
    return RandomOperator{op, getBinding()};
  }

private:
  //===--------------------------------------------------------------------===//
  // The operator's frame
  //===--------------------------------------------------------------------===//

  SmallVector<bool> drawFlags(size_t count) {
    SmallVector<bool> flags(count);
    for (bool &flag : flags)
      flag = chance(15);
    return flags;
  }

  /// The input is not known before the body is; `finish` sets it.
  OperatorOp createOperator(StringRef name) {
    static constexpr unsigned ranks[] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 4};
    unsigned rank = pick(ranks);
    Location loc = builder.getUnknownLoc();
    auto op = OperatorOp::create(
        builder, loc, name, /*sym_visibility=*/nullptr,
        getNames(SymbolKind::Primary), getNames(SymbolKind::Coefficient),
        drawFlags(rank), builder.getArrayAttr({}), ArrayRef<bool>());
    Block &block = op.getBody().emplaceBlock();
    for (unsigned i = 0; i < rank; ++i) {
      Size size =
          drawSize(std::min(options.maxExtent, options.maxPoints / points));
      points *= *valueOf(size);
      live.push_back({block.addArgument(
          CoordType::get(builder.getContext(), toAttr(size)), loc)});
    }
    return op;
  }

  bool finish(OperatorOp op) {
    takeDirectly();
    if (live.empty() &&
        (numPrimitives == options.maxPrimitives || !addReduce()))
      return false;
    shuffle(live);
    llvm::erase_if(weights, [](auto &weight) { return weight.empty(); });
    SmallVector<Value> data;
    SmallVector<Attribute> sizes;
    for (const Coordinate &coordinate : live) {
      data.push_back(coordinate.value);
      sizes.push_back(getSize(coordinate.value));
    }
    SmallVector<ValueRange> weightRanges;
    for (SmallVector<Value> &weight : weights) {
      shuffle(weight);
      weightRanges.push_back(weight);
    }
    for (ValueRange tensor : weightRanges)
      if (!isSmall(tensor))
        return false;
    if (!isSmall(data))
      return false;
    YieldOp::create(builder, op.getLoc(), data, weightRanges);
    op.setInputSizesAttr(builder.getArrayAttr(sizes));
    op.setInputUnordered(drawFlags(sizes.size()));
    return true;
  }

  bool isSmall(ValueRange tensor) {
    int64_t count = 1;
    for (Value coordinate : tensor)
      if (llvm::MulOverflow(count, extentOf(coordinate), count) ||
          count > options.maxPoints)
        return false;
    return true;
  }

  /// Lets weights take some of the coordinates that are left. Reductions too:
  /// the data may see none of them.
  void takeDirectly() {
    if (weights.empty())
      return;
    SmallVector<Coordinate> kept;
    for (const Coordinate &coordinate : live) {
      auto *empty =
          llvm::find_if(weights, [](auto &weight) { return weight.empty(); });
      if (empty != weights.end() && chance(50))
        empty->push_back(coordinate.value);
      else if (chance(20))
        weights[below(weights.size())].push_back(coordinate.value);
      else
        kept.push_back(coordinate);
    }
    live = kept;
  }

  //===--------------------------------------------------------------------===//
  // Primitives
  //===--------------------------------------------------------------------===//

  void addPrimitive() {
    if (options.redexPercent && chance(options.redexPercent))
      return addRedex();
    bool (Generator::*const primitives[])() = {
        &Generator::addReduce, &Generator::addReduce, &Generator::addReduce,
        &Generator::addSplit,  &Generator::addSplit,  &Generator::addMerge,
        &Generator::addMerge,  &Generator::addMerge,  &Generator::addShift,
        &Generator::addExpand, &Generator::addUnfold, &Generator::addUnfold,
        &Generator::addUnfold, &Generator::addStride, &Generator::addShare,
        &Generator::addShare};
    numPrimitives += (this->*pick(primitives))();
  }

  /// Takes a coordinate out of those that are not used yet: often the newest,
  /// so that primitives pile up on each other.
  Coordinate take() {
    size_t index = chance(40) ? live.size() - 1 : below(live.size());
    Coordinate coordinate = live[index];
    live.erase(live.begin() + index);
    return coordinate;
  }

  void give(Value value, uint32_t reductions) {
    live.push_back({value, reductions});
  }
  bool giveBack(const Coordinate &coordinate) {
    live.push_back(coordinate);
    return false;
  }

  bool addReduce() {
    static constexpr ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Sum,
                                           ReduceKind::Sum, ReduceKind::Mean,
                                           ReduceKind::Max};
    if (numReductions == 6)
      return false;
    Size size = drawSize(
        std::min(options.maxExtent * 2 / 3, options.maxPoints / points));
    points *= *valueOf(size);
    auto reduce = ReduceOp::create(builder, builder.getUnknownLoc(),
                                   pick(kinds), toAttr(size));
    uint32_t bit = 1u << numReductions++;
    give(reduce.getResult(), bit);
    return true;
  }

  bool addSplit() {
    if (live.size() < 2)
      return false;
    Coordinate first = take(), second = take();
    if (!fits(sizeOf(first.value).multiply(sizeOf(second.value)))) {
      giveBack(first);
      return giveBack(second);
    }
    if (chance(50))
      std::swap(first, second);
    live.push_back(makeSplit(first, second));
    return true;
  }

  bool addMerge() {
    if (live.empty())
      return false;
    Coordinate coordinate = take();
    SmallVector<Size> blocks = getBlocks(sizeOf(coordinate.value));
    SmallVector<Size> proper = getProperBlocks(sizeOf(coordinate.value));
    if (!proper.empty() && chance(85))
      blocks = proper;
    else if (blocks.empty() || chance(70))
      return giveBack(coordinate);
    auto [high, low] = makeMerge(coordinate, pick(blocks));
    live.push_back(high);
    live.push_back(low);
    return true;
  }

  bool addShift() {
    if (live.empty())
      return false;
    Coordinate coordinate = take();
    int64_t extent = extentOf(coordinate.value);
    if (extent < 2)
      return giveBack(coordinate);
    int64_t amount = 1 + below(extent - 1);
    auto shift =
        ShiftOp::create(builder, builder.getUnknownLoc(), coordinate.value,
                        chance(50) ? amount : -amount);
    give(shift.getResult(), coordinate.reductions);
    return true;
  }

  /// Whether each reduction that `coordinate` depends on is reached without it
  /// (C11).
  bool isDroppable(const Coordinate &coordinate) {
    uint32_t elsewhere = inWeights;
    for (const Coordinate &other : live)
      elsewhere |= other.reductions;
    return (coordinate.reductions & ~elsewhere) == 0;
  }

  bool addExpand() {
    if (live.size() < 2)
      return false;
    Coordinate coordinate = take();
    if (!isDroppable(coordinate))
      return giveBack(coordinate);
    ExpandOp::create(builder, builder.getUnknownLoc(), coordinate.value);
    return true;
  }

  bool addUnfold() {
    if (live.size() < 2)
      return false;
    Coordinate coordinate = take(), window = take();
    if (extentOf(window.value) > extentOf(coordinate.value) && chance(70))
      std::swap(coordinate, window);
    auto unfold =
        UnfoldOp::create(builder, builder.getUnknownLoc(), coordinate.value,
                         window.value, drawLow(extentOf(window.value)));
    give(unfold.getResult(), coordinate.reductions | window.reductions);
    return true;
  }

  /// The default, an integer, a size or `causal`.
  Attribute drawLow(int64_t window) {
    if (options.causalPercent && chance(options.causalPercent))
      return builder.getUnitAttr();
    if (chance(50))
      return nullptr;
    if (window > 1 && chance(40)) {
      Size size = drawSize(window - 1);
      if (!size.isConstant())
        return toAttr(size);
    }
    return builder.getI64IntegerAttr(below(window));
  }

  bool addStride() {
    if (live.empty())
      return false;
    Coordinate coordinate = take();
    Size factor = drawSize(4);
    if (!fits(sizeOf(coordinate.value).multiply(factor)))
      return giveBack(coordinate);
    live.push_back(makeStride(coordinate, factor));
    return true;
  }

  Coordinate makeStride(const Coordinate &coordinate, Size factor) {
    auto stride = StrideOp::create(builder, builder.getUnknownLoc(),
                                   coordinate.value, toAttr(factor));
    return {stride.getResult(), coordinate.reductions};
  }

  bool addShare() {
    if (live.empty() || weights.empty())
      return false;
    Coordinate coordinate = take();
    auto share =
        ShareOp::create(builder, builder.getUnknownLoc(), coordinate.value);
    give(share.getData(), coordinate.reductions);
    inWeights |= coordinate.reductions;
    // Sharing a coordinate again gives a product of weights or a diagonal.
    auto previous = coordinate.value.getDefiningOp<ShareOp>();
    if (!previous || chance(50))
      lastWeight = below(weights.size());
    weights[lastWeight].push_back(share.getWeight());
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Several primitives at once
  //===--------------------------------------------------------------------===//

  Coordinate makeSplit(const Coordinate &outer, const Coordinate &inner) {
    auto split = SplitOp::create(builder, builder.getUnknownLoc(), outer.value,
                                 inner.value);
    return {split.getResult(), outer.reductions | inner.reductions};
  }

  std::pair<Coordinate, Coordinate> makeMerge(const Coordinate &coordinate,
                                              const Size &block) {
    auto merge = MergeOp::create(builder, builder.getUnknownLoc(),
                                 coordinate.value, toAttr(block));
    return {{merge.getQuotient(), coordinate.reductions},
            {merge.getRemainder(), coordinate.reductions}};
  }

  /// Shifted, often by a multiple of `step`; as it is where there is no room.
  Coordinate makeShift(const Coordinate &coordinate, int64_t step = 1) {
    int64_t extent = extentOf(coordinate.value);
    if (extent < 2)
      return coordinate;
    int64_t amount = 1 + below(extent - 1);
    if (step < extent && chance(70))
      amount = std::max(amount / step, int64_t(1)) * step;
    auto shift =
        ShiftOp::create(builder, builder.getUnknownLoc(), coordinate.value,
                        chance(50) ? amount : -amount);
    return {shift.getResult(), coordinate.reductions};
  }

  /// A coordinate and a block by which it can be merged into parts; or none.
  std::optional<std::pair<Coordinate, Size>> takeWithBlock() {
    Coordinate coordinate = take();
    SmallVector<Size> blocks = getProperBlocks(sizeOf(coordinate.value));
    if (!blocks.empty())
      return std::pair(coordinate, pick(blocks));
    giveBack(coordinate);
    return std::nullopt;
  }

  void addRedex() {
    if (live.size() < 2)
      return;
    size_t before = llvm::range_size(*builder.getInsertionBlock());
    void (Generator::*const redexes[])() = {
        &Generator::addJoinedHalves, &Generator::addQuotients,
        &Generator::addShiftedMerge, &Generator::addShiftedSplit,
        &Generator::addReducedSplit, &Generator::addNestedSplit,
        &Generator::addMergedStride};
    (this->*pick(redexes))();
    numPrimitives += llvm::range_size(*builder.getInsertionBlock()) - before;
  }

  /// Halves side by side, the upper one shifted or not, beside something else
  /// or not.
  void addJoinedHalves() {
    auto taken = takeWithBlock();
    if (!taken)
      return;
    auto [high, low] = makeMerge(taken->first, taken->second);
    if (chance(60))
      high = makeShift(high);
    if (chance(30) && !live.empty())
      addBeside(low);
    Coordinate whole = makeSplit(high, low);
    live.push_back(chance(50) ? makeShift(whole) : whole);
  }

  /// Puts another coordinate beside `inner`, if it fits.
  void addBeside(Coordinate &inner) {
    Coordinate other = take();
    std::optional<Size> product =
        sizeOf(inner.value).multiply(sizeOf(other.value));
    if (fits(product) && *valueOf(*product) <= options.maxExtent)
      inner = makeSplit(inner, other);
    else
      giveBack(other);
  }

  /// Merges of a half, some of whose parts are dropped.
  void addQuotients() {
    auto taken = takeWithBlock();
    if (!taken)
      return;
    auto [high, low] = makeMerge(taken->first, taken->second);
    if (chance(50))
      std::swap(high, low);
    live.push_back(high);
    SmallVector<Size> blocks = getProperBlocks(sizeOf(low.value));
    if (blocks.empty())
      return live.push_back(low);
    auto [upper, lower] = makeMerge(low, pick(blocks));
    live.push_back(upper);
    live.push_back(lower);
    for (unsigned count = below(3); count > 0; --count)
      addExpand();
  }

  /// The halves of a shift, one of which may be dropped.
  void addShiftedMerge() {
    auto taken = takeWithBlock();
    if (!taken)
      return;
    auto [high, low] = makeMerge(
        makeShift(taken->first, *valueOf(taken->second)), taken->second);
    live.push_back(low);
    live.push_back(high);
    if (chance(50))
      addExpand();
  }

  /// A shifted split of a shift, merged by its inner operand.
  void addShiftedSplit() {
    Coordinate outer = take(), inner = take();
    if (!fits(sizeOf(outer.value).multiply(sizeOf(inner.value)))) {
      giveBack(outer);
      giveBack(inner);
      return;
    }
    Size block = sizeOf(inner.value);
    auto [high, low] =
        makeMerge(makeShift(makeSplit(makeShift(outer), inner)), block);
    live.push_back(high);
    live.push_back(low);
  }

  /// The halves of a stride, shifted or not, by its factor or by a part of it,
  /// one of which may be dropped.
  void addMergedStride() {
    Coordinate coordinate = take();
    Size factor = drawSize(4);
    if (!fits(sizeOf(coordinate.value).multiply(factor))) {
      giveBack(coordinate);
      return;
    }
    Coordinate strided = makeStride(coordinate, factor);
    SmallVector<Size> blocks = getProperBlocks(factor);
    blocks.push_back(factor);
    Coordinate whole = chance(50) ? makeShift(strided) : strided;
    auto [high, low] = makeMerge(whole, pick(blocks));
    live.push_back(high);
    live.push_back(low);
    if (chance(75))
      addExpand();
  }

  /// A reduction above another coordinate, shifted.
  void addReducedSplit() {
    Coordinate inner = take();
    if (!addReduce()) {
      giveBack(inner);
      return;
    }
    Coordinate reduce = live.pop_back_val();
    if (!fits(sizeOf(reduce.value).multiply(sizeOf(inner.value)))) {
      giveBack(inner);
      giveBack(reduce);
      return;
    }
    if (chance(30))
      addBeside(inner);
    Coordinate split = makeSplit(reduce, inner);
    live.push_back(chance(80) ? makeShift(split) : split);
  }

  /// Splits of splits, merged by one of their operands or by part of one.
  void addNestedSplit() {
    Coordinate a = take(), b = take();
    if (!fits(sizeOf(a.value).multiply(sizeOf(b.value)))) {
      giveBack(a);
      giveBack(b);
      return;
    }
    Size block = sizeOf(b.value);
    if (SmallVector<Size> blocks = getProperBlocks(block);
        !blocks.empty() && chance(50))
      block = pick(blocks);
    Coordinate whole = makeSplit(a, b);
    if (!live.empty() && chance(60)) {
      Coordinate c = take();
      if (!fits(sizeOf(whole.value).multiply(sizeOf(c.value)))) {
        giveBack(c);
      } else if (chance(50)) {
        std::optional<Size> larger = block.multiply(sizeOf(c.value));
        block = larger ? *larger : block;
        whole = makeSplit(whole, c);
      } else {
        whole = makeSplit(c, whole);
      }
    }
    if (!llvm::is_contained(getBlocks(sizeOf(whole.value)), block))
      return live.push_back(whole);
    auto [high, low] = makeMerge(whole, block);
    live.push_back(high);
    live.push_back(low);
    if (chance(20))
      addExpand();
  }

  OpBuilder &builder;
  RandomOperatorOptions options;
  int64_t points = 1;
  unsigned numPrimitives = 0, numReductions = 0;
  SmallVector<Coordinate> live;
  SmallVector<SmallVector<Value>> weights;
  uint32_t inWeights = 0;
  unsigned lastWeight = 0;
};

} // namespace

RandomOperator
kas::test::makeRandomOperator(OpBuilder &builder, StringRef name, uint64_t seed,
                              const RandomOperatorOptions &options) {
  for (uint64_t attempt = 0;; ++attempt)
    if (std::optional<RandomOperator> result =
            Generator(builder, mixBits(seed) + attempt, options).run(name))
      return *result;
}
