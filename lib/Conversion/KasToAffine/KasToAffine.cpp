//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers operators and their gradients to affine loop nests on buffers, in
// program order and with guards for points that do not exist.
//
// The fallback that takes every operator (docs/internals/code-generation.md).
// One nest: output loops, then reductions in program order; a guard is an
// `affine.if` in the outermost loop that knows all of its terms, so that whole
// subnests are skipped. Accumulators are iteration arguments of loops, not
// memory.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/KasToAffine.h"
#include "kas/Conversion/KasGradient.h"
#include "kas/Conversion/Passes.h"
#include "kas/Conversion/VerifiedConversion.h"
#include "kas/Dialect/Kas/IR/KasDag.h"
#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace kas;

namespace kas {
#define GEN_PASS_DEF_KASTOAFFINEPASS
#define GEN_PASS_DEF_KASERASEOPERATORSPASS
#include "kas/Conversion/Passes.h.inc"
} // namespace kas

namespace {
/// Emits the loop nest of one operator.
///
/// With `max` and guards, a reduction carries beside its value whether any
/// point existed ("exists"). Otherwise one accumulator goes through all
/// reductions: skipping a point of a sum, or never skipping, needs no flag.
class LoopNestEmitter {
public:
  LoopNestEmitter(OpBuilder &builder, Location loc,
                  const Coordinates &coordinates, ValueRange inputs,
                  Value output, const AffineLoopOptions &options)
      : b(loc, builder), coordinates(coordinates), inputs(inputs),
        output(output), options(options), hasMax(coordinates.hasMax()),
        hasFlags(hasMax && !coordinates.guards.empty()) {
    elementType = cast<MemRefType>(output.getType()).getElementType();
    // Long sums in f16 or bf16 would lose most bits.
    computeType = elementType.getIntOrFloatBitWidth() < 32
                      ? Type(Float32Type::get(b.getContext()))
                      : elementType;
  }

  void emit() {
    OpBuilder::InsertionGuard guard(b);
    bool parallel =
        options.parallel && getNumIterations() >= options.minParallelWork;
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis) {
      if (getExtent(axis) == 1)
        addTrivialAxis();
      else
        parallel = emitOutputLoop(getExtent(axis), parallel);
    }
    // Stored at once: each output element is written by one iteration, which is
    // what makes parallel outputs legal.
    Value value = hasMax ? emitIteration() : emitSumOfIteration();
    if (value.getType() != elementType)
      value = arith::TruncFOp::create(b, elementType, value);
    AffineMap map = b.getMultiDimIdentityMap(coordinates.numOutputs);
    affine::AffineStoreOp::create(b, value, output, map, ivs);
  }

  /// Adds the gradient for the tensor number `target` to `output`, which must
  /// be filled with zeros; `gradient` is that of the operator's output.
  /// Reverse mode: goes through the operator's own points and adds to the
  /// target, in a fixed order. Not parallel: several points may add to one
  /// element.
  void emitGradient(Value gradient, unsigned target) {
    OpBuilder::InsertionGuard guard(b);
    // One per `max`, outside of all loops, so that the stack does not grow.
    for (unsigned axis = 0; axis < getNumAxes(); ++axis)
      if (coordinates.axes[axis].kind == ReduceKind::Max && getExtent(axis) > 1)
        buffers[axis] = memref::AllocaOp::create(
            b, MemRefType::get({getExtent(axis)}, computeType));
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis) {
      if (getExtent(axis) == 1)
        addTrivialAxis();
      else
        emitOutputLoop(getExtent(axis), /*parallel=*/false);
    }
    AffineMap map = b.getMultiDimIdentityMap(coordinates.numOutputs);
    Value factor = affine::AffineLoadOp::create(b, gradient, map, ivs);
    emitBackward(coordinates.numOutputs, factor, target);
  }

private:
  /// Adds `factor` times the derivative of the reductions from `axis` on.
  void emitBackward(unsigned axis, Value factor, unsigned target) {
    emitGuardedStep(axis, [&] {
      if (axis == getNumAxes())
        return addToTarget(factor, target);
      ReduceKind kind = *coordinates.axes[axis].kind;
      if (kind == ReduceKind::Mean)
        factor = arith::DivFOp::create(
            b, factor, createConstant(static_cast<double>(getExtent(axis))));
      // The derivative of a sum is 1 for every term.
      if (kind != ReduceKind::Max || getExtent(axis) == 1)
        return emitLoop(axis, [&] { emitBackward(axis + 1, factor, target); });
      Value best = storeValues(axis);
      // Equal values share the gradient in equal parts.
      factor = arith::DivFOp::create(b, factor, emitCount(axis, best));
      emitLoop(axis, [&] {
        Value share = arith::SelectOp::create(b, isEqualTo(axis, best), factor,
                                              createConstant(0));
        emitBackward(axis + 1, share, target);
      });
    });
  }

  /// Writes the values that the `max` of `axis` is over to its buffer, so that
  /// they are computed once: compilers may round a second time differently.
  /// Returns the largest.
  Value storeValues(unsigned axis) {
    Value lowest = createConstant(-std::numeric_limits<double>::infinity());
    auto loop = affine::AffineForOp::create(b, 0, getExtent(axis), 1, lowest);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ivs.push_back(loop.getInductionVar());
    SmallVector<Value> inner = emitReduction(axis + 1);
    // Below a value that does not exist there is no point to add to.
    Value value =
        hasFlags
            ? arith::SelectOp::create(b, inner[1], inner[0], lowest).getResult()
            : inner[0];
    affine::AffineStoreOp::create(b, value, buffers[axis], ivs.back());
    ivs.pop_back();
    Value best =
        arith::MaximumFOp::create(b, loop.getRegionIterArgs()[0], value);
    affine::AffineYieldOp::create(b, best);
    return loop.getResult(0);
  }

  /// Whether the value of `axis` at hand is `best`.
  Value isEqualTo(unsigned axis, Value best) {
    Value value =
        affine::AffineLoadOp::create(b, buffers[axis], ValueRange(ivs[axis]));
    // The same stored value, so equality is exact.
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value, best);
  }

  /// How many values of the `max` of `axis` are `best`.
  Value emitCount(unsigned axis, Value best) {
    auto loop = affine::AffineForOp::create(b, 0, getExtent(axis), 1,
                                            createConstant(0));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ivs.push_back(loop.getInductionVar());
    Value step = arith::SelectOp::create(b, isEqualTo(axis, best),
                                         createConstant(1), createConstant(0));
    ivs.pop_back();
    Value sum = arith::AddFOp::create(b, loop.getRegionIterArgs()[0], step);
    affine::AffineYieldOp::create(b, sum);
    return loop.getResult(0);
  }

  /// `emitBody` for each value of `axis`.
  void emitLoop(unsigned axis, llvm::function_ref<void()> emitBody) {
    if (getExtent(axis) == 1) {
      addTrivialAxis();
      emitBody();
      ivs.pop_back();
      return;
    }
    auto loop = affine::AffineForOp::create(b, 0, getExtent(axis));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ivs.push_back(loop.getInductionVar());
    emitBody();
    ivs.pop_back();
  }

  /// Adds `factor` times the product of all tensors but `target`.
  /// At the innermost point: the product rule for one factor.
  void addToTarget(Value factor, unsigned target) {
    auto getIndices = [&](unsigned tensor) -> ArrayRef<AffineExpr> {
      return tensor == 0
                 ? ArrayRef<AffineExpr>(coordinates.data)
                 : ArrayRef<AffineExpr>(coordinates.weights[tensor - 1]);
    };
    for (unsigned tensor = 0; tensor < inputs.size(); ++tensor)
      if (tensor != target)
        factor = arith::MulFOp::create(
            b, factor, emitLoad(inputs[tensor], getIndices(tensor)));
    auto map =
        AffineMap::get(getNumAxes(), 0, getIndices(target), b.getContext());
    Value sum = affine::AffineLoadOp::create(b, output, map, ivs);
    sum = arith::AddFOp::create(b, sum, factor);
    affine::AffineStoreOp::create(b, sum, output, map, ivs);
  }

  /// An axis of one value needs no loop. The expressions do not mention it.
  void addTrivialAxis() { ivs.push_back(arith::ConstantIndexOp::create(b, 0)); }

  /// Returns whether the loops inside should be parallel, too: one level is.
  /// Only the outermost loop that is longer than 1 is parallel: nested parallel
  /// regions gain nothing, and one loop is easy to share out.
  bool emitOutputLoop(int64_t extent, bool parallel) {
    if (parallel) {
      auto loop = affine::AffineParallelOp::create(
          b, TypeRange(), ArrayRef<arith::AtomicRMWKind>(), extent);
      ivs.push_back(loop.getIVs()[0]);
      b.setInsertionPointToStart(loop.getBody());
    } else {
      auto loop = affine::AffineForOp::create(b, 0, extent);
      ivs.push_back(loop.getInductionVar());
      b.setInsertionPointToStart(loop.getBody());
    }
    return false;
  }

  /// Of all loops, reductions included: the work. As a double, since the
  /// product may exceed 64 bits.
  double getNumIterations() const {
    double points = 1;
    for (const Axis &axis : coordinates.axes)
      points *= static_cast<double>(axis.extent);
    return points;
  }

  int64_t getExtent(unsigned axis) const {
    return coordinates.axes[axis].extent;
  }
  unsigned getNumAxes() const { return coordinates.axes.size(); }

  Value createConstant(double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(computeType, value));
  }

  /// The value of an output point of a pure sum; means divide at the end.
  /// One division per output element, not one per mean.
  Value emitSumOfIteration() {
    Value sum = emitSum(coordinates.numOutputs, createConstant(0));
    double divisor = coordinates.getMeanDivisor();
    if (divisor == 1)
      return sum;
    return arith::DivFOp::create(b, sum, createConstant(divisor));
  }

  /// The value of an output point, 0 where it has none.
  Value emitIteration() {
    SmallVector<Value> partial = emitReduction(coordinates.numOutputs);
    if (!hasFlags)
      return partial[0];
    return arith::SelectOp::create(b, partial[1], partial[0],
                                   createConstant(0));
  }

  /// Adds to `sum` all points below the axes that have loops already.
  Value emitSum(unsigned axis, Value sum) {
    return emitGuarded(
        axis,
        [&]() -> SmallVector<Value> {
          if (axis == getNumAxes())
            return {arith::AddFOp::create(b, sum, emitProduct(), contract())};
          if (getExtent(axis) == 1) {
            addTrivialAxis();
            Value next = emitSum(axis + 1, sum);
            ivs.pop_back();
            return {next};
          }
          auto loop = affine::AffineForOp::create(b, 0, getExtent(axis), 1,
                                                  ValueRange(sum));
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToStart(loop.getBody());
          ivs.push_back(loop.getInductionVar());
          Value next = emitSum(axis + 1, loop.getRegionIterArgs()[0]);
          ivs.pop_back();
          affine::AffineYieldOp::create(b, next);
          return {loop.getResult(0)};
        },
        [&] { return SmallVector<Value>{sum}; })[0];
  }

  /// The value of the reductions from `axis` on, and whether it exists.
  /// Recursive: axis after axis, each a loop in the body of the one before.
  SmallVector<Value> emitReduction(unsigned axis) {
    return emitGuarded(
        axis,
        [&]() -> SmallVector<Value> {
          if (axis < getNumAxes())
            return emitReductionLoop(axis);
          return withFlag(emitProduct(), true);
        },
        [&] { return withFlag(createConstant(0), false); });
  }

  SmallVector<Value> withFlag(Value value, bool flag) {
    if (!hasFlags)
      return {value};
    return {value,
            arith::ConstantOp::create(b, b.getBoolAttr(flag)).getResult()};
  }

  SmallVector<Value> emitReductionLoop(unsigned axis) {
    if (getExtent(axis) == 1) {
      addTrivialAxis();
      SmallVector<Value> inner = emitReduction(axis + 1);
      ivs.pop_back();
      return inner;
    }
    ReduceKind kind = *coordinates.axes[axis].kind;
    double identity = kind == ReduceKind::Max
                          ? -std::numeric_limits<double>::infinity()
                          : 0.0;
    auto loop = affine::AffineForOp::create(
        b, 0, getExtent(axis), 1, withFlag(createConstant(identity), false));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      ivs.push_back(loop.getInductionVar());
      SmallVector<Value> inner = emitReduction(axis + 1);
      ivs.pop_back();
      affine::AffineYieldOp::create(
          b, combine(kind, loop.getRegionIterArgs(), inner));
    }
    SmallVector<Value> results(loop.getResults());
    if (kind == ReduceKind::Mean)
      results[0] = arith::DivFOp::create(
          b, results[0], createConstant(static_cast<double>(getExtent(axis))));
    return results;
  }

  /// `accumulated` with `inner`, where that exists.
  SmallVector<Value> combine(ReduceKind kind, ValueRange accumulated,
                             ValueRange inner) {
    Value value;
    if (kind == ReduceKind::Max)
      value = arith::MaximumFOp::create(b, accumulated[0], inner[0]);
    else
      value = arith::AddFOp::create(b, accumulated[0], inner[0], contract());
    if (!hasFlags)
      return {value};
    return {arith::SelectOp::create(b, inner[1], value, accumulated[0]),
            arith::OrIOp::create(b, accumulated[1], inner[1])};
  }

  /// The product of the data and the weights at the innermost point.
  Value emitProduct() {
    Value product = emitLoad(inputs[0], coordinates.data);
    for (auto [weight, indices] :
         llvm::zip_equal(inputs.drop_front(), coordinates.weights))
      product = arith::MulFOp::create(b, product, emitLoad(weight, indices),
                                      contract());
    return product;
  }

  Value emitLoad(Value buffer, ArrayRef<AffineExpr> indices) {
    auto map = AffineMap::get(getNumAxes(), 0, indices, b.getContext());
    Value value = affine::AffineLoadOp::create(b, buffer, map, ivs);
    if (value.getType() != computeType)
      value = arith::ExtFOp::create(b, computeType, value);
    return value;
  }

  /// Allows fused multiply-adds, and nothing else: sums keep their order.
  arith::FastMathFlagsAttr contract() {
    return arith::FastMathFlagsAttr::get(b.getContext(),
                                         arith::FastMathFlags::contract);
  }

  /// `emitThen`, which gives no value, under the same guards as `emitGuarded`.
  void emitGuardedStep(unsigned axis, llvm::function_ref<void()> emitThen) {
    IntegerSet set = getGuardSet(axis);
    if (!set)
      return emitThen();
    auto branch = affine::AffineIfOp::create(b, set, ivs, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.getThenBlock());
    emitThen();
  }

  /// The guards that can be checked once the first `axis` axes have loops, and
  /// no earlier; null where there are none.
  IntegerSet getGuardSet(unsigned axis) const {
    SmallVector<AffineExpr> constraints;
    for (const Guard &guard : coordinates.guards) {
      if (getLevel(guard) != axis)
        continue;
      constraints.push_back(guard.expr);
      // 0 <= expr and expr <= extent - 1.
      constraints.push_back(guard.extent - 1 - guard.expr);
    }
    if (constraints.empty())
      return {};
    return IntegerSet::get(axis, 0, constraints,
                           SmallVector<bool>(constraints.size(), false));
  }

  /// `emitThen` under the guards that can be checked once the first `axis` axes
  /// have loops, and no earlier.
  SmallVector<Value>
  emitGuarded(unsigned axis, llvm::function_ref<SmallVector<Value>()> emitThen,
              llvm::function_ref<SmallVector<Value>()> emitElse) {
    IntegerSet set = getGuardSet(axis);
    if (!set)
      return emitThen();
    SmallVector<Type> types(1, computeType);
    if (hasFlags)
      types.push_back(b.getI1Type());
    auto branch =
        affine::AffineIfOp::create(b, types, set, ivs, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.getThenBlock());
    affine::AffineYieldOp::create(b, emitThen());
    b.setInsertionPointToStart(branch.getElseBlock());
    affine::AffineYieldOp::create(b, emitElse());
    return SmallVector<Value>(branch.getResults());
  }

  /// How many axes must have loops before `guard` can be checked. Guards of
  /// outputs alone are checked where the reductions begin.
  unsigned getLevel(const Guard &guard) const {
    unsigned level = coordinates.numOutputs;
    guard.expr.walk([&](AffineExpr part) {
      if (auto dim = dyn_cast<AffineDimExpr>(part))
        level = std::max(level, dim.getPosition() + 1);
    });
    return level;
  }

  ImplicitLocOpBuilder b;
  const Coordinates &coordinates;
  ValueRange inputs;
  Value output;
  AffineLoopOptions options;
  bool hasMax;
  bool hasFlags;
  /// For gradients, the values that each `max` is over.
  llvm::SmallDenseMap<unsigned, Value> buffers;
  Type elementType;
  /// Of accumulators: f32 for narrower elements.
  Type computeType;
  /// The induction variables so far, one per axis: operand i of an access map
  /// is axis i, so that `Coordinates` are used as they are.
  SmallVector<Value> ivs;
};
} // namespace

void kas::emitAffineLoops(OpBuilder &builder, Location loc,
                          const Coordinates &coordinates, ValueRange inputs,
                          Value output, const AffineLoopOptions &options) {
  LoopNestEmitter(builder, loc, coordinates, inputs, output, options).emit();
}

void kas::emitMaxGradientLoops(OpBuilder &builder, Location loc,
                               const Coordinates &coordinates, unsigned tensor,
                               ValueRange inputs, Value output) {
  auto type = cast<MemRefType>(output.getType());
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(type.getElementType(), 0));
  // Zeros first: elements that no point reads have no gradient.
  affine::buildAffineLoopNest(
      builder, loc, SmallVector<int64_t>(type.getRank(), 0), type.getShape(),
      SmallVector<int64_t>(type.getRank(), 1),
      [&](OpBuilder &nested, Location, ValueRange ivs) {
        affine::AffineStoreOp::create(nested, loc, zero, output, ivs);
      });
  LoopNestEmitter(builder, loc, coordinates, inputs.drop_back(), output, {})
      .emitGradient(inputs.back(), tensor);
}

LogicalResult kas::convertToAffine(RewriterBase &rewriter, ApplyOp apply,
                                   const AffineLoopOptions &options) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return apply.emitOpError() << "requires a concrete operator (see "
                                  "-kas-specialize), got '@"
                               << apply.getCallee() << "'";
  Location loc = apply.getLoc();
  rewriter.setInsertionPoint(apply);
  auto getBufferType = [](Value tensor) {
    return bufferization::getMemRefTypeWithStaticIdentityLayout(
        cast<TensorType>(tensor.getType()));
  };
  SmallVector<Value> inputs;
  for (Value tensor : apply->getOperands())
    inputs.push_back(bufferization::ToBufferOp::create(
        rewriter, loc, getBufferType(tensor), tensor, /*read_only=*/true));
  Value output = memref::AllocOp::create(
      rewriter, loc, cast<MemRefType>(getBufferType(apply.getResult())),
      rewriter.getI64IntegerAttr(64));
  emitAffineLoops(rewriter, loc, getCoordinates(op), inputs, output, options);
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      apply, apply.getResult().getType(), output, /*restrict=*/true,
      /*writable=*/true);
  return success();
}

namespace {
struct KasToAffinePass
    : public kas::impl::KasToAffinePassBase<KasToAffinePass> {
  using KasToAffinePassBase::KasToAffinePassBase;

  void runOnOperation() override {
    // Collected first: conversion erases what the traversal is at.
    SmallVector<ApplyOp> applies;
    getOperation()->walk([&](ApplyOp apply) { applies.push_back(apply); });
    IRRewriter rewriter(&getContext());
    AffineLoopOptions options;
    options.parallel = parallel;
    options.minParallelWork = static_cast<double>(minParallelWork);
    for (ApplyOp apply : applies) {
      auto convert = [&] { return convertToAffine(rewriter, apply, options); };
      if (failed(verifyLowering ? convertAndVerify(rewriter, apply, convert)
                                : convert()))
        return signalPassFailure();
      ++numConverted;
    }
    SmallVector<ApplyGradientOp> gradients;
    getOperation()->walk(
        [&](ApplyGradientOp apply) { gradients.push_back(apply); });
    for (ApplyGradientOp apply : gradients) {
      convertGradientToAffine(rewriter, apply, options);
      ++numConverted;
    }
  }
};
} // namespace

namespace {
struct KasEraseOperatorsPass
    : public kas::impl::KasEraseOperatorsPassBase<KasEraseOperatorsPass> {
  void runOnOperation() override {
    // Operators that something still applies are needed for its lowering.
    bool isUsed = getOperation()
                      ->walk([](Operation *op) {
                        return isa<ApplyOp, ApplyGradientOp>(op)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      })
                      .wasInterrupted();
    if (isUsed)
      return;
    SmallVector<Operation *> erased;
    getOperation()->walk([&](Operation *op) {
      if (isa<OperatorOp, SpaceOp, KernelOp, SequenceOp, SequenceSpaceOp>(op))
        erased.push_back(op);
    });
    for (Operation *op : erased)
      op->erase();
  }
};
} // namespace
