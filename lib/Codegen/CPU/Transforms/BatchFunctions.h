//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The facts about functions on batches before they are cut into parts.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_TRANSFORMS_BATCHFUNCTIONS_H
#define LIB_CODEGEN_CPU_TRANSFORMS_BATCHFUNCTIONS_H

#include "../Strategy/BatchParts.h"
#include "kas/Codegen/Common/PerSample.h"

namespace kas::codegen {

/// Whether the function is one for a part of a batch already.
bool isPartOfBatch(mlir::func::FuncOp function);

/// Whether the first argument has at least two samples.
bool isOnBatch(mlir::func::FuncOp function);

/// Whether parts of the data and of all results begin at whole elements of
/// known size.
bool hasPlainElements(mlir::func::FuncOp function);

/// What the function does for each sample.
BatchWork collectBatchWork(mlir::func::FuncOp function,
                           const SamplePositions &samples);

/// The bytes of each pointer that the function will take which differ from part
/// to part: all of the data and of the results, and 0 for weights.
llvm::SmallVector<int64_t> getPartBytes(mlir::func::FuncOp function);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_TRANSFORMS_BATCHFUNCTIONS_H
