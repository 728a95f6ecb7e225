//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelMutator.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <functional>

using namespace kas;
using namespace kas::test;
using namespace mlir;

StringRef kas::test::toString(MutationKind kind) {
  switch (kind) {
  case MutationKind::Index:
    return "index";
  case MutationKind::Border:
    return "border";
  case MutationKind::Coefficient:
    return "coefficient";
  case MutationKind::LoopOrder:
    return "order of loops";
  case MutationKind::Accumulation:
    return "accumulation";
  }
  llvm_unreachable("unknown kind");
}

namespace {

/// One mistake that can be made.
struct Place {
  Operation *op;
  std::string what;
  std::function<void()> change;
};

/// Collects the places for one kind of mistake.
class Collector {
public:
  explicit Collector(Random &random) : random(random) {}

  void collect(Operation *op, MutationKind kind) {
    switch (kind) {
    case MutationKind::Index:
      return collectIndices(op);
    case MutationKind::Border:
      return collectBorders(op);
    case MutationKind::Coefficient:
      return collectCoefficients(op);
    case MutationKind::LoopOrder:
      return collectLoops(op);
    case MutationKind::Accumulation:
      return collectSums(op);
    }
  }

  std::vector<Place> places;

private:
  void collectIndices(Operation *op);
  void collectBorders(Operation *op);
  void collectCoefficients(Operation *op);
  void collectLoops(Operation *op);
  void collectSums(Operation *op);
  void collectLostUpdates(Operation *yield, ValueRange iterArgs);

  void add(Operation *op, const Twine &what, std::function<void()> change) {
    places.push_back({op, what.str(), std::move(change)});
  }
  /// 1 or -1.
  int64_t drawStep() { return random.below(2) ? 1 : -1; }

  Random &random;
};

/// `value` + `step`, made before `op`, for an integer or an index.
Value addStep(Operation *op, Value value, int64_t step) {
  OpBuilder builder(op);
  auto one = arith::ConstantOp::create(
      builder, op->getLoc(), builder.getIntegerAttr(value.getType(), step));
  return arith::AddIOp::create(builder, op->getLoc(), value, one);
}

AffineMap addToResult(AffineMap map, unsigned result, int64_t step) {
  SmallVector<AffineExpr> exprs(map.getResults());
  exprs[result] = exprs[result] + step;
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), exprs,
                        map.getContext());
}

/// Another factor in place of the one number `which` of the products and
/// divisions of `map`, or nothing if it has fewer. Factors of 1 are not
/// written.
AffineMap changeFactor(AffineMap map, unsigned which, int64_t step) {
  unsigned seen = 0;
  bool isChanged = false;
  SmallVector<AffineExpr> exprs;
  std::function<AffineExpr(AffineExpr)> change =
      [&](AffineExpr expr) -> AffineExpr {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary)
      return expr;
    AffineExpr left = change(binary.getLHS()), right = change(binary.getRHS());
    auto constant = dyn_cast<AffineConstantExpr>(right);
    if (binary.getKind() != AffineExprKind::Add && constant &&
        seen++ == which && constant.getValue() + step > 0) {
      right =
          getAffineConstantExpr(constant.getValue() + step, expr.getContext());
      isChanged = true;
    }
    return getAffineBinaryOpExpr(binary.getKind(), left, right);
  };
  for (AffineExpr expr : map.getResults())
    exprs.push_back(change(expr));
  return isChanged ? AffineMap::get(map.getNumDims(), map.getNumSymbols(),
                                    exprs, map.getContext())
                   : AffineMap();
}

/// The attribute with the map of an op of affine.
StringAttr getMapName(Operation *op) {
  for (NamedAttribute attribute : op->getAttrs())
    if (isa<AffineMapAttr>(attribute.getValue()) &&
        isa<affine::AffineLoadOp, affine::AffineStoreOp, affine::AffineApplyOp,
            affine::AffineVectorLoadOp, affine::AffineVectorStoreOp>(op))
      return attribute.getName();
  return {};
}

/// The operands of `op` that are indices of memory.
OperandRange getIndices(Operation *op) {
  return llvm::TypeSwitch<Operation *, OperandRange>(op)
      .Case<memref::LoadOp, memref::StoreOp, vector::LoadOp, vector::StoreOp,
            vector::MaskedLoadOp, vector::MaskedStoreOp, vector::TransferReadOp,
            vector::TransferWriteOp>(
          [](auto access) { return OperandRange(access.getIndices()); })
      .Default([](Operation *op) { return op->getOperands().take_front(0); });
}

void Collector::collectIndices(Operation *op) {
  int64_t step = drawStep();
  if (StringAttr name = getMapName(op)) {
    AffineMap map = op->getAttrOfType<AffineMapAttr>(name).getValue();
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      add(op, "index " + Twine(i) + " + " + Twine(step), [=] {
        op->setAttr(name, AffineMapAttr::get(addToResult(map, i, step)));
      });
    return;
  }
  OperandRange indices = getIndices(op);
  for (unsigned i = 0; i < indices.size(); ++i) {
    unsigned number = indices.getBeginOperandIndex() + i;
    add(op, "index " + Twine(i) + " + " + Twine(step), [=] {
      op->setOperand(number, addStep(op, op->getOperand(number), step));
    });
  }
  if (isa<arith::AddIOp>(op) && op->getResult(0).getType().isIndex())
    add(op, "sum + " + Twine(step),
        [=] { op->setOperand(0, addStep(op, op->getOperand(0), step)); });
}

/// A predicate that differs at equal values, or the negated one.
arith::CmpIPredicate getNeighbour(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::slt:
    return P::sle;
  case P::sle:
    return P::slt;
  case P::sgt:
    return P::sge;
  case P::sge:
    return P::sgt;
  case P::ult:
    return P::ule;
  case P::ule:
    return P::ult;
  case P::ugt:
    return P::uge;
  case P::uge:
    return P::ugt;
  case P::eq:
    return P::ne;
  case P::ne:
    return P::eq;
  }
  llvm_unreachable("unknown predicate");
}

void Collector::collectBorders(Operation *op) {
  int64_t step = drawStep();
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    add(op, "other predicate", [=]() mutable {
      compare.setPredicate(getNeighbour(compare.getPredicate()));
    });
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // One iteration is left out.
    add(op, "ends before", [=]() mutable {
      loop.setUpperBound(addStep(op, loop.getUpperBound(), -1));
    });
    add(op, "begins later", [=]() mutable {
      loop.setLowerBound(addStep(op, loop.getLowerBound(), 1));
    });
  } else if (auto loop = dyn_cast<affine::AffineForOp>(op)) {
    if (!loop.hasConstantBounds())
      return;
    add(op, "ends before", [=]() mutable {
      loop.setConstantUpperBound(loop.getConstantUpperBound() - 1);
    });
    add(op, "begins later", [=]() mutable {
      loop.setConstantLowerBound(loop.getConstantLowerBound() + 1);
    });
  } else if (auto branch = dyn_cast<affine::AffineIfOp>(op)) {
    IntegerSet set = branch.getIntegerSet();
    for (unsigned i = 0; i < set.getNumConstraints(); ++i)
      add(op, "constraint " + Twine(i) + " + " + Twine(step), [=]() mutable {
        SmallVector<AffineExpr> exprs(set.getConstraints());
        exprs[i] = exprs[i] + step;
        branch.setIntegerSet(IntegerSet::get(
            set.getNumDims(), set.getNumSymbols(), exprs, set.getEqFlags()));
      });
  } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Value condition = select.getCondition();
    if (!matchPattern(condition, m_Constant()))
      add(op, "always true", [=]() mutable {
        select.getResult().replaceAllUsesWith(select.getTrueValue());
      });
  }
}

void Collector::collectCoefficients(Operation *op) {
  int64_t step = drawStep();
  if (StringAttr name = getMapName(op)) {
    AffineMap map = op->getAttrOfType<AffineMapAttr>(name).getValue();
    for (unsigned i = 0; AffineMap changed = changeFactor(map, i, step); ++i)
      add(op, "factor " + Twine(i) + " + " + Twine(step),
          [=] { op->setAttr(name, AffineMapAttr::get(changed)); });
    return;
  }
  if (isa<arith::MulIOp, arith::DivUIOp, arith::DivSIOp, arith::RemUIOp,
          arith::RemSIOp, arith::FloorDivSIOp>(op)) {
    APInt factor;
    if (op->getResult(0).getType().isIndex() &&
        matchPattern(op->getOperand(1), m_ConstantInt(&factor)) &&
        factor.getSExtValue() + step > 0)
      add(op, "factor + " + Twine(step),
          [=] { op->setOperand(1, addStep(op, op->getOperand(1), step)); });
    return;
  }
  // A factor of a value: it is left out.
  if (isa<arith::MulFOp, arith::DivFOp>(op) && random.below(2))
    add(op, "factor is 1",
        [=] { op->getResult(0).replaceAllUsesWith(op->getOperand(0)); });
}

void Collector::collectLoops(Operation *op) {
  auto swapVariables = [&](Value outer, Value inner) {
    add(op, "variables change places", [=] {
      // Only inside of both: neither is used between for bounds of the other.
      SmallVector<OpOperand *> outers, inners;
      for (OpOperand &use : outer.getUses())
        if (op->isProperAncestor(use.getOwner()))
          outers.push_back(&use);
      for (OpOperand &use : inner.getUses())
        inners.push_back(&use);
      for (OpOperand *use : outers)
        use->set(inner);
      for (OpOperand *use : inners)
        use->set(outer);
    });
  };
  if (auto inner = dyn_cast<scf::ForOp>(op)) {
    if (auto outer = inner->getParentOfType<scf::ForOp>())
      swapVariables(outer.getInductionVar(), inner.getInductionVar());
  } else if (auto inner = dyn_cast<affine::AffineForOp>(op)) {
    if (auto outer = inner->getParentOfType<affine::AffineForOp>())
      swapVariables(outer.getInductionVar(), inner.getInductionVar());
  }
}

/// A value of a loop that stays as it was before the iteration.
void Collector::collectLostUpdates(Operation *yield, ValueRange iterArgs) {
  for (auto [i, before] : llvm::enumerate(iterArgs))
    if (isa<FloatType>(getElementTypeOrSelf(before.getType())))
      add(yield, "value " + Twine(i) + " is not updated",
          [=, before = before] { yield->setOperand(i, before); });
}

void Collector::collectSums(Operation *op) {
  if (isa<arith::AddFOp, arith::MaximumFOp>(op)) {
    auto kept = static_cast<unsigned>(random.below(2));
    add(op, "operand " + Twine(kept) + " alone",
        [=] { op->getResult(0).replaceAllUsesWith(op->getOperand(kept)); });
  } else if (isa<vector::FMAOp, math::FmaOp>(op)) {
    if (random.below(2))
      add(op, "term is not added",
          [=] { op->getResult(0).replaceAllUsesWith(op->getOperand(2)); });
    else
      add(op, "sum is forgotten", [=] {
        OpBuilder builder(op);
        Value zero = arith::ConstantOp::create(
            builder, op->getLoc(),
            builder.getZeroAttr(op->getResult(0).getType()));
        op->setOperand(2, zero);
      });
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    collectLostUpdates(loop.getBody()->getTerminator(),
                       loop.getRegionIterArgs());
  } else if (auto loop = dyn_cast<affine::AffineForOp>(op)) {
    collectLostUpdates(loop.getBody()->getTerminator(),
                       loop.getRegionIterArgs());
  }
}

} // namespace

std::optional<std::string>
kas::test::mutateKernel(Operation *code, MutationKind kind, Random &random) {
  Collector collector(random);
  code->walk([&](Operation *op) { collector.collect(op, kind); });
  if (collector.places.empty())
    return std::nullopt;
  const Place &place = collector.places[random.below(collector.places.size())];
  std::string text =
      (place.op->getName().getStringRef() + ": " + place.what).str();
  place.change();
  return text;
}
