//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Searches answered from a table of all schedules: how many trials they need.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_REPLAY_H
#define KAS_TUNING_REPLAY_H

#include "kas/Tuning/ScheduleProposer.h"
#include "kas/Tuning/Task.h"
#include "kas/Tuning/TuningStore.h"

namespace kas::tuning {

/// The times of all points of a space, relative to that without a schedule.
struct ScheduleTable {
  /// In the order of the space; none where a schedule failed.
  std::vector<std::optional<double>> times;
  /// The least; 0 if all failed.
  double best = 0;

  explicit ScheduleTable(std::vector<std::optional<double>> times);
};

/// What a database has for a kernel, as a search with
/// `ProposalAlgorithm::Exhaustive` leaves it. An error says how many points
/// have no measurement.
llvm::Expected<ScheduleTable> readTable(const TuningTask &task,
                                        TuningStore &store);

/// The points that a search measures, one after another; at most `trials`.
std::vector<size_t> replaySearch(llvm::ArrayRef<SchedulePoint> space,
                                 const ScheduleTable &table,
                                 ProposalAlgorithm algorithm, uint64_t seed,
                                 int64_t trials);

/// After how many of `points` one was found that has `share` of the best's
/// speed; none if none was.
std::optional<int64_t> countTrials(const ScheduleTable &table,
                                   llvm::ArrayRef<size_t> points, double share);

} // namespace kas::tuning

#endif // KAS_TUNING_REPLAY_H
