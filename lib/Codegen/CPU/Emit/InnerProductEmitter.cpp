//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits contractions by inner products: vectors lie along a reduction, and
// their lanes are added up at the end. InnerProductPlan.cpp makes the plan;
// docs/internals/code-generation.md, "Vectors along a reduction", says what it
// is for.
//
// The nest is: blocks of the outermost reduction (sequential), tiles of the
// output (shared by threads), other reductions, vectors along `vectorLoop`. A
// tile has one vector of partial sums for each of its elements; where vectors
// wait in memory between blocks, threads share the tiles outside of the blocks.
// Guards are tested as far outside as their loops allow: before the tile, as
// bounds of a loop, before its body, or as masks of lanes.
//
//===----------------------------------------------------------------------===//

#include "EmitContraction.h"
#include "LoopEmitter.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/DenseMap.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// The index of a loop: a value and an offset that is known.
struct Index {
  Value start;
  int64_t offset = 0;
};

/// Emits one contraction; `emit` is called once.
class InnerProductEmitter : protected LoopEmitter {
public:
  InnerProductEmitter(OpBuilder &builder, Location loc,
                      const InnerProductPlan &plan, Value output,
                      const ContractionTarget &target, int64_t threads)
      : LoopEmitter(builder, loc), plan(plan), target(target), threads(threads),
        output(output), indices(plan.loops.size()) {}

  void emit();

private:
  /// What one vector of one place of the tile is loaded under: all lanes where
  /// there is no mask.
  struct Lanes {
    bool isEmpty = false;
    Value mask;
  };

  Value evaluate(AffineExpr expr);
  void emitBlocks(function_ref<void()> body);
  void emitBlock();
  void emitWaiting();
  void emitItem(Value item, Body body);
  void emitTile(Value item);
  void emitSums(ArrayRef<Value> sums, bool adds);
  SmallVector<Value> loadVectors(Value item);
  void storeVectors(Value item, ArrayRef<Value> sums);
  Value getVectorPlace(Value item, int64_t number);
  SmallVector<Value> emitGuarded(ArrayRef<Guard> guards, ValueRange sums,
                                 function_ref<SmallVector<Value>()> body);
  SmallVector<Value> emitReduction(unsigned level, ValueRange sums);
  SmallVector<Value> emitVectors(ValueRange sums);
  SmallVector<Value> emitStep(ValueRange sums);
  Value load(const InnerProductPlan::Input &input, Value flat, Value mask);
  Value loadEveryOther(Value flat, Value place, Value mask);
  Lanes getLanes(int64_t tail);
  Value addUp(Value sum);
  void forEachPosition(function_ref<void()> body);
  void forEachPosition(unsigned loop, function_ref<void()> body);
  /// The loops that have an index before reduction `level` has.
  bool isKnown(AffineExpr expr, unsigned level) const;

  const InnerProductPlan &plan;
  const ContractionTarget &target;
  int64_t threads;
  /// The output as it is, and flat; the inputs are flat.
  Value output, flatOutput;
  SmallVector<Value> inputs;
  SmallVector<Index> indices;
  /// The first iteration of the block.
  Value blockStart;
  /// The vectors of sums of all tiles between blocks, where they wait.
  Value waiting;
  /// What is loaded in one step, by input, address and mask.
  DenseMap<std::tuple<unsigned, int64_t, void *>, Value> loaded;
  /// The addresses of the inputs at the first place of the tile, in one step.
  SmallVector<Value> addresses;
  /// The guards of lanes, by guard and by what is tested.
  DenseMap<std::pair<unsigned, int64_t>, Value> tested;
};

} // namespace

/// At the current indices; what has none counts as its offset.
Value InnerProductEmitter::evaluate(AffineExpr expr) {
  SmallVector<AffineExpr> dims;
  SmallVector<Value> operands;
  for (const Index &index : indices) {
    AffineExpr value = builder.getAffineConstantExpr(index.offset);
    if (index.start) {
      value = value + dim(operands.size());
      operands.push_back(index.start);
    }
    dims.push_back(value);
  }
  return apply(expr.replaceDims(dims), operands);
}

//===----------------------------------------------------------------------===//
// Loops over tiles
//===----------------------------------------------------------------------===//

void InnerProductEmitter::emit() {
  flatOutput =
      flatten(output, cast<MemRefType>(output.getType()).getNumElements());
  for (const InnerProductPlan::Input &input : plan.inputs)
    inputs.push_back(flatten(input.buffer, input.size));
  if (!plan.hasBlocks())
    return emitBlock();
  if (plan.keepsVectors)
    return emitWaiting();
  linalg::FillOp::create(builder, loc, zero(), output);
  emitBlocks([&] { emitBlock(); });
}

/// The sums of a block are added to those of the blocks before it, in their
/// order.
void InnerProductEmitter::emitBlocks(function_ref<void()> body) {
  serialLoop(plan.loops[plan.reductions.front()].extent, plan.block,
             [&](Value start) {
               blockStart = start;
               body();
             });
}

/// One item per tile of the output. Threads never share a sum, so that results
/// do not depend on their number.
void InnerProductEmitter::emitBlock() {
  int64_t numItems = plan.getNumTiles();
  auto body = [&](Value item) {
    emitItem(item, [&](Value item) { emitTile(item); });
  };
  if (numItems == 1)
    body(constant(0));
  else if (threads == 1)
    serialLoop(numItems, 1, body);
  else
    sharedLoop(numItems, body);
}

/// All blocks where vectors of sums wait. A thread computes all blocks of the
/// items that it has, so that it need not wait for others after each.
void InnerProductEmitter::emitWaiting() {
  int64_t numItems = plan.getNumTiles();
  auto type =
      MemRefType::get({numItems * plan.getNumSums() * plan.lanes}, elementType);
  waiting = memref::AllocOp::create(builder, loc, type,
                                    builder.getI64IntegerAttr(64));
  linalg::FillOp::create(builder, loc, zero(), waiting);
  auto compute = [&](Value from, Value to) {
    auto items = [&](Body body) {
      auto op = scf::ForOp::create(builder, loc, from, to, constant(1));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(op.getBody());
      emitItem(op.getInductionVar(), body);
    };
    emitBlocks([&] { items([&](Value item) { emitTile(item); }); });
    items([&](Value item) { emitSums(loadVectors(item), /*adds=*/false); });
  };
  if (threads == 1)
    return compute(constant(0), constant(numItems));
  // An unknown number of threads is that of the parts at most.
  constexpr int64_t maxThreads = 32;
  int64_t parts = std::min(numItems, threads ? threads : maxThreads);
  int64_t share = llvm::divideCeil(numItems, parts);
  sharedLoop(parts, [&](Value part) {
    Value from = apply(dim(0) * share, {part});
    Value to = arith::MinSIOp::create(builder, loc,
                                      apply(dim(0) * share + share, {part}),
                                      constant(numItems));
    compute(from, to);
  });
}

/// The digits of `item` are the tiles along each loop, the last loop the
/// fastest.
void InnerProductEmitter::emitItem(Value item, Body body) {
  AffineExpr rest = dim(0);
  for (unsigned loop = plan.loops.size(); loop-- > 0;) {
    int64_t count = plan.loops[loop].extent / plan.tile[loop];
    if (plan.loops[loop].isReduction || count == 1)
      continue;
    indices[loop].start = apply(rest % count * plan.tile[loop], {item});
    rest = rest.floorDiv(count);
  }
  body(item);
  for (unsigned loop = 0; loop < plan.loops.size(); ++loop)
    indices[loop] = {};
}

/// Sets the offsets of all loops from `loop` on, as nested loops would, and
/// calls `body` in the order of the tile's sums.
void InnerProductEmitter::forEachPosition(unsigned loop,
                                          function_ref<void()> body) {
  if (loop == plan.loops.size())
    return body();
  for (int64_t offset = 0; offset < plan.tile[loop]; ++offset) {
    if (plan.tile[loop] > 1)
      indices[loop].offset = offset;
    forEachPosition(loop + 1, body);
  }
  if (plan.tile[loop] > 1)
    indices[loop].offset = 0;
}

/// `body` at each place of the tile.
void InnerProductEmitter::forEachPosition(function_ref<void()> body) {
  forEachPosition(0, body);
}

/// The sum of the lanes, of halves and halves of these.
Value InnerProductEmitter::addUp(Value sum) {
  for (int64_t size = plan.lanes / 2; size > 0; size /= 2) {
    auto half = [&](int64_t start) {
      return vector::ExtractStridedSliceOp::create(builder, loc, sum, start,
                                                   size, 1);
    };
    sum = arith::AddFOp::create(builder, loc, half(0), half(size));
  }
  return vector::ExtractOp::create(builder, loc, sum, ArrayRef<int64_t>{0});
}

/// Where vector `number` of the sums of tile `item` waits.
Value InnerProductEmitter::getVectorPlace(Value item, int64_t number) {
  return apply((dim(0) * plan.getNumSums() + number) * plan.lanes, {item});
}

SmallVector<Value> InnerProductEmitter::loadVectors(Value item) {
  SmallVector<Value> sums;
  for (int64_t number = 0; number < plan.getNumSums(); ++number)
    sums.push_back(vector::LoadOp::create(builder, loc,
                                          getVectorType(plan.lanes), waiting,
                                          getVectorPlace(item, number)));
  return sums;
}

void InnerProductEmitter::storeVectors(Value item, ArrayRef<Value> sums) {
  for (auto [number, sum] : llvm::enumerate(sums))
    vector::StoreOp::create(builder, loc, sum, waiting,
                            getVectorPlace(item, number));
}

void InnerProductEmitter::emitTile(Value item) {
  SmallVector<Value> sums =
      waiting ? loadVectors(item)
              : SmallVector<Value>(plan.getNumSums(),
                                   zeros(getVectorType(plan.lanes)));
  SmallVector<Guard> ready;
  for (const Guard &guard : plan.guards)
    if (isKnown(guard.expr, 0))
      ready.push_back(guard);
  sums = emitGuarded(ready, sums, [&] { return emitReduction(0, sums); });
  if (waiting)
    storeVectors(item, sums);
  else
    emitSums(sums, /*adds=*/plan.hasBlocks());
}

/// Stores the tile whose vectors are `sums`, or adds it to the output.
void InnerProductEmitter::emitSums(ArrayRef<Value> sums, bool adds) {
  unsigned number = 0;
  forEachPosition([&] {
    Value sum = addUp(sums[number++]);
    if (plan.factor != 1)
      sum = arith::MulFOp::create(
          builder, loc, sum,
          arith::ConstantOp::create(
              builder, loc,
              builder.getF32FloatAttr(static_cast<float>(plan.factor))));
    Value place = evaluate(plan.output);
    if (adds)
      sum = arith::AddFOp::create(
          builder, loc, memref::LoadOp::create(builder, loc, flatOutput, place),
          sum);
    memref::StoreOp::create(builder, loc, sum, flatOutput, place);
  });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// True if `expr` depends neither on the vector loop nor on a reduction from
/// `level` on.
bool InnerProductEmitter::isKnown(AffineExpr expr, unsigned level) const {
  if (expr.isFunctionOfDim(plan.vectorLoop))
    return false;
  return llvm::none_of(
      ArrayRef(plan.reductions).drop_front(level),
      [&](unsigned loop) { return expr.isFunctionOfDim(loop); });
}

/// `body` where the guards hold, else `sums`.
SmallVector<Value>
InnerProductEmitter::emitGuarded(ArrayRef<Guard> guards, ValueRange sums,
                                 function_ref<SmallVector<Value>()> body) {
  Value condition;
  for (const Guard &guard : guards) {
    // A negative number is a large one without its sign.
    Value holds =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                              evaluate(guard.expr), constant(guard.extent));
    condition = condition
                    ? arith::AndIOp::create(builder, loc, condition, holds)
                    : holds;
  }
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(builder, loc, sums.getTypes(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard insertion(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, body());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, sums);
  return SmallVector<Value>(branch.getResults());
}

/// The loops from reduction `level` on, which carry the sums.
SmallVector<Value> InnerProductEmitter::emitReduction(unsigned level,
                                                      ValueRange sums) {
  if (level == plan.reductions.size())
    return emitVectors(sums);
  unsigned loop = plan.reductions[level];
  bool isBlock = level == 0 && blockStart;
  int64_t extent = isBlock ? plan.block : plan.loops[loop].extent;
  SmallVector<Guard> ready;
  Value lower = constant(0), upper = constant(extent);
  for (const Guard &guard : plan.guards) {
    // Guards whose last loop is this one; others are tested outside or inside.
    if (!isKnown(guard.expr, level + 1) || isKnown(guard.expr, level))
      continue;
    // 0 <= loop + rest < extent is a matter of the loop's bounds. The loop of a
    // block counts from the block's begin, which the bounds are not relative
    // to.
    if (isBlock || getCoefficient(guard.expr, loop) != 1) {
      ready.push_back(guard);
      continue;
    }
    indices[loop] = {};
    Value rest = evaluate(guard.expr);
    lower = arith::MaxSIOp::create(
        builder, loc, lower,
        arith::SubIOp::create(builder, loc, constant(0), rest));
    upper = arith::MinSIOp::create(
        builder, loc, upper,
        arith::SubIOp::create(builder, loc, constant(guard.extent), rest));
  }
  auto op = scf::ForOp::create(builder, loc, lower, upper, constant(1), sums);
  op->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
  OpBuilder::InsertionGuard insertion(builder);
  builder.setInsertionPointToStart(op.getBody());
  Value index = op.getInductionVar();
  indices[loop].start =
      isBlock ? arith::AddIOp::create(builder, loc, blockStart, index) : index;
  ValueRange carried = op.getRegionIterArgs();
  scf::YieldOp::create(builder, loc, emitGuarded(ready, carried, [&] {
                         return emitReduction(level + 1, carried);
                       }));
  indices[loop] = {};
  return SmallVector<Value>(op.getResults());
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// All of the vector loop: whole vectors, in a loop or unrolled, then the last
/// one, which may be partial. Returns the new sums.
SmallVector<Value> InnerProductEmitter::emitVectors(ValueRange start) {
  // Vectors of products in the unrolled code; longer rows become a loop, so
  // that code stays short.
  constexpr int64_t mostUnrolled = 64;
  int64_t extent = plan.loops[plan.vectorLoop].extent;
  int64_t whole = extent / plan.lanes * plan.lanes;
  SmallVector<Value> sums(start);
  Index &index = indices[plan.vectorLoop];
  // Short lines are unrolled, so that masks are constants.
  int64_t unrolled =
      extent / plan.lanes * plan.getNumSums() <= mostUnrolled ? whole : 0;
  if (whole > unrolled) {
    auto op = scf::ForOp::create(builder, loc, constant(0), constant(whole),
                                 constant(plan.lanes), sums);
    op->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
    OpBuilder::InsertionGuard insertion(builder);
    builder.setInsertionPointToStart(op.getBody());
    index.start = op.getInductionVar();
    scf::YieldOp::create(builder, loc, emitStep(op.getRegionIterArgs()));
    sums.assign(op.getResults().begin(), op.getResults().end());
  }
  index = {};
  for (int64_t offset = unrolled ? 0 : whole; offset < extent;
       offset += plan.lanes) {
    index.offset = offset;
    sums = emitStep(sums);
  }
  index = {};
  return sums;
}

/// The lanes that the guards and the end of the line leave, `tail` of them
/// before the end. Constant parts are one mask, those that depend on indices
/// are tested when the code runs.
InnerProductEmitter::Lanes InnerProductEmitter::getLanes(int64_t tail) {
  Lanes lanes;
  auto type = VectorType::get({plan.lanes}, builder.getI1Type());
  SmallVector<bool> known(plan.lanes, true);
  for (int64_t lane = tail; lane < plan.lanes; ++lane)
    known[lane] = false;
  auto require = [&](Value mask) {
    lanes.mask = lanes.mask
                     ? arith::AndIOp::create(builder, loc, lanes.mask, mask)
                     : mask;
  };
  for (auto [number, guard] : llvm::enumerate(plan.guards)) {
    if (!guard.expr.isFunctionOfDim(plan.vectorLoop))
      continue;
    int64_t step = *getCoefficient(guard.expr, plan.vectorLoop);
    Value first = evaluate(guard.expr);
    if (std::optional<int64_t> value = getConstantIntValue(first)) {
      for (int64_t lane = 0; lane < plan.lanes; ++lane) {
        int64_t tested = *value + step * lane;
        known[lane] = known[lane] && tested >= 0 && tested < guard.extent;
      }
      continue;
    }
    // The same test serves all places at which the guard is the same.
    int64_t key = 0;
    for (unsigned loop = 0; loop < plan.loops.size(); ++loop)
      if (guard.expr.isFunctionOfDim(loop))
        key = key * (plan.tile[loop] + 1) + indices[loop].offset;
    Value &mask = tested[{number, key}];
    if (!mask) {
      SmallVector<int64_t> steps;
      for (int64_t lane = 0; lane < plan.lanes; ++lane)
        steps.push_back(step * lane);
      mask = testLanes(first, steps, guard.extent);
    }
    require(mask);
  }
  lanes.isEmpty = llvm::none_of(known, [](bool lane) { return lane; });
  if (llvm::all_of(known, [](bool lane) { return lane; }))
    return lanes;
  int64_t key = 0;
  for (bool lane : known)
    key = key * 2 + lane;
  Value &mask = tested[{plan.guards.size(), key}];
  if (!mask)
    mask = arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, known));
  require(mask);
  return lanes;
}

/// The elements at `place`, two after it, and so on. Those between are read
/// where that is cheaper, but nothing after the last. `mask` has a lane for
/// each chosen element; it is spread over two vectors, whose even lanes hold
/// these:
///
///     mask    a b c d
///     first   a a b b   second  c c d d
Value InnerProductEmitter::loadEveryOther(Value flat, Value place, Value mask) {
  VectorType type = getVectorType(plan.lanes);
  auto maskType = VectorType::get({plan.lanes}, builder.getI1Type());
  SmallVector<bool> even(plan.lanes);
  SmallVector<int64_t> chosen, low, high;
  for (int64_t lane = 0; lane < plan.lanes; ++lane) {
    even[lane] = lane % 2 == 0;
    chosen.push_back(2 * lane);
    // An odd element is read as the one before it is.
    low.push_back(lane / 2);
    high.push_back(plan.lanes / 2 + lane / 2);
  }
  Value evenMask = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(maskType, even));
  auto loadPart = [&](int64_t offset, Value partMask) -> Value {
    Value start = apply(dim(0) + offset, {place});
    if (!partMask)
      return vector::LoadOp::create(builder, loc, type, flat, start);
    return vector::MaskedLoadOp::create(builder, loc, type, flat, start,
                                        partMask, zeros(type));
  };
  auto getMask = [&](ArrayRef<int64_t> lanes) -> Value {
    Value spread = vector::ShuffleOp::create(builder, loc, mask, mask, lanes);
    return arith::AndIOp::create(builder, loc, spread, evenMask);
  };
  Value first = loadPart(0, mask ? getMask(low) : Value());
  // The last lane would be the element after the last chosen one, which may lie
  // beyond the buffer: `evenMask` leaves it out.
  Value second = loadPart(plan.lanes, mask ? getMask(high) : evenMask);
  return vector::ShuffleOp::create(builder, loc, first, second, chosen);
}

/// One vector of `input` at the current indices.
Value InnerProductEmitter::load(const InnerProductPlan::Input &input,
                                Value flat, Value mask) {
  unsigned number = &input - plan.inputs.begin();
  int64_t offset = 0;
  for (unsigned loop = 0; loop < plan.loops.size(); ++loop)
    if (plan.tile[loop] > 1)
      offset += *getCoefficient(input.address, loop) * indices[loop].offset;
  Value &value = loaded[{number, offset, mask.getAsOpaquePointer()}];
  if (value)
    return value;
  Value place = apply(dim(0) + offset, {addresses[number]});
  VectorType type = getVectorType(plan.lanes);
  if (input.step == 2)
    value = loadEveryOther(flat, place, mask);
  else if (!input.isVector())
    value = vector::BroadcastOp::create(
        builder, loc, type, memref::LoadOp::create(builder, loc, flat, place));
  else if (mask)
    value = vector::MaskedLoadOp::create(builder, loc, type, flat, place, mask,
                                         zeros(type));
  else
    value = vector::LoadOp::create(builder, loc, type, flat, place);
  return value;
}

/// Adds one vector of products to each sum.
SmallVector<Value> InnerProductEmitter::emitStep(ValueRange start) {
  // The caches hold values of this step only: those of another one are in
  // another block, or at other indices.
  loaded.clear();
  tested.clear();
  addresses.clear();
  for (const InnerProductPlan::Input &input : plan.inputs)
    addresses.push_back(evaluate(input.address));
  const Index &index = indices[plan.vectorLoop];
  // In a loop over whole vectors the tail is never reached.
  int64_t tail = plan.lanes;
  if (!index.start)
    tail = std::min(tail, plan.loops[plan.vectorLoop].extent - index.offset);
  // Where no input needs it, one of them is masked, so that products are zero.
  bool isGuarded = llvm::any_of(plan.inputs, [](const auto &input) {
    return input.isGuarded && input.isVector();
  });
  SmallVector<Value> sums;
  forEachPosition([&] {
    Value sum = start[sums.size()];
    Lanes lanes = getLanes(tail);
    // This vector reads padding only.
    if (lanes.isEmpty) {
      sums.push_back(sum);
      return;
    }
    // All factors but the last are multiplied, the last one is part of the
    // fused multiply-add.
    Value product, last;
    bool needsMask = lanes.mask && !isGuarded;
    for (auto [input, flat] : llvm::zip_equal(plan.inputs, inputs)) {
      bool isMasked = input.isVector() &&
                      (input.isGuarded || needsMask || tail < plan.lanes);
      needsMask &= !isMasked;
      Value factor = load(input, flat, isMasked ? lanes.mask : Value());
      if (last)
        product =
            product ? arith::MulFOp::create(builder, loc, product, last) : last;
      last = factor;
    }
    sums.push_back(product ? multiplyAdd(product, last, sum, target.hasFMA)
                           : arith::AddFOp::create(builder, loc, sum, last));
  });
  return sums;
}

void kas::codegen::emitInnerProducts(OpBuilder &builder, Location loc,
                                     const InnerProductPlan &plan, Value output,
                                     const ContractionTarget &target,
                                     int64_t threads) {
  InnerProductEmitter(builder, loc, plan, output, target, threads).emit();
}
