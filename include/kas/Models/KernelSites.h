//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of the tensor level and the convolutions of a model.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_MODELS_KERNELSITES_H
#define KAS_MODELS_KERNELSITES_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "kas/Models/Extract.h"
#include "kas/Models/Substitute.h"

namespace kas {

struct ExtractKernelResult {
  /// Null when the model has no such convolution.
  KernelOp kernel;
  unsigned numSites = 0;
  unsigned numNearMisses = 0;
};

/// Writes one `kas.kernel @convolutions` for all dense convolutions of the
/// module, with any stride and any numbers of channels, and marks them. It
/// computes a standard convolution from C channels to C; its budget is that of
/// what it stands for. A layer of c*p and c*q channels counts max(p, q) times
/// as one of C = c, their greatest common divisor.
///
/// Layers of at most `stemChannels` inputs, and those of groups, are no sites.
ExtractKernelResult extractKernel(mlir::ModuleOp module,
                                  const ExtractOptions &options);

/// Replaces the marked convolutions by `kernelName`, a kernel of the module
/// whose variables have values, with the bindings of the one that marked them.
/// A stride becomes means of windows in front. Each block of C channels has a
/// copy of the kernel with weights of its own; what has fewer blocks than the
/// other side is repeated, or is the mean of those at the same place (see
/// `kas.dag.amplify`).
mlir::FailureOr<SubstituteResult> substituteKernel(mlir::ModuleOp module,
                                                   llvm::StringRef kernelName);

} // namespace kas

#endif // KAS_MODELS_KERNELSITES_H
