//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of products whose two matrices the copy engine of Hopper can read, the
// view that warpgroup kernels have of an operator.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_WARPGROUPVIEW_H
#define LIB_CODEGEN_GPU_STRATEGY_WARPGROUPVIEW_H

#include "KernelProblem.h"
#include "MatrixView.h"

namespace kas::codegen {

/// `output[batch, row, column] = sum over blocks and steps of left[batch, row,
/// block, step] * right[batch, column, block, step]`. Rows, columns and steps
/// each number axes through that lie at one distance in memory; `batches` and
/// `blocks` are all other axes, of the output and of reductions.
struct WarpgroupView {
  /// A dimension of a tensor, and which coordinate goes along it.
  struct Dimension {
    enum class Kind { Line, Step, Axis } kind;
    /// Of the operator, for `Kind::Axis`.
    unsigned axis;
    int64_t size, stride;
  };
  /// One of the two matrices, of one tensor.
  struct Side {
    unsigned tensor;
    llvm::SmallVector<unsigned> axes;
    int64_t numLines;
    /// Innermost first.
    llvm::SmallVector<Dimension> dimensions;
    /// Whether neighbours in memory are steps, not rows or columns.
    bool stepsFirst;
  };

  /// The rows and columns of the result.
  std::array<Side, 2> sides;
  llvm::SmallVector<unsigned> batches, blocks, steps;
  int64_t numBatches, numBlocks, numSteps;

  /// Nothing, and why in `reason`, where there are guards or several weights,
  /// where numbers do not have 16 bits, and where distances are not those that
  /// the copy engine can step over.
  static std::optional<WarpgroupView> get(const GPUKernelProblem &problem,
                                          mlir::Type inputType,
                                          std::string *reason = nullptr);

  /// Of threads, each for a block of rows and columns of the schedule.
  int64_t getNumBlocks(GPUScheduleAttr schedule) const;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_WARPGROUPVIEW_H
