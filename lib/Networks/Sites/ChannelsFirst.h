//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions of other layouts of the data in the one that layers have.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_SITES_CHANNELSFIRST_H
#define LIB_NETWORKS_SITES_CHANNELSFIRST_H

#include "mlir/IR/BuiltinOps.h"

namespace kas::networks {

/// Rewrites each convolution whose data or result has its channels elsewhere
/// than before the spatial dimensions (NHWC) to one on transposed tensors
/// (NCHW), with the padding before it; its result is transposed back. Weights
/// stay as they are.
void bringChannelsFirst(mlir::ModuleOp module);

} // namespace kas::networks

#endif // LIB_NETWORKS_SITES_CHANNELSFIRST_H
