//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When a training ends before its last step.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TRAINING_STOPRULE_H
#define KAS_TRAINING_STOPRULE_H

#include "kas/Training/Checkpoint.h"
#include <optional>

namespace kas::training {

struct StopOptions {
  /// Evaluations in a row without a better accuracy after which the training
  /// ends; 0 for any number.
  int64_t patience = 0;
  /// How much larger than the best one an accuracy must be to be better.
  double improvement = 0;
  /// Steps with the accuracy that the first evaluation at or after each must
  /// have at least; ascending.
  llvm::SmallVector<std::pair<int64_t, double>> milestones;
};

/// Follows a training. The same losses and accuracies give the same answers,
/// whether or not the training was interrupted and its counters kept.
class StopRule {
public:
  /// Errors: a negative patience or improvement, milestones that do not ascend
  /// or whose accuracies are not in [0, 1].
  static llvm::Expected<StopRule> create(StopOptions options);

  /// The reason to end at a step of this loss: it is not finite.
  static std::optional<std::string> checkLoss(int64_t step, double loss);

  /// Takes note of an accuracy in [0, 1] after `step` steps and returns the
  /// reason to end, if there is one.
  std::optional<std::string> observe(int64_t step, double accuracy);

  /// The best accuracy so far, -1 before the first.
  double getBest() const { return best; }

  /// Adds what must be kept in a checkpoint: `stop-best`, `stop-waiting` and
  /// `stop-milestones`.
  void save(Counters &counters) const;
  /// Continues from what `save` has added; an error where one is missing.
  llvm::Error restore(const Counters &counters);

private:
  explicit StopRule(StopOptions options) : options(std::move(options)) {}

  StopOptions options;
  double best = -1;
  /// Evaluations since the best one, and milestones that are past.
  int64_t waiting = 0, passed = 0;
};

/// Parses options with commas between them, or nothing at all:
/// `patience=COUNT`, `improvement=ACCURACY`,
/// `milestones=STEP:ACCURACY+STEP:ACCURACY+...`. Errors quote the text.
llvm::Expected<StopRule> parseStopRule(llvm::StringRef text);

} // namespace kas::training

#endif // KAS_TRAINING_STOPRULE_H
