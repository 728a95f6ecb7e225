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
#include "kas/Schedule/Rearrangement.h"

namespace kas::codegen {

using schedule::Rearrangement;

/// The shape of a tensor with these loops as dimensions.
llvm::SmallVector<int64_t> getShape(const Contraction &contraction,
                                    llvm::ArrayRef<unsigned> loops);

/// `contraction` on what the copies and the output are in a rearrangement.
Contraction rearrange(const Contraction &contraction,
                      const Rearrangement &rearrangement,
                      mlir::ValueRange copied);

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
