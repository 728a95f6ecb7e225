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

#include "kas/Dialect/Kas/Analysis/Contraction.h"
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

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_REARRANGEMENT_H
