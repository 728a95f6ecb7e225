//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of products as products of two matrices, the view that staged kernels
// have of an operator.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_MATRIXVIEW_H
#define LIB_CODEGEN_GPU_STRATEGY_MATRIXVIEW_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include <optional>

namespace kas::codegen {

/// `output[batch, row, column] = sum over steps of left[batch, row, step] *
/// right[batch, step, column]`. Each index numbers some axes of the operator
/// through, the last one fastest; `left` and `right` are products of tensors.
struct MatrixView {
  /// Axes of the operator.
  llvm::SmallVector<unsigned> batches, rows, columns, steps;
  /// Tensors: the data is 0, weight i is i + 1. The data is on the right.
  llvm::SmallVector<unsigned> left, right;

  /// Nothing for operators with maxima, or where no tensor is on the left.
  static std::optional<MatrixView> get(const Coordinates &coordinates);

  static int64_t getExtent(const Coordinates &coordinates,
                           llvm::ArrayRef<unsigned> axes) {
    int64_t extent = 1;
    for (unsigned axis : axes)
      extent *= coordinates.axes[axis].extent;
    return extent;
  }

  /// Whether the innermost output coordinate with more than one value is one of
  /// the rows.
  bool areRowsInner(const Coordinates &coordinates) const;

  /// Of tensor-core kernels with blocks of `block` rows and columns, as they
  /// number these: lets a block hold rows of the result as a whole where no
  /// vector fits a part of one, as in images of 7x7. Columns that are not part
  /// of a row in one piece count as batches then, and a block's rows follow
  /// each other. Whether it does so; never unless inputs, and so results, have
  /// 16 bits. Null: they have 32.
  bool keepLinesWhole(const Coordinates &coordinates, mlir::Type inputType,
                      llvm::ArrayRef<int64_t> block);

  /// Moves the axis of `steps` that has the most values, of those whose number
  /// `depth` divides, to the end: blocks of `depth` steps differ in it only.
  void orderSteps(const Coordinates &coordinates, int64_t depth);
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_MATRIXVIEW_H
