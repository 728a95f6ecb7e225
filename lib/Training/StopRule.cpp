//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When a training ends early: patience, accuracy milestones, a loss that is not
// finite.
// A search trains many candidates, most of which are not worth their last
// epochs: a rule sees the accuracy after each epoch and says why to stop. Its
// state goes into checkpoints, so that a training that continues stops at the
// same epoch.
//
//===----------------------------------------------------------------------===//
#include "kas/Training/StopRule.h"
#include "NumberText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace kas;
using namespace kas::training;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// Milestones are pairs of a step and the accuracy that is required from then
/// on.
Expected<StopRule> StopRule::create(StopOptions options) {
  if (options.patience < 0)
    return createStringError("requires a patience of at least 0, got " +
                             Twine(options.patience));
  if (!std::isfinite(options.improvement) || options.improvement < 0)
    return createStringError("requires an improvement of at least 0, got " +
                             toText(options.improvement));
  int64_t previous = -1;
  for (auto [step, accuracy] : options.milestones) {
    if (step <= previous)
      return createStringError(
          "requires steps of milestones that ascend from 0, got " +
          Twine(step) +
          (previous < 0 ? Twine("") : " after " + Twine(previous)));
    // Written so that NaN fails, too.
    if (!(accuracy >= 0 && accuracy <= 1))
      return createStringError("requires accuracies of milestones in [0, 1], "
                               "got " +
                               toText(accuracy));
    previous = step;
  }
  return StopRule(std::move(options));
}

/// A loss that is not finite never becomes finite again: all parameters have
/// been updated by it.
std::optional<std::string> StopRule::checkLoss(int64_t step, double loss) {
  if (std::isfinite(loss))
    return std::nullopt;
  return "the loss is not finite at step " + std::to_string(step);
}

/// After an evaluation at `step`; the reason to stop, or nothing. Both rules
/// are always brought up to date, so that the state does not depend on which
/// one stops.
std::optional<std::string> StopRule::observe(int64_t step, double accuracy) {
  // The first accuracy is always better; `best` is negative before it.
  bool isBetter = accuracy > (best < 0 ? best : best + options.improvement);
  waiting = isBetter ? 0 : waiting + 1;
  if (isBetter)
    best = accuracy;
  std::optional<std::string> reason;
  // Several milestones may lie between two evaluations; all of them are checked
  // by this accuracy, since nothing was measured before.
  for (auto [milestone, required] :
       llvm::ArrayRef(options.milestones).drop_front(passed)) {
    if (step < milestone)
      break;
    ++passed;
    if (!reason && !(accuracy >= required))
      reason = "requires an accuracy of " + toText(required) + " after " +
               std::to_string(milestone) + " steps, got " + toText(accuracy);
  }
  if (!reason && options.patience > 0 && waiting >= options.patience)
    reason = "the accuracy has not become better than " + toText(best) +
             " in " + std::to_string(waiting) + " evaluations";
  return reason;
}

/// Counters are integers of 64 bits; `best` goes by its bits, so that it is the
/// same number again.
void StopRule::save(Counters &counters) const {
  counters["stop-best"] = llvm::bit_cast<uint64_t>(best);
  counters["stop-waiting"] = static_cast<uint64_t>(waiting);
  counters["stop-milestones"] = static_cast<uint64_t>(passed);
}

/// All are checked before one is taken.
Error StopRule::restore(const Counters &counters) {
  for (StringRef name : {"stop-best", "stop-waiting", "stop-milestones"})
    if (!counters.contains(name.str()))
      return createStringError("requires a counter '" + name + "', got none");
  uint64_t past = counters.at("stop-milestones");
  if (past > options.milestones.size())
    return createStringError("requires at most " +
                             Twine(options.milestones.size()) +
                             " milestones that are past, got " + Twine(past));
  best = llvm::bit_cast<double>(counters.at("stop-best"));
  waiting = static_cast<int64_t>(counters.at("stop-waiting"));
  passed = static_cast<int64_t>(past);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `STEP:ACCURACY+STEP:ACCURACY`.
static Error parseMilestones(StringRef value, StopOptions &options) {
  llvm::SmallVector<StringRef> parts;
  value.split(parts, '+');
  for (StringRef part : parts) {
    auto [step, accuracy] = part.split(':');
    // Order is checked by `create`, like that of options from a program.
    auto &milestone = options.milestones.emplace_back();
    if (step.getAsInteger(10, milestone.first) ||
        accuracy.getAsDouble(milestone.second))
      return createStringError("requires STEP:ACCURACY for 'milestones', got "
                               "'" +
                               part + "'");
  }
  return Error::success();
}

/// One `NAME=VALUE` of the text.
static Error parseOption(StringRef name, StringRef value,
                         StopOptions &options) {
  if (name == "milestones")
    return parseMilestones(value, options);
  if (name == "patience") {
    if (!value.getAsInteger(10, options.patience))
      return Error::success();
  } else if (name == "improvement") {
    if (!value.getAsDouble(options.improvement))
      return Error::success();
  } else {
    return createStringError(
        "requires 'patience', 'improvement' or 'milestones', got '" + name +
        "'");
  }
  return createStringError("requires a number for '" + name + "', got '" +
                           value + "'");
}

/// An empty text is a rule that stops only at a loss that is not finite.
Expected<StopRule> kas::training::parseStopRule(StringRef text) {
  auto fail = [&](Error error) {
    return createStringError("bad rule to stop '" + text +
                             "': " + llvm::toString(std::move(error)));
  };
  StopOptions options;
  for (StringRef rest = text; !rest.empty();) {
    auto [option, others] = rest.split(',');
    auto [name, value] = option.split('=');
    if (Error error = parseOption(name, value, options))
      return fail(std::move(error));
    rest = others;
  }
  auto rule = StopRule::create(std::move(options));
  if (!rule)
    return fail(rule.takeError());
  return rule;
}
