//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads scalar code of a lowering symbolically: indices as affine expressions,
// values as sums of products of tensor elements.
//
// Reads backwards: the value of a result is requested at indices that are
// affine expressions of the outputs, and each op requests its operands. A loop
// that carries an accumulator becomes a reduction of its terms. What is not
// known fails with a reason and is never guessed
// (docs/internals/proving-lowerings.md).
//
//===----------------------------------------------------------------------===//

#include "LoweredCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace kas::lowering;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Whether all factors are constants, and all divisors positive ones.
/// What interval arithmetic and the Presburger library can take.
static bool isSupported(AffineExpr expr) {
  bool supported = true;
  expr.walk([&](AffineExpr part) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(part);
    if (!binary) {
      supported &= !isa<AffineSymbolExpr>(part);
      return;
    }
    if (part.getKind() == AffineExprKind::Add)
      return;
    auto right = dyn_cast<AffineConstantExpr>(binary.getRHS());
    supported &=
        right && part.getKind() != AffineExprKind::CeilDiv &&
        (part.getKind() == AffineExprKind::Mul || right.getValue() > 0);
  });
  return supported;
}

/// `values` are those of the dimensions first, then of the symbols, as MLIR
/// orders operands of a map.
FailureOr<SmallVector<AffineExpr>>
LoweredCode::substitute(ArrayRef<AffineExpr> exprs, unsigned numDims,
                        ArrayRef<AffineExpr> values) {
  SmallVector<AffineExpr> result;
  for (AffineExpr expr : exprs) {
    result.push_back(expr.replaceDimsAndSymbols(values.take_front(numDims),
                                                values.drop_front(numDims)));
    if (!isSupported(result.back()))
      return fail("an index is not affine with positive constant divisors");
  }
  return result;
}

/// Induction variables, constants, and affine.apply of these.
FailureOr<AffineExpr> LoweredCode::getIndex(Value value) {
  auto found = indexValues.find(value);
  if (found != indexValues.end())
    return found->second;
  IntegerAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return getAffineConstantExpr(constant.getInt(), value.getContext());
  if (auto apply = value.getDefiningOp<affine::AffineApplyOp>()) {
    FailureOr<SmallVector<AffineExpr>> results =
        applyMap(apply.getAffineMap(), apply.getMapOperands());
    if (failed(results))
      return failure();
    return results->front();
  }
  return failAt(value, " is no affine index");
}

FailureOr<SmallVector<AffineExpr>> LoweredCode::applyMap(AffineMap map,
                                                         ValueRange operands) {
  SmallVector<AffineExpr> values;
  for (Value operand : operands) {
    FailureOr<AffineExpr> index = getIndex(operand);
    if (failed(index))
      return failure();
    values.push_back(*index);
  }
  return substitute(map.getResults(), map.getNumDims(), values);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// The value of a floating-point constant.
/// Nothing for what is no constant, and for infinities and NaN.
static std::optional<double> getNumber(Value value) {
  FloatAttr number;
  if (!matchPattern(value, m_Constant(&number)) ||
      !number.getValue().isFinite())
    return std::nullopt;
  return number.getValueAsDouble();
}

/// The value of `value` in the loops and branches that are open.
FailureOr<Terms> LoweredCode::getScalar(Value value) {
  if (failed(countStep()))
    return failure();
  if (accumulators.contains(value)) {
    Terms result;
    result.accumulator = value;
    return result;
  }
  if (auto read = reads.find(value); read != reads.end()) {
    // A copy: reading may add entries and move this one.
    Read copy = read->second;
    if (!isa<TensorType>(copy.source.getType()))
      return getScalar(copy.source);
    return getElement(copy.source, copy.indices);
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return failAt(value, " cannot be compared");
  unsigned result = cast<OpResult>(value).getResultNumber();
  return TypeSwitch<Operation *, FailureOr<Terms>>(op)
      .Case([&](arith::ConstantOp constant) {
        return getConstant(constant.getValue());
      })
      // Rounding is not compared.
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](Operation *cast) { return getScalar(cast->getOperand(0)); })
      .Case([&](arith::AddFOp sum) { return getSum(sum); })
      .Case([&](arith::MulFOp product) { return getProduct(product); })
      .Case([&](arith::DivFOp quotient) { return getQuotient(quotient); })
      .Case([&](arith::SelectOp select) { return getSelected(select); })
      .Case([&](affine::AffineLoadOp load) { return getLoaded(load); })
      .Case(
          [&](affine::AffineForOp loop) { return getLoopResult(loop, result); })
      .Case([&](affine::AffineIfOp branch) {
        return getBranchResult(branch, result);
      })
      .Default([&](Operation *) -> FailureOr<Terms> {
        return failAt(value, " cannot be compared");
      });
}

/// Terms of both; at most one side is the accumulator of an open loop.
FailureOr<Terms> LoweredCode::getSum(arith::AddFOp sum) {
  FailureOr<Terms> left = getScalar(sum.getLhs());
  FailureOr<Terms> right = getScalar(sum.getRhs());
  if (failed(left) || failed(right))
    return failure();
  // acc + acc is no reduction.
  if (left->accumulator && right->accumulator)
    return failAt(sum, " takes an accumulator twice");
  // `addTerms` keeps the accumulator of its first operand.
  if (right->accumulator)
    std::swap(*left, *right);
  addTerms(*left, std::move(*right));
  return left;
}

/// Distributes over sums of terms.
FailureOr<Terms> LoweredCode::getProduct(arith::MulFOp product) {
  FailureOr<Terms> left = getScalar(product.getLhs());
  FailureOr<Terms> right = getScalar(product.getRhs());
  if (failed(left) || failed(right))
    return failure();
  FailureOr<Terms> terms = multiply(*left, *right, dims);
  if (failed(terms))
    return failAt(product, " multiplies an accumulator, a maximum or too many "
                           "terms");
  return terms;
}

/// Means. A positive divisor keeps the order under a maximum.
FailureOr<Terms> LoweredCode::getQuotient(arith::DivFOp quotient) {
  std::optional<double> divisor = getNumber(quotient.getRhs());
  if (!divisor || *divisor <= 0)
    return failAt(quotient, " has no positive constant as divisor");
  FailureOr<Terms> dividend = getScalar(quotient.getLhs());
  if (failed(dividend))
    return failure();
  Terms factor;
  factor.terms.emplace_back().scale = 1 / *divisor;
  FailureOr<Terms> terms = multiply(*dividend, factor, dims);
  if (failed(terms))
    return failAt(quotient, " divides an accumulator");
  return terms;
}

/// select(exists, value, 0): the operator's value of an output without points.
FailureOr<Terms> LoweredCode::getSelected(arith::SelectOp select) {
  if (getNumber(select.getFalseValue()) != 0.0)
    return failAt(select, " has another value than 0 where none exists");
  FailureOr<Terms> terms =
      getExisting(select.getTrueValue(), select.getCondition());
  if (failed(terms))
    return failure();
  for (Term &term : terms->terms)
    term.isZeroWhereEmpty = true;
  return terms;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// From the buffer of a tensor, or from one that the code has filled.
FailureOr<Terms> LoweredCode::getLoaded(affine::AffineLoadOp load) {
  FailureOr<SmallVector<AffineExpr>> indices =
      applyMap(load.getAffineMap(), load.getMapOperands());
  if (failed(indices))
    return failure();
  Value buffer = load.getMemRef();
  auto view = buffer.getDefiningOp<bufferization::ToBufferOp>();
  if (!view)
    return getStored(buffer, *indices, load);
  // Nothing else may change the tensor's buffer.
  auto onlyReads = [](Operation *user) {
    return isa<affine::AffineLoadOp>(user);
  };
  for (Operation *user : view.getTensor().getUsers())
    if (auto other = dyn_cast<bufferization::ToBufferOp>(user))
      if (!llvm::all_of(other->getUsers(), onlyReads))
        return failAt(buffer, " is not only read");
  FailureOr<Terms> element = getElement(view.getTensor(), *indices);
  if (failed(element) || llvm::is_contained(inputs, view.getTensor()))
    return element;
  // Of inputs, comparing indices shows that they are in bounds.
  Conditions inside;
  bool isPossible = true;
  for (auto [index, extent] :
       llvm::zip_equal(*indices, load.getMemRefType().getShape()))
    isPossible &= addBounds(inside, index, extent, dims);
  if (!isPossible)
    element->undefined.emplace_back();
  for (const Conditions &outside : getComplement(inside, dims))
    element->undefined.push_back(outside);
  return element;
}

/// The one store to a new buffer, when all else only reads it after that.
/// With several stores, or one after the read, the order of execution would
/// matter, which this form does not have.
static affine::AffineStoreOp findStore(Value buffer, Operation *reader) {
  if (!buffer.getDefiningOp<memref::AllocOp>())
    return {};
  affine::AffineStoreOp store;
  for (Operation *user : buffer.getUsers()) {
    if (isa<bufferization::ToTensorOp, affine::AffineLoadOp>(user))
      continue;
    auto found = dyn_cast<affine::AffineStoreOp>(user);
    if (!found || store || found.getValueToStore() == buffer)
      return {};
    store = found;
  }
  if (!store)
    return {};
  // The store's nest must come before the reader's in the block of the
  // allocation, which both are in.
  Block *block = buffer.getDefiningOp()->getBlock();
  Operation *nest = block->findAncestorOpInBlock(*store);
  Operation *use = block->findAncestorOpInBlock(*reader);
  return nest && use && nest->isBeforeInBlock(use) ? store
                                                   : affine::AffineStoreOp();
}

/// Inverts the store for one loop: the loop's value is the index of the element
/// that is requested, if that is in the loop's range.
LogicalResult LoweredCode::addLoop(Written &written,
                                   affine::AffineStoreOp store, Value iv,
                                   AffineMap lower, AffineMap upper,
                                   int64_t step, Indices indices) {
  if (!lower.isSingleConstant() || !upper.isSingleConstant() || step != 1)
    return fail("a loop has no constant bounds or another step than 1");
  // The loop must be an index of the store, which gives its value.
  ArrayRef<AffineExpr> stored = store.getAffineMap().getResults();
  for (auto [position, operand] : llvm::enumerate(store.getMapOperands())) {
    const auto *found =
        llvm::find(stored, getAffineDimExpr(position, store.getContext()));
    if (operand != iv || found == stored.end())
      continue;
    size_t index = found - stored.begin();
    int64_t first = lower.getSingleConstantResult();
    int64_t end = upper.getSingleConstantResult();
    if (first < 0 || end > store.getMemRefType().getDimSize(index))
      return fail("a loop may store out of bounds");
    indexValues[iv] = indices[index];
    written.isPossible &=
        addBounds(written.where, indices[index] - first, end - first, dims);
    return success();
  }
  return fail("a store is repeated by a loop that does not index it");
}

/// From the store outwards. Conditions of branches are read last, since they
/// mention the loops around them.
LogicalResult LoweredCode::addNest(Written &written,
                                   affine::AffineStoreOp store,
                                   Indices indices) {
  Block *block = store.getMemRef().getDefiningOp()->getBlock();
  SmallVector<affine::AffineIfOp> branches;
  for (Operation *inner = store; inner->getBlock() != block;
       inner = inner->getParentOp()) {
    Operation *parent = inner->getParentOp();
    if (auto loop = dyn_cast<affine::AffineForOp>(parent)) {
      if (failed(addLoop(written, store, loop.getInductionVar(),
                         loop.getLowerBoundMap(), loop.getUpperBoundMap(),
                         loop.getStepAsInt(), indices)))
        return failure();
    } else if (auto loop = dyn_cast<affine::AffineParallelOp>(parent)) {
      for (auto [dim, iv] : llvm::enumerate(loop.getIVs()))
        if (failed(addLoop(written, store, iv, loop.getLowerBoundMap(dim),
                           loop.getUpperBoundMap(dim), loop.getSteps()[dim],
                           indices)))
          return failure();
    } else if (auto branch = dyn_cast<affine::AffineIfOp>(parent)) {
      if (inner->getBlock() != branch.getThenBlock())
        return fail("a store is in the else region of a branch");
      branches.push_back(branch);
    } else {
      return fail("a store is in '" + parent->getName().getStringRef() + "'");
    }
  }
  for (affine::AffineIfOp branch : branches) {
    FailureOr<Conditions> condition = getCondition(branch);
    if (failed(condition))
      return failure();
    written.isPossible &= addConditions(written.where, *condition, dims);
  }
  return success();
}

/// The element that the one store writes; elsewhere the buffer is undefined.
FailureOr<Terms> LoweredCode::getStored(Value buffer, Indices indices,
                                        Operation *reader) {
  affine::AffineStoreOp store = findStore(buffer, reader);
  if (!store || !cast<MemRefType>(buffer.getType()).hasStaticShape())
    return failAt(buffer, " is not filled by one store");
  Written written;
  if (failed(addNest(written, store, indices)))
    return failure();
  // Indices that are no loops must be what the store has.
  FailureOr<SmallVector<AffineExpr>> stored =
      applyMap(store.getAffineMap(), store.getMapOperands());
  if (failed(stored))
    return failure();
  for (auto [index, target] : llvm::zip_equal(indices, *stored))
    written.isPossible &=
        addConstraint(written.where, {index - target, true}, dims);
  if (!written.isPossible) {
    Terms nothing;
    nothing.undefined.emplace_back();
    return nothing;
  }
  FailureOr<Terms> value = getScalar(store.getValueToStore());
  if (failed(value))
    return failure();
  Terms result = restrictTo(std::move(*value), written.where, dims);
  llvm::append_range(result.undefined, getComplement(written.where, dims));
  return result;
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

/// The induction variable is `dim * step + first`, with dim from 0.
FailureOr<Loop> LoweredCode::enter(affine::AffineForOp loop, bool isMax) {
  if (!loop.hasConstantBounds())
    return fail("a loop has no constant bounds");
  int64_t first = loop.getConstantLowerBound();
  int64_t step = loop.getStepAsInt();
  int64_t extent =
      llvm::divideCeilSigned(loop.getConstantUpperBound() - first, step);
  if (extent <= 0)
    return fail("a loop has no iterations");
  unsigned dim = dims.add(extent);
  indexValues[loop.getInductionVar()] =
      getAffineDimExpr(dim, loop.getContext()) * step + first;
  return Loop{dim, extent, isMax};
}

/// The integer set over the dimensions of the outputs and the open loops.
FailureOr<Conditions> LoweredCode::getCondition(affine::AffineIfOp branch) {
  IntegerSet set = branch.getIntegerSet();
  SmallVector<AffineExpr> values;
  for (Value operand : branch.getOperands()) {
    FailureOr<AffineExpr> index = getIndex(operand);
    if (failed(index))
      return failure();
    values.push_back(*index);
  }
  FailureOr<SmallVector<AffineExpr>> exprs =
      substitute(set.getConstraints(), set.getNumDims(), values);
  if (failed(exprs))
    return failure();
  Conditions region;
  for (auto [expr, isEquality] : llvm::zip_equal(*exprs, set.getEqFlags()))
    region.push_back({expr, isEquality});
  return region;
}

/// The value of the then region where the condition holds, plus that of the
/// else region where not: the regions of the complement are disjoint.
FailureOr<Terms> LoweredCode::getBranchResult(affine::AffineIfOp branch,
                                              unsigned result) {
  FailureOr<Conditions> condition = getCondition(branch);
  if (failed(condition))
    return failure();
  auto getYielded = [&](Block *block) {
    return getScalar(block->getTerminator()->getOperand(result));
  };
  FailureOr<Terms> inside = getYielded(branch.getThenBlock());
  FailureOr<Terms> outside = getYielded(branch.getElseBlock());
  if (failed(inside) || failed(outside))
    return failure();
  if (inside->accumulator != outside->accumulator)
    return fail("the regions of a branch have other accumulators");
  Terms terms = restrictTo(std::move(*inside), *condition, dims);
  for (const Conditions &region : getComplement(*condition, dims))
    addTerms(terms, restrictTo(*outside, region, dims));
  return terms;
}

/// Result number `result`, by its iteration argument and what the body yields.
FailureOr<Terms> LoweredCode::getLoopResult(affine::AffineForOp loop,
                                            unsigned result) {
  FailureOr<Loop> entered = enter(loop, /*isMax=*/false);
  if (failed(entered))
    return failure();
  Value accumulator = loop.getRegionIterArgs()[result];
  Value yielded = loop.getBody()->getTerminator()->getOperand(result);
  accumulators.insert(accumulator);
  return reduce(yielded, accumulator, *entered,
                [&] { return getScalar(loop.getInits()[result]); });
}

/// What `yielded` takes the maximum of `accumulator` with.
static Value getMaximized(Value yielded, Value accumulator) {
  auto maximum = yielded.getDefiningOp<arith::MaximumFOp>();
  if (!maximum)
    return {};
  if (maximum.getLhs() == accumulator)
    return maximum.getRhs();
  return maximum.getRhs() == accumulator ? maximum.getLhs() : Value();
}

/// Zero has no terms.
static bool isZero(const Terms &value) {
  return !value.accumulator && value.terms.empty() && value.lowest.empty() &&
         value.undefined.empty();
}

/// Whether `value` is minus infinity everywhere.
static bool isLowest(const Terms &value) {
  return !value.accumulator && value.terms.empty() &&
         value.lowest.size() == 1 && value.lowest.front().empty() &&
         value.undefined.empty();
}

/// `loops` become reductions of the kind that `yielded` combines by: the
/// maximum with the accumulator, or the accumulator plus terms.
FailureOr<Terms>
LoweredCode::reduce(Value yielded, Value accumulator,
                    MutableArrayRef<Loop> loops,
                    llvm::function_ref<MaybeTerms()> getInitial) {
  // A maximum.
  if (Value maximized = getMaximized(yielded, accumulator)) {
    for (Loop &loop : loops)
      loop.isMax = true;
    FailureOr<Terms> value = getScalar(maximized);
    FailureOr<Terms> initial = getInitial();
    if (failed(value) || failed(initial))
      return failure();
    if (!isLowest(*initial))
      return fail("a maximum does not begin at minus infinity");
    if (loops.empty())
      return fail("a maximum is over no loop");
    return maximize(std::move(*value), loops);
  }
  FailureOr<Terms> value = getScalar(yielded);
  if (failed(value))
    return failure();
  // Element-wise: nothing is reduced.
  if (loops.empty() && !value->accumulator)
    return value;
  // The accumulator of another loop would be added once per iteration.
  if (value->accumulator != accumulator)
    return fail("a loop does not add to its accumulator");
  FailureOr<Terms> summed = sum(std::move(*value), loops);
  FailureOr<Terms> initial = getInitial();
  if (failed(summed) || failed(initial))
    return failure();
  addTerms(*initial, std::move(*summed));
  return initial;
}

/// The new loops are outside of those that terms have.
FailureOr<Terms> LoweredCode::sum(Terms value, ArrayRef<Loop> loops) {
  for (Term &term : value.terms) {
    if (!term.isZeroWhereEmpty && !term.where.empty())
      return fail("a sum is of maxima that may have no points");
    term.loops.insert(term.loops.begin(), loops.begin(), loops.end());
    term.isZeroWhereEmpty = true;
  }
  return value;
}

/// Every point must have a term or be minus infinity: a zero would win over
/// negative values.
FailureOr<Terms> LoweredCode::maximize(Terms value, ArrayRef<Loop> loops) {
  if (value.accumulator)
    return fail("a maximum is of an accumulator");
  // Where no term has a point, the value must be minus infinity, not zero.
  SmallVector<Conditions> covered = value.lowest;
  for (const Term &term : value.terms) {
    bool isOuter = llvm::none_of(term.where, [&](const Constraint &constraint) {
      return mentions(constraint.expr, term.loops);
    });
    if (isOuter)
      covered.push_back(term.where);
    else if (!term.isZeroWhereEmpty)
      covered.emplace_back();
    else
      return fail("a maximum is of sums that may have no points");
  }
  if (findUncovered({}, covered, dims))
    return fail("a maximum takes zero for points that do not exist");
  // -inf + term is -inf: a point of the operator would be lost there.
  for (const Conditions &region : value.lowest) {
    for (const Term &term : value.terms) {
      Conditions both = region;
      if (addConditions(both, term.where, dims) && findPoint(both, dims))
        return fail("a maximum is of a sum with minus infinity");
    }
  }
  value.lowest.clear();
  for (Term &term : value.terms) {
    term.loops.insert(term.loops.begin(), loops.begin(), loops.end());
    term.isZeroWhereEmpty = false;
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Values that may not exist
//===----------------------------------------------------------------------===//

/// Of a constant i1.
static std::optional<bool> getFlag(Value value) {
  BoolAttr constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return std::nullopt;
  return constant.getValue();
}

/// The code of KasToAffine.cpp for maxima with guards: value and flag are
/// results of one op, loop or branch, and are followed in pairs.
FailureOr<Terms> LoweredCode::getExisting(Value value, Value flag) {
  if (getFlag(flag) == true) {
    FailureOr<Terms> terms = getScalar(value);
    if (failed(terms))
      return failure();
    if (terms->accumulator || terms->terms.size() != 1 ||
        !terms->terms.front().where.empty() || !terms->lowest.empty())
      return fail("a value that exists is no product");
    return terms;
  }
  if (auto quotient = value.getDefiningOp<arith::DivFOp>()) {
    std::optional<double> divisor = getNumber(quotient.getRhs());
    if (!divisor || *divisor <= 0)
      return failAt(value, " has no positive constant as divisor");
    FailureOr<Terms> terms = getExisting(quotient.getLhs(), flag);
    if (succeeded(terms))
      for (Term &term : terms->terms)
        term.scale /= *divisor;
    return terms;
  }
  Operation *op = value.getDefiningOp();
  if (!op || op != flag.getDefiningOp())
    return failAt(value, " and what says whether it exists have other origins");
  unsigned valueResult = cast<OpResult>(value).getResultNumber();
  unsigned flagResult = cast<OpResult>(flag).getResultNumber();
  if (auto loop = dyn_cast<affine::AffineForOp>(op))
    return getExistingOfLoop(loop, valueResult, flagResult);
  auto branch = dyn_cast<affine::AffineIfOp>(op);
  if (!branch || getFlag(branch.getElseBlock()->getTerminator()->getOperand(
                     flagResult)) != false)
    return failAt(value, " cannot be compared");
  FailureOr<Conditions> condition = getCondition(branch);
  Operation *yield = branch.getThenBlock()->getTerminator();
  FailureOr<Terms> terms = getExisting(yield->getOperand(valueResult),
                                       yield->getOperand(flagResult));
  if (failed(condition) || failed(terms))
    return failure();
  return restrictTo(std::move(*terms), *condition, dims);
}

/// A loop with a value and a flag; points that do not exist leave both as they
/// were.
FailureOr<Terms> LoweredCode::getExistingOfLoop(affine::AffineForOp loop,
                                                unsigned value, unsigned flag) {
  // The pattern: yield (select exists, (combine acc, value), acc), (or any,
  // exists).
  Operation *yield = loop.getBody()->getTerminator();
  Value accumulator = loop.getRegionIterArgs()[value];
  Value anyBefore = loop.getRegionIterArgs()[flag];
  auto select = yield->getOperand(value).getDefiningOp<arith::SelectOp>();
  auto either = yield->getOperand(flag).getDefiningOp<arith::OrIOp>();
  if (!select || !either || select.getFalseValue() != accumulator)
    return fail("a loop does not keep its value where none exists");
  Value exists = select.getCondition();
  bool isFlag = (either.getLhs() == anyBefore && either.getRhs() == exists) ||
                (either.getRhs() == anyBefore && either.getLhs() == exists);
  if (!isFlag || getFlag(loop.getInits()[flag]) != false)
    return fail("a loop does not note which values exist");
  Value added = getMaximized(select.getTrueValue(), accumulator);
  bool isMax = bool(added);
  auto sum = select.getTrueValue().getDefiningOp<arith::AddFOp>();
  if (sum)
    added = sum.getLhs() == accumulator   ? sum.getRhs()
            : sum.getRhs() == accumulator ? sum.getLhs()
                                          : Value();
  if (!added)
    return fail("a loop neither adds nor takes a maximum");
  // A maximum may begin at minus infinity alone, a sum at zero.
  FailureOr<Terms> initial = getScalar(loop.getInits()[value]);
  if (failed(initial))
    return failure();
  if (!(isMax ? isLowest(*initial) : isZero(*initial)))
    return fail("a loop does not begin at its neutral element");
  FailureOr<Loop> entered = enter(loop, isMax);
  if (failed(entered))
    return failure();
  FailureOr<Terms> terms = getExisting(added, exists);
  if (failed(terms))
    return failure();
  for (Term &term : terms->terms)
    term.loops.insert(term.loops.begin(), *entered);
  return terms;
}
