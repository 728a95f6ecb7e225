//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates what candidates are compared with, once, and records it in the
// database.
//
// Baselines go through the evaluators of the candidates, so their metrics are
// comparable, but never through the searcher. Rows that the database already
// has are not evaluated again.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SearchReport.h"
#include "kas/Search/Core/SearchStore.h"
#include <thread>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::Expected;

/// The default for evaluators that work on graphs: the baseline makes an
/// evaluator of its own of the same name, because its graph may belong to
/// another problem (other symbols, other bindings) than the one that is
/// searched. Without a graph there is nothing such an evaluator could read,
/// which is no error: the metrics are empty.
Expected<Metrics> Evaluator::evaluateBaseline(const Baseline &baseline) {
  if (!baseline.solution)
    return Metrics();
  Expected<std::unique_ptr<Evaluator>> own = baseline.makeEvaluator(getName());
  if (!own)
    return own.takeError();
  return (*own)->evaluate(*baseline.solution);
}

namespace {
/// A baseline with what is not known of it yet.
struct Task {
  /// What is to be evaluated; owned by the caller of `evaluateBaselines`.
  const Baseline *baseline;
  /// The row to write: its `evaluators` are those of the database and those of
  /// this task, so one write replaces the row.
  StoredBaseline stored;
  /// The evaluators whose metrics the database lacks.
  std::vector<Evaluator *> evaluators;
};
} // namespace

/// What the file has, also one of before there was a table of baselines: it has
/// the training of the network itself. An empty table with points of the
/// network's training means a file written by a version without that table: the
/// training is not repeated.
static Expected<std::vector<StoredBaseline>>
readBaselines(const SearchStore &store) {
  Expected<std::vector<StoredBaseline>> known = store.readBaselines();
  if (!known || !known->empty())
    return known;
  Expected<std::vector<TrainingPoint>> points = store.readTraining();
  if (!points)
    return points.takeError();
  if (llvm::any_of(*points, [](const TrainingPoint &point) {
        return point.candidate == StoredBaseline::networkId;
      }))
    known->push_back({StoredBaseline::networkId,
                      Baseline::networkName.str(),
                      {},
                      {"training"}});
  return known;
}

const StoredBaseline *
kas::search::findBaseline(llvm::StringRef name,
                          llvm::ArrayRef<StoredBaseline> known) {
  const auto *found = llvm::find_if(
      known, [&](const StoredBaseline &one) { return one.name == name; });
  return found == known.end() ? nullptr : found;
}

int64_t kas::search::numberBaseline(llvm::ArrayRef<StoredBaseline> known) {
  int64_t least = StoredBaseline::networkId;
  for (const StoredBaseline &stored : known)
    least = std::min(least, stored.id);
  return least - 1;
}

/// What `known` does not have of each baseline. New ones get the next number.
static std::vector<Task> findTasks(llvm::ArrayRef<Baseline> baselines,
                                   llvm::ArrayRef<Evaluator *> evaluators,
                                   llvm::ArrayRef<StoredBaseline> known) {
  std::vector<Task> tasks;
  int64_t next = numberBaseline(known);
  for (const Baseline &baseline : baselines) {
    Task task{&baseline, {}, {}};
    if (const StoredBaseline *stored = findBaseline(baseline.name, known)) {
      task.stored = *stored;
    } else {
      int64_t id = baseline.isNetwork ? StoredBaseline::networkId : next--;
      task.stored = {id, baseline.name, baseline.text.text, {}};
    }
    for (Evaluator *evaluator : evaluators) {
      // An evaluator that was called once is not called again, also when it had
      // no metrics to give.
      if (llvm::is_contained(task.stored.evaluators, evaluator->getName()))
        continue;
      task.evaluators.push_back(evaluator);
      task.stored.evaluators.push_back(evaluator->getName().str());
    }
    if (!task.evaluators.empty())
      tasks.push_back(std::move(task));
  }
  return tasks;
}

/// All metrics of one baseline, or the first error. Unlike a failed candidate,
/// a failed baseline ends the search: with nothing to compare with, its results
/// are of little use, and the cause is usually a wrong option.
static Expected<Metrics> evaluate(const Task &task) {
  Metrics all;
  for (Evaluator *evaluator : task.evaluators) {
    Expected<Metrics> metrics = evaluator->evaluateBaseline(*task.baseline);
    if (!metrics)
      return llvm::createStringError(
          "the baseline '" + task.baseline->name + "' cannot be evaluated: " +
          evaluator->getName() + ": " + llvm::toString(metrics.takeError()));
    all.insert(metrics->begin(), metrics->end());
  }
  return all;
}

/// Metrics are kept as the last points of curves: the table of metrics has
/// candidates only. Metrics without epochs, such as times, are points of epoch
/// 0.
static Error record(const Task &task, const Metrics &metrics, uint64_t seed,
                    SearchStore &store) {
  auto epochs = metrics.find("epochs");
  uint64_t epoch = epochs == metrics.end() ? 0 : uint64_t(epochs->second);
  std::vector<TrainingPoint> points;
  for (const auto &[name, value] : metrics)
    points.push_back({task.stored.id, seed, epoch, name, value});
  return store.recordBaseline(task.stored, points);
}

Error kas::search::evaluateBaselines(llvm::ArrayRef<Baseline> baselines,
                                     llvm::ArrayRef<Evaluator *> evaluators,
                                     unsigned threads, uint64_t seed,
                                     SearchStore &store, SearchReport &report) {
  Expected<std::vector<StoredBaseline>> known = readBaselines(store);
  if (!known)
    return known.takeError();
  std::vector<Task> tasks = findTasks(baselines, evaluators, *known);
  // One queue for all threads. The lock also guards the database, which one
  // thread at a time may use, but is not held while a baseline is evaluated.
  std::mutex mutex;
  size_t next = 0;
  std::optional<std::string> failure;
  auto work = [&] {
    for (;;) {
      const Task *task = nullptr;
      {
        std::lock_guard<std::mutex> lock(mutex);
        // After an error no task is begun; those under way are still recorded.
        if (next == tasks.size() || failure)
          return;
        task = &tasks[next++];
      }
      Expected<Metrics> metrics = ::evaluate(*task);
      // Of a network that no evaluator knows there is nothing to keep.
      if (metrics && metrics->empty())
        continue;
      std::lock_guard<std::mutex> lock(mutex);
      Error error =
          metrics ? record(*task, *metrics, seed, store) : metrics.takeError();
      // Of several errors the first to arrive is reported. The others are
      // consumed here: an unchecked `Error` aborts.
      if (!error)
        report.addBaseline(task->baseline->name, *metrics);
      else if (std::string reason = llvm::toString(std::move(error)); !failure)
        failure = std::move(reason);
    }
  };
  std::vector<std::thread> others;
  for (size_t index = 1; index < std::min<size_t>(threads, tasks.size());
       ++index)
    others.emplace_back(work);
  // The calling thread is one of the workers.
  work();
  for (std::thread &thread : others)
    thread.join();
  return failure ? llvm::createStringError(*failure) : Error::success();
}
