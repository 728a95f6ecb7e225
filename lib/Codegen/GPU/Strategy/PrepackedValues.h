//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What functions compute from weights and constants alone: kernels for that run
// once for all calls (`-kas-gpu-plan-buffers`).
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_PREPACKEDVALUES_H
#define LIB_CODEGEN_GPU_STRATEGY_PREPACKEDVALUES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace kas::codegen {

class PrepackedValues {
public:
  /// Whether no data, of a function on tensors, has a part in `value`.
  bool contains(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, bool> known;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_PREPACKEDVALUES_H
