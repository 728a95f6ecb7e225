//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass -kas-extract.
// Texts of options are in Passes.td; docs/guide/network-search.md shows their
// use.
//
//===----------------------------------------------------------------------===//

#include "ChannelsFirst.h"
#include "kas/Networks/Passes.h"
#include "kas/Networks/Sites/Extract.h"
#include "kas/Networks/Sites/KernelSites.h"
#include "kas/Support/FileLocation.h"

namespace kas::networks {
#define GEN_PASS_DEF_KASEXTRACTPASS
#include "kas/Networks/Passes.h.inc"
} // namespace kas::networks

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// Layers get attributes such as
///    linalg.conv_2d_nchw_fchw {kas.site = {space = @conv2d, binding = 0 : i64,
///                                          name = "layer1.conv1"}}
/// and the module a `kas.space @conv2d`, or a `kas.kernel` with `kernel`.
struct KasExtractPass
    : kas::networks::impl::KasExtractPassBase<KasExtractPass> {
  using KasExtractPassBase::KasExtractPassBase;

  void runOnOperation() override {
    ExtractOptions options;
    options.stemChannels = stemChannels;
    options.flopsRatio = flopsRatio;
    options.minFlopsRatio = minFlopsRatio;
    options.writesProperties = properties;
    options.writesSequences = sequences;
    // Written so that NaN fails.
    if (!(flopsRatio > 0) || !(minFlopsRatio > 0) ||
        !(minFlopsRatio < flopsRatio)) {
      mlir::emitError(getFileLocation(getOperation()))
          << "options require 0 < 'min-flops-ratio' < "
             "'flops-ratio', got "
          << minFlopsRatio << " and " << flopsRatio;
      return signalPassFailure();
    }
    llvm::Expected<BindingAttr> binding =
        parseBinding(&getContext(), coefficients);
    if (!binding) {
      mlir::emitError(getFileLocation(getOperation()))
          << "option 'coefficients': " << llvm::toString(binding.takeError());
      return signalPassFailure();
    }
    options.coefficients = *binding;
    // Channels come first while sites are looked for.
    ChannelsFirst channels(getOperation());
    // Kernels take attention as well, and have families instead of kinds.
    if (kernel) {
      ExtractKernelResult result = extractKernel(getOperation(), options);
      numSites += result.numSites;
      numNearMisses += result.numNearMisses;
      channels.restore();
      return;
    }
    FailureOr<ExtractResult> result = extractSpaces(getOperation(), options);
    if (failed(result))
      return signalPassFailure();
    numSites += result->numSites;
    numNearMisses += result->numNearMisses;
    // Only marked layers stay rewritten.
    channels.restore();
  }
};

} // namespace
