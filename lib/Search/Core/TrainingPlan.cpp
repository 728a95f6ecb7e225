//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Brackets of successive halving within a budget.
//
// A search that simply ran until its time is over would end within a bracket
// and leave no time for the final round. So a bracket is begun only where it
// and the final trainings of what it may find end in time by the measured times
// of trainings, with fewer candidates where there is no time for all.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/TrainingPlan.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// One is worked on while the last trainings of the one before end.
static constexpr size_t mostBrackets = 2;

Expected<TrainingPlan> TrainingPlan::create(TrainingPlanOptions options) {
  if (Error error = options.halving.check())
    return error;
  if (options.epochs < 1 || options.workers == 0)
    return createStringError("requires at least one epoch and one worker, got "
                             "%lld and %zu",
                             static_cast<long long>(options.epochs),
                             options.workers);
  return TrainingPlan(std::move(options));
}

TrainingPlan::TrainingPlan(TrainingPlanOptions given)
    : options(std::move(given)) {
  options.halving = options.halving.forEpochs(options.epochs);
  ends = options.halving.rungs;
  ends.push_back(options.epochs);
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

void TrainingPlan::learn(int64_t epochs, double seconds) {
  prior.emplace_back(epochs, seconds);
}

/// Least squares of a line.
double TrainingPlan::predict(int64_t epochs) const {
  auto known = jobs;
  if (known.empty())
    llvm::copy_if(prior, std::back_inserter(known),
                  [](const auto &job) { return job.first > 0; });
  if (epochs <= 0 || known.empty())
    return 0;
  auto count = static_cast<double>(known.size());
  double meanEpochs = 0, meanSeconds = 0;
  for (auto [n, seconds] : known) {
    meanEpochs += static_cast<double>(n);
    meanSeconds += seconds;
  }
  meanEpochs /= count;
  meanSeconds /= count;
  double spread = 0, product = 0;
  for (auto [n, seconds] : known) {
    double distance = static_cast<double>(n) - meanEpochs;
    spread += distance * distance;
    product += distance * (seconds - meanSeconds);
  }
  double slope = meanSeconds / meanEpochs;
  // Neither an epoch nor what comes with a job takes less than nothing.
  if (spread > 0)
    slope = std::min(std::max(product / spread, 0.0), slope);
  return meanSeconds + slope * (static_cast<double>(epochs) - meanEpochs);
}

double TrainingPlan::predictFinal(size_t count) const {
  size_t jobs = std::min(count, options.finalCount) * options.finalSeeds;
  return static_cast<double>(llvm::divideCeil(jobs, options.workers)) *
         predict(options.epochs);
}

/// All workers are busy, or one candidate after the other takes longest.
double TrainingPlan::predictBrackets(size_t size) const {
  double work = 0, longest = 0;
  // `left` are to be trained in this rung, of those that are in.
  auto add = [&](size_t rung, size_t left, size_t in) {
    double chain = 0;
    for (size_t index = rung; index < ends.size(); ++index) {
      double seconds = predict(ends[index] - (index ? ends[index - 1] : 0));
      work += static_cast<double>(left) * seconds;
      chain += seconds;
      in = left = options.halving.countKept(in);
    }
    longest = std::max(longest, chain);
  };
  for (const Bracket &bracket : brackets)
    add(bracket.getRung(), bracket.countLeft(), bracket.size());
  if (size > 0)
    add(0, size, size);
  return std::max(work / static_cast<double>(options.workers), longest);
}

size_t TrainingPlan::countBaselineSeeds(size_t baselines,
                                        double secondsLeft) const {
  double seconds = predict(options.epochs);
  if (std::isinf(secondsLeft) || seconds == 0)
    return options.finalSeeds;
  double rounds = std::max(0.0, std::floor(secondsLeft / 3 / seconds));
  double possible = std::floor(rounds * static_cast<double>(options.workers) /
                               static_cast<double>(baselines));
  return static_cast<size_t>(std::max(
      1.0, std::min(static_cast<double>(options.finalSeeds), possible)));
}

//===----------------------------------------------------------------------===//
// Brackets
//===----------------------------------------------------------------------===//

size_t TrainingPlan::getRoom(const State &state, size_t others) const {
  size_t proposed = state.known;
  for (const Bracket &bracket : brackets)
    proposed += bracket.size();
  if (brackets.size() >= mostBrackets || effort >= options.trainings ||
      proposed >= options.candidates)
    return 0;
  size_t size = options.halving.size;
  // One of the new ones is trained to the end, as one of each bracket is.
  double finals = predictFinal(state.whole + brackets.size() + 1);
  while (size > 0 && predictBrackets(size) + finals > state.secondsLeft)
    --size;
  return std::min(options.candidates - proposed, size - std::min(size, others));
}

void TrainingPlan::open(llvm::ArrayRef<uint64_t> candidates,
                        std::map<uint64_t, Bracket::Known> known) {
  brackets.emplace_back(options.halving, ends, candidates, std::move(known));
}

std::optional<std::pair<uint64_t, int64_t>> TrainingPlan::take() {
  for (Bracket &bracket : brackets)
    if (auto job = bracket.take())
      return job;
  return std::nullopt;
}

Expected<Bracket *> TrainingPlan::find(uint64_t id) {
  auto found = llvm::find_if(
      brackets, [&](const Bracket &bracket) { return bracket.isRunning(id); });
  if (found == brackets.end())
    return createStringError("requires the number of a candidate in training, "
                             "got " +
                             llvm::Twine(id));
  return &*found;
}

Expected<std::vector<uint64_t>> TrainingPlan::finish(uint64_t id,
                                                     int64_t epochs,
                                                     double score,
                                                     double seconds) {
  Expected<Bracket *> bracket = find(id);
  if (!bracket)
    return bracket.takeError();
  int64_t trained = epochs - (*bracket)->getEpochs(id);
  if (trained > 0)
    jobs.emplace_back(trained, seconds);
  effort += static_cast<double>(trained) / static_cast<double>(options.epochs);
  std::vector<uint64_t> out = (*bracket)->finish(id, epochs, score);
  llvm::erase_if(brackets, [](const Bracket &one) { return one.isDone(); });
  return out;
}

Expected<std::vector<uint64_t>> TrainingPlan::fail(uint64_t id) {
  Expected<Bracket *> bracket = find(id);
  if (!bracket)
    return bracket.takeError();
  std::vector<uint64_t> out = (*bracket)->fail(id);
  llvm::erase_if(brackets, [](const Bracket &one) { return one.isDone(); });
  return out;
}
