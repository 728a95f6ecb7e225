//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers kas.apply on tensors to register tiles, and with it what networks do
// right before and after an operator: padding, bias, elementwise operations.
//
// There are three kinds of operations: operators (`lower`), gradients of
// operators (`lowerGradient`), and linalg operations on tensors that gain
// something here that `-kas-pack-contractions` cannot do on buffers
// (`lowerSum`). Buffers are made on trial (`Packing`) and removed again where
// nothing suits. docs/internals/code-generation.md, "Panels" to "Other
// layouts".
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionChoice.h"
#include "../Strategy/MatchContraction.h"
#include "Packing.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Conversion/KasGradient.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-operators"

namespace kas::codegen {
#define GEN_PASS_DEF_KASPACKOPERATORSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Whether `op` on tensors sums products to a tensor of zeros.
bool beginsWithZeros(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !hasContractionBody(op))
    return false;
  auto fill = op.getDpsInits().front().getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
}

/// Tiles and copies are of f32: sums of it to f64 would lose what they are for.
bool isOfF32(linalg::LinalgOp op) {
  return llvm::all_of(op->getOperandTypes(), [](Type type) {
    return getElementTypeOrSelf(type).isF32();
  });
}

struct PackOperators
    : kas::codegen::impl::KasPackOperatorsPassBase<PackOperators> {
  using KasPackOperatorsPassBase::KasPackOperatorsPassBase;

  void runOnOperation() override {
    SmallVector<ApplyOp> applies;
    SmallVector<ApplyGradientOp> gradients;
    SmallVector<linalg::LinalgOp> sums;
    getOperation()->walk([&](Operation *op) {
      if (auto apply = dyn_cast<ApplyOp>(op))
        applies.push_back(apply);
      else if (auto gradient = dyn_cast<ApplyGradientOp>(op))
        gradients.push_back(gradient);
      else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
               linalgOp && isOfF32(linalgOp) &&
               (readsPadding(linalgOp) || maySumInnerProducts(linalgOp) ||
                mayCopyWeights(linalgOp)))
        sums.push_back(linalgOp);
    });
    // Before any of them is replaced. Replaced operations are loops on buffers,
    // which `isFromWeights` does not follow.
    auto getFromWeights = [&](ValueRange tensors) {
      return llvm::map_to_vector<4>(tensors, [&](Value tensor) {
        return prepacked && isFromWeights(tensor);
      });
    };
    auto fromWeights = llvm::map_to_vector(applies, [&](ApplyOp apply) {
      return getFromWeights(apply->getOperands());
    });
    auto sumsFromWeights = llvm::map_to_vector(sums, [&](linalg::LinalgOp op) {
      return getFromWeights(op.getDpsInputs());
    });
    for (auto [apply, isWeight] : llvm::zip_equal(applies, fromWeights))
      if (failed(lower(apply, isWeight)))
        return signalPassFailure();
    for (ApplyGradientOp gradient : gradients)
      lowerGradient(gradient);
    for (auto [op, isWeight] : llvm::zip_equal(sums, sumsFromWeights))
      lowerSum(op, isWeight);
  }

private:
  /// Buffers are not freed here: bufferization does that for those on tensors.
  ContractionOptions getOptions(Operation *op) {
    ContractionOptions options{getNumThreads(op, threads),
                               getContractionTarget(getOperation(), vectorBits),
                               /*deallocate=*/false,
                               prepacked,
                               /*epilogue=*/nullptr,
                               getSchedule(op)};
    options.algorithm = algorithm;
    options.minParallelTime = minParallelTime;
    return options;
  }

  /// Weights that are packed ahead suit other tiles.
  bool maySumInnerProducts(linalg::LinalgOp op) {
    return beginsWithZeros(op) &&
           !(prepacked && llvm::any_of(op.getDpsInputs(), isFromWeights));
  }

  /// A layer of one pixel steps with its weights alone: these are copied ahead.
  bool mayCopyWeights(linalg::LinalgOp op) {
    return prepacked && beginsWithBias(op) && hasContractionBody(op) &&
           !getSchedule(op) && algorithm == ConvolutionAlgorithm::Auto &&
           llvm::any_of(op.getDpsInputs(), isFromWeights);
  }

  LogicalResult lower(ApplyOp apply, ArrayRef<bool> fromWeights);
  void lowerGradient(ApplyGradientOp apply);
  void lowerSum(linalg::LinalgOp op, ArrayRef<bool> fromWeights);
  /// Both emit the loops and replace the operation; false, and nothing has
  /// changed, where other tiles take less time.
  bool emitInnerProducts(const Contraction &source, Value output,
                         Packing &packing, const ContractionOptions &options,
                         std::optional<int64_t> time);
  bool emitOtherTiles(const Contraction &source, Value output, Packing &packing,
                      const ContractionOptions &options,
                      std::optional<int64_t> time, bool mayRearrange,
                      ArrayRef<bool> fromWeights);
};

} // namespace

LogicalResult PackOperators::lower(ApplyOp apply, ArrayRef<bool> fromWeights) {
  OperatorOp op = apply.getOperator();
  // `-kas-specialize` has reported it, or another lowering takes it.
  if (!op || !op.isConcrete())
    return success();
  ContractionOptions options = getOptions(apply);
  Packing packing(apply, options);
  auto emitReason = [&](const Twine &reason) {
    remarkNotPacked(apply, op.getSymName(), reason);
  };
  auto inputs = llvm::map_to_vector(apply->getOperands(), [&](Value tensor) {
    return packing.toBuffer(tensor);
  });
  Value output = packing.makeOutput();
  OperatorPlan plan =
      planOperator(op, inputs, output, fromWeights, packing, options);
  // Planned before, so that it cannot fail here.
  if (plan.rearrangement) {
    ++numPacked;
    return packing.emit(*plan.source, output, *plan.rearrangement, fromWeights,
                        emitReason);
  }
  if (failed(plan.contraction)) {
    emitReason(plan.reason);
    packing.undo();
    return failure(options.schedule != nullptr);
  }
  if (failed(packing.emit(*plan.contraction, {}, emitReason)))
    return failure(options.schedule != nullptr);
  ++numPacked;
  return success();
}

/// How far `loop` moves from its first to its second value in the memory of
/// `input`. In elements. All other loops are at 0; the address need not be
/// linear.
static int64_t getFirstStep(const Contraction &contraction,
                            const Contraction::Input &input, unsigned loop) {
  MLIRContext *context = input.indices.front().getContext();
  auto getAddress = [&](int64_t value) {
    SmallVector<AffineExpr> point(contraction.loops.size(),
                                  getAffineConstantExpr(0, context));
    point[loop] = getAffineConstantExpr(value, context);
    int64_t address = 0;
    ArrayRef<int64_t> shape =
        cast<ShapedType>(input.value.getType()).getShape();
    for (auto [index, size] : llvm::zip_equal(input.indices, shape))
      address = address * size +
                cast<AffineConstantExpr>(index.replaceDims(point)).getValue();
    return address;
  };
  return std::abs(getAddress(1) - getAddress(0));
}

/// Puts the reductions in the order of memory, the longest steps outermost: a
/// gradient has them in the order in which its indices were solved.
static void orderReductions(Contraction &contraction, MLIRContext *context) {
  SmallVector<unsigned> order, reductions;
  SmallVector<int64_t> steps(contraction.loops.size(), 0);
  for (unsigned loop = 0; loop < contraction.loops.size(); ++loop) {
    if (!contraction.loops[loop].isReduction) {
      order.push_back(loop);
      continue;
    }
    reductions.push_back(loop);
    for (const Contraction::Input &input : contraction.inputs)
      if (!input.indices.empty() && contraction.loops[loop].extent > 1)
        // The longest step among the inputs decides.
        steps[loop] =
            std::max(steps[loop], getFirstStep(contraction, input, loop));
  }
  llvm::sort(reductions, [&](unsigned a, unsigned b) {
    return std::pair(-steps[a], a) < std::pair(-steps[b], b);
  });
  // Output loops keep their order.
  llvm::append_range(order, reductions);
  SmallVector<Contraction::Loop> loops;
  SmallVector<AffineExpr> places(order.size());
  for (auto [place, loop] : llvm::enumerate(order)) {
    loops.push_back(contraction.loops[loop]);
    // `places` maps the old number of a loop to the new one.
    places[loop] = getAffineDimExpr(place, context);
  }
  contraction.loops = std::move(loops);
  contraction.transform(
      [&](AffineExpr expr) { return expr.replaceDims(places); });
}

/// Emits `source`, whose reductions are ordered, as inner products where these
/// take less than `time`, that of other tiles, if any suit.
bool PackOperators::emitInnerProducts(const Contraction &source, Value output,
                                      Packing &packing,
                                      const ContractionOptions &options,
                                      std::optional<int64_t> time) {
  auto plan = makeInnerProductPlan(source, cast<MemRefType>(output.getType()),
                                   ContractionTarget(options.target));
  // A schedule names another strategy.
  if (options.schedule || !plan || (time && *time <= plan->time))
    return false;
  packing.emit(*plan, output);
  ++numPacked;
  return true;
}

/// As inner products or else, where it may be rearranged, in another layout, if
/// that takes less than `time`.
bool PackOperators::emitOtherTiles(const Contraction &source, Value output,
                                   Packing &packing,
                                   const ContractionOptions &options,
                                   std::optional<int64_t> time,
                                   bool mayRearrange,
                                   ArrayRef<bool> fromWeights) {
  // First: what other layouts take is underestimated beside it.
  if (emitInnerProducts(source, output, packing, options, time))
    return true;
  std::optional<Rearrangement> rearrangement;
  if (mayRearrange)
    rearrangement = chooseRearrangement(
        source, cast<MemRefType>(output.getType()), fromWeights, options, time);
  if (!rearrangement)
    return false;
  if (failed(packing.emit(source, output, *rearrangement, fromWeights,
                          [](const Twine &) {})))
    llvm_unreachable("it had a time");
  ++numPacked;
  return true;
}

/// The gradient of a contraction is one itself.
void PackOperators::lowerGradient(ApplyGradientOp apply) {
  ContractionOptions options = getOptions(apply);
  Packing packing(apply, options);
  auto emitReason = [&](const Twine &reason) {
    remarkNotPacked(apply, apply.getCallee(), reason);
  };
  // The gradient of a contraction by one input sums products of the other
  // inputs and the output's gradient, over other loops.
  GradientNest nest = getGradient(apply);
  SmallVector<Value> inputs = llvm::map_to_vector(
      nest.inputs, [&](Value tensor) { return packing.toBuffer(tensor); });
  FailureOr<Contraction> source =
      Contraction::match(nest.coordinates, inputs, emitReason);
  if (failed(source))
    return packing.undo();
  orderReductions(*source, &getContext());
  Value output = packing.makeOutput();
  FailureOr<StridedContraction> contraction =
      getStridedContraction(*source, output, emitReason);
  std::optional<int64_t> time;
  if (succeeded(contraction))
    time = getContractionTime(*contraction, options);
  if (emitOtherTiles(*source, output, packing, options, time,
                     /*mayRearrange=*/true, /*fromWeights=*/{}))
    return;
  if (failed(contraction))
    return packing.undo();
  if (succeeded(packing.emit(*contraction, {}, emitReason)))
    ++numPacked;
}

/// Adds the bias that `op` begins with to a sum that begins with zeros, which
/// is returned.
static linalg::LinalgOp splitBias(linalg::LinalgOp op) {
  IRRewriter rewriter(op);
  Value bias = op.getDpsInits().front();
  auto type = cast<RankedTensorType>(bias.getType());
  Value zero = arith::ConstantOp::create(
      rewriter, op.getLoc(), rewriter.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(),
                                        type.getElementType());
  auto zeros = linalg::FillOp::create(rewriter, op.getLoc(), zero, empty);
  auto sum = cast<linalg::LinalgOp>(rewriter.clone(*op));
  sum.getDpsInitsMutable()[0].set(zeros.getResult(0));
  // Elementwise fusion joins it with what follows.
  rewriter.replaceOpWithNewOp<linalg::AddOp>(
      op, ValueRange{sum->getResult(0), bias}, ValueRange{empty});
  return sum;
}

/// Reads what is padded where it is, has vectors along a reduction, transposes
/// its output, or copies weights ahead, if that is the cheapest.
void PackOperators::lowerSum(linalg::LinalgOp op, ArrayRef<bool> fromWeights) {
  auto bias = op.getDpsInits().front().getDefiningOp<linalg::BroadcastOp>();
  ContractionOptions options = getOptions(op);
  Packing packing(op, options);
  // Padding with zeros becomes guards of the unpadded input.
  FailureOr<Contraction> source =
      matchUnpadded(op, [&](Value tensor) { return packing.toBuffer(tensor); });
  // There is nothing to sum, or nowhere to.
  if (failed(source) || llvm::any_of(source->loops, [](const auto &loop) {
        return loop.extent < 1;
      }))
    return packing.undo();
  Value output = packing.makeOutput();
  FailureOr<StridedContraction> contraction =
      getStridedContraction(*source, output, [](const Twine &) {}, fromWeights);
  std::optional<int64_t> time;
  if (succeeded(contraction))
    time = getContractionTime(*contraction, options);
  // Gradients of weights, which training steps have as linalg operations.
  if (maySumInnerProducts(op)) {
    orderReductions(*source, &getContext());
    bool mayRearrange =
        !time && !options.schedule && algorithm == ConvolutionAlgorithm::Auto;
    if (emitOtherTiles(*source, output, packing, options, time, mayRearrange,
                       fromWeights))
      return;
  }
  std::optional<Rearrangement> rearrangement;
  SmallVector<Value> copies;
  // No tiles suit the operation as it is.
  if (!time && mayCopyWeights(op)) {
    rearrangement =
        chooseRearrangement(*source, cast<MemRefType>(output.getType()),
                            fromWeights, options, time);
    // A transposed output would cost at each call; only copies are free.
    if (!rearrangement || !rearrangement->outputLoops.empty())
      return packing.undo();
    // No tiles begin with a bias that differs from lane to lane.
    if (bias) {
      packing.undo();
      return lowerSum(splitBias(op), fromWeights);
    }
    copies = packing.makeCopies(*source, *rearrangement);
    contraction = getStridedContraction(
        rearrange(*source, *rearrangement, copies), output,
        [](const Twine &) {}, fromWeights);
  } else if (!readsPadding(op)) {
    return packing.undo();
  }
  if (failed(contraction))
    return packing.undo();
  // Weights that were packed ahead suit padded images just as well, and panels
  // do not begin with a bias.
  options.readsUnpadded = !rearrangement && (prepacked || bias);
  packing.setOptions(options);
  ContractionEpilogue epilogue;
  if (bias) {
    // The dimension of the output that the bias has.
    int64_t position = 0;
    while (llvm::is_contained(bias.getDimensions(), position))
      ++position;
    if (!epilogue.takeBias(packing.toBuffer(bias.getInput()), position,
                           *contraction))
      return packing.undo();
  }
  if (rearrangement)
    packing.emitCopies(*source, *rearrangement, copies);
  if (succeeded(packing.emit(*contraction, epilogue, [](const Twine &) {})))
    ++numPacked;
  else if (rearrangement)
    llvm_unreachable("it had a time");
}
