//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-tune: measures schedules of the kernels of a network, keeps what it
// measures in a database, and writes the network with the best ones. A tool of
// its own, not a pass: it runs code, for minutes, and remembers.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Timing.h"
#include "kas/InitAll.h"
#include "kas/Support/CommandLine.h"
#include "kas/Support/Features.h"
#include "kas/Support/OutputFile.h"
#include "kas/Support/ParseModule.h"
#include "kas/Support/Signals.h"
#include "kas/Support/Version.h"
#include "kas/Tuning/Network.h"
#include "kas/Tuning/Replay.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#if KAS_ENABLE_GPU
#include "kas/Tuning/GPU/GPUTuningDevice.h"
#endif

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
namespace cl = llvm::cl;

namespace {

struct Options {
  cl::OptionCategory category{"kas-tune options"};
  cl::opt<std::string> file{cl::Positional, cl::Required, cl::desc("FILE.mlir"),
                            cl::cat(category)};
  cl::opt<std::string> database{
      "database", cl::value_desc("file"),
      cl::desc("Where measurements are kept; made if it is not there"),
      cl::cat(category)};
  cl::opt<std::string> function{
      "function", cl::value_desc("name"), cl::init("forward"),
      cl::desc("The function to tune (default: forward)"), cl::cat(category)};
  cl::opt<std::string> network{
      "network", cl::value_desc("name"),
      cl::desc("The name of the network in the database (default: the "
               "file's name)"),
      cl::cat(category)};
  cl::opt<int64_t> trials{
      "trials", cl::init(64),
      cl::desc("Schedules to measure for each kernel, with those that the "
               "database has"),
      cl::cat(category)};
  cl::opt<ProposalAlgorithm> algorithm{
      "algorithm", cl::init(ProposalAlgorithm::Evolution),
      cl::desc("How schedules are proposed"),
      cl::values(
          clEnumValN(ProposalAlgorithm::Evolution, "evolution",
                     "mutations of the best, ranked by a learned model "
                     "(default)"),
          clEnumValN(ProposalAlgorithm::Random, "random",
                     "uniform among the strategies, then their schedules"),
          clEnumValN(ProposalAlgorithm::Exhaustive, "exhaustive",
                     "all of them")),
      cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::init(0),
                         cl::desc("Seed of proposals and of data"),
                         cl::cat(category)};
  cl::opt<bool> transfer{
      "transfer",
      cl::desc("Search for nothing: take schedules of tuned networks"),
      cl::cat(category)};
  cl::opt<std::string> source{
      "from", cl::value_desc("network"),
      cl::desc("--transfer: from this network (default: the most promising "
               "one)"),
      cl::cat(category)};
  cl::opt<bool> pool{"pool",
                     cl::desc("--transfer: from all networks of the database"),
                     cl::cat(category)};
  cl::opt<int64_t> pairs{
      "pairs", cl::init(3),
      cl::desc("--transfer: schedules to measure for each kernel; 0: all"),
      cl::cat(category)};
  cl::opt<Baseline> baseline{
      "baseline",
      cl::desc("The schedule of a kernel that is not tuned, which others "
               "must be faster than"),
      cl::values(
          clEnumValN(Baseline::Model, "model",
                     "what the cost model chooses (default)"),
          clEnumValN(Baseline::Fixed, "fixed", "one schedule for all kernels"),
          clEnumValN(Baseline::Loops, "loops", "loops without register tiles")),
      cl::init(Baseline::Model), cl::cat(category)};
  cl::opt<bool> inModel{
      "in-model", cl::init(true),
      cl::desc("Keep only what makes the network as a whole faster"),
      cl::cat(category)};
  cl::opt<int64_t> secondPass{
      "second-pass", cl::value_desc("N"), cl::init(0),
      cl::desc("Measure N kernels in the network with and without their "
               "schedule"),
      cl::cat(category)};
  cl::opt<int64_t> runs{"runs", cl::init(15),
                        cl::desc("Runs of one measurement"), cl::cat(category)};
  cl::opt<double> limit{"limit", cl::value_desc("seconds"), cl::init(20),
                        cl::desc("When a schedule counts as one that hangs"),
                        cl::cat(category)};
  cl::opt<std::string> device{
      "device", cl::value_desc("name"), cl::init("cpu"),
      cl::desc(
          "The device to tune for: cpu (default), vulkan or cuda, the last two "
          "also with the number of a device as in cuda:1"),
      cl::cat(category)};
  cl::opt<unsigned> threads{"threads", cl::init(1),
                            cl::desc("Threads of parallel loops"),
                            cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("file"),
                              cl::desc("Write the module with its schedules"),
                              cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Report as JSON lines"),
                     cl::cat(category)};
  cl::opt<int64_t> replay{
      "replay", cl::value_desc("N"), cl::init(0),
      cl::desc("Measure nothing: how many trials searches with N seeds need, "
               "answered from what --algorithm=exhaustive has measured"),
      cl::cat(category)};
  cl::opt<bool> list{"list", cl::desc("List the kernels and measure nothing"),
                     cl::cat(category)};

  NetworkOptions get() const {
    NetworkOptions result;
    result.tuner.algorithm = algorithm;
    result.tuner.seed = seed;
    result.tuner.trials = trials;
    result.tuner.baseline = baseline;
    result.tuner.network = network.empty() ? llvm::sys::path::stem(file).str()
                                           : network.getValue();
    result.tuner.measure.threads = threads;
    result.tuner.measure.limitSeconds = limit;
    result.tuner.measure.runs = runs;
    result.tuner.measure.seed = seed;
    if (transfer)
      result.transfer = TransferOptions{source, pairs};
    result.chooseSource = !pool;
    result.measureInModel = inModel;
    result.secondPass = secondPass;
    return result;
  }
};

} // namespace

static Error check(const Options &options) {
  auto require = [](bool holds, const llvm::Twine &what) {
    return holds ? Error::success() : createStringError(what);
  };
  return llvm::joinErrors(
      require(options.list || !options.database.empty(),
              "requires --database=FILE"),
      llvm::joinErrors(
          require(options.trials >= 0 && options.pairs >= 0 &&
                      options.secondPass >= 0 && options.replay >= 0,
                  "requires counts of at least 0, got " +
                      std::to_string(std::min<int64_t>(
                          {options.trials, options.pairs, options.secondPass,
                           options.replay}))),
          llvm::joinErrors(
              llvm::joinErrors(
                  require(options.runs > 0 && options.limit > 0,
                          "requires at least one run and a limit above 0"),
                  require(options.device == "cpu" || options.threads == 1,
                          "--threads requires --device=cpu, got '" +
                              options.device.getValue() + "'")),
              require(options.transfer ||
                          (options.source.empty() && !options.pool),
                      "--from and --pool require --transfer"))));
}

static void print(const KernelReport &kernel, bool json) {
  const TunedKernel &tuned = kernel.tuned;
  if (!json) {
    llvm::outs() << llvm::formatv(
        "{0} {1}: {2} of {3} schedules, {4} failed, {5:f1} s, {6:f4} ms, "
        "ratio {7:f3} {8}\n",
        kernel.classKey, kernel.tensors, tuned.measured, kernel.points,
        tuned.failed, tuned.seconds, tuned.defaultMs, tuned.ratio,
        tuned.schedule.getText());
    return;
  }
  llvm::json::OStream stream(llvm::outs());
  stream.object([&] {
    stream.attribute("class", kernel.classKey);
    stream.attribute("tensors", kernel.tensors);
    stream.attribute("uses", kernel.uses);
    stream.attribute("points", kernel.points);
    stream.attribute("measured", tuned.measured);
    stream.attribute("failed", tuned.failed);
    stream.attribute("seconds", tuned.seconds);
    stream.attribute("default_ms", tuned.defaultMs);
    if (tuned.plainMs)
      stream.attribute("plain_ms", tuned.plainMs);
    stream.attribute("baseline_ratio", tuned.baselineRatio);
    stream.attribute("ratio", tuned.ratio);
    stream.attribute("schedule", tuned.schedule.getText());
    stream.attribute("model", tuned.model);
  });
  llvm::outs() << "\n";
}

static void print(const NetworkReport &report, bool json) {
  int64_t measured = 0, kept = 0;
  for (const KernelReport &kernel : report.kernels) {
    measured += kernel.tuned.measured;
    kept += kernel.isKept;
  }
  if (report.foreign)
    llvm::WithColor::note(llvm::errs(), "kas-tune")
        << report.foreign
        << " measurements of another processor, toolchain or protocol are not "
           "used\n";
  if (!json) {
    llvm::outs() << llvm::formatv(
        "{0} kernels, {1} measurements in {2:f1} s, {3} schedules kept",
        report.kernels.size(), measured, report.kernelSeconds, kept);
    if (report.tunedMs)
      llvm::outs() << llvm::formatv("; {0:f3} ms, {1:f3} ms without",
                                    report.tunedMs, report.defaultMs);
    llvm::outs() << "\n";
    return;
  }
  llvm::json::OStream stream(llvm::outs());
  stream.object([&] {
    stream.attribute("kernels", static_cast<int64_t>(report.kernels.size()));
    stream.attribute("measured", measured);
    stream.attribute("kept", kept);
    stream.attribute("source", report.source);
    stream.attribute("kernel_seconds", report.kernelSeconds);
    stream.attribute("model_seconds", report.modelSeconds);
    stream.attribute("processor_seconds", report.processorSeconds);
    stream.attribute("default_ms", report.defaultMs);
    stream.attribute("tuned_ms", report.tunedMs);
    stream.attribute("baseline_ms", report.baselineMs);
    KernelSums sums = getKernelSums(report);
    stream.attribute("sum_default_ms", sums.defaultMs);
    stream.attribute("sum_baseline_ms", sums.baselineMs);
    stream.attribute("sum_tuned_ms", sums.tunedMs);
    stream.attribute("foreign", report.foreign);
  });
  llvm::outs() << "\n";
}

static Error listKernels(mlir::func::FuncOp function,
                         const TuningDevice &device) {
  auto tasks = findTasks(function, device);
  if (!tasks)
    return tasks.takeError();
  for (const TuningTask &task : *tasks)
    llvm::outs() << llvm::formatv("{0} {1}: {2} uses, {3} schedules\n",
                                  task.getClassKey(), task.tensors,
                                  task.uses.size(), task.space.points.size());
  return Error::success();
}

namespace {
/// How searches of one kernel with several seeds went.
struct ReplayReport {
  const TuningTask &task;
  const ScheduleTable &table;
  llvm::StringRef algorithm;
  std::vector<std::vector<size_t>> searches;

  /// By seed; one more than all trials where it was not reached.
  std::vector<int64_t> getTrials(double share, int64_t limit) const {
    std::vector<int64_t> trials;
    for (const std::vector<size_t> &points : searches)
      trials.push_back(countTrials(table, points, share).value_or(limit + 1));
    llvm::sort(trials);
    return trials;
  }
};
} // namespace

static void print(const ReplayReport &report, const Options &options) {
  constexpr double shares[] = {0.9, 0.95, 0.99};
  if (!options.json) {
    llvm::outs() << llvm::formatv(
        "{0} {1}: {2} schedules, best ratio {3:f3}, {4}:",
        report.task.getClassKey(), report.task.tensors,
        report.task.space.points.size(), report.table.best, report.algorithm);
    for (double share : shares) {
      std::vector<int64_t> trials = report.getTrials(share, options.trials);
      llvm::outs() << llvm::formatv(" {0:P0} {1} (worst {2})", share,
                                    trials[trials.size() / 2], trials.back());
    }
    llvm::outs() << "\n";
    return;
  }
  llvm::json::OStream stream(llvm::outs());
  stream.object([&] {
    stream.attribute("class", report.task.getClassKey());
    stream.attribute("tensors", report.task.tensors);
    stream.attribute("points",
                     static_cast<int64_t>(report.task.space.points.size()));
    stream.attribute("best", report.table.best);
    stream.attribute("algorithm", report.algorithm);
    for (double share : shares)
      stream.attributeArray(
          llvm::formatv("trials_{0:f0}", share * 100).str(), [&] {
            for (int64_t count : report.getTrials(share, options.trials))
              stream.value(count);
          });
  });
  llvm::outs() << "\n";
}

/// Searches each kernel of which the database has all schedules.
static Error replay(llvm::ArrayRef<TuningTask> tasks, TuningStore &store,
                    const Options &options) {
  for (const TuningTask &task : tasks) {
    Expected<ScheduleTable> table = readTable(task, store);
    if (!table) {
      llvm::WithColor::note(llvm::errs(), "kas-tune")
          << task.getClassKey() << " " << task.tensors << ": "
          << llvm::toString(table.takeError()) << "\n";
      continue;
    }
    ScheduleSpace blind = task.space.forgetCosts();
    auto search = [&](llvm::StringRef name, const ScheduleSpace &space,
                      ProposalAlgorithm algorithm) {
      ReplayReport report{task, *table, name, {}};
      for (int64_t number = 0; number < options.replay; ++number)
        report.searches.push_back(replaySearch(
            space.points, *table, algorithm,
            task.getSeed(options.seed + static_cast<uint64_t>(number)),
            options.trials));
      print(report, options);
    };
    search("evolution", task.space, ProposalAlgorithm::Evolution);
    search("evolution without the cost model", blind,
           ProposalAlgorithm::Evolution);
    search("random", task.space, ProposalAlgorithm::Random);
  }
  return Error::success();
}

static Expected<std::unique_ptr<TuningDevice>>
makeDevice(const Options &options) {
  if (options.device == "cpu")
    return makeCPUTuningDevice(options.threads);
#if KAS_ENABLE_GPU
  return makeGPUTuningDevice(options.device);
#else
  return requireGPU("--device=" + options.device);
#endif
}

static Error run(const Options &options) {
  if (Error error = check(options))
    return error;
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  // Workers are forked: there must be one thread.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = parseModule(context, options.file);
  if (!module)
    return module.takeError();
  auto function =
      (*module)->lookupSymbol<mlir::func::FuncOp>(options.function.getValue());
  if (!function || function.isExternal())
    return createStringError("requires a function with a body, found no '" +
                             options.function.getValue() + "'");
  if (!llvm::hasSingleElement(function.getBody()))
    return createStringError(
        "requires a function of one block, got " +
        llvm::Twine(function.getBody().getBlocks().size()));
  auto device = makeDevice(options);
  if (!device)
    return device.takeError();
  if (Error error = (*device)->prepare(**module))
    return error;
  if (options.list)
    return listKernels(function, **device);
  NetworkOptions network = options.get();
  auto environment = (*device)->getEnvironment(network.tuner.measure);
  if (!environment)
    return environment.takeError();
  auto store = TuningStore::open(options.database, *environment);
  if (!store)
    return store.takeError();
  if (options.replay) {
    auto tasks = findTasks(function, **device);
    return tasks ? replay(*tasks, **store, options) : tasks.takeError();
  }
  auto report = tuneNetwork(function, **device, **store, network,
                            [&](const KernelReport &kernel) {
                              print(kernel, options.json);
                              llvm::outs().flush();
                            });
  if (!report)
    return report.takeError();
  print(*report, options.json);
  if (options.output.empty())
    return Error::success();
  return writeFile(options.output, [&](llvm::raw_ostream &stream) {
    (*module)->print(stream);
    stream << "\n";
    return Error::success();
  });
}

int main(int argc, char **argv) {
  kas::ignoreFileSizeSignal();
  kas::addVersionPrinter();
  llvm::InitLLVM initialize(argc, argv);
  removeLibraryOptions();
  keepFreedMemory();
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "Find the fastest schedules of a network's kernels\n",
          &llvm::errs()))
    return 1;
  if (Error error = run(options)) {
    llvm::WithColor::error(llvm::errs(), "kas-tune")
        << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
