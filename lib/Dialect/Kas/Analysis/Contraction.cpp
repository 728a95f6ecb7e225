//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions in linalg as loops, indices and guards, with loops split
// where indices divide them.
//
// Both ways in (`linalg` operations and coordinates of operators) give one
// form, so that strategies of code generation are written once. It is symbolic:
// buffers, strides and tiles come later (docs/internals/code-generation.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace kas;
using namespace mlir;

/// Counts the arguments of `body` that `value` is a product of; all of it may
/// be widened. False if it is something else.
/// Products may nest either way: a * (b * c).
static bool collectFactors(Value value, Block *body,
                           MutableArrayRef<unsigned> uses) {
  if (Operation *op = value.getDefiningOp();
      isa_and_present<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    value = op->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    // An argument of a block outside is a scalar, not an element.
    if (argument.getOwner() != body)
      return false;
    ++uses[argument.getArgNumber()];
    return true;
  }
  Operation *product = value.getDefiningOp();
  return isa_and_present<arith::MulFOp, arith::MulIOp>(product) &&
         collectFactors(product->getOperand(0), body, uses) &&
         collectFactors(product->getOperand(1), body, uses);
}

bool kas::hasContractionBody(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInputs() < 2)
    return false;
  Block *body = op.getBlock();
  Operation *sum = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::AddIOp>(sum))
    return false;
  BlockArgument output = body->getArguments().back();
  Value left = sum->getOperand(0), right = sum->getOperand(1);
  // The sum may have its operands in either order.
  Value product = left == output ? right : right == output ? left : Value();
  SmallVector<unsigned> uses(body->getNumArguments());
  // Every input once: x * x is no contraction of two inputs.
  return product && collectFactors(product, body, uses) && uses.back() == 0 &&
         llvm::all_of(ArrayRef(uses).drop_back(),
                      [](unsigned count) { return count == 1; });
}

//===----------------------------------------------------------------------===//
// Contraction
//===----------------------------------------------------------------------===//

void Contraction::transform(function_ref<AffineExpr(AffineExpr)> map) {
  for (AffineExpr &expr : output)
    expr = map(expr);
  for (Input &input : inputs)
    for (AffineExpr &expr : input.indices)
      expr = map(expr);
  for (Guard &guard : guards)
    guard.expr = map(guard.expr);
}

SmallVector<Interval> Contraction::getRanges() const {
  return llvm::map_to_vector(
      loops, [](const Loop &loop) { return Interval{0, loop.extent - 1}; });
}

FailureOr<Contraction> Contraction::match(linalg::LinalgOp op,
                                          EmitReasonFn emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInputs() < 2)
    return fail("it is no reduction of at least two inputs to one output");
  if (!hasContractionBody(op))
    return fail("its body is no contraction");
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  // Each output element is then written at one point of the parallel loops.
  if (!map.isProjectedPermutation())
    return fail("its output is not indexed by loops");
  Contraction contraction;
  for (auto [extent, kind] :
       llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    contraction.loops.push_back(
        {extent, kind == utils::IteratorType::reduction});
  llvm::append_range(contraction.output, map.getResults());
  for (OpOperand *input : op.getDpsInputOperands())
    contraction.inputs.push_back(
        {input->get(),
         llvm::to_vector(op.getMatchingIndexingMap(input).getResults())});
  return contraction;
}

/// A loop and the largest divisor B of its extent such that some index has the
/// loop `floordiv B` or `mod B`: smaller ones then divide the inner loop.
/// Only divisors that leave no remainder: others would need a guard.
static std::optional<std::pair<unsigned, int64_t>>
findSplit(const Contraction &contraction) {
  std::optional<std::pair<unsigned, int64_t>> found;
  auto visit = [&](AffineExpr expr) {
    expr.walk([&](AffineExpr part) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(part);
      if (!binary || (part.getKind() != AffineExprKind::FloorDiv &&
                      part.getKind() != AffineExprKind::Mod))
        return;
      auto loop = dyn_cast<AffineDimExpr>(binary.getLHS());
      auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      if (loop && divisor && divisor.getValue() > 1 &&
          (!found || divisor.getValue() > found->second) &&
          contraction.loops[loop.getPosition()].extent % divisor.getValue() ==
              0)
        found = {loop.getPosition(), divisor.getValue()};
    });
  };
  llvm::for_each(contraction.output, visit);
  for (const Contraction::Input &input : contraction.inputs)
    llvm::for_each(input.indices, visit);
  for (const Guard &guard : contraction.guards)
    visit(guard.expr);
  return found;
}

/// Makes two loops of one that indices divide: `d` becomes `B * outer + inner`,
/// `d floordiv B` just `outer`, and what depends on one of them only, such as
/// the data of a grouped convolution, says so.
/// Example: with 8 groups of 4 channels the data is indexed by `(o floordiv 4)
/// * 16 + c`, the output by o. Loops o1 (8) and o2 (4) in place of o make that
/// `o1 * 16 + c` and `4 * o1 + o2`: o1 is a batch loop, o2 a row.
static void splitLoops(Contraction &contraction, MLIRContext *context) {
  auto &loops = contraction.loops;
  while (auto split = findSplit(contraction)) {
    auto [loop, divisor] = *split;
    SmallVector<AffineExpr> dims;
    // Loops after the one that is split move up by one.
    for (unsigned i = 0; i < loops.size(); ++i)
      dims.push_back(getAffineDimExpr(i + (i > loop), context));
    dims[loop] = getAffineDimExpr(loop, context) * divisor +
                 getAffineDimExpr(loop + 1, context);
    Contraction::Loop inner = loops[loop];
    inner.extent = divisor;
    loops[loop].extent /= divisor;
    loops.insert(loops.begin() + loop + 1, inner);
    SmallVector<Interval> ranges = contraction.getRanges();
    contraction.transform([&](AffineExpr expr) {
      return simplifyInRanges(expr.replaceDims(dims), ranges);
    });
  }
}

FailureOr<Contraction> Contraction::match(const Coordinates &coordinates,
                                          ValueRange inputs,
                                          EmitReasonFn emitReason) {
  if (coordinates.hasMax()) {
    emitReason("it takes a maximum");
    return failure();
  }
  MLIRContext *context = inputs.front().getContext();
  Contraction contraction;
  for (const Axis &axis : coordinates.axes)
    contraction.loops.push_back({axis.extent, axis.kind.has_value()});
  for (unsigned i = 0; i < coordinates.numOutputs; ++i)
    contraction.output.push_back(getAffineDimExpr(i, context));
  contraction.inputs.push_back({inputs.front(), coordinates.data});
  for (auto [weight, indices] :
       llvm::zip_equal(inputs.drop_front(), coordinates.weights))
    contraction.inputs.push_back({weight, indices});
  contraction.guards = coordinates.guards;
  // Means become sums with one factor for all.
  contraction.factor = 1 / coordinates.getMeanDivisor();
  splitLoops(contraction, context);
  return contraction;
}
