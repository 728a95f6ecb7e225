//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions that each block of the kernel after them computes for itself, in
// workgroup memory, where that takes less time than a launch: the mean of an
// image before a linear layer.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_PROLOGUE_H
#define LIB_CODEGEN_GPU_STRATEGY_PROLOGUE_H

#include "ContractionProblem.h"
#include "LoopProblem.h"
#include "ScheduleChoice.h"

namespace kas::codegen {

/// What a kernel computes before its contraction.
struct Prologue {
  /// The reduction, with what is elementwise after it.
  LoopProblem problem;
  /// The input of the contraction that it is: a position among those of its
  /// `ContractionProblem`.
  unsigned tensor;

  /// The last operation of it; its result is what the contraction reads.
  mlir::linalg::GenericOp getLast() const {
    return problem.epilogue ? problem.epilogue->op : problem.op;
  }
  /// What it reads: of the reduction, then of what is elementwise.
  llvm::SmallVector<mlir::Value> getInputs() const;
  /// Of its result in workgroup memory.
  int64_t getBytes() const;

  /// The first reduction without a schedule whose result `reader`, a
  /// contraction, alone reads, as one of its inputs; `isMarked`: of those with
  /// the attribute `kas_gpu.prologue`.
  static std::optional<Prologue> find(mlir::linalg::GenericOp reader,
                                      const ContractionProblem &contraction,
                                      bool isMarked);
};

/// The best schedule of a contraction whose kernel computes `prologue` in each
/// block, and the cycles of both. Nothing where `CostModel::considerShared` has
/// none that leaves so much workgroup memory.
std::optional<ScheduleChoice>
chooseSchedule(const Prologue &prologue, mlir::linalg::GenericOp reader,
               const ContractionProblem &contraction, GPUDeviceAttr device);

/// Cycles of a kernel that computes `prologue` alone.
double getKernelCycles(const Prologue &prologue, GPUDeviceAttr device);

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_PROLOGUE_H
