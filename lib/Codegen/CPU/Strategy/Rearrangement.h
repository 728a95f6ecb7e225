//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Other layouts of the tensors of a contraction, in which tiles suit it that do
// not suit it as it is.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_REARRANGEMENT_H
#define LIB_CODEGEN_CPU_STRATEGY_REARRANGEMENT_H

#include "StridedContraction.h"

namespace kas::codegen {

/// Copies of weights that have vectors along the output's last dimension, and
/// an output that is transposed after it was computed.
struct Rearrangement {
  /// A weight and the loops that are the dimensions of its copy.
  struct Copy {
    unsigned input;
    llvm::SmallVector<unsigned> loops;
    /// Whether it is made ahead of the calls.
    bool isPrepared = true;
  };
  llvm::SmallVector<Copy> copies;
  /// The loops that are the dimensions of the output before it is transposed;
  /// empty where the output stays as it is.
  llvm::SmallVector<unsigned> outputLoops;
  /// Whether the first input is the one that vectors run along.
  bool isOfData = true;

  bool empty() const { return copies.empty() && outputLoops.empty(); }
  /// The shape of a tensor with these loops as dimensions.
  static llvm::SmallVector<int64_t> getShape(const Contraction &contraction,
                                             llvm::ArrayRef<unsigned> loops);
  /// `contraction` on what the copies and the output are then.
  Contraction apply(const Contraction &contraction,
                    mlir::ValueRange copied) const;
  /// What transposing, and copying what is not prepared, takes at each call, in
  /// halves of a cycle.
  int64_t getTime(const Contraction &contraction) const;
};

/// What to try for `contraction`, whose first input is the data, where it does
/// not suit as it is, the most promising first: at most one more than there are
/// inputs. Only inputs that are `prepared`, or have few elements for what is
/// computed, are copied.
llvm::SmallVector<Rearrangement>
getRearrangements(const Contraction &contraction, mlir::MemRefType output,
                  llvm::ArrayRef<bool> prepared);

/// Fills `copied` with the inputs of the copies.
void emitCopies(mlir::OpBuilder &builder, mlir::Location loc,
                const Contraction &contraction,
                const Rearrangement &rearrangement, mlir::ValueRange copied);

/// Moves the sums from `from`, whose dimensions are the output's loops of
/// `rearrangement`, to `to`.
void emitTransposition(mlir::OpBuilder &builder, mlir::Location loc,
                       const Contraction &contraction,
                       const Rearrangement &rearrangement, mlir::Value from,
                       mlir::Value to, int64_t threads);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_REARRANGEMENT_H
