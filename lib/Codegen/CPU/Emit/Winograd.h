//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code of Winograd's algorithm.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_WINOGRAD_H
#define LIB_CODEGEN_CPU_EMIT_WINOGRAD_H

#include "../Strategy/ContractionTarget.h"
#include "../Strategy/WinogradMatch.h"

namespace kas::codegen {

/// Emits `conv` before `op`, all of whose elements are f32. Returns the
/// result as a tensor, or null, with operations left over, if the products
/// cannot be cut into register tiles.
mlir::Value emitWinograd(mlir::Operation *op, const WinogradConvolution &conv,
                         const ContractionOptions &options);

/// The same of the gradient by the weight.
mlir::Value emitWinogradGradient(mlir::Operation *op,
                                 const WinogradGradient &gradient,
                                 const ContractionOptions &options);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_WINOGRAD_H
