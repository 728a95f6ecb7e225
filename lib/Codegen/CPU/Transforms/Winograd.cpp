//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that lowers convolutions by Winograd's algorithm, where it was
// requested: its results differ by more than rounding
// (docs/internals/convolutions.md, "Winograd's error"). WinogradMatch.cpp says
// which operations are such convolutions, WinogradEmitter.cpp emits them.
//
//===----------------------------------------------------------------------===//

#include "../Emit/Winograd.h"
#include "../Strategy/ContractionTarget.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-winograd"

namespace kas::codegen {
#define GEN_PASS_DEF_KASWINOGRADPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Whether there are enough tiles for vectors of them, and enough products for
/// each element that is transformed: more where vectors are not full of tiles,
/// or where the core begins two products on vectors of 512 bits per cycle. As
/// measured with batches of 64, with 3 to 512 channels and 4x4 to 32x32 pixels.
static bool isWorthIt(const WinogradConvolution &conv,
                      const ContractionTarget &target) {
  constexpr int64_t minTiles = 16;
  int64_t numTiles = llvm::divideCeil(conv.outHeight, winogradTile) *
                     llvm::divideCeil(conv.outWidth, winogradTile);
  int64_t least = numTiles < minTiles ? 8 : target.hasWideArithmetic() ? 6 : 4;
  // `inputs * outputs / (inputs + outputs)` is the number of products per
  // element that is transformed, of the data and of the output.
  return conv.batches * numTiles >= minTiles &&
         conv.inputs * conv.outputs >= least * (conv.inputs + conv.outputs);
}

/// The same of a gradient by the weight, whose vectors are of channels.
static bool isWorthIt(const WinogradGradient &gradient,
                      const ContractionTarget &target) {
  constexpr int64_t least = 4, minTiles = 16;
  // Vectors of which at least three quarters are channels.
  auto fills = [&](int64_t channels) {
    int64_t padded = llvm::alignTo(channels, target.lanes);
    return padded * 3 <= channels * 4;
  };
  int64_t numTiles = llvm::divideCeil(gradient.outHeight, winogradTile) *
                     llvm::divideCeil(gradient.outWidth, winogradTile);
  return fills(gradient.inputs) && fills(gradient.outputs) &&
         gradient.batches * numTiles >= minTiles &&
         gradient.inputs * gradient.outputs >=
             least * (gradient.inputs + gradient.outputs);
}

/// Whether all elements are f32: the transforms would lose most of fewer bits.
static bool isF32(Operation *op) {
  return llvm::all_of(
      llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                               SmallVector<Type>(op->getResultTypes())),
      [](Type type) { return getElementTypeOrSelf(type).isF32(); });
}

namespace {
struct Winograd : kas::codegen::impl::KasWinogradPassBase<Winograd> {
  using KasWinogradPassBase::KasWinogradPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation().walk([&](Operation *op) {
      if (isa<ApplyOp, linalg::Conv2DNchwFchwOp, linalg::GenericOp>(op) &&
          // A schedule names other tiles.
          !getSchedule(op) && isF32(op))
        found.push_back(op);
    });
    for (Operation *op : found)
      lower(op);
  }

private:
  /// The result of `op`, and its `groups`; null if it is none that is worth it,
  /// with what was emitted before `op` left over.
  Value emit(Operation *op, const ContractionOptions &options,
             int64_t &groups) {
    ContractionTarget target(options.target);
    // Tiles at the padding are read by masked loads.
    if (!target.hasMaskedLoads)
      return Value();
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      if (auto gradient = matchWinogradGradient(generic); succeeded(gradient))
        return isWorthIt(*gradient, target)
                   ? emitWinogradGradient(op, *gradient, options)
                   : Value();
    FailureOr<WinogradConvolution> conv = failure();
    if (auto apply = dyn_cast<ApplyOp>(op))
      conv = matchWinograd(apply);
    else if (auto named = dyn_cast<linalg::Conv2DNchwFchwOp>(op))
      conv = matchWinograd(named);
    else
      conv = matchWinograd(cast<linalg::GenericOp>(op));
    bool isTaken = succeeded(conv) && isWorthIt(*conv, target);
    LDBG() << op->getLoc() << ": "
           << (isTaken           ? "taken"
               : succeeded(conv) ? "too few tiles or channels"
                                 : "no convolution of 3x3 with stride 1");
    if (!isTaken)
      return Value();
    groups = conv->groups;
    return emitWinograd(op, *conv, options);
  }

  void lower(Operation *op) {
    ContractionOptions options{getNumThreads(op, threads),
                               getContractionTarget(getOperation(), vectorBits),
                               /*deallocate=*/false, prepacked};
    options.minParallelTime = minParallelTime;
    // On failure what was emitted between the two is removed again.
    Operation *before = op->getPrevNode();
    int64_t groups = 1;
    Value result = emit(op, options, groups);
    if (!result) {
      while (op->getPrevNode() != before)
        op->getPrevNode()->erase();
      return;
    }
    remark::passed(op->getLoc(),
                   remark::RemarkOpts::name("Winograd").category(panelRemarks))
        << remark::metric("groups", groups);
    OpBuilder builder(op);
    if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      // What the sums begin with.
      Value init = structured.getDpsInits()[0];
      auto fill = init.getDefiningOp<linalg::FillOp>();
      // Winograd's sums replace the output; anything but zeros is added.
      if (!fill || !matchPattern(fill.getInputs().front(), m_AnyZeroFloat())) {
        Value empty = tensor::EmptyOp::create(
            builder, op->getLoc(),
            cast<RankedTensorType>(init.getType()).getShape(),
            builder.getF32Type());
        result = linalg::AddOp::create(builder, op->getLoc(),
                                       ValueRange{result, init}, empty)
                     .getResult(0);
      }
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
};
} // namespace
