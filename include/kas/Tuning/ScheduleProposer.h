//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which schedules of a kernel to measure next.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_SCHEDULEPROPOSER_H
#define KAS_TUNING_SCHEDULEPROPOSER_H

#include "kas/Tuning/ScheduleModel.h"
#include "kas/Tuning/TuningDevice.h"
#include <optional>

namespace kas::tuning {

/// How schedules are proposed.
enum class ProposalAlgorithm {
  /// Mutations of the best, ranked by a learned model.
  Evolution,
  /// Uniform among the strategies, then among their schedules.
  Random,
  /// All, in the order of the space.
  Exhaustive
};
llvm::StringRef getName(ProposalAlgorithm algorithm);

/// Proposes points of a space; a function of the seed and of the times added.
/// Knows nothing of where times come from. The points must outlive it.
class ScheduleProposer {
public:
  ScheduleProposer(llvm::ArrayRef<SchedulePoint> points,
                   ProposalAlgorithm algorithm, uint64_t seed);

  /// So many are best requested at a time.
  static constexpr size_t batch = 4;

  /// At most `count` points that were not added, the most promising ones first;
  /// none when all were.
  std::vector<size_t> propose(size_t count);

  /// Says that `point` was measured, or cannot be: then it has no time. Times
  /// are relative to something that is the same for all points.
  void add(size_t point, std::optional<double> time);

  bool isKnown(size_t point) const { return known[point]; }
  size_t getNumKnown() const { return numKnown; }
  /// Times and their points, the least first.
  llvm::ArrayRef<std::pair<double, size_t>> getTimed() const { return timed; }
  /// What was learned for the last proposals.
  const ScheduleModel &getModel() const { return model; }

private:
  std::vector<size_t> proposeRandom(size_t count);
  std::vector<size_t> proposeFirst(size_t count);
  std::vector<size_t> proposeEvolved(size_t count);
  std::vector<size_t> proposeInOrder(size_t count) const;
  void fill(std::vector<size_t> &chosen, size_t count);
  void addNeighbours(size_t point, std::vector<char> &found) const;
  void learn();

  llvm::ArrayRef<SchedulePoint> points;
  ProposalAlgorithm algorithm;
  Random random;
  std::vector<char> known;
  size_t numKnown = 0;
  std::vector<std::pair<double, size_t>> timed;
  ScheduleModel model;
};

} // namespace kas::tuning

#endif // KAS_TUNING_SCHEDULEPROPOSER_H
