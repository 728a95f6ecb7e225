//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that reports where a function does not compute each sample of its
// batch independently of the others.
// Changes nothing; `findSamples` (PerSample.cpp) is the analysis, and its
// error names the operation that mixes samples.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Passes.h"
#include "kas/Codegen/Common/PerSample.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASCHECKSAMPLESPASS
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;
using namespace kas::codegen;

namespace {

struct CheckSamples
    : kas::codegen::impl::KasCheckSamplesPassBase<CheckSamples> {
  using KasCheckSamplesPassBase::KasCheckSamplesPassBase;

  void runOnOperation() override {
    auto target = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!target || target.isExternal()) {
      getOperation().emitError("option 'function' requires a function with a "
                               "body, got '")
          << function << "'";
      return signalPassFailure();
    }
    // The result is not used: only whether there is one.
    if (failed(findSamples(target, numData)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
