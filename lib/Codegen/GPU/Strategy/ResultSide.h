//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where results lie along some axes, in as few dimensions as possible, and how
// wide vectors of them can be.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_RESULTSIDE_H
#define LIB_CODEGEN_GPU_STRATEGY_RESULTSIDE_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"

namespace kas::codegen {

/// Dimensions of numbers that go through some axes in order, the last one
/// fastest. Axes of one value are none; those that continue each other in the
/// result, such as the rows and columns of an image, are one.
class ResultSide {
public:
  /// Where results lie along `axes`, the outermost first.
  static ResultSide get(const Coordinates &coordinates,
                        llvm::ArrayRef<unsigned> axes);

  /// Adds an axis within those before.
  void add(int64_t extent, int64_t stride);

  /// Where number `number` is, in elements.
  mlir::AffineExpr getOffset(mlir::AffineExpr number) const;

  /// Whether neighbouring numbers are neighbours in the result.
  bool isContiguous() const { return !strides.empty() && strides.back() == 1; }
  /// Whether all numbers follow each other in the result.
  bool isWhole() const { return isContiguous() && strides.size() == 1; }
  /// How many numbers follow each other, if neighbours do.
  int64_t getLength() const { return extents.back(); }
  /// How many neighbours, at most `most`, a vector at a multiple of its width
  /// can hold: a power of two; 1 where numbers are no neighbours.
  int64_t getWidth(int64_t most) const;
  /// The largest power of two, at most `most`, that divides all strides.
  int64_t getAlignment(int64_t most) const;

private:
  /// Outermost first.
  llvm::SmallVector<int64_t> extents, strides;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_RESULTSIDE_H
