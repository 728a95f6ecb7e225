//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of a loop nest of sums by one of its tensors as another such
// nest: solves the tensor's indices for the loops (docs/guide/gradients.md).
//
// Example, a convolution out[h] = sum over k of in[h + k - 1] * w[k]: by `in`,
// the index equation y = h + k - 1 is solved for h = y - k + 1, guarded by 0 <=
// h < size. So gin[y] = sum over k of gout[y - k + 1] * w[k]: each element is
// written once, which needs no atomics and allows parallel loops.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/KasGradient.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;

namespace {
/// Works on renumbered dimensions: first one per dimension of the tensor
/// (targets), then the axes of the forward nest. An axis that has been solved
/// for, or split, occurs nowhere any more.
class GradientBuilder {
public:
  GradientBuilder(const Coordinates &forward, unsigned tensor,
                  ArrayRef<int64_t> shape)
      : context(forward.data.front().getContext()), numTargets(shape.size()) {
    for (int64_t size : shape)
      ranges.push_back({0, size - 1});
    for (const Axis &axis : forward.axes)
      ranges.push_back({0, axis.extent - 1});
    isSolved.assign(ranges.size(), false);
    SmallVector<AffineExpr> shifted;
    for (unsigned axis = 0; axis < forward.axes.size(); ++axis) {
      // An axis of one value is zero, wherever it is mentioned.
      shifted.push_back(forward.axes[axis].extent == 1
                            ? getAffineConstantExpr(0, context)
                            : getDim(numTargets + axis));
      isSolved[numTargets + axis] = forward.axes[axis].extent == 1;
    }
    auto shift = [&](ArrayRef<AffineExpr> exprs) {
      return llvm::map_to_vector(
          exprs, [&](AffineExpr expr) { return expr.replaceDims(shifted); });
    };
    tensors.push_back(shift(
        llvm::map_to_vector(llvm::seq(forward.numOutputs), [&](unsigned i) {
          return getAffineDimExpr(i, context);
        })));
    // The tensor itself is no factor of its gradient: the nest is linear in it.
    if (tensor != 0)
      tensors.push_back(shift(forward.data));
    for (auto [index, weight] : llvm::enumerate(forward.weights))
      if (index + 1 != tensor)
        tensors.push_back(shift(weight));
    target = shift(tensor == 0 ? forward.data : forward.weights[tensor - 1]);
    for (const Guard &guard : forward.guards)
      guards.push_back({guard.expr.replaceDims(shifted), guard.extent});
    // A mean is a sum with a factor, which the gradient has, too.
    divisor = forward.getMeanDivisor();
  }

  /// Splits first: with quotients and remainders as loops, most equations
  /// become sums of axes. What no axis can be solved for is a guard `target ==
  /// dim`, which visits all points of the forward nest: correct, but slow.
  Coordinates build() {
    while (splitOneAxis())
      ;
    for (unsigned dim = 0; dim < numTargets; ++dim)
      if (!solveMixedRadix(dim) && !solveForOne(dim))
        guards.push_back({target[dim] - getDim(dim), 1});
    return makeNest();
  }

private:
  AffineExpr getDim(unsigned dim) const {
    return getAffineDimExpr(dim, context);
  }
  /// Ranges begin at 0.
  int64_t getExtent(unsigned dim) const { return ranges[dim].upper + 1; }

  /// Calls `change` on every expression that there is.
  void forEach(llvm::function_ref<void(AffineExpr &)> change) {
    for (auto &exprs : tensors)
      llvm::for_each(exprs, change);
    llvm::for_each(target, change);
    for (Guard &guard : guards)
      change(guard.expr);
  }

  /// Puts `value` in the place of `dim`, everywhere.
  void replace(unsigned dim, AffineExpr value) {
    SmallVector<AffineExpr> replacements;
    for (unsigned other = 0; other < ranges.size(); ++other)
      replacements.push_back(other == dim ? value : getDim(other));
    forEach([&](AffineExpr &expr) {
      expr = simplifyInRanges(expr.replaceDims(replacements), ranges);
    });
    // No expression has `dim` any more, so it gets no loop.
    isSolved[dim] = true;
  }

  /// Splits an axis that is divided by a number into two, so that quotient and
  /// remainder are loop variables themselves.
  /// One per call: a substitution may bring new quotients, for example of the
  /// outer half. Returns whether it split one. Each split makes two shorter
  /// axes, so calls end.
  bool splitOneAxis() {
    unsigned found = 0;
    int64_t divisorFound = 0;
    forEach([&](AffineExpr &expr) {
      expr.walk([&](AffineExpr part) {
        if (part.getKind() != AffineExprKind::FloorDiv &&
            part.getKind() != AffineExprKind::Mod)
          return;
        auto binary = cast<AffineBinaryOpExpr>(part);
        auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
        auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
        // A divisor that leaves a remainder would need a guard; such an axis
        // stays whole.
        if (divisorFound || !dim || !constant ||
            dim.getPosition() < numTargets ||
            getExtent(dim.getPosition()) % constant.getValue() != 0)
          return;
        found = dim.getPosition();
        divisorFound = constant.getValue();
      });
    });
    if (!divisorFound)
      return false;
    unsigned outer = ranges.size();
    ranges.push_back({0, getExtent(found) / divisorFound - 1});
    ranges.push_back({0, divisorFound - 1});
    isSolved.append(2, false);
    replace(found, getDim(outer) * divisorFound + getDim(outer + 1));
    return true;
  }

  /// `coefficient * dim`, with a coefficient above 0.
  struct LinearTerm {
    unsigned dim;
    int64_t coefficient;
  };

  /// The terms of `expr` that are an axis times a number, where the axis occurs
  /// nowhere else in it; what is left over goes to `rest`.
  SmallVector<LinearTerm> getLinearTerms(AffineExpr expr, AffineExpr &rest) {
    SmallVector<LinearTerm> terms;
    SmallVector<AffineExpr> parts{expr}, others;
    rest = getAffineConstantExpr(0, context);
    while (!parts.empty()) {
      AffineExpr part = parts.pop_back_val();
      if (part.getKind() == AffineExprKind::Add) {
        auto sum = cast<AffineBinaryOpExpr>(part);
        parts.push_back(sum.getRHS());
        parts.push_back(sum.getLHS());
        continue;
      }
      int64_t coefficient = 1;
      AffineExpr base = part;
      if (part.getKind() == AffineExprKind::Mul) {
        auto product = cast<AffineBinaryOpExpr>(part);
        base = product.getLHS();
        coefficient = cast<AffineConstantExpr>(product.getRHS()).getValue();
      }
      auto dim = dyn_cast<AffineDimExpr>(base);
      if (dim && dim.getPosition() >= numTargets && coefficient > 0)
        terms.push_back({dim.getPosition(), coefficient});
      else
        rest = rest + part;
    }
    // An axis that occurs in the rest, too (in a quotient, say), cannot be
    // solved for: its term goes back to the rest.
    for (unsigned index = 0; index < terms.size();) {
      if (!rest.isFunctionOfDim(terms[index].dim)) {
        ++index;
        continue;
      }
      rest = rest + getDim(terms[index].dim) * terms[index].coefficient;
      terms.erase(terms.begin() + index);
    }
    return terms;
  }

  /// y = a_n i_n + ... + a_1 i_1 with a_1 = 1 and a_k+1 = a_k * size of i_k:
  /// every value of y comes from one choice of the loops, without a guard.
  bool solveMixedRadix(unsigned dim) {
    AffineExpr rest;
    SmallVector<LinearTerm> terms = getLinearTerms(target[dim], rest);
    if (terms.empty() || rest != getAffineConstantExpr(0, context))
      return false;
    llvm::sort(terms, [](const LinearTerm &a, const LinearTerm &b) {
      // From the innermost digit to the outermost.
      return std::pair(a.coefficient, a.dim) < std::pair(b.coefficient, b.dim);
    });
    int64_t product = 1;
    for (const LinearTerm &term : terms) {
      if (term.coefficient != product)
        return false;
      product *= getExtent(term.dim);
    }
    if (product != getExtent(dim))
      return false;
    for (const LinearTerm &term : terms)
      replace(term.dim,
              simplifyInRanges(getDim(dim).floorDiv(term.coefficient) %
                                   getExtent(term.dim),
                               ranges));
    return true;
  }

  /// Solves y = a * i + rest for the longest loop i: i = (y - rest) / a where
  /// that is an integer in the range of i.
  bool solveForOne(unsigned dim) {
    AffineExpr rest;
    SmallVector<LinearTerm> terms = getLinearTerms(target[dim], rest);
    if (terms.empty())
      return false;
    // The longest: as many iterations as possible become computed indices. Ties
    // go to the first, so that the result is deterministic.
    const LinearTerm *chosen = terms.begin();
    for (const LinearTerm &term : terms)
      if (getExtent(term.dim) > getExtent(chosen->dim))
        chosen = &term;
    for (const LinearTerm &term : terms)
      if (&term != chosen)
        rest = rest + getDim(term.dim) * term.coefficient;
    LinearTerm solved = *chosen;
    AffineExpr difference = simplifyInRanges(getDim(dim) - rest, ranges);
    replace(solved.dim, difference.floorDiv(solved.coefficient));
    // A stride: only every a-th y is read at all, or only some i are.
    if (solved.coefficient != 1)
      guards.push_back({difference % solved.coefficient, 1});
    guards.push_back(
        {difference.floorDiv(solved.coefficient), getExtent(solved.dim)});
    return true;
  }

  /// Renumbers the axes that are left, outputs first, and drops guards that
  /// hold everywhere.
  Coordinates makeNest() {
    for (Guard &guard : guards)
      guard.expr = simplifyInRanges(guard.expr, ranges);
    llvm::erase_if(guards, [&](const Guard &guard) {
      Interval interval = getInterval(guard.expr, ranges);
      return interval.lower >= 0 && interval.upper < guard.extent;
    });
    Coordinates nest;
    nest.numOutputs = numTargets;
    nest.divisor = divisor;
    SmallVector<AffineExpr> positions(ranges.size(),
                                      getAffineConstantExpr(0, context));
    auto addAxis = [&](unsigned dim, std::optional<ReduceKind> kind) {
      positions[dim] = getDim(nest.axes.size());
      // No coordinate of an operator belongs to such an axis.
      nest.axes.push_back({getExtent(dim), kind, Value()});
    };
    for (unsigned dim = 0; dim < numTargets; ++dim)
      addAxis(dim, std::nullopt);
    // Loops that guards look at come first: what is inside is skipped at once.
    for (bool inGuards : {true, false})
      for (unsigned dim = numTargets; dim < ranges.size(); ++dim)
        if (!isSolved[dim] &&
            inGuards == llvm::any_of(guards, [&](const Guard &guard) {
              return guard.expr.isFunctionOfDim(dim);
            }))
          addAxis(dim, ReduceKind::Sum);
    forEach([&](AffineExpr &expr) { expr = expr.replaceDims(positions); });
    nest.data = tensors.front();
    for (auto &exprs : ArrayRef(tensors).drop_front())
      nest.weights.push_back(exprs);
    nest.guards = guards;
    return nest;
  }

  MLIRContext *context;
  /// The rank of the tensor that the gradient is by.
  unsigned numTargets;
  /// Of all dimensions, by number: 0 to extent - 1.
  SmallVector<Interval> ranges;
  SmallVector<bool> isSolved;
  /// The gradient of the output, then the other tensors.
  SmallVector<SmallVector<AffineExpr>> tensors;
  /// The index expressions of the tensor, to be equal to dimensions 0, 1, ...
  SmallVector<AffineExpr> target;
  SmallVector<Guard> guards;
  double divisor = 1;
};
} // namespace

Coordinates kas::getGradient(const Coordinates &forward, unsigned tensor,
                             ArrayRef<int64_t> shape) {
  assert(!forward.hasMax() && "the gradient of a maximum is no sum");
  return GradientBuilder(forward, tensor, shape).build();
}

void kas::emitGradientLoops(OpBuilder &builder, Location loc, OperatorOp op,
                            unsigned tensor, ValueRange inputs, Value output,
                            const AffineLoopOptions &options) {
  Coordinates forward = getCoordinates(op);
  // Of a maximum the gradient depends on values, not on indices alone: loops of
  // its own (KasToAffine.cpp).
  if (forward.hasMax())
    return emitMaxGradientLoops(builder, loc, forward, tensor, inputs, output);
  auto type = cast<MemRefType>(output.getType());
  Coordinates nest = getGradient(forward, tensor, type.getShape());
  // The order of the nest: gradient of the output first.
  SmallVector<Value> operands{inputs.back()};
  for (auto [index, input] : llvm::enumerate(inputs.drop_back()))
    if (index != tensor)
      operands.push_back(input);
  emitAffineLoops(builder, loc, nest, operands, output, options);
}

GradientNest kas::getGradient(ApplyGradientOp apply) {
  auto type = cast<RankedTensorType>(apply.getResult().getType());
  GradientNest nest{getGradient(getCoordinates(apply.getOperator()),
                                apply.getTensor(), type.getShape()),
                    {apply.getInputs().back()}};
  llvm::append_range(nest.inputs, apply.getInputs().drop_back());
  return nest;
}

void kas::convertGradientToAffine(RewriterBase &rewriter, ApplyGradientOp apply,
                                  const AffineLoopOptions &options) {
  Location loc = apply.getLoc();
  rewriter.setInsertionPoint(apply);
  auto getBufferType = [](Value tensor) {
    return cast<MemRefType>(
        bufferization::getMemRefTypeWithStaticIdentityLayout(
            cast<TensorType>(tensor.getType())));
  };
  GradientNest nest = getGradient(apply);
  SmallVector<Value> inputs =
      llvm::map_to_vector(nest.inputs, [&](Value tensor) -> Value {
        return bufferization::ToBufferOp::create(rewriter, loc,
                                                 getBufferType(tensor), tensor,
                                                 /*read_only=*/true);
      });
  // Alignment in bytes: one cache line, and one vector of AVX-512.
  Value output =
      memref::AllocOp::create(rewriter, loc, getBufferType(apply.getResult()),
                              rewriter.getI64IntegerAttr(64));
  emitAffineLoops(rewriter, loc, nest.coordinates, inputs, output, options);
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      apply, apply.getResult().getType(), output, /*restrict=*/true,
      /*writable=*/true);
}

Value kas::emitGradient(OpBuilder &builder, Location loc, OperatorOp op,
                        unsigned tensor, ValueRange inputs, TensorType type,
                        const AffineLoopOptions &options) {
  auto getBufferType = [](Type type) {
    return cast<MemRefType>(
        bufferization::getMemRefTypeWithStaticIdentityLayout(
            cast<TensorType>(type)));
  };
  SmallVector<Value> buffers;
  for (Value input : inputs)
    buffers.push_back(bufferization::ToBufferOp::create(
        builder, loc, getBufferType(input.getType()), input,
        /*read_only=*/true));
  Value output = memref::AllocOp::create(builder, loc, getBufferType(type),
                                         builder.getI64IntegerAttr(64));
  emitGradientLoops(builder, loc, op, tensor, buffers, output, options);
  return bufferization::ToTensorOp::create(builder, loc, type, output,
                                           /*restrict=*/true,
                                           /*writable=*/true);
}
