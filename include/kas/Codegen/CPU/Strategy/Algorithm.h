//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The algorithms of convolutions, and the precisions of products, that the CPU
// pipeline may be given.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_STRATEGY_ALGORITHM_H
#define KAS_CODEGEN_CPU_STRATEGY_ALGORITHM_H

namespace kas::codegen {

/// How convolutions, and other contractions, are computed where the
/// algorithm suits them; what it does not suit is computed as by `Auto`.
enum class ConvolutionAlgorithm {
  /// The exact one that takes the least time by the cost model, for each
  /// operation on its own.
  Auto,
  /// Tiles of the output that read data and weights where they are.
  Direct,
  /// A matrix product with the data of each output side by side, of which some
  /// columns are made at a time.
  Im2col,
  /// Weights packed in tiles of output channels, for each group on its own,
  /// with zeros after the last one; data read where it is.
  SpatialPack,
  /// Winograd's F(4x4, 3x3) for windows of 3x3 with stride 1. Its results
  /// differ from those of the others by more than their rounding.
  Winograd
};

/// What the factors of products of f32 may be rounded to, where that saves time
/// on the target. Sums are of f32.
enum class ContractionPrecision { F32, BF16 };

} // namespace kas::codegen

#endif // KAS_CODEGEN_CPU_STRATEGY_ALGORITHM_H
