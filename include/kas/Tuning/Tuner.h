//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the fastest schedule of a kernel by measuring some.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_TUNER_H
#define KAS_TUNING_TUNER_H

#include "kas/Tuning/ScheduleProposer.h"
#include "kas/Tuning/Task.h"
#include "kas/Tuning/TuningStore.h"

namespace kas::tuning {

/// What a kernel is without a tuned schedule.
enum class Baseline {
  /// What the cost model chooses.
  Model,
  /// One schedule for all kernels, which knows no sizes
  /// (`ScheduleSpace::fixed`).
  Fixed,
  /// Loops without register tiles.
  Loops
};

struct TunerOptions {
  ProposalAlgorithm algorithm = ProposalAlgorithm::Evolution;
  uint64_t seed = 0;
  /// Schedules to measure for a kernel, with those that a database has; an
  /// exhaustive search measures all.
  int64_t trials = 64;
  /// Written to the database with each measurement.
  std::string network;
  /// What a kernel is without a schedule; for others than the cost model's, no
  /// choice is written to the database.
  Baseline baseline = Baseline::Model;
  /// A schedule is chosen if it takes less than this part of the baseline's
  /// time, in a measurement of its own.
  double acceptedRatio = 0.98;
  MeasureOptions measure;
};

/// What came out for one kernel.
struct TunedKernel {
  /// Null: none is better than the cost model's, or than plain loops if those
  /// are the baseline.
  ScheduleAttrInterface schedule;
  /// The time with it, relative to that with the cost model's; and the latter,
  /// in milliseconds.
  double ratio = 1, defaultMs = 0;
  /// The time of the baseline, relative to that with the cost model's.
  double baselineRatio = 1;
  /// Milliseconds of loops without register tiles; 0 if they did not run.
  double plainMs = 0;
  /// Measurements made, and how many of them failed; seconds of all.
  int64_t measured = 0, failed = 0;
  double seconds = 0;
  /// The learned model at the end; empty if there was none.
  std::string model;
};

/// Tunes one kernel; goes on from what the database has. Errors: those of the
/// database, and a kernel that cannot be compiled without a schedule.
llvm::Expected<TunedKernel> tuneKernel(TuningTask &task,
                                       const TuningDevice &device,
                                       TuningStore &store,
                                       const TunerOptions &options);

struct TransferOptions {
  /// The network whose schedules are taken; empty: all of the database.
  std::string source;
  /// Measure at most so many of the schedules that suit, the most promising
  /// ones by a model learned from the class; 0: all.
  int64_t maxPairs = 3;
};

/// Chooses for a kernel among what was chosen for the others of its class,
/// adapted to its loops. With another baseline than the cost model: among what
/// was fastest for each of the others, the nearest loops first, and without the
/// learned model, which knows the cost model's times.
llvm::Expected<TunedKernel>
transferKernel(TuningTask &task, const TuningDevice &device, TuningStore &store,
               const TunerOptions &options, const TransferOptions &transfer);

} // namespace kas::tuning

#endif // KAS_TUNING_TUNER_H
