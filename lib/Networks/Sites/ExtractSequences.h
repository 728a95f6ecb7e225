//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Search problems of several stages for layers with windows.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_SITES_EXTRACTSEQUENCES_H
#define LIB_NETWORKS_SITES_EXTRACTSEQUENCES_H

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"

namespace kas::networks {

/// Writes `kas.sequence_space @S_sequences` for the space `@S` of convolutions,
/// and the spaces of its stages: `@S_window`, of operators that see `windows`,
/// each channel alone or in groups, and `@S_mixing`, in which every output
/// channel depends on every channel between. These are as many as the input
/// has, twice as many, and fewer by each of `coefficients` that divides the
/// channels of all layers.
void writeSequenceSpace(mlir::OpBuilder &builder, mlir::SymbolTable &symbols,
                        SpaceOp layers, llvm::ArrayRef<llvm::StringRef> windows,
                        BindingAttr coefficients);

} // namespace kas::networks

#endif // LIB_NETWORKS_SITES_EXTRACTSEQUENCES_H
