//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-bench: measures the tools and the compiled operators; prints JSON lines.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "Peer.h"
#include "kas/InitAll.h"
#include "kas/Support/CommandLine.h"
#include "kas/Support/Features.h"
#include "kas/Support/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include "llvm/TargetParser/Host.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
namespace cl = llvm::cl;

#if !KAS_ENABLE_GPU
// GpuSuite.cpp is left out.
Error kas::runGPUSuite(mlir::MLIRContext &, const BenchSettings &,
                       BenchReport &) {
  return requireGPU("the suite 'gpu'");
}
#endif

namespace {

struct Suite {
  llvm::StringLiteral name, description;
  Error (*run)(mlir::MLIRContext &, const BenchSettings &, BenchReport &);
};

constexpr Suite suites[] = {
    {"tool", "time to start the tools and to compile an operator",
     runToolSuite},
    {"cpu", "operators on the CPU", runCPUSuite},
    {"gpu", "operators on a device, or their machine code", runGPUSuite},
    {"threads", "speedup with several threads", runThreadsSuite},
    {"search", "speed of the operator search and of its algorithms",
     runSearchSuite},
    {"search-growth", "size of the operator search by depth and time",
     runSearchGrowthSuite},
    {"search-table", "the rewards that 'search' uses", runSearchTableSuite},
    {"rediscovery", "searches for the named operators", runRediscoverySuite},
    {"calibrate", "what work takes on this machine, for predicted_ms",
     runCalibrateSuite},
    {"predict", "predicted against measured times of operators",
     runPredictSuite},
    {"dag", "sampled kernels of the tensor level", runDagSuite},
    {"batches", "batches of images for training", runBatchesSuite}};

/// What is measured, and the suites, for `--help`.
std::string getOverview() {
  std::string text = "Measure kas; one JSON object per line\n\n";
  for (const Suite &suite : suites)
    text +=
        llvm::formatv("  {0,-14} {1}\n", suite.name, suite.description).str();
  return text;
}

struct Options {
  cl::OptionCategory category{"kas-bench options"};
  // A text: LLVM ignores errors of positional options.
  cl::opt<std::string> suite{cl::Positional, cl::Required, cl::desc("SUITE"),
                             cl::cat(category)};
  cl::opt<std::string> filter{"filter", cl::value_desc("regex"),
                              cl::desc("Only cases whose name matches"),
                              cl::cat(category)};
  cl::opt<double> seconds{
      "seconds", cl::init(1),
      cl::desc("Time for each case, after at least 20 runs"),
      cl::cat(category)};
  cl::opt<std::string> peers{
      "peers", cl::value_desc("none|all|NAME,..."), cl::init("none"),
      cl::desc("Other implementations to measure in the same run (cpu: "
               "onednn, where it was installed when kas-bench was built)"),
      cl::cat(category)};
  cl::opt<std::string> isa{
      "isa", cl::value_desc("native|avx2|avx512"), cl::init("native"),
      cl::desc("cpu: the instruction set to compile for, of any processor that "
               "has it (x86-64-v3, x86-64-v4); peers use no wider one"),
      cl::cat(category)};
  cl::opt<std::string> device{
      "device", cl::value_desc("cuda|vulkan[:N]"), cl::init("cuda"),
      cl::desc("gpu: what kernels run on"), cl::cat(category)};
  cl::opt<bool> isStatic{
      "static",
      cl::desc("gpu: assemble kernels for NVIDIA's GPUs and say what the code "
               "reports: registers, memory, instructions of the main loop"),
      cl::cat(category)};
  cl::opt<std::string> chip{"chip", cl::init("sm_90"),
                            cl::desc("gpu --static: what to assemble for"),
                            cl::cat(category)};
  cl::opt<std::string> disassembler{
      "disassembler", cl::value_desc("path"),
      cl::desc(
          "gpu --static: nvdisasm, if it is neither in the CUDA toolkit nor "
          "in PATH"),
      cl::cat(category)};
  cl::opt<std::string> activations{
      "activations", cl::value_desc("folder"),
      cl::desc("search-table: where inputs.npy and outputs.npy of a layer are "
               "(record-activations.py)"),
      cl::cat(category)};
  cl::opt<unsigned> count{
      "count", cl::init(125),
      cl::desc("predict: operators of each space, drawn at random"),
      cl::cat(category)};
  cl::opt<unsigned> best{
      "best", cl::init(0),
      cl::desc("predict: and as many of the best predicted of each space"),
      cl::cat(category)};
  cl::opt<bool> fastest{
      "fastest",
      cl::desc("predict: only find the fastest operator of each space's "
               "complete list, of the --best predicted and --count random "
               "ones: no more of the others is measured than shows that they "
               "are slower"),
      cl::cat(category)};
  cl::opt<unsigned> threads{"threads", cl::init(1),
                            cl::desc("Threads of parallel loops"),
                            cl::cat(category)};
};

Error choosePeers(const Options &options, BenchSettings &settings) {
  llvm::ArrayRef<llvm::StringLiteral> known;
  if (options.suite == "cpu")
    known = getPeerNames();
  if (options.peers == "none")
    return Error::success();
  if (options.peers == "all") {
    settings.peers.append(known.begin(), known.end());
    return Error::success();
  }
  for (llvm::StringRef name : llvm::split(options.peers, ',')) {
    if (!llvm::is_contained(known, name))
      return createStringError("no peer '" + name +
                               "' is known to the suite '" + options.suite +
                               "'" +
                               (name == "onednn" ? "; kas-bench finds oneDNN "
                                                   "when it is built"
                                                 : ""));
    settings.peers.push_back(name.str());
  }
  return Error::success();
}

/// What code for the set `--isa` is compiled for; this machine must have it.
Error chooseISA(const Options &options, BenchSettings &settings) {
  struct ISA {
    llvm::StringLiteral name, cpu, features;
  };
  static constexpr ISA known[] = {
      {"native", "host", ""},
      {"avx2", "x86-64-v3", "avx2,bmi,bmi2,f16c,fma,lzcnt,movbe"},
      {"avx512", "x86-64-v4",
       "avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,"
       "avx512vl"}};
  const ISA *isa = llvm::find_if(
      known, [&](const ISA &isa) { return isa.name == options.isa; });
  if (isa == std::end(known))
    return createStringError("--isa: expected native, avx2 or avx512, got '" +
                             options.isa + "'");
  if (options.isa.getNumOccurrences() && options.suite != "cpu")
    return createStringError("--isa requires the suite 'cpu', got '" +
                             options.suite + "'");
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  for (llvm::StringRef feature : llvm::split(isa->features, ','))
    if (!feature.empty() && !host.lookup(feature))
      return createStringError("--isa=" + options.isa +
                               " requires a processor with '" + isa->features +
                               "', got one without '" + feature + "'");
  settings.isa = isa->name;
  settings.target.cpu = isa->cpu;
  return Error::success();
}

Error run(const Options &options, llvm::StringRef program) {
  BenchSettings settings;
  settings.program = program;
  // An empty expression is none; every name matches then.
  settings.filter = options.filter.empty() ? ".*" : options.filter.getValue();
  // To calibrate takes some hundred operators.
  settings.seconds =
      options.suite == "calibrate" && !options.seconds.getNumOccurrences()
          ? 45
          : options.seconds;
  settings.threads = options.threads;
  settings.activations = options.activations;
  settings.device = options.device;
  settings.isStatic = options.isStatic;
  settings.count = options.count;
  settings.best = options.best;
  settings.findsFastest = options.fastest;
  settings.chip = options.chip;
  settings.disassembler = options.disassembler;
  std::string reason;
  if (!llvm::Regex(settings.filter).isValid(reason))
    return createStringError("--filter=" + settings.filter + ": " + reason);
  if (Error error = choosePeers(options, settings))
    return error;
  if (Error error = chooseISA(options, settings))
    return error;
  const Suite *suite = llvm::find_if(
      suites, [&](const Suite &suite) { return suite.name == options.suite; });
  if (suite == std::end(suites))
    return createStringError(
        "expected one of the suites " +
        llvm::join(llvm::map_range(
                       suites, [](const Suite &suite) { return suite.name; }),
                   ", ") +
        ", got '" + options.suite + "'");
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  BenchReport report(options.suite, llvm::outs());
  if (Error error = suite->run(context, settings, report))
    return error;
  report.printMeans();
  return report.check();
}

} // namespace

int main(int argc, char **argv) {
  addVersionPrinter();
  llvm::InitLLVM initialize(argc, argv);
  removeLibraryOptions();
  keepFreedMemory();
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(argc, argv, getOverview(), &llvm::errs()))
    return 1;
  std::string program = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&main));
  if (Error error = run(options, program)) {
    llvm::handleAllErrors(std::move(error),
                          [](const llvm::ErrorInfoBase &info) {
                            llvm::WithColor::error(llvm::errs(), "kas-bench")
                                << info.message() << "\n";
                          });
    return 1;
  }
  return 0;
}
