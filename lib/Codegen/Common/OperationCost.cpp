//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts floating-point operations of linalg operations and of applied
// operators, padding left out.
// A multiply-add counts as two operations. Iterations that read padding only
// multiply zeros, which tiles leave out, so they do not count.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/OperationCost.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Analysis/IterationCount.h"
#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace kas;
using namespace mlir;

int64_t kas::codegen::countExistingIterations(linalg::LinalgOp op) {
  SmallVector<Axis> axes;
  for (int64_t range : op.getStaticLoopRanges())
    axes.push_back({range, std::nullopt, nullptr});
  SmallVector<Guard> guards;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto pad = operand->get().getDefiningOp<tensor::PadOp>();
    // Padding of another value than a constant is data.
    if (!pad || !pad.getConstantPaddingValue())
      continue;
    ArrayRef<int64_t> shape = pad.getSourceType().getShape();
    // The iteration exists where the index is inside of the unpadded tensor.
    for (auto [index, low, size] :
         llvm::zip_equal(op.getMatchingIndexingMap(operand).getResults(),
                         pad.getStaticLow(), shape))
      if (!ShapedType::isDynamic(low) && !ShapedType::isDynamic(size))
        guards.push_back({index - low, size});
  }
  return countIterations(axes, guards);
}

// Conversions and selections move numbers; comparisons of floats do count.
bool kas::codegen::isFloatArithmetic(Operation *op) {
  bool isArithmetic =
      isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
      !op->hasTrait<OpTrait::ConstantLike>() &&
      !isa<CastOpInterface, arith::SelectOp>(op);
  return isArithmetic && op->getNumOperands() > 0 &&
         isa<FloatType>(op->getOperand(0).getType());
}

/// The operations of `apply`, or of a gradient of it: each multiply-add of an
/// operator gives one of a gradient.
static std::optional<int64_t> countOperatorFlops(Operation *user) {
  // What is wrong with the operator is for the passes to say.
  ScopedDiagnosticHandler quiet(user->getContext(),
                                [](Diagnostic &) { return success(); });
  auto emitError = [&] { return user->emitOpError(); };
  OperatorOp op;
  FailureOr<Binding> binding = Binding();
  if (auto apply = dyn_cast<ApplyOp>(user)) {
    op = apply.getOperator();
    binding = inferBinding(apply, op, emitError);
  } else {
    op = cast<ApplyGradientOp>(user).getOperator();
  }
  if (failed(binding))
    return std::nullopt;
  FailureOr<int64_t> macs = getExistingMacs(op, *binding, emitError);
  return succeeded(macs) ? std::optional<int64_t>(2 * *macs) : std::nullopt;
}

std::optional<int64_t> kas::codegen::countFlops(Operation *op) {
  if (isa<ApplyOp, ApplyGradientOp>(op))
    return countOperatorFlops(op);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp) {
    // Slices, reshapes and concatenations move elements; of anything else
    // nothing is known.
    bool isMove = isa<tensor::TensorDialect>(op->getDialect());
    return isMove ? std::optional<int64_t>(0) : std::nullopt;
  }
  if (llvm::any_of(linalgOp.getStaticLoopRanges(), ShapedType::isDynamic))
    return std::nullopt;
  int64_t perIteration =
      llvm::count_if(*linalgOp.getBlock(), [](Operation &inner) {
        return isFloatArithmetic(&inner);
      });
  return perIteration == 0 ? 0
                           : perIteration * countExistingIterations(linalgOp);
}
