//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of this folder: ranges, errors, quantization, and fusion of models
// that are quantized already.
// Layers are counted in program order; that order connects ranges, errors and
// the option `kept`.
//
//===----------------------------------------------------------------------===//

#include "../FindFunction.h"
#include "kas/Networks/Quantization/Passes.h"
#include "kas/Networks/Quantization/Quantize.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

namespace kas::networks {
#define GEN_PASS_DEF_KASDATARANGESPASS
#define GEN_PASS_DEF_KASFUSEDEQUANTIZEPASS
#define GEN_PASS_DEF_KASQUANTIZATIONERRORSPASS
#define GEN_PASS_DEF_KASQUANTIZEPASS
#define GEN_PASS_DEF_KASSPLITWEIGHTSPASS
#include "kas/Networks/Quantization/Passes.h.inc"
} // namespace kas::networks

using namespace mlir;
using namespace kas::networks;

namespace {

/// Changes the function, if there is one, by the two numbers for each layer
/// that an option has; `added` is the name of what comes to the module.
LogicalResult applyToRanges(
    ModuleOp module, StringRef function, StringRef added,
    ArrayRef<double> numbers,
    llvm::function_ref<LogicalResult(func::FuncOp, ArrayRef<DataRange>)>
        apply) {
  func::FuncOp target = findFunction(module, function, added);
  if (!target)
    return failure();
  // The least and the largest value, for each layer.
  if (numbers.size() % 2 != 0)
    return target.emitError("option 'ranges' requires two numbers for each "
                            "layer, got ")
           << numbers.size();
  SmallVector<DataRange> ranges;
  for (size_t i = 0; i < numbers.size(); i += 2)
    ranges.push_back(
        {static_cast<float>(numbers[i]), static_cast<float>(numbers[i + 1])});
  return apply(target, ranges);
}

/// Adds `@f_ranges(arguments of f) -> tensor<layers x 2 x f32>`.
struct KasDataRangesPass
    : kas::networks::impl::KasDataRangesPassBase<KasDataRangesPass> {
  using KasDataRangesPassBase::KasDataRangesPassBase;

  void runOnOperation() override {
    std::string name = function + "_ranges";
    func::FuncOp target = findFunction(getOperation(), function, name);
    if (!target || failed(makeRangesFunction(target, name)))
      signalPassFailure();
  }
};

/// Changes the function itself; layers that do not fit stay as they are.
struct KasFuseDequantizePass
    : kas::networks::impl::KasFuseDequantizePassBase<KasFuseDequantizePass> {
  using KasFuseDequantizePassBase::KasFuseDequantizePassBase;

  void runOnOperation() override {
    // Nothing is added to the module.
    func::FuncOp target = findFunction(getOperation(), function, "");
    if (!target)
      return signalPassFailure();
    numFused += fuseDequantize(target);
  }
};

/// Adds `@f_errors`, for layers quantized by the given ranges.
struct KasQuantizationErrorsPass
    : kas::networks::impl::KasQuantizationErrorsPassBase<
          KasQuantizationErrorsPass> {
  using KasQuantizationErrorsPassBase::KasQuantizationErrorsPassBase;

  void runOnOperation() override {
    std::string name = function + "_errors";
    if (failed(applyToRanges(getOperation(), function, name, ranges,
                             [&](func::FuncOp target,
                                 ArrayRef<DataRange> pairs) -> LogicalResult {
                               return makeErrorsFunction(target, pairs, name);
                             })))
      signalPassFailure();
  }
};

/// Changes the function itself; the layers of `kept` stay in f32. Layers that
/// read the same data in the same range read the same bytes.
struct KasQuantizePass
    : kas::networks::impl::KasQuantizePassBase<KasQuantizePass> {
  using KasQuantizePassBase::KasQuantizePassBase;

  void runOnOperation() override {
    auto apply = [&](func::FuncOp target, ArrayRef<DataRange> pairs) {
      if (failed(quantize(target, pairs, kept)))
        return failure();
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(target);
      eliminateCommonSubExpressions(rewriter, dominance, target);
      return success();
    };
    if (failed(applyToRanges(getOperation(), function, /*added=*/"", ranges,
                             apply)))
      signalPassFailure();
  }
};

/// Adds `@f_weights`, of what `@f` no longer computes.
struct KasSplitWeightsPass
    : kas::networks::impl::KasSplitWeightsPassBase<KasSplitWeightsPass> {
  using KasSplitWeightsPassBase::KasSplitWeightsPassBase;

  void runOnOperation() override {
    std::string name = function + "_weights";
    func::FuncOp target = findFunction(getOperation(), function, name);
    if (!target || failed(splitWeights(target, name)))
      signalPassFailure();
  }
};

} // namespace
