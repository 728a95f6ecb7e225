//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass -kas-substitute.
// Its statistics count the layers that were replaced and those that were left.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Passes.h"
#include "kas/Networks/Sites/KernelSites.h"
#include "kas/Networks/Sites/Substitute.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace kas::networks {
#define GEN_PASS_DEF_KASSUBSTITUTEPASS
#include "kas/Networks/Passes.h.inc"
} // namespace kas::networks

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// Options are checked before the module is touched: operators and kernels are
/// two kinds of replacements with marks of their own, and layers are named for
/// operators alone.
struct KasSubstitutePass
    : kas::networks::impl::KasSubstitutePassBase<KasSubstitutePass> {
  using KasSubstitutePassBase::KasSubstitutePassBase;

  void runOnOperation() override {
    if (!kernel.empty() && !operatorName.empty()) {
      mlir::emitError(getFileLocation(getOperation()))
          << "options require 'operator' or 'kernel', got both";
      return signalPassFailure();
    }
    if (!kernel.empty() && !layers.empty()) {
      mlir::emitError(getFileLocation(getOperation()))
          << "requires an operator beside 'layers', got a kernel";
      return signalPassFailure();
    }
    if (!kernel.empty())
      return finish(substituteKernel(getOperation(), kernel, space));
    // The options are texts; the free function takes parsed ones.
    SubstituteOptions options;
    options.operatorName = operatorName;
    options.space = space;
    options.layers.assign(layers.begin(), layers.end());
    options.sameWeights = sameWeights;
    llvm::Expected<BindingAttr> binding = parseBinding(&getContext(), bind);
    if (!binding) {
      mlir::emitError(getFileLocation(getOperation()))
          << "option 'bind': " << llvm::toString(binding.takeError());
      return signalPassFailure();
    }
    options.binding = *binding;
    finish(substitute(getOperation(), options));
  }

  /// The end of both kinds of substitution.
  void finish(FailureOr<SubstituteResult> result) {
    if (failed(result))
      return signalPassFailure();
    numReplaced += result->numReplaced;
    numLeft += result->numLeft;
  }
};

} // namespace
