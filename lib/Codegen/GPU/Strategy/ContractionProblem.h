//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of products that are written in linalg, as what kernels of operators
// compute.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_CONTRACTIONPROBLEM_H
#define LIB_CODEGEN_GPU_STRATEGY_CONTRACTIONPROBLEM_H

#include "KernelProblem.h"
#include "TensorAccess.h"

namespace kas::codegen {

/// Whether `op` adds products of all its inputs to its output, in f32; the
/// inputs may be narrower.
bool isContraction(mlir::linalg::GenericOp op);

/// A contraction that begins with zeros, the data first: that of the inputs
/// that the last coordinate of the output depends on.
struct ContractionProblem {
  GPUKernelProblem problem;
  llvm::SmallVector<mlir::Value> inputs;

  /// Nothing if the operation is none, or reads what is not zero beyond the
  /// ends of a tensor.
  static std::optional<ContractionProblem> get(mlir::linalg::GenericOp op);
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_CONTRACTIONPROBLEM_H
