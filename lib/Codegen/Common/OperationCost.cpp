//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/OperationCost.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Analysis/PointCount.h"
#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace kas;
using namespace mlir;

int64_t kas::codegen::countExistingPoints(linalg::LinalgOp op) {
  SmallVector<Axis> axes;
  for (int64_t range : op.getStaticLoopRanges())
    axes.push_back({range, std::nullopt, nullptr});
  SmallVector<Guard> guards;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto pad = operand->get().getDefiningOp<tensor::PadOp>();
    if (!pad || !pad.getConstantPaddingValue())
      continue;
    ArrayRef<int64_t> shape = pad.getSourceType().getShape();
    for (auto [index, low, size] :
         llvm::zip_equal(op.getMatchingIndexingMap(operand).getResults(),
                         pad.getStaticLow(), shape))
      if (!ShapedType::isDynamic(low) && !ShapedType::isDynamic(size))
        guards.push_back({index - low, size});
  }
  return countPoints(axes, guards);
}

bool kas::codegen::isFloatArithmetic(Operation *op) {
  bool isArithmetic =
      isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
      !op->hasTrait<OpTrait::ConstantLike>() &&
      !isa<CastOpInterface, arith::SelectOp>(op);
  return isArithmetic && op->getNumOperands() > 0 &&
         isa<FloatType>(op->getOperand(0).getType());
}

static std::optional<int64_t> countFlops(ApplyOp apply) {
  // What is wrong with the operator is for the passes to say.
  ScopedDiagnosticHandler quiet(apply.getContext(),
                                [](Diagnostic &) { return success(); });
  auto emitError = [&] { return apply.emitOpError(); };
  OperatorOp op = apply.getOperator();
  FailureOr<Binding> binding = inferBinding(apply, op, emitError);
  if (failed(binding))
    return std::nullopt;
  FailureOr<int64_t> macs = getExistingMacs(op, *binding, emitError);
  return succeeded(macs) ? std::optional<int64_t>(2 * *macs) : std::nullopt;
}

/// Each product of the operator gives one of the gradient.
static std::optional<int64_t> countFlops(ApplyGradientOp apply) {
  ScopedDiagnosticHandler quiet(apply.getContext(),
                                [](Diagnostic &) { return success(); });
  FailureOr<int64_t> macs = getExistingMacs(
      apply.getOperator(), Binding(), [&] { return apply.emitOpError(); });
  return succeeded(macs) ? std::optional<int64_t>(2 * *macs) : std::nullopt;
}

std::optional<int64_t> kas::codegen::countFlops(Operation *op) {
  if (auto apply = dyn_cast<ApplyOp>(op))
    return ::countFlops(apply);
  if (auto gradient = dyn_cast<ApplyGradientOp>(op))
    return ::countFlops(gradient);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp) {
    bool isMove = isa<tensor::TensorDialect>(op->getDialect());
    return isMove ? std::optional<int64_t>(0) : std::nullopt;
  }
  if (llvm::any_of(linalgOp.getStaticLoopRanges(), ShapedType::isDynamic))
    return std::nullopt;
  int64_t perPoint = llvm::count_if(*linalgOp.getBlock(), [](Operation &inner) {
    return isFloatArithmetic(&inner);
  });
  return perPoint == 0 ? 0 : perPoint * countExistingPoints(linalgOp);
}
