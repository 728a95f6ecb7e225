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

#ifndef KAS_CODEGEN_CPU_SCHEDULESPACE_H
#define KAS_CODEGEN_CPU_SCHEDULESPACE_H

#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"
#include <array>
#include <vector>

namespace kas::codegen {

/// The numbers of a schedule by position, for code that treats all alike.
constexpr std::array<llvm::StringLiteral, 5> scheduleNumberNames = {
    "rows", "columns", "vectors", "tile", "depth"};
using ScheduleNumbers = std::array<int64_t, 5>;
ScheduleNumbers getNumbers(CPUScheduleAttr schedule);
CPUScheduleAttr getSchedule(mlir::MLIRContext *context, CPUStrategy strategy,
                            const ScheduleNumbers &numbers);

/// A schedule that suits an operation, with all its numbers.
struct PlannedSchedule {
  CPUScheduleAttr schedule;
  /// What the cost model says it takes, in halves of a cycle.
  int64_t time = 0;
  /// What panels take for one step of all rows of a tile; 0 for others.
  int64_t stepTime = 0;
};

/// Every schedule that suits one operation.
struct ScheduleSpace {
  /// By strategy, then by number. Never empty.
  std::vector<PlannedSchedule> points;
  /// Iterations of the loops, by what steps with them.
  int64_t batches = 1, rows = 1, columns = 1, reductions = 1;
  /// Iterations of the innermost of these loops; 1 where there is none.
  int64_t innermostRows = 1, innermostColumns = 1, outermostReduction = 1;
  /// Elements of a vector, and vector registers.
  int64_t lanes = 1, registers = 1;

  /// The position of `schedule` in `points`, if it is there.
  std::optional<size_t> find(CPUScheduleAttr schedule) const;
};

struct ScheduleSpaceOptions {
  /// As for the pipeline: 1 for serial code, 0 where it is unknown.
  int64_t threads = 1;
  /// Whether weights are prepared ahead.
  bool prepared = true;
};

/// The schedules that `-kas-pack-operators` and `-kas-pack-contractions` accept
/// for `op`, a concrete `kas.apply` after `-kas-rfactor` or a linalg
/// operation, both on tensors whose buffers are contiguous, for the target of
/// its module. `op` stays as it is. An error says why it is none that is cut
/// into register tiles.
llvm::Expected<ScheduleSpace>
getScheduleSpace(mlir::Operation *op, const ScheduleSpaceOptions &options = {});

} // namespace kas::codegen

#endif // KAS_CODEGEN_CPU_SCHEDULESPACE_H
