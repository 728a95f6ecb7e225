//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A linalg operation that is no contraction, as loops over elements, one per
// thread.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_LOOPPROBLEM_H
#define LIB_CODEGEN_GPU_STRATEGY_LOOPPROBLEM_H

#include "KernelProblem.h"
#include "TensorAccess.h"

namespace kas::codegen {

/// What a kernel of a `linalg.generic` reads, and how its points are numbered.
struct LoopProblem {
  mlir::linalg::GenericOp op;
  /// Of each operand; nothing is known of one that the body does not read.
  llvm::SmallVector<TensorAccess> accesses;
  /// The tensors that it reads, each once: the first arguments of the kernel.
  llvm::SmallVector<mlir::Value> inputs;
  /// The parallel loops, in the order in which points are numbered, the last
  /// one fastest, and how often they run.
  llvm::SmallVector<unsigned> loops;
  llvm::SmallVector<int64_t> extents;
  int64_t numIterations = 1;
  /// Of an operation that reduces; buffers that it reads follow `inputs`.
  std::optional<Epilogue> epilogue;

  static LoopProblem get(mlir::linalg::GenericOp op);

  /// How many points that follow each other one thread can compute, so that it
  /// stores them as one vector: a power of two, more than 1 only for results of
  /// 16 bits that lie in the order of the points.
  int64_t getWidth() const;

  /// Reports outputs to which several points are written, and values that are
  /// neither tensors nor constants.
  mlir::LogicalResult verify() const;
};

mlir::FailureOr<LaunchShape>
getLaunchShape(const LoopProblem &problem, GPUScheduleAttr schedule,
               GPUDeviceAttr device,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_LOOPPROBLEM_H
