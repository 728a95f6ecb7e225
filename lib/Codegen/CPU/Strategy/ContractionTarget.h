//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What contractions are cut for: the target, and what an operation, the module
// and the options of a pass say.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONTARGET_H
#define LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONTARGET_H

#include "kas/Codegen/CPU/Strategy/Algorithm.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Schedule/TileChoice.h"
#include "kas/Support/Target.h"

namespace kas::codegen {

struct ContractionEpilogue;

/// What a target offers to contractions.
struct ContractionTarget : schedule::TileTarget {
  explicit ContractionTarget(const Target &target);

  bool hasFMA;
};

/// The numbers that `schedule` gives.
schedule::TileNumbers getTileNumbers(CPUScheduleAttr schedule);

/// What contractions are cut for.
struct ContractionOptions {
  /// 1: no parallel loop, 0: unknown.
  int64_t threads = 0;
  Target target;
  /// Free buffers after the loops; not where a pass does so later.
  bool deallocate = true;
  /// What rearranges weights runs once, not at each call.
  bool prepacked = false;
  /// What may be computed together with the contraction, or null.
  const ContractionEpilogue *epilogue = nullptr;
  /// What the operation says itself, or null.
  CPUScheduleAttr schedule = nullptr;
  /// The input is read where it is, and not padded: emit nothing unless
  /// vectors along the rows are the cheapest, or direct tiles where a copy
  /// would be read for one output only and nothing is added to.
  bool readsUnpadded = false;
  /// The tiles that it is to be cut into where they suit; an operation's
  /// schedule comes first.
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::Auto;
  /// Cycles that a loop takes at least that threads share: to wake them and to
  /// wait for them takes longer than all that they take off of a shorter one.
  int64_t minParallelTime = 0;

  /// What tiles are chosen for where nothing follows and nothing is added to.
  kas::schedule::TileOptions getTileOptions() const;

  /// The threads for what takes one thread `time`, in halves of a cycle.
  int64_t getThreads(int64_t time) const {
    return time < 2 * minParallelTime ? 1 : threads;
  }
};

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

/// The category of the remarks on panels.
constexpr llvm::StringLiteral panelRemarks = "kas-panels";

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_CONTRACTIONTARGET_H
