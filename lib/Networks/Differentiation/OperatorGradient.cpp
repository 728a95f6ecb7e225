//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses how the gradient of an applied operator is written:
// `kas.apply_gradient`, linalg, or loops for maxima.
// The order of preference: `kas.apply_gradient` becomes register tiles like a
// forward contraction; linalg can reverse what divides indices (strides,
// shifts), phase by phase; the loops of lib/Conversion/KasGradient can do
// everything, maxima as well (docs/guide/gradients.md).
//
//===----------------------------------------------------------------------===//

#include "OperatorGradient.h"
#include "Reverse.h"
#include "kas/Conversion/KasGradient.h"
#include "kas/Conversion/KasToLinalg.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

/// Whether an index or a guard of the gradient is the quotient or the remainder
/// of a sum: loops are no fixed distance apart in memory then.
/// Such a nest would be tiled with masks or not at all.
static bool isDivided(const GradientNest &nest) {
  FailureOr<Contraction> contraction =
      Contraction::match(nest.coordinates, nest.inputs, [](const Twine &) {});
  if (failed(contraction))
    return false;
  bool isDivided = false;
  // Only to visit all expressions; none is changed.
  contraction->transform([&](AffineExpr expr) {
    expr.walk([&](AffineExpr part) {
      isDivided |= part.getKind() == AffineExprKind::FloorDiv ||
                   part.getKind() == AffineExprKind::Mod;
    });
    return expr;
  });
  return isDivided;
}

/// Erases what is in the block after `before`, or from its start, and is not
/// used.
/// From the last one on, so that operands of what was erased go, too.
static void eraseUnused(Block &block, Operation *before, Block::iterator end) {
  SmallVector<Operation *> made;
  for (auto op = before ? std::next(before->getIterator()) : block.begin();
       op != end; ++op)
    made.push_back(&*op);
  for (Operation *op : llvm::reverse(made))
    if (isOpTriviallyDead(op))
      op->erase();
}

/// The gradient of the operator in linalg; null where it is not known there.
/// The operator is lowered to linalg at the insertion point, this code is
/// reversed, and what only the value of the operator needs is erased again.
static Value emitStructured(OpBuilder &builder, ApplyOp apply, unsigned tensor,
                            Value gradient) {
  Value wanted = apply->getOperand(tensor);
  // An operand that appears twice would get the sum of both gradients.
  if (llvm::count(apply->getOperands(), wanted) != 1)
    return {};
  Block &block = *builder.getInsertionBlock();
  Block::iterator end = builder.getInsertionPoint();
  Operation *before = end == block.begin() ? nullptr : &*std::prev(end);
  // The reason is of no concern to the caller, who has another gradient.
  ScopedDiagnosticHandler quiet(builder.getContext(),
                                [](Diagnostic &) { return success(); });
  // A copy, because the operator itself stays as it is.
  Operation *copy = builder.clone(*apply);
  Operation *first = copy->getPrevNode();
  IRRewriter rewriter(builder.getContext());
  Value result;
  // Stands for what takes the place of the copy.
  // A cast holds the result while the rewriter replaces the copy.
  auto use = UnrealizedConversionCastOp::create(builder, apply.getLoc(),
                                                copy->getResult(0).getType(),
                                                copy->getResult(0));
  std::string reason;
  if (succeeded(convertToLinalg(rewriter, cast<ApplyOp>(copy), {}, reason)))
    result = use.getOperand(0);
  use.erase();
  if (!result)
    copy->erase();
  assert(first == before && "the copy follows what was there");
  (void)first;
  Value share;
  if (result) {
    Reverse reverse(builder, wanted,
                    before ? std::next(before->getIterator()) : block.begin());
    reverse.add(result, gradient);
    if (succeeded(reverse.run()))
      share = reverse.get(wanted);
  }
  // What only the value of the operator needs goes; the share is not used yet.
  Operation *keep = nullptr;
  // A cast again, so that the share is not erased as unused.
  if (share)
    keep = UnrealizedConversionCastOp::create(builder, apply.getLoc(),
                                              share.getType(), share);
  eraseUnused(block, before, keep ? keep->getIterator() : end);
  if (keep)
    keep->erase();
  return share;
}

Value kas::networks::emitOperatorGradient(OpBuilder &builder, ApplyOp apply,
                                          unsigned tensor, Value gradient) {
  OperatorOp op = apply.getOperator();
  auto type = cast<RankedTensorType>(apply->getOperand(tensor).getType());
  SmallVector<Value> inputs = llvm::to_vector(apply->getOperands());
  inputs.push_back(gradient);
  // The loops share the gradient out among equal elements.
  if (getCoordinates(op).hasMax())
    return emitGradient(builder, apply.getLoc(), op, tensor, inputs, type);
  // A gradient by one tensor reads all others, and not that tensor.
  inputs.erase(inputs.begin() + tensor);
  auto result = ApplyGradientOp::create(
      builder, apply.getLoc(), type, apply.getCalleeAttr(),
      builder.getI64IntegerAttr(tensor), inputs);
  // The loops of the gradient, from its operator and the tensor.
  GradientNest nest = getGradient(result);
  // One input and no sum: a copy is a permutation, which linalg does as a view
  // or a transposition.
  bool isCopy = nest.inputs.size() == 1 &&
                llvm::none_of(nest.coordinates.axes, [](const Axis &axis) {
                  return axis.kind && axis.extent > 1;
                });
  if (!isCopy && !isDivided(nest))
    return result;
  builder.setInsertionPointAfter(result);
  if (Value share = emitStructured(builder, apply, tensor, gradient)) {
    result.erase();
    return share;
  }
  return result;
}
