//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs functions that call a clock, and relates the times to the model.
//
// The compiled function calls `recordTimestamp(step)` at the end of each step.
// Steps are mapped to rows, one per operation of the model, with the work of
// all that was fused into it; each row is compared with the roof of the machine
// (MachineRoof.cpp, docs/guide/profiling.md).
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Profile.h"
#include "LLVMModule.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <cstdlib>
#include <thread>

using namespace kas;
using namespace kas::execution;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// The clock
//===----------------------------------------------------------------------===//

namespace {
/// The times of the steps of one run.
struct TimestampRecorder {
  std::vector<double> seconds;
  double last = 0;
};
} // namespace

/// Of the function that this thread runs now: steps are outside of parallel
/// loops, so that only the caller's thread looks at the clock.
static thread_local TimestampRecorder *currentRecorder = nullptr;

static void recordTimestamp(int64_t step) {
  TimestampRecorder *recorder = currentRecorder;
  if (!recorder)
    return;
  // The time since the last interval belongs to `step`; a negative step only
  // restarts the clock.
  double now = monotonicSeconds();
  if (step >= 0 && static_cast<size_t>(step) < recorder->seconds.size())
    recorder->seconds[step] += now - recorder->last;
  recorder->last = now;
}

namespace {
struct Run {
  std::vector<double> seconds;
  /// Around the call.
  double whole = 0;
};
} // namespace

/// Calls the function once and takes the times of its `numSteps` steps, in
/// seconds.
static Expected<Run> runOnce(const CompiledFunction &function,
                             llvm::ArrayRef<float *> tensors, size_t numSteps) {
  TimestampRecorder recorder;
  recorder.seconds.resize(numSteps);
  currentRecorder = &recorder;
  double begin = monotonicSeconds();
  Error error = function(tensors);
  double end = monotonicSeconds();
  // A call outside of a profile must not write to what is gone.
  currentRecorder = nullptr;
  if (error)
    return error;
  return Run{std::move(recorder.seconds), end - begin};
}

/// Runs until time and number are reached, the warm-up not counted. Sorted by
/// the time of the whole, the fastest first.
static Expected<std::vector<Run>> runOften(const CompiledFunction &function,
                                           llvm::ArrayRef<float *> tensors,
                                           size_t numSteps,
                                           const TimingOptions &options) {
  std::vector<Run> runs;
  double begin = 0;
  for (int64_t count = -options.warmUpRuns;
       count < options.minRuns ||
       (monotonicSeconds() - begin < options.seconds &&
        count < options.maxRuns);
       ++count) {
    if (count == 0)
      begin = monotonicSeconds();
    auto run = runOnce(function, tensors, numSteps);
    if (!run)
      return run.takeError();
    if (count >= 0)
      runs.push_back(std::move(*run));
  }
  llvm::sort(runs,
             [](const Run &a, const Run &b) { return a.whole < b.whole; });
  return runs;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The operation that a step stands for: that with the most work, of equal ones
/// the last.
static std::optional<unsigned>
chooseOperation(const CompileRecord &record, const codegen::ProfileStep &step) {
  std::optional<unsigned> chosen;
  int64_t most = -1;
  for (unsigned label : step.operations) {
    int64_t flops = record.operations[label].flops.value_or(0);
    if (flops >= most) {
      chosen = label;
      most = flops;
    }
  }
  return chosen;
}

/// `FILE:LINE:COLUMN`, or the name that an importer gave; empty without either.
static std::string printLocation(Location location) {
  std::string text;
  location->walk([&](Location part) {
    if (auto place = dyn_cast<FileLineColLoc>(part))
      text =
          (llvm::Twine(place.getFilename().getValue()) + ":" +
           llvm::Twine(place.getLine()) + ":" + llvm::Twine(place.getColumn()))
              .str();
    else if (auto named = dyn_cast<NameLoc>(part))
      text = named.getName().str();
    return text.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return text;
}

/// Makes the rows, without times; `rows` has the row of each step.
static std::vector<ProfiledOperation> makeRows(const CompileRecord &record,
                                               std::vector<size_t> &rows) {
  std::vector<ProfiledOperation> operations;
  // Of operations by their labels, of others by their names.
  llvm::MapVector<std::pair<unsigned, StringRef>, size_t> known;
  std::vector<llvm::SetVector<unsigned>> labels;
  for (const codegen::ProfileStep &step : record.steps) {
    std::optional<unsigned> label = chooseOperation(record, step);
    auto [found, isNew] = known.insert(
        {{label.value_or(~0u), label ? StringRef() : StringRef(step.kind)},
         operations.size()});
    // A row is described by the first step that it has.
    if (isNew) {
      ProfiledOperation &row = operations.emplace_back();
      labels.emplace_back();
      row.kind = step.kind;
      if (label) {
        const codegen::ModelOperation &model = record.operations[*label];
        row.kind = model.kind;
        row.layer = model.layer;
        row.location = printLocation(model.location);
        if (auto chosen = record.strategies.find(*label);
            chosen != record.strategies.end())
          row.strategy = chosen->second;
      }
    }
    rows.push_back(found->second);
    ProfiledOperation &row = operations[found->second];
    ++row.calls;
    row.bytes += step.bytes;
    // Work counts once per row, however many steps an operation has.
    for (unsigned other : step.operations)
      if (labels[found->second].insert(other)) {
        const codegen::ModelOperation &model = record.operations[other];
        row.flops += model.flops.value_or(0);
        if (row.layer.empty())
          row.layer = model.layer;
        if (other != label)
          row.fused.push_back(model.kind);
      }
  }
  return operations;
}

/// The number of threads that run, which roofs are measured with.
static unsigned resolveThreads(unsigned threads) {
  if (threads != 0)
    return threads;
  // As OpenMP does.
  unsigned number = 0;
  const char *text = std::getenv("OMP_NUM_THREADS");
  if (text && !StringRef(text).getAsInteger(10, number) && number > 0)
    return number;
  return std::max(std::thread::hardware_concurrency(), 1u);
}

/// Medians of each step over all runs, added up by rows; intervals are those of
/// the fastest run.
static void addTimes(Profile &profile, llvm::ArrayRef<Run> runs,
                     llvm::ArrayRef<size_t> rows) {
  auto summarize = [&](llvm::function_ref<double(const Run &)> getSeconds) {
    auto milliseconds = llvm::map_to_vector(
        runs, [&](const Run &run) { return getSeconds(run) * 1e3; });
    return Timing::summarize(milliseconds);
  };
  profile.runs = runs.size();
  // Medians: a few runs are always interrupted.
  profile.milliseconds =
      summarize([](const Run &run) { return run.whole; }).median;
  for (auto [step, row] : llvm::enumerate(rows)) {
    Timing timing =
        summarize([&](const Run &run) { return run.seconds[step]; });
    profile.operations[row].milliseconds += timing.median;
    profile.operations[row].minMilliseconds += timing.min;
  }
  profile.fastestMilliseconds = runs.front().whole * 1e3;
  double begin = 0;
  // Intervals lie one after the other; the times of one run add up, medians do
  // not.
  for (auto [seconds, row] : llvm::zip_equal(runs.front().seconds, rows)) {
    profile.intervals.push_back({row, begin, seconds * 1e3});
    begin += seconds * 1e3;
  }
  for (ProfiledOperation &row : profile.operations)
    if (row.milliseconds > 0)
      row.roofShare =
          profile.roof.getMilliseconds(row.flops, row.bytes) / row.milliseconds;
}

Expected<Profile> kas::execution::profileOnCPU(
    ModuleOp module, StringRef name, llvm::ArrayRef<Tensor> arguments,
    llvm::MutableArrayRef<Tensor> results, const CPUPipelineOptions &pipeline,
    const JITOptions &jit, const TimingOptions &timing) {
  SmallVector<float *> tensors;
  for (const Tensor &argument : arguments)
    tensors.push_back(const_cast<float *>(argument.data()));
  for (Tensor &result : results)
    tensors.push_back(result.data());
  return profileOnCPU(module, name, tensors, pipeline, jit, timing);
}

Expected<Profile> kas::execution::profileOnCPU(
    ModuleOp module, StringRef name, llvm::ArrayRef<float *> tensors,
    const CPUPipelineOptions &pipeline, const JITOptions &jit,
    const TimingOptions &timing) {
  Profile profile;
  profile.function = name.str();
  profile.threads = resolveThreads(pipeline.threads);
  CPUPipelineOptions prepacked = pipeline;
  // As deployed: packing would be measured in each call otherwise.
  prepacked.prepackWeights = true;
  // Several threads at once would be at several layers.
  prepacked.splitBatch = false;
  JITOptions withClock = jit;
  // The compiled code calls this process's function by its address.
  withClock.symbols.emplace_back(codegen::profileTimestampName.str(),
                                 reinterpret_cast<void *>(&recordTimestamp));
  CompileRecord record;
  auto function = compileForCPU(module, name, prepacked, withClock, &record);
  if (!function)
    return function.takeError();
  profile.compileMilliseconds = function->getCompileMilliseconds();
  profile.passes = record.passes.getRuns();
  // Before the first call: OpenMP's threads would spin while the roof is
  // measured.
  auto target = pipeline.target.cpu.empty() ? chooseTarget(module)
                                            : getTarget(pipeline.target);
  if (!target)
    return target.takeError();
  auto roof =
      measureMachineRoof(*module.getContext(), *target, profile.threads);
  if (!roof)
    return roof.takeError();
  profile.roof = std::move(*roof);
  size_t numArguments = function->getSignature().arguments.size();
  if (const char *message = function->prepack(tensors.take_front(numArguments)))
    return llvm::createStringError(message);
  std::vector<size_t> rows;
  profile.operations = makeRows(record, rows);
  TimingOptions atLeastOne = timing;
  // Medians need a run.
  atLeastOne.minRuns = std::max<int64_t>(timing.minRuns, 1);
  auto runs = runOften(*function, tensors, record.steps.size(), atLeastOne);
  if (!runs)
    return runs.takeError();
  addTimes(profile, *runs, rows);
  return profile;
}
