//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tunes one kernel: transfers schedules of others, measures proposals, chooses,
// and records all in the database.
// A session resumes from what the database has, then either tunes (proposals of
// `ScheduleProposer` until `trials`) or transfers (schedules of other kernels
// of the class, adapted, docs/guide/tuning.md), and confirms the best with more
// runs: the least of many noisy times is too small.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Tuner.h"
#include "kas/ExecutionEngine/Timing.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

namespace {

/// A schedule of another kernel as it suits here.
struct TransferredSchedule {
  /// Position in the space of this kernel: the schedule after adaptation.
  size_t point;
  /// Of the kernel that it is from.
  std::string shape;
  /// The most promising one has the least.
  /// The logarithm of a predicted ratio of times, or a distance between loops.
  double rank = 0;

  bool operator<(const TransferredSchedule &other) const {
    return std::pair(rank, point) < std::pair(other.rank, other.point);
  }
};

/// The measurements of one kernel.
class KernelSession {
public:
  KernelSession(TuningTask &task, const TuningDevice &device,
                TuningStore &store, const TunerOptions &options)
      : task(task), device(device), store(store), options(options),
        proposer(task.space.points, options.algorithm,
                 task.getSeed(options.seed)),
        start(monotonicSeconds()) {}

  /// Adds the kernel to the database.
  /// Notes that the network uses it, too.
  Error begin();
  /// Compiles it as it is.
  /// `plainLoops`: expects the results of plain loops, and times these.
  Error compile(bool plainLoops);
  /// Takes what the database has for the kernel.
  Error resume();
  /// Measures the point unless it was measured, or another process does so now.
  Error measure(size_t point, const std::string &provenance);
  /// Measures the best again with more runs, and chooses.
  /// `confirmed` is how many of the best, `scale` how many times as many runs.
  /// With `confirmed` 0 the first times are believed.
  Expected<TunedKernel> finish(int64_t confirmed, int64_t scale);

  Error tune();
  Error transfer(const TransferOptions &transfer);

private:
  /// Times a schedule without looking into the database or writing to it.
  StoredMeasurement run(size_t point, int64_t scale);
  Expected<ScheduleModel> learnClass() const;
  void addTransferred(llvm::StringRef schedule, llvm::StringRef shape,
                      double rank,
                      std::vector<TransferredSchedule> &transferred) const;
  Expected<std::vector<TransferredSchedule>>
  findChosen(llvm::StringRef source) const;
  Expected<std::vector<TransferredSchedule>>
  findFastest(llvm::StringRef source) const;
  /// Sets `baselineRatio`, and the schedule that counts as untuned.
  Error measureBaseline();
  /// Tells the proposer of a measurement.
  void keep(size_t point, const StoredMeasurement &measurement);

  const SchedulePoint &getPoint(size_t point) const {
    return task.space.points[point];
  }

  TuningTask &task;
  const TuningDevice &device;
  TuningStore &store;
  const TunerOptions &options;
  ScheduleProposer proposer;
  /// Seconds of the steady clock.
  double start;
  /// The row of the kernel in the database.
  int64_t kernel = 0;
  std::unique_ptr<KernelRunner> runner;
  /// Filled in as the session goes.
  TunedKernel result;
};

} // namespace

Error KernelSession::begin() {
  Expected<int64_t> id =
      store.addKernel({task.getClassKey(), task.classText, task.shape});
  if (!id)
    return id.takeError();
  kernel = *id;
  // Transfer chooses between networks by the kernels that they use.
  if (!options.network.empty())
    if (Error error = store.recordUse(options.network, kernel,
                                      static_cast<int64_t>(task.uses.size())))
      return error;
  return Error::success();
}

/// The runner keeps the compiled kernel without a schedule, which all trials
/// are timed against.
Error KernelSession::compile(bool plainLoops) {
  MeasureOptions measure = options.measure;
  measure.plainLoops = plainLoops;
  auto made = device.createRunner(*task.module, taskFunctionName, measure);
  if (!made)
    return made.takeError();
  runner = std::move(*made);
  result.plainMs = runner->getPlainMs();
  return Error::success();
}

void KernelSession::keep(size_t point, const StoredMeasurement &measurement) {
  if (!measurement.failure.empty())
    return proposer.add(point, std::nullopt);
  proposer.add(point, measurement.ratio);
  result.defaultMs = measurement.defaultMs;
}

/// Rows of schedules that the space does not have (any more) are passed over.
Error KernelSession::resume() {
  auto rows = store.read(kernel);
  if (!rows)
    return rows.takeError();
  // The text of a schedule is its key in the database.
  std::map<std::string, size_t> points;
  for (auto [index, point] : llvm::enumerate(task.space.points))
    points.emplace(point.schedule.getText(), index);
  for (const StoredMeasurement &row : *rows)
    if (auto found = points.find(row.schedule); found != points.end())
      keep(found->second, row);
  return Error::success();
}

StoredMeasurement KernelSession::run(size_t point, int64_t scale) {
  ScheduleAttrInterface schedule = getPoint(point).schedule;
  StoredMeasurement measurement =
      runner->measure([&] { device.set(task.anchor, schedule); }, scale);
  measurement.schedule = schedule.getText();
  // Stored, so that models of the class learn without the kernel at hand.
  measurement.features = getPoint(point).features;
  return measurement;
}

Error KernelSession::measure(size_t point, const std::string &provenance) {
  // Longer than a worker may take, so a claim outlives its measurement; after a
  // crash the schedule is free again at that time at the latest.
  auto isMine = store.claim(kernel, getPoint(point).schedule.getText(),
                            2 * options.measure.limitSeconds + 10);
  if (!isMine)
    return isMine.takeError();
  if (!*isMine) {
    // Another process measures it: known, with a time that is not known yet.
    proposer.add(point, std::nullopt);
    return Error::success();
  }
  StoredMeasurement measurement = run(point, /*scale=*/1);
  measurement.provenance = provenance;
  ++result.measured;
  result.failed += !measurement.failure.empty();
  keep(point, measurement);
  return store.record(kernel, measurement);
}

/// In batches: the proposer learns from all results of a batch before the next
/// one.
Error KernelSession::tune() {
  // `trials` counts measurements that the database had as well, so a search
  // that is run again ends at once.
  size_t number = proposer.getNumKnown(), trials = task.space.points.size();
  if (options.algorithm != ProposalAlgorithm::Exhaustive)
    trials = std::min(trials, static_cast<size_t>(options.trials));
  while (proposer.getNumKnown() < trials) {
    size_t count =
        std::min(ScheduleProposer::batch, trials - proposer.getNumKnown());
    std::vector<size_t> points = proposer.propose(count);
    for (size_t point : points) {
      std::string provenance = llvm::formatv(
          "network {0}, {1}, seed {2}, trial {3}", options.network,
          getName(options.algorithm), options.seed, number++);
      if (Error error = measure(point, provenance))
        return error;
    }
    // The space is exhausted.
    if (points.empty())
      break;
  }
  return Error::success();
}

/// A model of all measurements of the class, whatever their kernel.
/// Ratios and not times, since kernels of a class differ in size.
Expected<ScheduleModel> KernelSession::learnClass() const {
  auto rows = store.readClass(task.getClassKey());
  if (!rows)
    return rows.takeError();
  std::vector<std::vector<float>> features;
  std::vector<double> targets;
  size_t width = getPoint(0).features.size();
  for (const StoredMeasurement &row : *rows)
    // Rows of another version may have other features.
    if (row.failure.empty() && row.features.size() == width) {
      features.push_back(row.features);
      targets.push_back(std::log(row.ratio));
    }
  ScheduleModel model;
  Random random(task.getSeed(options.seed));
  model.fit(features, targets, random);
  return model;
}

/// Adapts a schedule; two that become the same are one.
/// Those that do not fit the sizes of this kernel are left out.
void KernelSession::addTransferred(
    llvm::StringRef text, llvm::StringRef shape, double rank,
    std::vector<TransferredSchedule> &transferred) const {
  AdaptedPoint adapted =
      task.space.adapt(llvm::dyn_cast_or_null<ScheduleAttrInterface>(
          mlir::parseAttribute(text, task.anchor->getContext())));
  if (adapted.fit == ScheduleFit::Invalid)
    return;
  for (TransferredSchedule &other : transferred)
    if (other.point == adapted.point) {
      other.rank = std::min(other.rank, rank);
      return;
    }
  transferred.push_back({adapted.point, shape.str(), rank});
}

/// What was chosen for others of the class, the most promising ones first, and
/// without those that the model of the class takes for hopeless.
Expected<std::vector<TransferredSchedule>>
KernelSession::findChosen(llvm::StringRef source) const {
  auto choices = store.readChoices(task.getClassKey(), source);
  if (!choices)
    return choices.takeError();
  std::vector<TransferredSchedule> transferred;
  for (const auto &[shape, text] : *choices)
    // An empty choice says that the kernel is fastest without a schedule.
    if (!text.empty())
      addTransferred(text, shape, /*rank=*/0, transferred);
  auto model = learnClass();
  if (!model)
    return model.takeError();
  // Without a model all are worth a measurement.
  if (!model->isTrained())
    return transferred;
  for (TransferredSchedule &each : transferred)
    each.rank = model->predict(getPoint(each.point).features);
  // A predicted ratio of e^0.05 = 1.05 to the cost model's time: a transferred
  // schedule is measured when the model sees it as a gain or close to one.
  constexpr double hopeless = 0.05;
  llvm::erase_if(transferred, [](const TransferredSchedule &each) {
    return each.rank >= hopeless;
  });
  return transferred;
}

/// What was fastest for others of the class, those with the nearest loops
/// first.
Expected<std::vector<TransferredSchedule>>
KernelSession::findFastest(llvm::StringRef source) const {
  auto fastest = store.readBest(task.getClassKey(), source);
  if (!fastest)
    return fastest.takeError();
  std::vector<TransferredSchedule> transferred;
  for (const auto &[shape, measurement] : *fastest)
    if (measurement.features.size() == getPoint(0).features.size())
      addTransferred(measurement.schedule, shape,
                     task.space.getLoopDistance(measurement.features),
                     transferred);
  return transferred;
}

Error KernelSession::transfer(const TransferOptions &transfer) {
  // Against a slow baseline each kernel of the class has something to give;
  // against the cost model only schedules that were chosen do.
  auto transferred = options.baseline == Baseline::Model
                         ? findChosen(transfer.source)
                         : findFastest(transfer.source);
  if (!transferred)
    return transferred.takeError();
  // The order decides which are measured first, and which at all under
  // `maxPairs`.
  llvm::sort(*transferred);
  // A bound on the measurements; the least promising ones go.
  if (transfer.maxPairs &&
      transferred->size() > static_cast<size_t>(transfer.maxPairs))
    transferred->resize(static_cast<size_t>(transfer.maxPairs),
                        TransferredSchedule{0, "", 0});
  // Results are compared with those of the cost model's schedule, unless plain
  // loops are timed anyway.
  if (!transferred->empty() || options.baseline != Baseline::Model)
    if (Error error = compile(options.baseline == Baseline::Loops))
      return error;
  auto rows = store.read(kernel);
  if (!rows)
    return rows.takeError();
  for (const TransferredSchedule &each : *transferred) {
    // The same kernel may be part of both networks.
    std::string text = getPoint(each.point).schedule.getText();
    auto known = llvm::find_if(
        *rows, [&](const auto &row) { return row.schedule == text; });
    if (known != rows->end()) {
      keep(each.point, *known);
      continue;
    }
    std::string provenance = llvm::formatv("network {0}, transfer from {1}",
                                           options.network, each.shape);
    if (Error error = measure(each.point, provenance))
      return error;
  }
  return Error::success();
}

/// The time of what the kernel is without a tuned schedule.
Error KernelSession::measureBaseline() {
  if (options.baseline == Baseline::Model)
    return Error::success();
  // Nothing was measured: the default has no time yet.
  if (result.defaultMs == 0) {
    StoredMeasurement unchanged = runner->measure([] {});
    if (!unchanged.failure.empty())
      return llvm::createStringError("without a schedule: " +
                                     unchanged.failure);
    result.defaultMs = unchanged.defaultMs;
  }
  std::optional<size_t> fixed;
  if (options.baseline == Baseline::Fixed)
    fixed = task.space.fixed;
  // Where the fixed schedule does not suit the kernel, plain loops stand for
  // it.
  if (!fixed && result.plainMs == 0)
    if (Error error = compile(/*plainLoops=*/true))
      return error;
  if (!fixed) {
    // All ratios are relative to the cost model's time.
    result.baselineRatio = result.ratio = result.plainMs / result.defaultMs;
    return Error::success();
  }
  StoredMeasurement measured = run(*fixed, /*scale=*/1);
  if (!measured.failure.empty())
    return llvm::createStringError("the fixed schedule: " + measured.failure);
  // Without a better one the kernel keeps what it is compared with.
  result.schedule = getPoint(*fixed).schedule;
  result.baselineRatio = result.ratio = measured.ratio;
  return Error::success();
}

Expected<TunedKernel> KernelSession::finish(int64_t confirmed, int64_t scale) {
  bool isExhaustive = options.algorithm == ProposalAlgorithm::Exhaustive;
  llvm::ArrayRef<std::pair<double, size_t>> timed = proposer.getTimed();
  if (Error error = measureBaseline())
    return error;
  // A gain must exceed the noise: `acceptedRatio` is 0.98 by default.
  double accepted = options.acceptedRatio * result.baselineRatio;
  // The same code compiled again may take another time, too.
  if (options.baseline == Baseline::Model && confirmed > 0 && !timed.empty() &&
      timed.front().first < accepted) {
    StoredMeasurement unchanged = runner->measure([] {}, scale);
    if (unchanged.failure.empty())
      // Code that is compiled again lies at other addresses: where the same
      // code is faster by chance, a schedule has to beat this, too.
      accepted *= std::min(1., unchanged.ratio);
  }
  std::pair<double, size_t> best = {accepted, 0};
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
    // Sorted by time: none of the rest can be chosen. An exhaustive table
    // confirms them all the same.
    if (timed[i].first >= accepted && !isExhaustive)
      break;
    // The least of many noisy times is too small: only another one counts.
    StoredMeasurement again = run(point, scale);
    // The better measurement replaces the first one in the table.
    if (isExhaustive) {
      again.provenance = "measured again";
      if (Error error = store.record(kernel, again))
        return error;
    }
    if (!again.failure.empty() || again.ratio >= best.first)
      continue;
    best = {again.ratio, point};
    isFound = true;
  }
  if (isFound) {
    result.schedule = getPoint(best.second).schedule;
    result.ratio = best.first;
  }
  if (const ScheduleModel &model = proposer.getModel(); model.isTrained())
    result.model = llvm::formatv("{0} (errors held out: ridge {1:f3}, forest "
                                 "{2:f3})",
                                 model.getKind(), model.getRidgeError(),
                                 model.getForestError());
  result.seconds = monotonicSeconds() - start;
  // Choices are schedules better than the cost model's; against another
  // baseline they would mislead later transfers.
  if (options.baseline != Baseline::Model)
    return result;
  if (Error error = store.recordChoice(kernel, result.schedule.getText(),
                                       options.network))
    return error;
  return result;
}

/// Plain loops are run once as well: they are what results are checked against.
Expected<TunedKernel> kas::tuning::tuneKernel(TuningTask &task,
                                              const TuningDevice &device,
                                              TuningStore &store,
                                              const TunerOptions &options) {
  KernelSession session(task, device, store, options);
  if (Error error = session.begin())
    return error;
  if (Error error = session.compile(/*plainLoops=*/true))
    return error;
  if (Error error = session.resume())
    return error;
  if (Error error = session.tune())
    return error;
  // A complete table is made to be looked at: its best are to be right.
  return session.finish(options.algorithm == ProposalAlgorithm::Exhaustive ? 32
                                                                           : 3,
                        /*scale=*/3);
}

Expected<TunedKernel>
kas::tuning::transferKernel(TuningTask &task, const TuningDevice &device,
                            TuningStore &store, const TunerOptions &options,
                            const TransferOptions &transfer) {
  KernelSession session(task, device, store, options);
  if (Error error = session.begin())
    return error;
  if (Error error = session.transfer(transfer))
    return error;
  // What is compared with is far slower than the differences of few times.
  bool isClose = options.baseline == Baseline::Model && transfer.maxPairs != 1;
  return session.finish(/*confirmed=*/isClose ? 1 : 0, /*scale=*/1);
}
