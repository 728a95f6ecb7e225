//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers kas.apply on tensors to register tiles, and with it what networks do
// right before and after an operator.
//
//===----------------------------------------------------------------------===//

#include "../Emit/ContractionTail.h"
#include "../Strategy/StridedContraction.h"
#include "PackOperations.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Conversion/KasGradient.h"
#include "kas/Conversion/KasToAffine.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-operators"

namespace kas::codegen {
#define GEN_PASS_DEF_PACKOPERATORS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

std::optional<SmallVector<int64_t>> kas::codegen::getZeros(tensor::PadOp op) {
  Value value = op.getConstantPaddingValue();
  std::optional<SmallVector<int64_t>> low =
      getConstantIntValues(op.getMixedLowPad());
  if (!value || !matchPattern(value, m_AnyZeroFloat()) || op.getNofold() ||
      !op.getSourceType().hasStaticShape() ||
      !op.getResultType().hasStaticShape())
    return std::nullopt;
  return low;
}

namespace {

/// One operation on tensors that becomes loops on buffers, with the elementwise
/// operation after it if that is done on the way.
class Packing {
public:
  Packing(Operation *op, const ContractionOptions &given)
      : op(op), options(given), loc(op->getLoc()), rewriter(op) {
    // Only tiles of weights packed ahead take one along.
    if (options.prepared)
      reader = ContractionTail::findReader(op->getResult(0));
    if (reader)
      rewriter.setInsertionPoint(reader);
  }

  Value toBuffer(Value tensor) {
    auto buffer = bufferization::ToBufferOp::create(
        rewriter, loc, getBufferType(tensor), tensor, /*read_only=*/true);
    made.push_back(buffer);
    return buffer;
  }
  Value makeOutput() {
    auto type = cast<MemRefType>(getBufferType(op->getResult(0)));
    auto buffer = memref::AllocOp::create(rewriter, loc, type,
                                          rewriter.getI64IntegerAttr(64));
    made.push_back(buffer);
    return buffer;
  }
  /// Emits the loops and replaces the operation. Leaves all as it was on
  /// failure.
  LogicalResult emit(const StridedContraction &contraction,
                     ContractionTail tail,
                     function_ref<void(const Twine &)> emitReason);
  /// Removes the buffers again.
  void undo() {
    for (Operation *buffer : llvm::reverse(made))
      rewriter.eraseOp(buffer);
    made.clear();
  }

private:
  static BaseMemRefType getBufferType(Value tensor) {
    return bufferization::getMemRefTypeWithStaticIdentityLayout(
        cast<TensorType>(tensor.getType()));
  }

  Operation *op;
  ContractionOptions options;
  Location loc;
  IRRewriter rewriter;
  linalg::GenericOp reader;
  SmallVector<Operation *> made;
};

struct PackOperators : kas::codegen::impl::PackOperatorsBase<PackOperators> {
  using PackOperatorsBase::PackOperatorsBase;

  void runOnOperation() override {
    SmallVector<ApplyOp> applies;
    SmallVector<ApplyGradientOp> gradients;
    SmallVector<linalg::LinalgOp> padded;
    getOperation()->walk([&](Operation *op) {
      if (auto apply = dyn_cast<ApplyOp>(op))
        applies.push_back(apply);
      else if (auto gradient = dyn_cast<ApplyGradientOp>(op))
        gradients.push_back(gradient);
      else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
               linalgOp && readsPadding(linalgOp))
        padded.push_back(linalgOp);
    });
    for (ApplyOp apply : applies)
      if (failed(lower(apply)))
        return signalPassFailure();
    for (ApplyGradientOp gradient : gradients)
      lowerGradient(gradient);
    for (linalg::LinalgOp op : padded)
      lowerPadded(op);
  }

private:
  ContractionOptions getOptions(Operation *op) {
    ContractionOptions options{threads,
                               getContractionTarget(getOperation(), vectorBits),
                               /*deallocate=*/false,
                               prepared,
                               /*tail=*/nullptr,
                               getSchedule(op)};
    options.algorithm = algorithm;
    return options;
  }

  LogicalResult lower(ApplyOp apply);
  void lowerGradient(ApplyGradientOp apply);
  void lowerPadded(linalg::LinalgOp op);
};

} // namespace

LogicalResult Packing::emit(const StridedContraction &contraction,
                            ContractionTail tail,
                            function_ref<void(const Twine &)> emitReason) {
  if (reader) {
    SmallVector<Value> inputs;
    for (Value input : reader.getDpsInputs())
      inputs.push_back(input == op->getResult(0) ? Value() : toBuffer(input));
    tail.takeReader(reader, inputs, contraction);
  }
  options.tail = tail ? &tail : nullptr;
  bool tookTail = false;
  if (failed(emitContraction(rewriter, loc, contraction, options, emitReason,
                             &tookTail))) {
    undo();
    return failure();
  }
  LDBG() << loc << ": packed" << (tookTail ? " with its tail" : "");
  Operation *last = tookTail && tail.elementwise ? tail.elementwise : op;
  auto result = bufferization::ToTensorOp::create(
      rewriter, loc, op->getResult(0).getType(), contraction.output.buffer,
      /*restrict=*/true, /*writable=*/true);
  rewriter.replaceOp(last, result.getResult());
  if (last != op)
    rewriter.eraseOp(op);
  return success();
}

LogicalResult PackOperators::lower(ApplyOp apply) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return success();
  ContractionOptions options = getOptions(apply);
  Packing packing(apply, options);
  auto emitReason = [&](const Twine &reason) {
    remarkNotPacked(apply, op.getSymName(), reason);
  };
  auto toBuffer = [&](Value tensor) { return packing.toBuffer(tensor); };
  FailureOr<StridedContraction> contraction = StridedContraction::get(
      apply, toBuffer, packing.makeOutput(), emitReason);
  if (failed(contraction)) {
    packing.undo();
    return failure(options.schedule != nullptr);
  }
  if (failed(packing.emit(*contraction, {}, emitReason)))
    return failure(options.schedule != nullptr);
  ++numPacked;
  return success();
}

/// The gradient of a sum of products is one itself.
void PackOperators::lowerGradient(ApplyGradientOp apply) {
  ContractionOptions options = getOptions(apply);
  Packing packing(apply, options);
  auto emitReason = [&](const Twine &reason) {
    remarkNotPacked(apply, apply.getCallee(), reason);
  };
  GradientNest nest = getGradient(apply);
  SmallVector<Value> inputs = llvm::map_to_vector(
      nest.inputs, [&](Value tensor) { return packing.toBuffer(tensor); });
  FailureOr<Contraction> source =
      Contraction::match(nest.coordinates, inputs, emitReason);
  FailureOr<StridedContraction> contraction = failure();
  if (succeeded(source))
    contraction =
        StridedContraction::get(*source, packing.makeOutput(), emitReason);
  if (failed(contraction))
    return packing.undo();
  if (succeeded(packing.emit(*contraction, {}, emitReason)))
    ++numPacked;
}

bool kas::codegen::readsPadding(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInits() != 1)
    return false;
  Operation *init = op.getDpsInits().front().getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(init)) {
    if (!matchPattern(fill.getInputs().front(), m_AnyZeroFloat()))
      return false;
  } else if (auto bias = dyn_cast_or_null<linalg::BroadcastOp>(init)) {
    if (cast<ShapedType>(bias.getInput().getType()).getRank() != 1)
      return false;
  } else {
    return false;
  }
  return llvm::any_of(op.getDpsInputs(), [](Value input) {
    auto pad = input.getDefiningOp<tensor::PadOp>();
    return pad && getZeros(pad);
  });
}

/// Reads what is padded where it is, if that is the cheapest.
void PackOperators::lowerPadded(linalg::LinalgOp op) {
  auto bias = op.getDpsInits().front().getDefiningOp<linalg::BroadcastOp>();
  ContractionOptions options = getOptions(op);
  // Weights that were packed ahead suit padded images just as well, and sums
  // begin with a bias in row vectors alone.
  options.readsUnpadded = prepared || bias;
  Packing packing(op, options);
  auto toBuffer = [&](Value tensor) { return packing.toBuffer(tensor); };
  FailureOr<StridedContraction> contraction =
      StridedContraction::getUnpadded(op, toBuffer, packing.makeOutput());
  if (failed(contraction))
    return packing.undo();
  ContractionTail tail;
  if (bias) {
    int64_t position = 0;
    while (llvm::is_contained(bias.getDimensions(), position))
      ++position;
    if (!tail.takeBias(packing.toBuffer(bias.getInput()), position,
                       *contraction))
      return packing.undo();
  }
  if (succeeded(packing.emit(*contraction, tail, [](const Twine &) {})))
    ++numPacked;
}
