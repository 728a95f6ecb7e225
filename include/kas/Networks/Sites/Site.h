//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layers in models: linalg operations that compute what a convolution or a
// linear layer computes, with what a replacement has to know of them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_SITES_SITE_H
#define KAS_NETWORKS_SITES_SITE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <utility>
#include <vector>

namespace kas::networks {

/// What layers have in common that one space covers: names and sizes, no
/// numbers. Sizes are texts over the symbols, as in `kas.space`.
struct LayerKind {
  /// The name of the space, e.g. `conv2d_strided`.
  std::string name;
  llvm::SmallVector<std::string, 6> primaries;
  llvm::SmallVector<std::string, 4> coefficients;
  llvm::SmallVector<std::string, 4> outputSizes;
  llvm::SmallVector<std::string, 4> inputSizes;
  /// Every output channel is made from every input channel, so that their order
  /// means nothing to the network around the layer.
  bool hasUnorderedChannels = false;
  /// The operator of the library that computes the same, e.g. `kas.conv2d`;
  /// empty when there is none. Then the text of one is `definition`.
  std::string namedOperator;
  std::string definition;
};

/// One layer of a model.
struct Site {
  mlir::linalg::LinalgOp op;
  /// The `kas.name` of the weight less `.weight`; empty when the weight is no
  /// argument or has no name.
  std::string name;
  LayerKind kind;
  /// Values for the symbols of `kind`, primaries first, in their order.
  llvm::SmallVector<std::pair<std::string, int64_t>, 8> binding;

  /// What the layer reads, before zero padding and before channels are split
  /// into groups. Its shape is `dataShape`, but for a group dimension where the
  /// model itself works on split channels.
  mlir::Value data;
  llvm::SmallVector<int64_t, 4> dataShape;
  /// The shape of the result, channels not split.
  llvm::SmallVector<int64_t, 4> resultShape;
  /// Channels are split in the result of `op` (dimensions 1 and 2).
  bool hasSplitChannels = false;

  /// The weight before transpositions, and the size of each of its dimensions.
  mlir::Value weight;
  llvm::SmallVector<std::string, 5> weightSizes;
  /// The argument that `weight` is made from; null for a constant.
  mlir::BlockArgument weightArgument;

  int64_t macs = 0;
  int64_t parameters = 0;

  std::string getDescription() const;
};

/// Convolutions of at most this many input channels (images: grey, RGB, RGBA)
/// get a kind of their own: hardly a size divides their channels, which would
/// narrow what can be found for all other layers of the kind.
constexpr int64_t defaultStemChannels = 4;

/// The layer that `op` computes. Failure with an empty `reason` means that
/// `op` is nothing like a layer; else `reason` says why it is only nearly one.
mlir::FailureOr<Site> matchSite(mlir::linalg::LinalgOp op, std::string &reason,
                                int64_t stemChannels = defaultStemChannels);

using NearMissFn =
    llvm::function_ref<void(mlir::linalg::LinalgOp, llvm::StringRef reason)>;

/// All layers in `module` in the order of its text.
std::vector<Site> findSites(mlir::ModuleOp module, NearMissFn onNearMiss,
                            int64_t stemChannels = defaultStemChannels);

} // namespace kas::networks

#endif // KAS_NETWORKS_SITES_SITE_H
