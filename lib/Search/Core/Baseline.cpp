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
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SearchReport.h"
#include "kas/Search/Core/SearchStore.h"
#include <thread>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::Expected;

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
  const Baseline *baseline;
  StoredBaseline stored;
  std::vector<Evaluator *> evaluators;
};
} // namespace

/// What the file has, also one of before there was a table of baselines: it has
/// the training of the network itself.
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

/// What `known` does not have of each baseline. New ones get the next number.
static std::vector<Task> findTasks(llvm::ArrayRef<Baseline> baselines,
                                   llvm::ArrayRef<Evaluator *> evaluators,
                                   llvm::ArrayRef<StoredBaseline> known) {
  std::vector<Task> tasks;
  int64_t least = StoredBaseline::networkId;
  for (const StoredBaseline &stored : known)
    least = std::min(least, stored.id);
  for (const Baseline &baseline : baselines) {
    Task task{&baseline, {}, {}};
    const auto *stored = llvm::find_if(known, [&](const StoredBaseline &one) {
      return one.name == baseline.name;
    });
    if (stored != known.end()) {
      task.stored = *stored;
    } else {
      int64_t id = baseline.isNetwork ? StoredBaseline::networkId : --least;
      task.stored = {id, baseline.name, baseline.text.text, {}};
    }
    for (Evaluator *evaluator : evaluators) {
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
  std::mutex mutex;
  size_t next = 0;
  std::optional<std::string> failure;
  auto work = [&] {
    for (;;) {
      const Task *task = nullptr;
      {
        std::lock_guard<std::mutex> lock(mutex);
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
  work();
  for (std::thread &thread : others)
    thread.join();
  return failure ? llvm::createStringError(*failure) : Error::success();
}
