//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All schedules that suit one operation: what a tuner may choose from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_STRATEGY_SCHEDULESPACE_H
#define KAS_CODEGEN_CPU_STRATEGY_SCHEDULESPACE_H

#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"

namespace kas::codegen {

struct ScheduleSpaceOptions {
  /// As for the pipeline: 1 for serial code, 0 where it is unknown.
  int64_t threads = 1;
  /// Whether weights are prepacked ahead.
  bool prepacked = true;
};

/// The schedules that `-kas-pack-operators` and `-kas-pack-contractions` accept
/// for `op`, a concrete `kas.apply` after `-kas-rfactor` or a linalg
/// operation, both on tensors whose buffers are contiguous, for the target of
/// its module. `op` stays as it is. An error says why it is none that is cut
/// into register tiles.
llvm::Expected<ScheduleSpace>
getScheduleSpace(mlir::Operation *op, const ScheduleSpaceOptions &options = {});

} // namespace kas::codegen

#endif // KAS_CODEGEN_CPU_STRATEGY_SCHEDULESPACE_H
