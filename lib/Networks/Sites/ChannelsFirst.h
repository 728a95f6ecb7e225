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

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace kas::networks {

/// Rewrites each convolution whose data or result has its channels elsewhere
/// than before the spatial dimensions (NHWC) to one on transposed tensors
/// (NCHW), with the padding before it; its result is transposed back. Weights
/// stay as they are. What the passes in between mark as no site is as it was
/// after `restore`; they may only set attributes.
class ChannelsFirst {
public:
  explicit ChannelsFirst(mlir::ModuleOp module);
  ~ChannelsFirst();

  /// Undoes the rewrites of convolutions that are no sites.
  void restore();

private:
  struct Convolution {
    /// What was rewritten, outside of all blocks, and what took its place.
    mlir::Operation *before, *after;
    /// The transpose of the result.
    mlir::Value result;
  };

  void rewrite(mlir::linalg::LinalgOp op);
  void putAside(mlir::Operation *op);
  void putBack(mlir::Operation *op, mlir::OpBuilder &builder);

  llvm::SmallVector<Convolution> convolutions;
  /// The operands of operations outside of all blocks, which have none, so that
  /// nobody sees a use of them.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<mlir::Value>> aside;
};

} // namespace kas::networks

#endif // LIB_NETWORKS_SITES_CHANNELSFIRST_H
