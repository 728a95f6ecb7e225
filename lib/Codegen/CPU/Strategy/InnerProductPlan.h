//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions whose vectors lie along a reduction: gradients by weights,
// which have few elements, each a sum over all examples and places.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_INNERPRODUCTPLAN_H
#define LIB_CODEGEN_CPU_STRATEGY_INNERPRODUCTPLAN_H

#include "ContractionTarget.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"

namespace kas::codegen {

/// A tile of the output is in registers, one vector of sums for each element.
/// They are added up at the end, once for each block of the outermost
/// reduction.
struct InnerProductPlan {
  struct Input {
    mlir::Value buffer;
    /// Of all loops.
    mlir::AffineExpr address;
    int64_t size = 0;
    /// How far it steps with the vector loop: 0, 1 or 2.
    int64_t step = 0;
    /// Whether it must not be read where a guard on the vector loop fails.
    bool isGuarded = false;

    bool isVector() const { return step != 0; }
  };

  llvm::SmallVector<Contraction::Loop> loops;
  llvm::SmallVector<Input> inputs;
  /// The address of the output, of all loops.
  mlir::AffineExpr output;
  llvm::SmallVector<Guard> guards;
  double factor = 1;

  /// The reduction that vectors lie along.
  unsigned vectorLoop = 0;
  int64_t lanes = 0;
  /// The other reductions, outermost first.
  llvm::SmallVector<unsigned> reductions;
  /// By loop, how many of its iterations are in a tile.
  llvm::SmallVector<int64_t> tile;
  /// Iterations of the outermost reduction whose data stays in the second-level
  /// cache for all tiles, or that of a tile in the first-level cache.
  int64_t block = 1;
  /// Whether the vectors of sums of all tiles wait in memory between blocks,
  /// and are added up after the last one only.
  bool keepsVectors = false;
  /// In halves of a cycle.
  int64_t time = 0;

  bool hasBlocks() const {
    return !reductions.empty() && block != loops[reductions.front()].extent;
  }
  int64_t getNumBlocks() const {
    return hasBlocks() ? loops[reductions.front()].extent / block : 1;
  }
  /// The elements of a tile, and the number of tiles.
  int64_t getNumSums() const;
  int64_t getNumTiles() const;
};

/// The plan for `contraction` on buffers of f32 of identity layout, the output
/// of the type `output`; nothing where all inputs lie along other loops.
std::optional<InnerProductPlan>
makeInnerProductPlan(const Contraction &contraction, mlir::MemRefType output,
                     const ContractionTarget &target);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_INNERPRODUCTPLAN_H
