//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "ContractionTail.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Pipelines/Passes.h"
#include "kas/Runtime/ModuleTarget.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

namespace kas {
#define GEN_PASS_DEF_PACKCONTRACTIONS
#define GEN_PASS_DEF_PACKOPERATORS
#include "kas/Pipelines/Passes.h.inc"
} // namespace kas

using namespace kas;
using namespace mlir;

/// The target of the module; vectors of `vectorBits` if there are any.
static Target getContractionTarget(Operation *op, int64_t vectorBits) {
  Target target;
  // Without a target: what most have.
  target.vectorBits = 256;
  target.hasFMA = true;
  target = getModuleTarget(op).value_or(target);
  if (vectorBits == 0)
    return target;
  target.vectorBits = vectorBits;
  if (vectorBits >= 512)
    target.vectorRegisters = 32;
  return target;
}

/// Says why `name` takes another road.
static void remarkNotPacked(Location loc, StringRef name, const Twine &reason) {
  remark::missed(loc,
                 remark::RemarkOpts::name("NotPacked").category(panelRemarks))
      << remark::metric("operation", name.str())
      << remark::reason("{0}", reason.str());
}

namespace {

struct PackContractions : kas::impl::PackContractionsBase<PackContractions> {
  using PackContractionsBase::PackContractionsBase;

  /// Those that alone fill a buffer may run once before the function, if what
  /// they read is a weight.
  void markTransposes() {
    getOperation().walk([](linalg::TransposeOp op) {
      auto buffer = op.getInit().getDefiningOp<memref::AllocOp>();
      bool alone =
          buffer && llvm::all_of(buffer->getUsers(), [&](auto *user) {
            if (user == op || isa<memref::DeallocOp>(user))
              return true;
            auto effects = dyn_cast<MemoryEffectOpInterface>(user);
            return effects &&
                   !effects.template getEffectOnValue<MemoryEffects::Write>(
                       op.getInit());
          });
      if (!alone)
        return;
      auto mark = UnitAttr::get(op.getContext());
      for (Operation *marked : {buffer.getOperation(), op.getOperation()})
        marked->setAttr(packingAttrName, mark);
    });
  }

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics() &&
          !op->getParentOfType<scf::ParallelOp>())
        ops.push_back(op);
    });
    ContractionOptions options{threads,
                               getContractionTarget(getOperation(), vectorBits),
                               /*deallocate=*/true, prepared};
    if (prepared)
      markTransposes();
    llvm::SmallPtrSet<Operation *, 8> erased;
    for (linalg::LinalgOp op : ops) {
      if (erased.contains(op))
        continue;
      auto because = [&](const Twine &reason) {
        // Nobody expects panels of a copy.
        if (op.getNumReductionLoops() > 0)
          remarkNotPacked(op.getLoc(), op->getName().getStringRef(), reason);
      };
      FailureOr<Contraction> contraction = Contraction::match(op, because);
      if (failed(contraction))
        continue;
      ContractionTail tail = ContractionTail::find(op, *contraction);
      options.tail = tail ? &tail : nullptr;
      tail.prepare(op);
      bool tookTail = false;
      OpBuilder builder(op);
      if (succeeded(emitContraction(builder, op.getLoc(), *contraction, options,
                                    because, &tookTail))) {
        if (tookTail) {
          erased.insert(tail.bias);
          erased.insert(tail.elementwise);
          tail.erase();
        }
        op->erase();
      }
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
    auto because = [&](const Twine &reason) {
      remarkNotPacked(loc, op.getSymName(), reason);
    };
    FailureOr<Contraction> contraction =
        Contraction::match(getCoordinates(op), inputs, output, because);
    if (failed(contraction))
      return undo();
    ContractionOptions options{threads,
                               getContractionTarget(getOperation(), vectorBits),
                               /*deallocate=*/false, prepared};
    if (failed(emitContraction(rewriter, loc, *contraction, options, because)))
      return undo();
    rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
        apply, apply.getResult().getType(), output, /*restrict=*/true,
        /*writable=*/true);
    ++numPacked;
  }
};

} // namespace
