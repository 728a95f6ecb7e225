//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoweredMutation.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
class Mutator {
public:
  explicit Mutator(Random &random) : random(random) {}

  std::string mutate(ModuleOp module) {
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      if (!isa<PrimitiveOpInterface>(op) || isStage(op))
        ops.push_back(op);
    });
    Operation *op = ops[random.below(ops.size())];
    return change(op) ? op->getName().getStringRef().str() : "";
  }

private:
  /// The operator of the module is what the code is compared with.
  static bool isStage(Operation *op) {
    return op->getParentOfType<OperatorOp>().getSymName().contains("_stage");
  }

  bool change(Operation *op) {
    return TypeSwitch<Operation *, bool>(op)
        .Case<affine::AffineLoadOp, affine::AffineStoreOp>([&](auto access) {
          return setMap(access, access.getMapAttrStrName(),
                        access.getAffineMap());
        })
        .Case<affine::AffineForOp, affine::AffineIfOp, arith::ConstantOp,
              tensor::PadOp, linalg::GenericOp, linalg::TransposeOp, ShiftOp,
              UnfoldOp, ReduceOp>([&](auto changed) { return change(changed); })
        .Case<tensor::ExtractSliceOp, tensor::InsertSliceOp>(
            [&](auto slice) { return changeOffsets(slice); })
        .Case<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::OrIOp,
              arith::SelectOp>([&](Operation *combined) {
          // One operand alone; the last two have the type of the result.
          unsigned first = combined->getNumOperands() - 2;
          combined->getResult(0).replaceAllUsesWith(
              combined->getOperand(first + random.below(2)));
          return true;
        })
        .Default([](Operation *) { return false; });
  }

  int64_t drawStep() { return random.below(2) ? 1 : -1; }

  /// Another result, another order of results or another number in one.
  AffineMap mutate(AffineMap map) {
    SmallVector<AffineExpr> results(map.getResults());
    if (results.empty())
      return map;
    unsigned position = random.below(results.size());
    switch (random.below(3)) {
    case 0:
      std::swap(results[position], results[random.below(results.size())]);
      break;
    case 1:
      results[position] = results[position] + drawStep();
      break;
    default:
      results[position] = changeNumber(results[position]);
    }
    return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                          map.getContext());
  }

  /// One of the constants in `expr` is one more or less, or 1.
  AffineExpr changeNumber(AffineExpr expr) {
    SmallVector<AffineExpr> constants;
    expr.walk([&](AffineExpr part) {
      if (isa<AffineConstantExpr>(part))
        constants.push_back(part);
    });
    if (constants.empty())
      return expr;
    AffineExpr old = constants[random.below(constants.size())];
    int64_t value = cast<AffineConstantExpr>(old).getValue();
    int64_t changed = std::max<int64_t>(value + drawStep(), 1);
    return expr.replace(old, getAffineConstantExpr(changed, expr.getContext()));
  }

  bool setMap(Operation *op, StringRef name, AffineMap map) {
    AffineMap changed = mutate(map);
    op->setAttr(name, AffineMapAttr::get(changed));
    return changed != map;
  }

  bool change(affine::AffineForOp loop) {
    int64_t lower = loop.getConstantLowerBound();
    int64_t upper = loop.getConstantUpperBound();
    switch (random.below(3)) {
    case 0:
      loop.setConstantLowerBound(lower + 1);
      return lower + 1 < upper;
    case 1:
      loop.setConstantUpperBound(upper - 1);
      return lower < upper - 1;
    default:
      loop.setConstantUpperBound(upper + 1);
      return true;
    }
  }

  bool change(affine::AffineIfOp branch) {
    IntegerSet set = branch.getIntegerSet();
    SmallVector<AffineExpr> constraints(set.getConstraints());
    unsigned position = random.below(constraints.size());
    bool drop = random.below(2);
    constraints[position] = drop ? getAffineConstantExpr(0, branch.getContext())
                                 : constraints[position] + drawStep();
    branch.setIntegerSet(IntegerSet::get(set.getNumDims(), set.getNumSymbols(),
                                         constraints, set.getEqFlags()));
    return true;
  }

  bool change(arith::ConstantOp constant) {
    if (auto flag = dyn_cast<BoolAttr>(constant.getValue())) {
      constant.setValueAttr(BoolAttr::get(flag.getContext(), !flag.getValue()));
      return true;
    }
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    if (!number)
      return false;
    double value =
        number.getValue().isInfinity() ? 0 : number.getValueAsDouble();
    constant.setValueAttr(FloatAttr::get(
        number.getType(), random.below(2) ? value + 1 : 2 * value));
    return cast<FloatAttr>(constant.getValue()) != number;
  }

  bool change(tensor::PadOp pad) {
    SmallVector<int64_t> low(pad.getStaticLow()), high(pad.getStaticHigh());
    unsigned dim = random.below(low.size());
    int64_t step = drawStep();
    low[dim] += step;
    high[dim] -= step;
    pad.setStaticLow(low);
    pad.setStaticHigh(high);
    return low[dim] >= 0 && high[dim] >= 0;
  }

  template <typename Slice>
  bool changeOffsets(Slice slice) {
    SmallVector<int64_t> offsets(slice.getStaticOffsets());
    if (offsets.empty())
      return false;
    offsets[random.below(offsets.size())] += drawStep();
    slice.setStaticOffsets(offsets);
    return true;
  }

  bool change(linalg::GenericOp generic) {
    SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
    AffineMap &map = maps[random.below(maps.size())];
    AffineMap changed = mutate(map);
    bool isOther = changed != map;
    map = changed;
    generic.setIndexingMapsAttr(
        Builder(generic.getContext()).getAffineMapArrayAttr(maps));
    return isOther;
  }

  bool change(linalg::TransposeOp transpose) {
    SmallVector<int64_t> order(transpose.getPermutation());
    std::swap(order[random.below(order.size())],
              order[random.below(order.size())]);
    bool isOther = ArrayRef(order) != transpose.getPermutation();
    transpose.setPermutation(order);
    return isOther;
  }

  bool change(ShiftOp shift) {
    shift.setAmount(shift.getAmount() + drawStep());
    return true;
  }

  bool change(UnfoldOp unfold) {
    int64_t low = unfold.getLowValue(
        [](SizeAttr size) { return *size.getConstantValue(); });
    unfold.setLowAttr(
        Builder(unfold.getContext()).getI64IntegerAttr(low + drawStep()));
    return true;
  }

  bool change(ReduceOp reduce) {
    reduce.setKind(reduce.getKind() == ReduceKind::Sum ? ReduceKind::Mean
                                                       : ReduceKind::Sum);
    return true;
  }

  Random &random;
};
} // namespace

std::string kas::test::mutateLowered(ModuleOp module, Random &random) {
  return Mutator(random).mutate(module);
}
