//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches `linalg.generic` contractions on GPUs, looks through views and
// zero padding, and orders the loops as axes of a kernel.
// A convolution on a padded tensor therefore becomes the same problem as
// `kas.apply` of a convolution: the padding is a guard, and no padded copy
// exists. accumulate in. output axes correspond one to one.
//
//===----------------------------------------------------------------------===//

#include "ContractionProblem.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The products that `op` adds to an output of f32; the inputs may be narrower.
static FailureOr<Contraction> match(linalg::GenericOp op) {
  // A loop without iterations leaves nothing to number.
  if (op->getNumResults() != 1 ||
      llvm::is_contained(op.getStaticLoopRanges(), 0))
    return failure();
  for (Value operand : op->getOperands())
    if (auto shaped = dyn_cast<ShapedType>(operand.getType());
        !shaped ||
        !isa<Float32Type, Float16Type, BFloat16Type>(shaped.getElementType()))
      return failure();
  FailureOr<Contraction> contraction =
      Contraction::match(op, [](const Twine &) {});
  // Each parallel loop must be a dimension of the output, so that loops and
  // output axes correspond one to one. Kernels accumulate in f32.
  if (failed(contraction) ||
      contraction->output.size() != op.getNumParallelLoops() ||
      !getElementTypeOrSelf(op.getResult(0).getType()).isF32())
    return failure();
  return contraction;
}

bool kas::codegen::isContraction(linalg::GenericOp op) {
  return succeeded(match(op));
}

/// Reads each tensor before views of it and zeros around it. Fails where
/// something else than zero is read beyond the ends of one.
static LogicalResult readSources(Contraction &contraction,
                                 linalg::GenericOp op) {
  for (auto [input, operand] :
       llvm::zip_equal(contraction.inputs, op.getDpsInputOperands())) {
    TensorAccess access = TensorAccess::get(*operand);
    // A fill other than zero would contribute terms outside of the tensor,
    // which a guard leaves out.
    if (!access.source || !access.hasZeroFill())
      return failure();
    input = {access.source, access.indices};
    llvm::append_range(contraction.guards, access.guards);
  }
  return success();
}

/// Example: a `linalg.generic` with loops (n, c, h, o) that writes [n, o, h]
/// gets the axes n, o, h, c.
/// The loops as axes, those of the output first, in its order.
static SmallVector<Axis> orderLoops(Contraction &contraction,
                                    MLIRContext *context) {
  SmallVector<Axis> axes;
  SmallVector<AffineExpr> axisOfLoop(contraction.loops.size());
  auto addAxis = [&](unsigned loop, std::optional<ReduceKind> kind) {
    axisOfLoop[loop] = getAffineDimExpr(axes.size(), context);
    axes.push_back({contraction.loops[loop].extent, kind, Value()});
  };
  for (AffineExpr expr : contraction.output)
    addAxis(cast<AffineDimExpr>(expr).getPosition(), std::nullopt);
  for (auto [position, loop] : llvm::enumerate(contraction.loops))
    if (loop.isReduction)
      addAxis(position, ReduceKind::Sum);
  contraction.transform(
      [&](AffineExpr expr) { return expr.replaceDims(axisOfLoop); });
  return axes;
}

std::optional<ContractionProblem>
ContractionProblem::get(linalg::GenericOp op) {
  FailureOr<Contraction> contraction = match(op);
  // The accumulator must begin with zeros: a kernel writes its sums, it does
  // not add to what is there.
  if (failed(contraction) ||
      !TensorAccess::get(*op.getDpsInitOperand(0)).isZero() ||
      failed(readSources(*contraction, op)))
    return std::nullopt;

  ContractionProblem result;
  Coordinates &coordinates = result.problem.coordinates;
  coordinates.axes = orderLoops(*contraction, op.getContext());
  coordinates.numOutputs = contraction->output.size();
  coordinates.guards = contraction->guards;

  // The kernel's columns come from the data, so the input that varies along the
  // innermost output axis takes its role: stores and loads of neighbouring
  // threads are then contiguous.
  // Neighbouring columns of the output are neighbours in the data.
  auto &inputs = contraction->inputs;
  for (unsigned axis = coordinates.numOutputs; axis-- > 0;)
    if (coordinates.axes[axis].extent > 1) {
      auto *data = llvm::find_if(inputs, [&](const Contraction::Input &input) {
        return llvm::any_of(input.indices, [&](AffineExpr expr) {
          return expr.isFunctionOfDim(axis);
        });
      });
      if (data != inputs.end())
        std::rotate(inputs.begin(), data, data + 1);
      break;
    }

  for (const auto &[value, indices] : inputs) {
    ArrayRef<int64_t> shape = cast<ShapedType>(value.getType()).getShape();
    // The first input is the data, the others are weights.
    if (result.inputs.empty()) {
      coordinates.data = indices;
      result.problem.data.assign(shape.begin(), shape.end());
    } else {
      coordinates.weights.push_back(indices);
      result.problem.weights.emplace_back(shape);
    }
    result.inputs.push_back(value);
  }
  for (auto [number, input] : llvm::enumerate(result.inputs))
    if (llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
          return KasGPUDialect::isRounded(op, operand.getOperandNumber()) &&
                 TensorAccess::get(operand).source == input;
        }))
      result.problem.rounded.insert(number);
  result.problem.output.assign(
      cast<ShapedType>(op.getResult(0).getType()).getShape());
  return result;
}
