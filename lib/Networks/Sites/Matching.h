//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of matching a layer that are the same for all kinds.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_SITES_MATCHING_H
#define LIB_NETWORKS_SITES_MATCHING_H

#include "kas/Networks/Sites/Site.h"
#include "kas/Support/Reason.h"
#include "llvm/ADT/STLExtras.h"

namespace kas::networks {

/// The argument or constant that `value` is made from by reshapes and
/// transpositions alone, or null. The data of the model (`input`) is no weight.
mlir::Value traceWeight(mlir::Value value);

/// Sets the weight of `site` to `operand`, or to what it is transposed from,
/// together with the sizes of its dimensions, the argument and the name.
mlir::LogicalResult setWeight(Site &site, mlir::Value operand,
                              llvm::ArrayRef<std::string> sizes,
                              std::string &reason);

/// Which channels of the data an output channel reads.
enum class ChannelKind { Dense, Grouped, Depthwise };

/// The sizes of one spatial dimension of a kind, as texts. Stride and dilation
/// are empty where the kind has none, `low` where nothing is padded.
struct WindowSymbols {
  std::string input, output, kernel, stride, dilation, low;
  /// The padding is half of the kernel; `low` does not count.
  bool isCentered = true;
};

/// The operator that computes what the layers of `kind` compute, as text.
std::string writeConvolution(const LayerKind &kind, ChannelKind channels,
                             llvm::ArrayRef<WindowSymbols> windows);

/// `op` convolves its first operand with its second, as `dims` says.
mlir::FailureOr<Site>
matchConvolution(mlir::linalg::LinalgOp op,
                 const mlir::linalg::ConvolutionDimensions &dims,
                 int64_t stemChannels, std::string &reason);

/// `op` contracts its operands, as `dims` says.
mlir::FailureOr<Site>
matchContraction(mlir::linalg::LinalgOp op,
                 const mlir::linalg::ContractionDimensions &dims,
                 std::string &reason);

} // namespace kas::networks

#endif // LIB_NETWORKS_SITES_MATCHING_H
