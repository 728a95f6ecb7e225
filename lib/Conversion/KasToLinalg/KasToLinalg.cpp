//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers operators to linalg: whether one is a contraction, the contraction
// between views and pads, and the pass -kas-to-linalg.
//
// Method: primitives are peeled off one by one from the input to the output
// (Peeling.h), each turning into a view, a pad or nothing, until only a
// contraction is left. What has no such form stays a `kas.apply` with a remark,
// for -kas-to-affine. Order of passes: docs/internals/code-generation.md.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/KasToLinalg.h"
#include "Peeling.h"
#include "kas/Conversion/BatchNorm.h"
#include "kas/Conversion/Dropout.h"
#include "kas/Conversion/Passes.h"
#include "kas/Conversion/VerifiedConversion.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

namespace kas {
#define GEN_PASS_DEF_KASTOLINALGPASS
#include "kas/Conversion/Passes.h.inc"
} // namespace kas

//===----------------------------------------------------------------------===//
// Which operators
//===----------------------------------------------------------------------===//

/// Whether `coordinate` takes every value of its domain as the reductions run,
/// whatever the outputs are.
/// An output (a block argument) is fixed, and a stride leaves gaps.
static bool isFreelyReduced(Value coordinate) {
  Operation *op = coordinate.getDefiningOp();
  if (!op || isa<StrideOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), isFreelyReduced);
}

/// Sums alone always are: a point that does not exist adds a zero.
LogicalResult kas::checkIsContraction(OperatorOp op, std::string &reason) {
  Coordinates coordinates = getCoordinates(op);
  if (!coordinates.hasMax())
    return success();
  // A generic op has one combining operation, so kinds may not be mixed.
  for (ReduceOp reduce : getReductions(op)) {
    if (reduce.getKind() == ReduceKind::Max ||
        getConcreteSize(reduce.getResult()) == 1)
      continue;
    reason = "it reduces by max and by " +
             stringifyReduceKind(reduce.getKind()).str();
    return failure();
  }
  if (coordinates.guards.empty())
    return success();
  // Minus infinity in the padding stands for points that do not exist, as long
  // as nothing is multiplied with it and every output has a point that does.
  if (op.getNumWeights() > 0) {
    reason = "it clips under a max of products";
    return failure();
  }
  // An output whose window lies in the padding as a whole would be minus
  // infinity, where the operator says 0. A freely reduced window always has its
  // middle.
  for (UnfoldOp unfold : op.getBody().getOps<UnfoldOp>()) {
    if (getConcreteSize(unfold.getWindow()) == 1 ||
        isFreelyReduced(unfold.getWindow()))
      continue;
    reason = "a max may have no points for some outputs";
    return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

LogicalResult kas::convertToLinalg(RewriterBase &rewriter, ApplyOp apply,
                                   const LinalgOptions &options,
                                   std::string &reason) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return apply.emitOpError() << "requires a concrete operator (see "
                                  "-kas-specialize), got '@"
                               << apply.getCallee() << "'";
  if (failed(checkIsContraction(op, reason)))
    return failure();

  rewriter.setInsertionPoint(apply);
  // Peeling may fail half way; what it has made by then is erased again.
  Operation *before = apply->getPrevNode();
  TensorRewriter tensors(rewriter, apply.getLoc(), options.maxElements);
  FailureOr<StageContraction> contraction =
      peel(tensors, op, apply.getData(), apply.getWeights(),
           getCoordinates(op).hasMax());
  if (failed(contraction)) {
    reason = tensors.getReason();
    while (apply->getPrevNode() != before)
      rewriter.eraseOp(apply->getPrevNode());
    return failure();
  }
  ImplicitLocOpBuilder &b = tensors.getBuilder();
  Value result = emitContraction(b, *contraction, options.namedOps);
  // Merged outputs are several loops of the contraction.
  if (contraction->outputs.size() != contraction->outputGroups.size())
    result = tensor::CollapseShapeOp::create(b, apply.getType(), result,
                                             contraction->outputGroups);
  rewriter.replaceOp(apply, result);
  return success();
}

namespace {
struct KasToLinalgPass
    : public kas::impl::KasToLinalgPassBase<KasToLinalgPass> {
  using KasToLinalgPassBase::KasToLinalgPassBase;

  void runOnOperation() override {
    // Collected first: conversion changes what the traversal goes over.
    SmallVector<ApplyOp> applies;
    SmallVector<BatchNormOp> normalizations;
    SmallVector<DropoutOp> dropouts;
    getOperation()->walk([&](Operation *op) {
      if (auto apply = dyn_cast<ApplyOp>(op))
        applies.push_back(apply);
      else if (auto normalization = dyn_cast<BatchNormOp>(op))
        normalizations.push_back(normalization);
      else if (auto dropout = dyn_cast<DropoutOp>(op))
        dropouts.push_back(dropout);
    });
    IRRewriter rewriter(&getContext());
    for (BatchNormOp normalization : normalizations)
      lowerBatchNorm(rewriter, normalization);
    for (DropoutOp dropout : dropouts)
      lowerDropout(rewriter, dropout);
    LinalgOptions options;
    options.maxElements = maxElements;
    options.namedOps = namedOps;
    for (ApplyOp apply : applies) {
      std::string reason;
      auto convert = [&] {
        return convertToLinalg(rewriter, apply, options, reason);
      };
      if (succeeded(verifyLowering ? convertAndVerify(rewriter, apply, convert)
                                   : convert())) {
        ++numConverted;
        continue;
      }
      // No reason: an error was reported.
      if (reason.empty())
        return signalPassFailure();
      ++numLeft;
      apply.emitRemark() << "left to -kas-to-affine, since "
                            "linalg ops cannot express operator '@"
                         << apply.getCallee() << "': " << reason;
    }
  }
};
} // namespace
