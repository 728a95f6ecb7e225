//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Batch/SampleWise.h"
#include "kas/Networks/Passes.h"

namespace kas::networks {
#define GEN_PASS_DEF_KASCHECKSAMPLESPASS
#include "kas/Networks/Passes.h.inc"
} // namespace kas::networks

using namespace mlir;
using namespace kas::networks;

namespace {

struct KasCheckSamplesPass
    : kas::networks::impl::KasCheckSamplesPassBase<KasCheckSamplesPass> {
  using KasCheckSamplesPassBase::KasCheckSamplesPassBase;

  void runOnOperation() override {
    auto target = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!target || target.isExternal()) {
      getOperation().emitError("option 'function' requires a function with a "
                               "body, got '")
          << function << "'";
      return signalPassFailure();
    }
    if (failed(checkSampleWise(target, numData)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
