//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Pipelines/Passes.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-contractions"

namespace kas {
#define GEN_PASS_DEF_PACKCONTRACTIONS
#define GEN_PASS_DEF_PACKOPERATORS
#include "kas/Pipelines/Passes.h.inc"
} // namespace kas

using namespace kas;
using namespace mlir;

namespace {

struct PackContractions : kas::impl::PackContractionsBase<PackContractions> {
  using PackContractionsBase::PackContractionsBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics() &&
          !op->getParentOfType<scf::ParallelOp>())
        ops.push_back(op);
    });
    PanelOptions options{threads, vectorBits};
    for (linalg::LinalgOp op : ops) {
      FailureOr<Contraction> contraction =
          Contraction::match(op, [&](const Twine &reason) {
            LDBG() << op->getName() << " is not packed: " << reason.str();
          });
      if (failed(contraction))
        continue;
      OpBuilder builder(op);
      if (succeeded(emitPanels(builder, op.getLoc(), *contraction, options)))
        op->erase();
    }
  }
};

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

struct PackOperators : kas::impl::PackOperatorsBase<PackOperators> {
  using PackOperatorsBase::PackOperatorsBase;

  void runOnOperation() override {
    SmallVector<ApplyOp> applies;
    getOperation()->walk([&](ApplyOp apply) { applies.push_back(apply); });
    for (ApplyOp apply : applies)
      lower(apply);
  }

  void lower(ApplyOp apply) {
    OperatorOp op = apply.getOperator();
    if (!op || !op.isConcrete())
      return;
    IRRewriter rewriter(apply);
    Location loc = apply.getLoc();
    auto getBufferType = [](Value tensor) {
      return bufferization::getMemRefTypeWithStaticIdentityLayout(
          cast<TensorType>(tensor.getType()));
    };
    SmallVector<Value> inputs;
    for (Value tensor : apply->getOperands())
      inputs.push_back(bufferization::ToBufferOp::create(
          rewriter, loc, getBufferType(tensor), tensor, /*read_only=*/true));
    auto output = memref::AllocOp::create(
        rewriter, loc, cast<MemRefType>(getBufferType(apply.getResult())),
        rewriter.getI64IntegerAttr(64));
    auto undo = [&] {
      rewriter.eraseOp(output);
      for (Value input : inputs)
        rewriter.eraseOp(input.getDefiningOp());
    };
    FailureOr<Contraction> contraction = Contraction::match(
        getCoordinates(op), inputs, output, [&](const Twine &reason) {
          LDBG() << op.getSymName() << " is not packed: " << reason.str();
        });
    if (failed(contraction))
      return undo();
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0));
    auto fill = linalg::FillOp::create(rewriter, loc, zero, output.getResult());
    PanelOptions options{threads, vectorBits, /*deallocate=*/false};
    if (failed(emitPanels(rewriter, loc, *contraction, options))) {
      rewriter.eraseOp(fill);
      rewriter.eraseOp(zero.getDefiningOp());
      return undo();
    }
    rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
        apply, apply.getResult().getType(), output, /*restrict=*/true,
        /*writable=*/true);
    ++numPacked;
  }
};

} // namespace
