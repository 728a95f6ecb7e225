//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the primitives of an operator off, from the input to the output, until
// a contraction of rearranged tensors is left. What a tensor is, and how it is
// rearranged, is up to the rewriter: ops for one strategy, text for another.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CONVERSION_PEELING_H
#define KAS_CONVERSION_PEELING_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>
#include <string>

namespace kas {

/// The sum of coordinates times their coefficients. Whatever values the
/// coordinates take in their domains, the sum is in bounds of the dimension
/// that it labels; a coordinate alone with coefficient 1 has the size of it.
using Label = llvm::SmallMapVector<mlir::Value, int64_t, 2>;

/// `coordinate` alone.
inline Label getSoleLabel(mlir::Value coordinate) {
  Label label;
  label[coordinate] = 1;
  return label;
}
inline bool isSole(const Label &label, mlir::Value coordinate) {
  return label.size() == 1 && label.lookup(coordinate) == 1;
}

/// The label with `to` in place of `from`. It is a map in order of insertion:
/// rebuilt, so that coordinates keep their places.
inline Label replaceInLabel(const Label &label, mlir::Value from,
                            const Label &to) {
  Label result;
  for (auto [coordinate, coefficient] : label) {
    if (coordinate != from) {
      result[coordinate] += coefficient;
      continue;
    }
    for (auto [part, factor] : to)
      result[part] += coefficient * factor;
  }
  return result;
}

/// What indexes a tensor.
struct Labels {
  llvm::SmallVector<Label> dims;

  bool mentions(mlir::Value coordinate) const {
    return llvm::any_of(
        dims, [&](const Label &label) { return label.contains(coordinate); });
  }

  /// The position of the dimension with the label `coordinate` alone, when no
  /// other dimension mentions it.
  std::optional<unsigned> findSole(mlir::Value coordinate) const {
    std::optional<unsigned> found;
    for (auto [position, label] : llvm::enumerate(dims)) {
      if (!label.contains(coordinate))
        continue;
      if (found || !isSole(label, coordinate))
        return std::nullopt;
      found = position;
    }
    return found;
  }

  /// Replaces `from` by `factor * to` in all labels.
  void rename(mlir::Value from, mlir::Value to, int64_t factor = 1) {
    Label replacement;
    replacement[to] = factor;
    for (Label &label : dims)
      if (label.contains(from))
        label = replaceInLabel(label, from, replacement);
  }
};

/// Fails with a reason for concrete operators that are not one sum, or one
/// maximum, of products: those need values that say whether a point existed.
llvm::LogicalResult checkIsContraction(OperatorOp op, std::string &reason);

/// result[outputs] = scale * the sum (or maximum) over `reductions` of the
/// product of the operands. All labels are of `outputs` and `reductions`.
template <typename Tensor>
struct BasicContraction {
  llvm::SmallVector<Tensor> operands;
  llvm::SmallVector<mlir::Value> outputs;
  /// Which of `outputs` together are one dimension of the operator's result.
  llvm::SmallVector<mlir::ReassociationIndices> outputGroups;
  llvm::SmallVector<mlir::Value> reductions;
  bool isMax = false;
  double scale = 1;
};

/// The iteration variable, or the half of one, that `coordinate` is by way of
/// `share` and `merge` alone; null when it is anything else. Merging such a
/// coordinate splits the loop, which is free.
inline mlir::Value getIterationVariable(mlir::Value coordinate) {
  while (auto share = coordinate.getDefiningOp<ShareOp>())
    coordinate = share.getCoord();
  mlir::Operation *op = coordinate.getDefiningOp();
  if (!op || mlir::isa<ReduceOp>(op))
    return coordinate;
  auto merge = mlir::dyn_cast<MergeOp>(op);
  return merge && getIterationVariable(merge.getCoord()) ? coordinate
                                                         : mlir::Value();
}

/// Keeps one invariant: at each point of the coordinates that are still there,
/// the product of the tensors is that of the operator, or zero (for max: minus
/// infinity) where the primitives taken off say that the point does not exist.
///
/// `Rewriter::Tensor` is a `Labels`; the members of `Rewriter` that are called
/// are those of `TensorRewriter` in lib/Conversion/KasToLinalg.
template <typename Rewriter>
class Peeler {
public:
  using Tensor = typename Rewriter::Tensor;

  Peeler(Rewriter &rewriter, OperatorOp op, bool isMax)
      : rewriter(rewriter), op(op), isMax(isMax) {}

  /// Adds the data or a weight, the next operand of the operator.
  void addOperand(Tensor tensor, mlir::ValueRange coordinates) {
    for (mlir::Value coordinate : coordinates)
      tensor.dims.push_back(getSoleLabel(coordinate));
    tensors.push_back(std::move(tensor));
  }

  llvm::LogicalResult peelAll() {
    mlir::Block &body = op.getBody().front();
    for (mlir::Operation &primitive :
         llvm::reverse(body.without_terminator())) {
      llvm::LogicalResult result =
          llvm::TypeSwitch<mlir::Operation *, llvm::LogicalResult>(&primitive)
              .Case<SplitOp, MergeOp, ShiftOp, ExpandOp, UnfoldOp, StrideOp,
                    ReduceOp, ShareOp>(
                  [&](auto peeled) { return peel(peeled); });
      if (mlir::failed(result))
        return mlir::failure();
    }
    for (MergeOp merge : body.getOps<MergeOp>())
      if (mlir::Value variable = getIterationVariable(merge.getCoord()))
        for (Tensor &tensor : tensors)
          rewriter.substitute(tensor, variable, merge.getQuotient(),
                              merge.getRemainder());
    return mlir::success();
  }

  BasicContraction<Tensor> getContraction() {
    BasicContraction<Tensor> contraction;
    contraction.isMax = isMax;
    for (mlir::Value output : op.getOutputs()) {
      size_t first = contraction.outputs.size();
      addParts(output, contraction.outputs);
      mlir::ReassociationIndices &group =
          contraction.outputGroups.emplace_back();
      for (size_t part = first; part < contraction.outputs.size(); ++part)
        group.push_back(static_cast<int64_t>(part));
    }
    for (ReduceOp reduce : getReductions(op)) {
      llvm::SmallVector<mlir::Value> parts;
      addParts(reduce.getResult(), parts);
      if (reduce.getKind() == ReduceKind::Mean)
        contraction.scale /=
            static_cast<double>(getConcreteSize(reduce.getResult()));
      for (mlir::Value part : parts) {
        bool isRead = llvm::any_of(tensors, [&](const Tensor &tensor) {
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
  void rename(mlir::Value from, mlir::Value to, int64_t factor = 1) {
    for (Tensor &tensor : tensors)
      tensor.rename(from, to, factor);
  }

  llvm::LogicalResult peel(SplitOp split) {
    for (Tensor &tensor : tensors)
      rewriter.substitute(tensor, split.getResult(), split.getOuter(),
                          split.getInner());
    return mlir::success();
  }

  llvm::LogicalResult peel(MergeOp merge) {
    mlir::Value outer = merge.getQuotient(), inner = merge.getRemainder();
    // The loop itself is split, see `peelAll`.
    if (getIterationVariable(merge.getCoord()))
      return mlir::success();
    for (Tensor &tensor : tensors)
      if ((tensor.mentions(outer) || tensor.mentions(inner)) &&
          mlir::failed(rewriter.join(tensor, outer, inner, merge.getCoord())))
        return mlir::failure();
    return mlir::success();
  }

  llvm::LogicalResult peel(ShiftOp shift) {
    for (Tensor &tensor : tensors) {
      if (!tensor.mentions(shift.getResult()))
        continue;
      if (mlir::failed(rewriter.isolate(tensor, shift.getResult())) ||
          mlir::failed(rewriter.rotate(
              tensor, *tensor.findSole(shift.getResult()), shift.getAmount())))
        return mlir::failure();
    }
    rename(shift.getResult(), shift.getCoord());
    return mlir::success();
  }

  llvm::LogicalResult peel(ExpandOp) { return mlir::success(); }
  llvm::LogicalResult peel(ReduceOp) { return mlir::success(); }

  llvm::LogicalResult peel(StrideOp stride) {
    rename(stride.getResult(), stride.getCoord(),
           *stride.getFactor().getConstantValue());
    return mlir::success();
  }

  llvm::LogicalResult peel(ShareOp share) {
    rename(share.getData(), share.getCoord());
    rename(share.getWeight(), share.getCoord());
    return mlir::success();
  }

  llvm::LogicalResult peel(UnfoldOp unfold) {
    mlir::Value top = unfold.getResult();
    int64_t window = getConcreteSize(unfold.getWindow());
    int64_t low = unfold.getLowValue(
        [](SizeAttr size) { return *size.getConstantValue(); });
    bool isRead = llvm::any_of(
        tensors, [&](const Tensor &tensor) { return tensor.mentions(top); });
    // Where nothing reads the window its clipping still removes points. For
    // max another point with the same value is always left (see the caller).
    if (!isRead && !isMax && window > 1)
      tensors.push_back(rewriter.createOnes(top, tensors.front()));
    Label sum;
    int64_t last = addTerm(sum, unfold.getCoord()) +
                   addTerm(sum, unfold.getWindow()) - low;
    int64_t high = std::max<int64_t>(last + 1 - getConcreteSize(top), 0);
    double fill = isMax ? -std::numeric_limits<double>::infinity() : 0.0;
    for (Tensor &tensor : tensors) {
      if (!tensor.mentions(top))
        continue;
      if (mlir::failed(rewriter.isolate(tensor, top)))
        return mlir::failure();
      unsigned dim = *tensor.findSole(top);
      if (mlir::failed(rewriter.pad(tensor, dim, low, high, fill)))
        return mlir::failure();
      tensor.dims[dim] = sum;
    }
    return mlir::success();
  }

  /// Adds `coordinate` to `sum` and returns its largest value. A stride is
  /// taken off at once: then values between its steps need no padding.
  static int64_t addTerm(Label &sum, mlir::Value coordinate) {
    int64_t factor = 1;
    if (auto stride = coordinate.getDefiningOp<StrideOp>()) {
      factor = *stride.getFactor().getConstantValue();
      coordinate = stride.getCoord();
    }
    sum[coordinate] = factor;
    return factor * (getConcreteSize(coordinate) - 1);
  }

  /// The loops that the iteration variable `coordinate` was split into.
  void addParts(mlir::Value coordinate,
                llvm::SmallVectorImpl<mlir::Value> &parts) {
    mlir::Value end = coordinate;
    while (true) {
      mlir::Operation *user = *end.getUsers().begin();
      if (auto share = mlir::dyn_cast<ShareOp>(user)) {
        end = share.getData();
        continue;
      }
      if (auto merge = mlir::dyn_cast<MergeOp>(user)) {
        addParts(merge.getQuotient(), parts);
        addParts(merge.getRemainder(), parts);
        return;
      }
      parts.push_back(coordinate);
      return;
    }
  }

  Rewriter &rewriter;
  OperatorOp op;
  bool isMax;
  llvm::SmallVector<Tensor> tensors;
};

} // namespace kas

#endif // KAS_CONVERSION_PEELING_H
