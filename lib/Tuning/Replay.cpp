//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replays a search of schedules on a complete table of times, to compare
// algorithms.
// With the times of all schedules of a kernel in the database (`exhaustive`),
// an algorithm can be run a thousand times with other seeds in a second, and
// compared by how many trials it takes to come near the best.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Replay.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::tuning;
using llvm::Expected;

/// `given[i]` is the time of schedule i relative to the default, nothing for
/// one that failed.
ScheduleTable::ScheduleTable(std::vector<std::optional<double>> given)
    : times(std::move(given)) {
  for (std::optional<double> time : times)
    if (time && (best == 0 || *time < best))
      best = *time;
}

/// Fails unless every schedule of the space was measured (`kas-tune
/// --algorithm=exhaustive`); failures are entries without a time.
Expected<ScheduleTable> kas::tuning::readTable(const TuningTask &task,
                                               TuningStore &store) {
  Expected<int64_t> kernel =
      store.addKernel({task.getClassKey(), task.classText, task.shape});
  if (!kernel)
    return kernel.takeError();
  auto rows = store.read(*kernel);
  if (!rows)
    return rows.takeError();
  // The database may hold rows of schedules that the space no longer has.
  std::map<std::string, const StoredMeasurement *> known;
  for (const StoredMeasurement &row : *rows)
    known.emplace(row.schedule, &row);
  std::vector<std::optional<double>> times;
  size_t missing = 0;
  for (const SchedulePoint &point : task.space.points) {
    auto found = known.find(point.schedule.getText());
    missing += found == known.end();
    if (found == known.end() || !found->second->failure.empty())
      times.push_back(std::nullopt);
    else
      times.push_back(found->second->ratio);
  }
  if (missing)
    return llvm::createStringError(
        llvm::formatv("requires measurements of all {0} schedules, found {1}",
                      times.size(), times.size() - missing));
  return ScheduleTable(std::move(times));
}

/// Positions in the order in which the algorithm would have measured them.
std::vector<size_t> kas::tuning::replaySearch(
    llvm::ArrayRef<SchedulePoint> space, const ScheduleTable &table,
    ProposalAlgorithm algorithm, uint64_t seed, int64_t trials) {
  ScheduleProposer proposer(space, algorithm, seed);
  std::vector<size_t> measured;
  auto limit = static_cast<size_t>(trials);
  while (measured.size() < limit) {
    // As `tuneKernel` does: in batches, with each result known before the next
    // batch.
    std::vector<size_t> points = proposer.propose(
        std::min(ScheduleProposer::batch, limit - measured.size()));
    if (points.empty())
      break;
    for (size_t point : points) {
      proposer.add(point, table.times[point]);
      measured.push_back(point);
    }
  }
  return measured;
}

/// The number of trials until a schedule of at least `share` of the best one's
/// speed was measured, or nothing.
std::optional<int64_t> kas::tuning::countTrials(const ScheduleTable &table,
                                                llvm::ArrayRef<size_t> points,
                                                double share) {
  for (auto [index, point] : llvm::enumerate(points))
    if (std::optional<double> time = table.times[point];
        time && table.best >= share * *time)
      return static_cast<int64_t>(index) + 1;
  return std::nullopt;
}
