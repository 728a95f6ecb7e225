//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the two passes that pack contractions.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_TRANSFORMS_PACKOPERATIONS_H
#define LIB_CODEGEN_CPU_TRANSFORMS_PACKOPERATIONS_H

#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Support/Target.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace kas::codegen {

/// The target of the module; vectors of `vectorBits` if there are any.
Target getContractionTarget(mlir::Operation *op, int64_t vectorBits);

/// How many threads may share what `op` does: `threads`, but one in a function
/// that several threads call at once.
int64_t getNumThreads(mlir::Operation *op, int64_t threads);

/// The schedule that `op` says itself, or null.
CPUScheduleAttr getSchedule(mlir::Operation *op);

/// Says why `op`, or the operator `name` that it applies, takes another
/// strategy. One that has a schedule must not.
void remarkNotPacked(mlir::Operation *op, llvm::StringRef name,
                     const llvm::Twine &reason);

/// The zeros before each dimension where `op` pads with zeros as many elements
/// as are known; nothing otherwise.
std::optional<llvm::SmallVector<int64_t>> getZeros(mlir::tensor::PadOp op);

/// Whether `op` on tensors reads one that is padded with zeros, and adds to
/// zeros or to a value per channel.
bool readsPadding(mlir::linalg::LinalgOp op);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_TRANSFORMS_PACKOPERATIONS_H
