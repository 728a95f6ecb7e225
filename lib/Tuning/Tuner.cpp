//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Tuner.h"
#include "kas/Runtime/Timing.h"
#include "kas/Tuning/Transfer.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

using namespace kas;
using llvm::Error;
using llvm::Expected;

static std::string toText(ScheduleAttr schedule) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << mlir::Attribute(schedule);
  return text;
}

namespace {

/// The measurements of one kernel.
class KernelSession {
public:
  KernelSession(TuningTask &task, TuningStore &store,
                const TunerOptions &options)
      : task(task), store(store), options(options),
        random(RandomStream(options.seed, task.shape).bits(0)),
        start(monotonicSeconds()) {}

  /// Adds the kernel to the database.
  Error begin();
  /// Compiles it as it is.
  Error compile(bool plainLoops);
  /// Takes what the database has for the kernel.
  Error resume();
  /// Measures the point unless it was measured, or another process does so now.
  Error measure(size_t point, const std::string &provenance);
  /// Measures the best again with more runs, and chooses.
  Expected<TunedKernel> finish(int64_t confirmed, int64_t scale);

  Error tune();
  Error transfer(const TransferOptions &transfer);

private:
  std::vector<size_t> proposeRandom(size_t count);
  std::vector<size_t> proposeFirst(size_t count);
  std::vector<size_t> proposeEvolved(size_t count);
  void addNeighbours(size_t point, std::set<size_t> &found) const;
  void learn();
  Error learnClass();
  Expected<std::vector<std::pair<size_t, std::string>>>
  findDonated(llvm::StringRef source) const;
  void keep(size_t point, const StoredMeasurement &measurement);
  double predict(size_t point) const {
    return model.predict(getFeatures(task.space, task.space.points[point]));
  }

  TuningTask &task;
  TuningStore &store;
  const TunerOptions &options;
  Random random;
  double start;
  int64_t kernel = 0;
  std::unique_ptr<ForkedRunner> runner;
  std::set<size_t> known;
  /// The points with times, and their ratios.
  std::vector<std::pair<double, size_t>> timed;
  ScheduleModel model;
  TunedKernel result;
};

} // namespace

Error KernelSession::begin() {
  Expected<int64_t> id =
      store.addKernel({task.getClassKey(), task.classText, task.shape});
  if (!id)
    return id.takeError();
  kernel = *id;
  if (!options.network.empty())
    if (Error error = store.recordUse(options.network, kernel,
                                      static_cast<int64_t>(task.uses.size())))
      return error;
  return Error::success();
}

Error KernelSession::compile(bool plainLoops) {
  MeasureOptions measure = options.measure;
  measure.plainLoops = plainLoops;
  auto made = ForkedRunner::create(*task.module, taskFunctionName, measure);
  if (!made)
    return made.takeError();
  runner = std::move(*made);
  result.plainMs = runner->getPlainMs();
  return Error::success();
}

void KernelSession::keep(size_t point, const StoredMeasurement &measurement) {
  known.insert(point);
  if (!measurement.failure.empty())
    return;
  timed.emplace_back(measurement.ratio, point);
  result.defaultMs = measurement.defaultMs;
}

Error KernelSession::resume() {
  auto rows = store.read(kernel);
  if (!rows)
    return rows.takeError();
  std::map<std::string, size_t> points;
  for (auto [index, point] : llvm::enumerate(task.space.points))
    points.emplace(toText(point.schedule), index);
  for (const StoredMeasurement &row : *rows)
    if (auto found = points.find(row.schedule); found != points.end())
      keep(found->second, row);
  return Error::success();
}

Error KernelSession::measure(size_t point, const std::string &provenance) {
  ScheduleAttr schedule = task.space.points[point].schedule;
  std::string text = toText(schedule);
  auto isMine =
      store.claim(kernel, text, 2 * options.measure.limitSeconds + 10);
  if (!isMine)
    return isMine.takeError();
  known.insert(point);
  if (!*isMine)
    return Error::success();
  StoredMeasurement measurement =
      runner->measure([&] { setSchedule(task.anchor, schedule); });
  measurement.schedule = text;
  measurement.provenance = provenance;
  measurement.features = getFeatures(task.space, task.space.points[point]);
  ++result.measured;
  result.failed += !measurement.failure.empty();
  keep(point, measurement);
  return store.record(kernel, measurement);
}

/// Uniform among the roads, then among their schedules: panels have by far the
/// most, and are not that much better.
std::vector<size_t> KernelSession::proposeRandom(size_t count) {
  std::vector<std::vector<size_t>> fresh(3);
  for (auto [index, point] : llvm::enumerate(task.space.points))
    if (!known.count(index))
      fresh[static_cast<size_t>(point.schedule.getRoad())].push_back(index);
  std::vector<size_t> chosen;
  for (;;) {
    llvm::erase_if(fresh, [](const auto &road) { return road.empty(); });
    if (chosen.size() == count || fresh.empty())
      return chosen;
    std::vector<size_t> &road = fresh[random.below(fresh.size())];
    size_t at = random.below(road.size());
    chosen.push_back(road[at]);
    road[at] = road.back();
    road.pop_back();
  }
}

/// The best of each road by the cost model, then random ones.
std::vector<size_t> KernelSession::proposeFirst(size_t count) {
  std::vector<size_t> chosen;
  for (Road road : {Road::RowVectors, Road::Direct, Road::Panels}) {
    std::vector<std::tuple<int64_t, int64_t, size_t>> ranked;
    for (auto [index, point] : llvm::enumerate(task.space.points))
      if (point.schedule.getRoad() == road && !known.count(index))
        ranked.emplace_back(point.time, point.stepTime, index);
    llvm::sort(ranked);
    for (size_t i = 0; i < std::min<size_t>(ranked.size(), count / 4); ++i)
      chosen.push_back(std::get<2>(ranked[i]));
  }
  for (size_t point : proposeRandom(count))
    if (chosen.size() < count && !llvm::is_contained(chosen, point))
      chosen.push_back(point);
  return chosen;
}

/// Schedules that differ from that of `point` in one number.
void KernelSession::addNeighbours(size_t point, std::set<size_t> &found) const {
  ScheduleAttr from = task.space.points[point].schedule;
  ScheduleNumbers numbers = getNumbers(from);
  for (auto [index, other] : llvm::enumerate(task.space.points)) {
    if (known.count(index) || other.schedule.getRoad() != from.getRoad())
      continue;
    int different = 0;
    for (auto [a, b] : llvm::zip_equal(numbers, getNumbers(other.schedule)))
      different += a != b;
    if (different == 1)
      found.insert(index);
  }
}

/// Neighbours of the best, the most promising ones by the model, and a few
/// random ones.
std::vector<size_t> KernelSession::proposeEvolved(size_t count) {
  constexpr size_t parents = 6, pool = 200;
  learn();
  llvm::sort(timed);
  std::set<size_t> candidates;
  for (size_t i = 0; i < std::min(parents, timed.size()); ++i)
    addNeighbours(timed[i].second, candidates);
  for (size_t point : proposeRandom(pool))
    candidates.insert(point);
  if (!model.isTrained())
    return proposeRandom(count);
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t point : candidates)
    ranked.emplace_back(predict(point), point);
  llvm::sort(ranked);
  std::vector<size_t> chosen;
  for (auto [time, point] : ranked)
    if (chosen.size() < count - count / 4)
      chosen.push_back(point);
  for (size_t point : proposeRandom(count))
    if (chosen.size() < count && !llvm::is_contained(chosen, point))
      chosen.push_back(point);
  return chosen;
}

void KernelSession::learn() {
  std::vector<std::vector<float>> rows;
  std::vector<double> targets;
  for (auto [ratio, point] : timed) {
    rows.push_back(getFeatures(task.space, task.space.points[point]));
    targets.push_back(std::log(ratio));
  }
  model.fit(rows, targets, random);
}

Error KernelSession::tune() {
  constexpr size_t batch = 8;
  size_t number = known.size();
  auto trials = static_cast<size_t>(options.trials);
  while (known.size() < std::min(trials, task.space.points.size())) {
    size_t count = std::min(batch, trials - known.size());
    std::vector<size_t> points =
        options.algorithm == "random" ? proposeRandom(count)
        : timed.size() < 2 * batch    ? proposeFirst(count)
                                      : proposeEvolved(count);
    for (size_t point : points) {
      std::string provenance = llvm::formatv(
          "network {0}, {1}, seed {2}, trial {3}", options.network,
          options.algorithm, options.seed, number++);
      if (Error error = measure(point, provenance))
        return error;
    }
    // What others have measured meanwhile helps, too.
    if (points.empty())
      break;
  }
  return Error::success();
}

/// A model of all measurements of the class, whatever their kernel.
Error KernelSession::learnClass() {
  auto rows = store.readClass(task.getClassKey());
  if (!rows)
    return rows.takeError();
  std::vector<std::vector<float>> features;
  std::vector<double> targets;
  size_t width = getFeatures(task.space, task.space.points.front()).size();
  for (const StoredMeasurement &row : *rows)
    if (row.failure.empty() && row.features.size() == width) {
      features.push_back(row.features);
      targets.push_back(std::log(row.ratio));
    }
  model.fit(features, targets, random);
  return Error::success();
}

/// What was chosen for others of the class, as it suits here: points of the
/// space, and the shape that each is from.
Expected<std::vector<std::pair<size_t, std::string>>>
KernelSession::findDonated(llvm::StringRef source) const {
  auto choices = store.readChoices(task.getClassKey(), source);
  if (!choices)
    return choices.takeError();
  std::vector<std::pair<size_t, std::string>> donated;
  for (const auto &[shape, text] : *choices) {
    if (text.empty())
      continue;
    auto schedule = llvm::dyn_cast_if_present<ScheduleAttr>(
        mlir::parseAttribute(text, task.anchor->getContext()));
    AdaptedSchedule adapted;
    if (schedule)
      adapted = adaptSchedule(schedule, task.space);
    if (adapted.fit == ScheduleFit::Invalid)
      continue;
    std::optional<size_t> point = task.space.find(adapted.schedule);
    assert(point && "adapted schedules are points of the space");
    if (llvm::none_of(donated,
                      [&](const auto &other) { return other.first == *point; }))
      donated.emplace_back(*point, shape);
  }
  return donated;
}

Error KernelSession::transfer(const TransferOptions &transfer) {
  auto donated = findDonated(transfer.source);
  if (!donated)
    return donated.takeError();
  if (Error error = learnClass())
    return error;
  // The most promising ones; those that the model takes for hopeless not at
  // all.
  constexpr double hopeless = 0.05;
  std::vector<std::tuple<double, size_t, std::string>> ranked;
  for (const auto &[point, shape] : *donated) {
    double time = model.isTrained() ? predict(point) : 0;
    if (time < hopeless)
      ranked.emplace_back(time, point, shape);
  }
  llvm::sort(ranked);
  if (transfer.maxPairs &&
      ranked.size() > static_cast<size_t>(transfer.maxPairs))
    ranked.resize(static_cast<size_t>(transfer.maxPairs));
  // Results are compared with those of the cost model's schedule.
  if (!ranked.empty())
    if (Error error = compile(/*plainLoops=*/false))
      return error;
  for (const auto &[time, point, shape] : ranked) {
    std::string provenance =
        llvm::formatv("network {0}, transfer from {1}", options.network, shape);
    if (Error error = measure(point, provenance))
      return error;
  }
  return Error::success();
}

Expected<TunedKernel> KernelSession::finish(int64_t confirmed, int64_t scale) {
  llvm::sort(timed);
  std::pair<double, size_t> best = {options.acceptedRatio, 0};
  bool isFound = false;
  // One alone is not the least of many noisy times.
  if (confirmed == 0 && !timed.empty() && timed.front().first < best.first) {
    best = timed.front();
    isFound = true;
  }
  for (size_t i = 0;
       i < std::min<size_t>(timed.size(), static_cast<size_t>(confirmed));
       ++i) {
    size_t point = timed[i].second;
    if (timed[i].first >= options.acceptedRatio)
      break;
    // The least of many noisy times is too small: only another one counts.
    ScheduleAttr schedule = task.space.points[point].schedule;
    StoredMeasurement again =
        runner->measure([&] { setSchedule(task.anchor, schedule); }, scale);
    if (!again.failure.empty() || again.ratio >= best.first)
      continue;
    best = {again.ratio, point};
    isFound = true;
  }
  if (isFound) {
    result.schedule = task.space.points[best.second].schedule;
    result.ratio = best.first;
  }
  if (model.isTrained())
    result.model = llvm::formatv("{0} (errors held out: ridge {1:f3}, forest "
                                 "{2:f3})",
                                 model.getKind(), model.getRidgeError(),
                                 model.getForestError());
  result.seconds = monotonicSeconds() - start;
  std::string text = isFound ? toText(result.schedule) : "";
  if (Error error = store.recordChoice(kernel, text, options.network))
    return error;
  return result;
}

Expected<TunedKernel> kas::tuneKernel(TuningTask &task, TuningStore &store,
                                      const TunerOptions &options) {
  KernelSession session(task, store, options);
  if (Error error = session.begin())
    return error;
  if (Error error = session.compile(/*plainLoops=*/true))
    return error;
  if (Error error = session.resume())
    return error;
  if (Error error = session.tune())
    return error;
  return session.finish(/*confirmed=*/3, /*scale=*/3);
}

Expected<TunedKernel> kas::transferKernel(TuningTask &task, TuningStore &store,
                                          const TunerOptions &options,
                                          const TransferOptions &transfer) {
  KernelSession session(task, store, options);
  if (Error error = session.begin())
    return error;
  if (Error error = session.transfer(transfer))
    return error;
  return session.finish(/*confirmed=*/transfer.maxPairs == 1 ? 0 : 1,
                        /*scale=*/1);
}
