//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Learning-rate schedules, as in PyTorch: constant, steps, cosine, one cycle,
// with warm-up.
// The values are those of PyTorch's MultiStepLR, CosineAnnealingLR, OneCycleLR
// and LinearLR, which tests compare with (docs/guide/training.md). A value is a
// function of the step, so a training that continues needs no state of it.
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Schedule.h"
#include "NumberText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace kas;
using namespace kas::training;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// An error unless `value` is finite and in [smallest, largest]; `isOpen`: more
/// than smallest.
static Error checkRange(StringRef name, double value, double smallest,
                        double largest, bool isOpen = false) {
  if (std::isfinite(value) && value <= largest &&
      (isOpen ? value > smallest : value >= smallest))
    return Error::success();
  std::string range = (isOpen ? "more than " : "at least ") + toText(smallest);
  if (std::isfinite(largest))
    range += " and at most " + toText(largest);
  return createStringError("requires " + name + " of " + range + ", got " +
                           toText(value));
}

/// Warm-up must leave a step after it, and milestones be positive and ascend.
static Error checkSteps(const ScheduleOptions &options) {
  if (options.numSteps < 1)
    return createStringError("requires at least one step, got " +
                             Twine(options.numSteps));
  if (options.warmUpSteps < 0 || options.warmUpSteps >= options.numSteps)
    return createStringError(
        "requires from 0 to " + Twine(options.numSteps - 1) +
        " steps of warm-up, got " + Twine(options.warmUpSteps));
  int64_t previous = 0;
  for (int64_t milestone : options.milestones) {
    // The one at 0 would be another learning rate from the start.
    if (milestone <= previous)
      return createStringError(
          "requires milestones that are positive and ascend, got " +
          Twine(milestone) + " after " + Twine(previous));
    previous = milestone;
  }
  return Error::success();
}

/// Numbers are checked by one table; the names are those of messages.
Expected<Schedule> Schedule::create(ScheduleOptions options) {
  if (Error error = checkSteps(options))
    return error;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  struct {
    StringRef name;
    double value, smallest, largest;
    bool isOpen;
  } ranges[] = {
      {"a learning rate", options.learningRate, 0, infinity, true},
      {"a factor of warm-up", options.warmUpFactor, 0, 1, false},
      {"a factor of milestones", options.factor, 0, 1, true},
      {"a last learning rate", options.lastLearningRate, 0,
       options.learningRate, false},
      {"a share of rising steps", options.rise, 0, 1, false},
      {"a divisor at the start", options.startDivisor, 1, infinity, false},
      {"a divisor at the end", options.endDivisor, 1, infinity, false},
      {"a largest momentum", options.largestMomentum, 0, 1, false},
      {"a smallest momentum", options.smallestMomentum, 0,
       options.largestMomentum, false},
  };
  for (auto &range : ranges)
    if (Error error = checkRange(range.name, range.value, range.smallest,
                                 range.largest, range.isOpen))
      return error;
  return Schedule(std::move(options));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Half a cosine: from `first` at 0 to `last` at 1.
/// `place` is the share of the way, from 0 to 1.
static double anneal(double first, double last, double place) {
  return last + (first - last) / 2 * (1 + std::cos(llvm::numbers::pi * place));
}

/// One cycle between two values and a third: the learning rate and the momentum
/// have the same phases.
/// Rising from `first` to `top` in the first `rise` of the steps, then falling
/// to `last`; for the momentum "top" is the smallest value.
static double evaluateCycle(const ScheduleOptions &options, int64_t step,
                            double first, double top, double last) {
  // Steps count from 0, and phases end within a step, as in PyTorch.
  double rising = options.rise * static_cast<double>(options.numSteps) - 1;
  auto final = static_cast<double>(options.numSteps - 1);
  // Steps past the end keep the last value.
  auto place = static_cast<double>(std::min(step, options.numSteps - 1));
  if (place <= rising)
    // A phase of no length is at its end at once.
    return anneal(first, top, rising > 0 ? place / rising : 1);
  return anneal(top, last,
                final > rising ? (place - rising) / (final - rising) : 1);
}

/// The learning rate of step number `step`, counted from 0 over the whole
/// training.
double Schedule::getLearningRate(int64_t step) const {
  assert(step >= 0 && "steps count from 0");
  double size = options.learningRate;
  if (options.kind == ScheduleKind::OneCycle) {
    double first = size / options.startDivisor;
    return evaluateCycle(options, step, first, size,
                         first / options.endDivisor);
  }
  // Linear, from the factor at step 0 to 1 at the first step after it.
  if (step < options.warmUpSteps)
    return size * (options.warmUpFactor +
                   (1 - options.warmUpFactor) * static_cast<double>(step) /
                       static_cast<double>(options.warmUpSteps));
  switch (options.kind) {
  case ScheduleKind::Constant:
  case ScheduleKind::OneCycle:
    return size;
  case ScheduleKind::Milestones:
    // Once for each milestone that is past.
    for (int64_t milestone : options.milestones)
      if (step >= milestone)
        size *= options.factor;
    return size;
  case ScheduleKind::Cosine: {
    // The cosine counts from the end of the warm-up.
    auto after = static_cast<double>(std::min(step, options.numSteps) -
                                     options.warmUpSteps);
    auto rest = static_cast<double>(options.numSteps - options.warmUpSteps);
    return anneal(size, options.lastLearningRate, after / rest);
  }
  }
  llvm_unreachable("unknown kind of schedule");
}

/// Only one cycle changes the momentum; nothing means that of the optimizer.
std::optional<double> Schedule::getMomentum(int64_t step) const {
  if (options.kind != ScheduleKind::OneCycle)
    return std::nullopt;
  return evaluateCycle(options, step, options.largestMomentum,
                       options.smallestMomentum, options.largestMomentum);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

/// `KIND:OPTION=VALUE,...`, such as `cosine:warm-up=5%,last=0.001`. An option
/// that the kind does not have is an error and not ignored.
class ScheduleParser {
public:
  ScheduleParser(StringRef text, ScheduleOptions &options)
      : text(text), options(options) {}

  Error parse() {
    auto [kind, rest] = text.split(':');
    constexpr StringRef kinds[] = {"constant", "milestones", "cosine",
                                   "one-cycle"};
    const auto *found = llvm::find(kinds, kind);
    if (found == std::end(kinds))
      return fail("requires constant, milestones, cosine or one-cycle, got '" +
                  kind + "'");
    // The names are in the order of the enumeration.
    options.kind = static_cast<ScheduleKind>(found - std::begin(kinds));
    while (!rest.empty()) {
      auto [option, others] = rest.split(',');
      auto [name, value] = option.split('=');
      if (Error error = parseOption(name, value))
        return error;
      rest = others;
    }
    return Error::success();
  }

private:
  Error fail(const Twine &message) {
    return createStringError("bad schedule '" + text + "': " + message);
  }

  Error parseOption(StringRef name, StringRef value) {
    ScheduleKind kind = options.kind;
    bool cycles = kind == ScheduleKind::OneCycle;
    if (name == "warm-up" && !cycles)
      return parseSteps(name, value, options.warmUpSteps);
    if (name == "warm-up-factor" && !cycles)
      return parseNumber(name, value, options.warmUpFactor);
    if (name == "at" && kind == ScheduleKind::Milestones)
      return parseMilestones(value);
    if (name == "factor" && kind == ScheduleKind::Milestones)
      return parseNumber(name, value, options.factor);
    if (name == "last" && kind == ScheduleKind::Cosine)
      return parseNumber(name, value, options.lastLearningRate);
    if (name == "rise" && cycles)
      return parseNumber(name, value, options.rise);
    if (name == "start-divisor" && cycles)
      return parseNumber(name, value, options.startDivisor);
    if (name == "end-divisor" && cycles)
      return parseNumber(name, value, options.endDivisor);
    // The smallest and the largest: `momentum=0.85+0.95`.
    if (name == "momentum" && cycles) {
      // Without a `+` the second number is missing, which is an error.
      auto [smallest, largest] = value.split('+');
      if (Error error = parseNumber(name, smallest, options.smallestMomentum))
        return error;
      return parseNumber(name, largest, options.largestMomentum);
    }
    return fail("unknown option '" + name + "' of this schedule");
  }

  Error parseNumber(StringRef name, StringRef value, double &number) {
    if (value.getAsDouble(number) || !std::isfinite(number))
      return fail("requires a number for '" + name + "', got '" + value + "'");
    return Error::success();
  }

  /// A number of steps, or a percentage of all.
  Error parseSteps(StringRef name, StringRef value, int64_t &steps) {
    StringRef digits = value;
    bool isShare = digits.consume_back("%");
    int64_t number;
    if (digits.getAsInteger(10, number) || number < 0 ||
        (isShare && number > 100))
      return fail("requires a number of steps or a percentage for '" + name +
                  "', got '" + value + "'");
    // In two parts, which do not overflow.
    steps = !isShare ? number
                     : options.numSteps / 100 * number +
                           options.numSteps % 100 * number / 100;
    return Error::success();
  }

  /// `100+200` or `50%+75%`.
  Error parseMilestones(StringRef value) {
    llvm::SmallVector<StringRef> parts;
    value.split(parts, '+');
    options.milestones.resize(parts.size());
    for (auto [part, milestone] : llvm::zip_equal(parts, options.milestones))
      if (Error error = parseSteps("at", part, milestone))
        return error;
    return Error::success();
  }

  StringRef text;
  ScheduleOptions &options;
};

} // namespace

Expected<Schedule> kas::training::parseSchedule(StringRef text,
                                                double learningRate,
                                                int64_t numSteps) {
  ScheduleOptions options;
  options.learningRate = learningRate;
  // Percentages need it before the text is parsed.
  options.numSteps = numSteps;
  if (Error error = ScheduleParser(text, options).parse())
    return error;
  auto schedule = Schedule::create(std::move(options));
  if (!schedule)
    return createStringError("bad schedule '" + text +
                             "': " + llvm::toString(schedule.takeError()));
  return schedule;
}
