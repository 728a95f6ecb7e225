//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Differentiation/FindFunction.h"
#include "kas/Networks/Quantization/Passes.h"
#include "kas/Networks/Quantization/Quantize.h"

namespace kas::networks {
#define GEN_PASS_DEF_KASDATARANGESPASS
#define GEN_PASS_DEF_KASQUANTIZEPASS
#include "kas/Networks/Quantization/Passes.h.inc"
} // namespace kas::networks

using namespace mlir;
using namespace kas::networks;

namespace {

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

struct KasQuantizePass
    : kas::networks::impl::KasQuantizePassBase<KasQuantizePass> {
  using KasQuantizePassBase::KasQuantizePassBase;

  void runOnOperation() override {
    func::FuncOp target = findFunction(getOperation(), function, "");
    if (!target)
      return signalPassFailure();
    if (ranges.size() % 2 != 0) {
      target.emitError("option 'ranges' requires two numbers for each layer, "
                       "got ")
          << ranges.size();
      return signalPassFailure();
    }
    SmallVector<DataRange> pairs;
    for (size_t i = 0; i < ranges.size(); i += 2)
      pairs.push_back(
          {static_cast<float>(ranges[i]), static_cast<float>(ranges[i + 1])});
    if (failed(quantize(target, pairs)))
      signalPassFailure();
  }
};

} // namespace
