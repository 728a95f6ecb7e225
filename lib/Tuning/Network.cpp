//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tunes all kernels of a network, or takes schedules of another one, and keeps
// those that help in the network.
// Times of kernels in isolation and in the network differ (caches, memory
// bandwidth, layouts between kernels), so after tuning each kernel the
// schedules are tried in the network itself, whole and halved, then each left
// out once. Transfer follows Gibson's thesis, "Across-stack optimization of
// deep learning inference": schedules of another network's kernels of the same
// class, from the network that its equation 6.1 ranks first.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Network.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Tuning/SourceSelection.h"
#include <numeric>
#include <sys/resource.h>

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

/// Seconds of this process and of the workers that have ended.
static double getProcessorSeconds() {
  double seconds = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    ::getrusage(who, &usage);
    for (const timeval &time : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(time.tv_sec) +
                 1e-6 * static_cast<double>(time.tv_usec);
  }
  return seconds;
}

namespace {

class NetworkTuning {
public:
  NetworkTuning(mlir::func::FuncOp function, const TuningDevice &device,
                TuningStore &store, const NetworkOptions &options)
      : function(function), device(device), store(store), options(options) {}

  Expected<NetworkReport>
  run(llvm::function_ref<void(const KernelReport &)> progress);

private:
  /// The name of the network to transfer from, or an empty string.
  Expected<std::string> chooseSource();
  /// Fills `report.kernels` in the order of `tasks`.
  Error tuneKernels(llvm::function_ref<void(const KernelReport &)> progress);
  /// Keeps the schedules that make the whole network faster than the cost
  /// model's.
  Error measureInModel();
  /// Compares with another baseline: all schedules stay.
  Error measureBaseline();
  /// The network with the schedules of the kernels `chosen`, next to none.
  StoredMeasurement measure(KernelRunner &runner,
                            llvm::ArrayRef<size_t> chosen);
  void set(llvm::ArrayRef<size_t> chosen);
  /// Milliseconds that a kernel saves, by its own measurement.
  double getSaving(size_t kernel) const {
    const KernelReport &of = report.kernels[kernel];
    // A kernel that occurs several times saves as often.
    return static_cast<double>(of.uses) * of.tuned.defaultMs *
           (1 - of.tuned.ratio);
  }

  Expected<std::unique_ptr<KernelRunner>>
  createRunner(const MeasureOptions &measure) {
    return device.createRunner(function->getParentOfType<mlir::ModuleOp>(),
                               function.getSymName(), measure);
  }

  mlir::func::FuncOp function;
  const TuningDevice &device;
  TuningStore &store;
  const NetworkOptions &options;
  std::vector<TuningTask> tasks;
  NetworkReport report;
};

} // namespace

/// The other network of the database that equation 6.1 prefers; the shares of
/// the classes are those of the kernels' times, which are measured for it.
Expected<std::string> NetworkTuning::chooseSource() {
  auto known = store.readNetworks();
  if (!known)
    return known.takeError();
  known->erase(options.tuner.network);
  // With no network, or one, there is nothing to rank.
  if (known->size() < 2)
    return known->empty() ? std::string() : known->begin()->first;
  // Milliseconds of each class in the target, all uses counted.
  std::map<std::string, double> times;
  double total = 0;
  for (TuningTask &task : tasks) {
    // Results of these kernels were compared before or will be when they are
    // tuned.
    MeasureOptions measure = options.tuner.measure;
    measure.plainLoops = false;
    auto runner = device.createRunner(*task.module, taskFunctionName, measure);
    if (!runner)
      return runner.takeError();
    StoredMeasurement time = (*runner)->measure([] {});
    if (!time.failure.empty())
      return llvm::createStringError(time.failure);
    double ms = time.ms * static_cast<double>(task.uses.size());
    times[task.getClassKey()] += ms;
    total += ms;
  }
  NetworkProfile target{options.tuner.network, {}};
  for (const auto &[name, time] : times)
    // A share of the time for the target, a number of tuned kernels for
    // sources: each profile has the half that the equation reads.
    target.classes.push_back({name, 0, time / total});
  std::vector<NetworkProfile> sources;
  for (const auto &[network, classes] : *known) {
    NetworkProfile &source = sources.emplace_back();
    source.name = network;
    for (const auto &[name, kernels] : classes)
      source.classes.push_back({name, kernels, 0});
  }
  return sources[rankSources(target, sources).front().index].name;
}

Error NetworkTuning::tuneKernels(
    llvm::function_ref<void(const KernelReport &)> progress) {
  TransferOptions transfer = options.transfer.value_or(TransferOptions());
  // An empty source means all networks of the database.
  if (options.transfer && transfer.source.empty() && options.chooseSource) {
    Expected<std::string> source = chooseSource();
    if (!source)
      return source.takeError();
    transfer.source = *source;
  }
  if (options.transfer && !transfer.source.empty()) {
    // A name that was mistyped would transfer nothing and say nothing.
    auto known = store.readNetworks();
    if (!known)
      return known.takeError();
    if (!known->count(transfer.source))
      return llvm::createStringError(
          "requires a tuned network in the database, found no '" +
          transfer.source + "'");
  }
  report.source = transfer.source;
  // Measurements of other machines or protocols, which were not used; counted
  // once for each class.
  std::map<std::string, int64_t> foreign;
  for (TuningTask &task : tasks) {
    Expected<int64_t> count = store.countForeign(task.getClassKey());
    if (!count)
      return count.takeError();
    foreign[task.getClassKey()] = *count;
    auto tuned =
        options.transfer
            ? transferKernel(task, device, store, options.tuner, transfer)
            : tuneKernel(task, device, store, options.tuner);
    if (!tuned)
      return tuned.takeError();
    report.kernels.push_back({task.getClassKey(), task.tensors,
                              static_cast<int64_t>(task.uses.size()),
                              static_cast<int64_t>(task.space.points.size()),
                              *tuned, tuned->schedule != nullptr});
    progress(report.kernels.back());
  }
  for (const auto &[name, count] : foreign)
    report.foreign += count;
  return Error::success();
}

/// The schedules of the kernels in `chosen`, and no others.
void NetworkTuning::set(llvm::ArrayRef<size_t> chosen) {
  for (auto [index, task] : llvm::enumerate(tasks))
    for (mlir::Operation *use : task.uses)
      device.set(use, llvm::is_contained(chosen, index)
                          ? report.kernels[index].tuned.schedule
                          : nullptr);
}

StoredMeasurement NetworkTuning::measure(KernelRunner &runner,
                                         llvm::ArrayRef<size_t> chosen) {
  return runner.measure([&] { set(chosen); });
}

/// The whole network with the baseline and with all schedules.
Error NetworkTuning::measureBaseline() {
  double start = monotonicSeconds();
  bool isLoops = options.tuner.baseline == Baseline::Loops;
  std::vector<size_t> all(tasks.size());
  std::iota(all.begin(), all.end(), 0);
  set({});
  MeasureOptions measureOptions = options.tuner.measure;
  measureOptions.plainLoops = isLoops;
  // The limit is meant for a kernel; a network takes longer.
  measureOptions.limitSeconds *= 10;
  auto runner = createRunner(measureOptions);
  if (!runner)
    return runner.takeError();
  // A failure is an error here: each schedule passed its own check before.
  StoredMeasurement tuned = measure(**runner, all);
  if (!tuned.failure.empty())
    return llvm::createStringError(tuned.failure);
  report.defaultMs = tuned.defaultMs;
  report.tunedMs = tuned.ms;
  report.baselineMs = (*runner)->getPlainMs();
  // The baseline is a fixed schedule for each kernel, measured in the network
  // as well; kernels that it does not suit take the cost model's choice.
  if (!isLoops) {
    StoredMeasurement fixed = (*runner)->measure([&] {
      for (TuningTask &task : tasks) {
        std::optional<size_t> fixed = task.space.fixed;
        mlir::Attribute schedule =
            fixed ? task.space.points[*fixed].schedule : nullptr;
        for (mlir::Operation *use : task.uses)
          device.set(use, schedule);
      }
    });
    if (!fixed.failure.empty())
      return llvm::createStringError(fixed.failure);
    report.baselineMs = fixed.ms;
  }
  set(all);
  report.modelSeconds = monotonicSeconds() - start;
  return Error::success();
}

/// What is fastest alone need not be so between its neighbours: schedules are
/// kept while the network as a whole gets faster by them.
Error NetworkTuning::measureInModel() {
  double start = monotonicSeconds();
  std::vector<size_t> chosen;
  for (size_t index = 0; index < tasks.size(); ++index)
    if (report.kernels[index].tuned.schedule)
      chosen.push_back(index);
  // Kernels by what they save, ties by position, so that halving drops those
  // that matter least.
  llvm::sort(chosen, [&](size_t a, size_t b) {
    double left = getSaving(a), right = getSaving(b);
    return left != right ? left > right : a < b;
  });
  set({});
  MeasureOptions measureOptions = options.tuner.measure;
  measureOptions.plainLoops = false;
  measureOptions.limitSeconds *= 10;
  if (!chosen.empty()) {
    auto runner = createRunner(measureOptions);
    if (!runner)
      return runner.takeError();
    // Failure of the network with these schedules counts as slower.
    StoredMeasurement best = measure(**runner, chosen);
    // All of them fail or make the network slower: half of them may be enough.
    // At most log2(kernels) measurements.
    while (!chosen.empty() && (!best.failure.empty() || best.ratio >= 1)) {
      // Those that save most, again.
      chosen.resize(chosen.size() / 2);
      if (!chosen.empty())
        best = measure(**runner, chosen);
    }
    // A second pass costs one compilation of the network for each kernel, so
    // the user says how many.
    int64_t left = options.secondPass;
    // A copy, because `chosen` shrinks within.
    for (size_t index : std::vector<size_t>(chosen)) {
      if (left-- <= 0)
        break;
      std::vector<size_t> others = chosen;
      llvm::erase(others, index);
      if (others.empty())
        break;
      StoredMeasurement without = measure(**runner, others);
      if (without.failure.empty() && without.ratio < best.ratio) {
        best = without;
        chosen = others;
      }
    }
    if (!chosen.empty()) {
      report.defaultMs = best.defaultMs;
      report.tunedMs = best.ms;
    }
  }
  for (auto [index, kernel] : llvm::enumerate(report.kernels))
    kernel.isKept = llvm::is_contained(chosen, index);
  set(chosen);
  report.modelSeconds = monotonicSeconds() - start;
  return Error::success();
}

Expected<NetworkReport>
NetworkTuning::run(llvm::function_ref<void(const KernelReport &)> progress) {
  double start = monotonicSeconds(), startProcessor = getProcessorSeconds();
  if (options.tuner.baseline != Baseline::Model && !device.hasBaselines())
    return llvm::createStringError(
        "requires the cost model as the baseline on this device");
  auto found = findTasks(function, device);
  if (!found)
    return found.takeError();
  tasks = std::move(*found);
  if (Error error = tuneKernels(progress))
    return error;
  report.kernelSeconds = monotonicSeconds() - start;
  std::vector<size_t> all;
  for (size_t index = 0; index < tasks.size(); ++index)
    all.push_back(index);
  // `tuned.schedule` is null where no schedule helped, so this sets none there.
  set(all);
  if (options.measureInModel)
    if (Error error = options.tuner.baseline == Baseline::Model
                          ? measureInModel()
                          : measureBaseline())
      return error;
  report.processorSeconds = getProcessorSeconds() - startProcessor;
  return report;
}

/// Times of all kernels by their own measurements: an estimate of the network
/// without what lies between kernels.
KernelSums kas::tuning::getKernelSums(const NetworkReport &report) {
  KernelSums sums;
  for (const KernelReport &kernel : report.kernels) {
    double ms = static_cast<double>(kernel.uses) * kernel.tuned.defaultMs;
    sums.defaultMs += ms;
    sums.baselineMs += ms * kernel.tuned.baselineRatio;
    sums.tunedMs += ms * kernel.tuned.ratio;
  }
  return sums;
}

Expected<NetworkReport> kas::tuning::tuneNetwork(
    mlir::func::FuncOp function, const TuningDevice &device, TuningStore &store,
    const NetworkOptions &options,
    llvm::function_ref<void(const KernelReport &)> progress) {
  return NetworkTuning(function, device, store, options).run(progress);
}
