//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether a network computes the samples of a batch one by one.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_BATCH_SAMPLEWISE_H
#define KAS_NETWORKS_BATCH_SAMPLEWISE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::networks {

/// Succeeds where each sample of the results of `function` is computed from the
/// same sample of the data alone, and all samples in the same way. So a batch
/// may be computed in parts of any size. Samples are the first dimension, of
/// at least two of them, of the first `numData` arguments and of all results;
/// the other arguments are weights. Else an error says which operation mixes
/// samples, or is not known, as those on tensors of dynamic shape. Decides by
/// indexing maps, not by values.
mlir::LogicalResult checkSampleWise(mlir::func::FuncOp function,
                                    unsigned numData);

} // namespace kas::networks

#endif // KAS_NETWORKS_BATCH_SAMPLEWISE_H
