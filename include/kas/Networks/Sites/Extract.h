//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Search problems from models: writes a `kas.space` for each kind of layer and
// marks the layers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_SITES_EXTRACT_H
#define KAS_NETWORKS_SITES_EXTRACT_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Sites/Site.h"

namespace kas::networks {

struct ExtractOptions {
  int64_t stemChannels = defaultStemChannels;
  /// Coefficients that each space declares beside those of its layers, with the
  /// same value at each binding; null for none.
  BindingAttr coefficients;
  /// The budget of FLOPs relative to the layers of a space: at most and at
  /// least.
  double flopsRatio = 0.5;
  double minFlopsRatio = 0.1;
  /// Require what the layers see and reach of operators, as the limits `sees`
  /// and `reaches`.
  bool writesProperties = true;
  /// Write problems of two stages for dense layers with windows, too.
  bool writesSequences = false;
};

struct ExtractResult {
  llvm::SmallVector<SpaceOp> spaces;
  unsigned numSites = 0;
  unsigned numNearMisses = 0;
};

/// Finds the layers of `module` that are not marked yet, writes one `kas.space`
/// per kind at the beginning of `module`, with one binding per distinct layer,
/// and marks each layer with `kas.site`. Near misses become remarks. Fails,
/// with diagnostics, only when no space can be written.
mlir::FailureOr<ExtractResult> extractSpaces(mlir::ModuleOp module,
                                             const ExtractOptions &options);

} // namespace kas::networks

#endif // KAS_NETWORKS_SITES_EXTRACT_H
