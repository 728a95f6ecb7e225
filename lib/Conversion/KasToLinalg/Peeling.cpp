//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peeling.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kas;

/// The iteration variable, or the half of one, that `coordinate` is by way of
/// `share` and `merge` alone; null when it is anything else. Merging such a
/// coordinate splits the loop, which is free.
static Value getIterationVariable(Value coordinate) {
  while (auto share = coordinate.getDefiningOp<ShareOp>())
    coordinate = share.getCoord();
  Operation *op = coordinate.getDefiningOp();
  if (!op || isa<ReduceOp>(op))
    return coordinate;
  auto merge = dyn_cast<MergeOp>(op);
  return merge && getIterationVariable(merge.getCoord()) ? coordinate : Value();
}

namespace {
/// Keeps one invariant: at each point of the coordinates that are still there,
/// the product of the tensors is that of the operator, or zero (for max: minus
/// infinity) where the primitives taken off say that the point does not exist.
class Peeler {
public:
  Peeler(TensorRewriter &rewriter, OperatorOp op, bool isMax)
      : rewriter(rewriter), op(op), isMax(isMax) {}

  void addOperand(Value value, ValueRange coordinates) {
    LabelledTensor &tensor = tensors.emplace_back();
    tensor.value = value;
    for (Value coordinate : coordinates)
      tensor.dims.push_back(getSoleLabel(coordinate));
  }

  LogicalResult peelAll() {
    Block &body = op.getBody().front();
    for (Operation &primitive : llvm::reverse(body.without_terminator())) {
      LogicalResult result =
          llvm::TypeSwitch<Operation *, LogicalResult>(&primitive)
              .Case<SplitOp, MergeOp, ShiftOp, ExpandOp, UnfoldOp, StrideOp,
                    ReduceOp, ShareOp>(
                  [&](auto peeled) { return peel(peeled); });
      if (failed(result))
        return failure();
    }
    for (MergeOp merge : body.getOps<MergeOp>())
      if (Value variable = getIterationVariable(merge.getCoord()))
        for (LabelledTensor &tensor : tensors)
          rewriter.substitute(tensor, variable, merge.getQuotient(),
                              merge.getRemainder());
    return success();
  }

  StageContraction getContraction() {
    StageContraction contraction;
    contraction.isMax = isMax;
    for (Value output : op.getOutputs()) {
      size_t first = contraction.outputs.size();
      addParts(output, contraction.outputs);
      ReassociationIndices &group = contraction.outputGroups.emplace_back();
      for (size_t part = first; part < contraction.outputs.size(); ++part)
        group.push_back(static_cast<int64_t>(part));
    }
    for (ReduceOp reduce : getReductions(op)) {
      SmallVector<Value> parts;
      addParts(reduce.getResult(), parts);
      if (reduce.getKind() == ReduceKind::Mean)
        contraction.scale /=
            static_cast<double>(getConcreteSize(reduce.getResult()));
      for (Value part : parts) {
        bool isRead = llvm::any_of(tensors, [&](const LabelledTensor &tensor) {
          return tensor.mentions(part);
        });
        // Nothing depends on it: a sum repeats one value, a maximum is it.
        if (isRead)
          contraction.reductions.push_back(part);
        else if (!isMax)
          contraction.scale *= static_cast<double>(getConcreteSize(part));
      }
    }
    contraction.operands = std::move(tensors);
    return contraction;
  }

private:
  void rename(Value from, Value to, int64_t factor = 1) {
    for (LabelledTensor &tensor : tensors)
      TensorRewriter::rename(tensor, from, to, factor);
  }

  LogicalResult peel(SplitOp split) {
    for (LabelledTensor &tensor : tensors)
      rewriter.substitute(tensor, split.getResult(), split.getOuter(),
                          split.getInner());
    return success();
  }

  LogicalResult peel(MergeOp merge) {
    Value outer = merge.getQuotient(), inner = merge.getRemainder();
    // The loop itself is split, see `peelAll`.
    if (getIterationVariable(merge.getCoord()))
      return success();
    for (LabelledTensor &tensor : tensors)
      if ((tensor.mentions(outer) || tensor.mentions(inner)) &&
          failed(rewriter.join(tensor, outer, inner, merge.getCoord())))
        return failure();
    return success();
  }

  LogicalResult peel(ShiftOp shift) {
    for (LabelledTensor &tensor : tensors) {
      if (!tensor.mentions(shift.getResult()))
        continue;
      if (failed(rewriter.isolate(tensor, shift.getResult())) ||
          failed(rewriter.rotate(tensor, *tensor.findSole(shift.getResult()),
                                 shift.getAmount())))
        return failure();
    }
    rename(shift.getResult(), shift.getCoord());
    return success();
  }

  LogicalResult peel(ExpandOp) { return success(); }
  LogicalResult peel(ReduceOp) { return success(); }

  LogicalResult peel(StrideOp stride) {
    rename(stride.getResult(), stride.getCoord(),
           *stride.getFactor().getConstantValue());
    return success();
  }

  LogicalResult peel(ShareOp share) {
    rename(share.getData(), share.getCoord());
    rename(share.getWeight(), share.getCoord());
    return success();
  }

  LogicalResult peel(UnfoldOp unfold) {
    Value top = unfold.getResult();
    int64_t window = getConcreteSize(unfold.getWindow());
    int64_t low = unfold.getLowValue(
        [](SizeAttr size) { return *size.getConstantValue(); });
    bool isRead = llvm::any_of(tensors, [&](const LabelledTensor &tensor) {
      return tensor.mentions(top);
    });
    // Where nothing reads the window its clipping still removes points. For
    // max another point with the same value is always left (see the caller).
    if (!isRead && !isMax && window > 1)
      tensors.push_back(rewriter.createOnes(
          top, getElementTypeOrSelf(tensors.front().value)));
    Label sum;
    int64_t last = addTerm(sum, unfold.getCoord()) +
                   addTerm(sum, unfold.getWindow()) - low;
    int64_t high = std::max<int64_t>(last + 1 - getConcreteSize(top), 0);
    double fill = isMax ? -std::numeric_limits<double>::infinity() : 0.0;
    for (LabelledTensor &tensor : tensors) {
      if (!tensor.mentions(top))
        continue;
      if (failed(rewriter.isolate(tensor, top)))
        return failure();
      unsigned dim = *tensor.findSole(top);
      if (failed(rewriter.pad(tensor, dim, low, high, fill)))
        return failure();
      tensor.dims[dim] = sum;
    }
    return success();
  }

  /// Adds `coordinate` to `sum` and returns its largest value. A stride is
  /// taken off at once: then values between its steps need no padding.
  static int64_t addTerm(Label &sum, Value coordinate) {
    int64_t factor = 1;
    if (auto stride = coordinate.getDefiningOp<StrideOp>()) {
      factor = *stride.getFactor().getConstantValue();
      coordinate = stride.getCoord();
    }
    sum[coordinate] = factor;
    return factor * (getConcreteSize(coordinate) - 1);
  }

  /// The loops that the iteration variable `coordinate` was split into.
  void addParts(Value coordinate, SmallVectorImpl<Value> &parts) {
    Value end = coordinate;
    while (true) {
      Operation *user = *end.getUsers().begin();
      if (auto share = dyn_cast<ShareOp>(user)) {
        end = share.getData();
        continue;
      }
      if (auto merge = dyn_cast<MergeOp>(user)) {
        addParts(merge.getQuotient(), parts);
        addParts(merge.getRemainder(), parts);
        return;
      }
      parts.push_back(coordinate);
      return;
    }
  }

  TensorRewriter &rewriter;
  OperatorOp op;
  bool isMax;
  SmallVector<LabelledTensor> tensors;
};
} // namespace

FailureOr<StageContraction> kas::peel(TensorRewriter &rewriter, OperatorOp op,
                                      Value data, ValueRange weights,
                                      bool isMax) {
  Peeler peeler(rewriter, op, isMax);
  YieldOp yield = op.getYield();
  peeler.addOperand(data, yield.getData());
  for (auto [weight, coordinates] :
       llvm::zip_equal(weights, yield.getWeights()))
    peeler.addOperand(weight, coordinates);
  if (failed(peeler.peelAll()))
    return failure();
  return peeler.getContraction();
}
