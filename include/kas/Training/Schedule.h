//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the learning rate of an optimizer changes during a training. The
// definitions are those of torch.optim.lr_scheduler.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TRAINING_SCHEDULE_H
#define KAS_TRAINING_SCHEDULE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>

namespace kas::training {

enum class ScheduleKind { Constant, Milestones, Cosine, OneCycle };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::Constant;
  /// The learning rate: the largest one of all kinds.
  double learningRate = 0.1;
  /// The steps of the whole training.
  int64_t numSteps = 1;
  /// All kinds but OneCycle: steps in which the learning rate rises linearly
  /// from `warmUpFactor` times its value (LinearLR). A cosine begins after
  /// them.
  int64_t warmUpSteps = 0;
  double warmUpFactor = 0.1;

  /// Milestones (MultiStepLR): the steps from which on the learning rate is
  /// multiplied by `factor` once more, ascending, those of the warm-up counted.
  llvm::SmallVector<int64_t> milestones;
  double factor = 0.1;

  /// Cosine (CosineAnnealingLR): what it falls to, reached after all steps.
  double lastLearningRate = 0;

  /// OneCycle (OneCycleLR, with cosines): the share of the steps in which the
  /// learning rate rises; what it is divided by at the start, and what that is
  /// divided by at the end.
  double rise = 0.3, startDivisor = 25, endDivisor = 1e4;
  /// And the momentum: the smallest at the largest learning rate.
  double smallestMomentum = 0.85, largestMomentum = 0.95;
};

/// The learning rate as a function of the number of the step.
class Schedule {
public:
  /// Errors: sizes and numbers of steps that are not positive, more warm-up
  /// than steps, milestones that do not ascend, shares and factors beyond [0,
  /// 1].
  static llvm::Expected<Schedule> create(ScheduleOptions options);

  const ScheduleOptions &getOptions() const { return options; }
  /// The learning rate of step number `step`, counted from 0. After all steps
  /// it stays what it was at the end.
  double getLearningRate(int64_t step) const;
  /// The momentum that belongs to it; none except for OneCycle.
  std::optional<double> getMomentum(int64_t step) const;

private:
  explicit Schedule(ScheduleOptions options) : options(std::move(options)) {}

  ScheduleOptions options;
};

/// Parses `constant`, `milestones`, `cosine` or `one-cycle`, then `:` and
/// options `NAME=VALUE` with commas between them:
///
///   warm-up=STEPS, warm-up-factor=F   constant, milestones, cosine
///   at=STEP+STEP+..., factor=F        milestones
///   last=SIZE                         cosine
///   rise=SHARE, start-divisor=F, end-divisor=F, momentum=SMALLEST+LARGEST
///                                     one-cycle
///
/// STEPS and STEP may end with `%`: of `numSteps`, rounded down. Errors quote
/// the text.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef text,
                                       double learningRate, int64_t numSteps);

} // namespace kas::training

#endif // KAS_TRAINING_SCHEDULE_H
