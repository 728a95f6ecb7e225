//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-run: runs one operator, or one function of a model, on data from files
// or from a seed; checks it, times it, reports its cost.
//
//===----------------------------------------------------------------------===//

#include "DeviceRun.h"
#include "kas/InitAll.h"
#include "kas/Support/CommandLine.h"
#include "kas/Support/Signals.h"
#include "kas/Support/Version.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
namespace cl = llvm::cl;

/// What rounding of factors or tensors takes of networks and operators.
static double getTolerance(GPUPrecision precision,
                           codegen::GPUElements elements) {
  if (precision == GPUPrecision::BF16 || elements == codegen::GPUElements::BF16)
    return 2e-2;
  if (precision == GPUPrecision::F16 || elements == codegen::GPUElements::F16)
    return 1e-2;
  return precision == GPUPrecision::TF32 ? 1e-3 : 1e-4;
}

namespace {

/// The options, as members: no global constructors, no clash with those of the
/// libraries.
struct Options {
  cl::OptionCategory category{"kas-run options"};
  cl::opt<std::string> file{cl::Positional, cl::desc("FILE"),
                            cl::cat(category)};
  cl::opt<std::string> function{"function", cl::value_desc("name"),
                                cl::desc("Run this function of FILE"),
                                cl::cat(category)};
  cl::opt<std::string> operatorName{
      "operator", cl::value_desc("name"),
      cl::desc("Run this operator of FILE, or of the library (kas.conv2d)"),
      cl::cat(category)};
  cl::opt<std::string> kernelName{
      "kernel", cl::value_desc("name"),
      cl::desc("Run this kernel of FILE, or of the library (kas.involution)"),
      cl::cat(category)};
  cl::list<std::string> bindings{
      "bind", cl::value_desc("N=1,Cin=64,..."), cl::CommaSeparated,
      cl::desc("Values for the symbols of the operator or kernel"),
      cl::cat(category)};
  cl::list<std::string> weights{"weight", cl::value_desc("w0.npy"),
                                cl::desc("Weights of the operator, in order"),
                                cl::cat(category)};
  cl::opt<bool> cost{
      "cost", cl::desc("Report the operator's cost; alone: without running it"),
      cl::cat(category)};
  cl::opt<std::string> device{
      "device", cl::value_desc("device"), cl::init("cpu"),
      cl::desc("Where to run: cpu, reference, cuda[:index], vulkan[:index], or "
               "emulator[:sm_90], which runs a GPU's kernels on the CPU"),
      cl::cat(category)};
  cl::opt<GPUPrecision> precision{
      "precision", cl::init(GPUPrecision::F32),
      cl::desc(
          "The type that factors of products may be rounded to: with cuda for "
          "tensor cores, with cpu bf16 where that saves time"),
      codegen::getPrecisionValues(), cl::cat(category)};
  cl::opt<codegen::GPUElements> elements{
      "elements", cl::init(codegen::GPUElements::F32),
      cl::desc("Storage type of tensors on devices with CUDA or Vulkan"),
      codegen::getElementsValues(), cl::cat(category)};
  cl::opt<codegen::GPULibraries> libraries{
      "libraries", cl::init(codegen::GPULibraries::Auto),
      cl::desc("What may compute kernels on devices with CUDA"),
      codegen::getLibrariesValues(), cl::cat(category)};
  cl::list<std::string> inputs{
      "input", cl::value_desc("x.npy"),
      cl::desc("Data: for a function its arguments in order"),
      cl::cat(category)};
  cl::list<std::string> args{
      "args", cl::value_desc("params.npz|seed"),
      cl::desc("Arguments of a function by their kas.name, or the seed of "
               "random ones; may be repeated. Random ones are normal(1) for "
               "the first argument, uniform in [0.5, 1.5) where the function "
               "takes a square root of them or asserts that they are positive "
               "(variances), normal with deviation sqrt(2 / fan-in) from rank "
               "2 on, else normal(0.1); the argument attribute kas.init says "
               "otherwise"),
      cl::cat(category)};
  cl::opt<std::string> output{"output", cl::value_desc("y.npy"),
                              cl::desc("Write the result"), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::init(0), cl::desc("Seed of random values"),
                         cl::cat(category)};
  cl::opt<std::string> check{
      "check", cl::ValueOptional,
      cl::value_desc("exact|other.mlir|expected.npy"),
      cl::desc("Compare: an operator with the reference, a function with "
               "another file's or with an array; exact: operators, and "
               "functions of kas.apply alone, with the reference, bit by bit, "
               "on random integers for which no sum rounds"),
      cl::cat(category)};
  cl::opt<unsigned> draws{
      "draws", cl::value_desc("N"), cl::init(0),
      cl::desc("--check=exact: how often to draw the integers; 0: until a "
               "wrong kernel passes with a probability of 1e-6 at most, but 32 "
               "times at most, 64 where maxima are taken"),
      cl::cat(category)};
  cl::opt<double> tolerance{
      "tolerance", cl::init(0),
      cl::desc("Largest error allowed, relative to the largest magnitude "
               "(default: 1e-4; tf32 1e-3, f16 1e-2, bf16 2e-2)"),
      cl::cat(category)};
  cl::opt<bool> time{"time", cl::desc("Time at least 20 runs"),
                     cl::cat(category)};
  cl::opt<unsigned> runs{"runs", cl::value_desc("N"), cl::init(0),
                         cl::desc("Time N runs, not at least 20 and for 0.2 s"),
                         cl::cat(category)};
  cl::opt<std::string> profile{
      "profile", cl::ValueOptional, cl::value_desc("trace.json"),
      cl::desc("Report where the time of a call goes, operation by operation, "
               "and that of compilation, pass by pass; write a trace for "
               "Chrome's viewer or Perfetto to the file"),
      cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Report as one JSON object"),
                     cl::cat(category)};
  cl::opt<bool> worker{
      "worker",
      cl::desc(
          "Time operators that are requested by JSON lines on the standard "
          "input, for a search"),
      cl::cat(category)};
  cl::opt<unsigned> threads{
      "threads", cl::init(0),
      cl::desc("Threads of parallel loops; 0: OpenMP's default"),
      cl::cat(category)};
  cl::opt<std::string> cache{
      "cache", cl::value_desc("directory"),
      cl::desc("Keep compiled objects there, all of them, and "
               "not in the cache of the user"),
      cl::cat(category)};

  RunSettings get() const {
    RunSettings settings;
    settings.file = file;
    settings.function = function;
    settings.operatorName = operatorName;
    settings.kernelName = kernelName;
    settings.bindings.assign(bindings.begin(), bindings.end());
    settings.weights.assign(weights.begin(), weights.end());
    settings.cost = cost;
    settings.device = device;
    settings.precision = precision;
    settings.elements = elements;
    settings.libraries = libraries;
    settings.inputs.assign(inputs.begin(), inputs.end());
    settings.args.assign(args.begin(), args.end());
    settings.output = output;
    settings.seed = seed;
    settings.check = check.getNumOccurrences() > 0;
    settings.exact = check == "exact";
    if (!settings.exact)
      settings.checkFile = check;
    settings.draws = draws;
    settings.tolerance = tolerance.getNumOccurrences()
                             ? tolerance
                             : getTolerance(precision, elements);
    settings.time = time;
    settings.runs = runs;
    settings.profile = profile.getNumOccurrences() > 0;
    settings.traceFile = profile;
    settings.json = json;
    settings.worker = worker;
    settings.threads = threads;
    settings.cacheDirectory = cache;
    return settings;
  }
};

/// A context with all that compiling needs.
std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  return std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
}

/// Options that would have no effect, or none that anybody wants.
llvm::Error checkOptions(const Options &options) {
  bool isFunction = !options.function.empty();
  auto refuse = [](llvm::StringRef option, llvm::StringRef required,
                   llvm::StringRef found) {
    return createStringError("--" + option + " requires " + required +
                             ", got " + found);
  };
  const std::pair<llvm::StringRef, bool> ofOperators[] = {
      {"bind", !options.bindings.empty()},
      {"weight", !options.weights.empty()},
      {"cost", options.cost}};
  for (auto [option, isGiven] : ofOperators)
    if (isFunction && isGiven)
      return refuse(option, "an operator or a kernel", "--function");
  if (!options.args.empty() && !isFunction && !options.worker)
    return refuse("args", "a function",
                  options.kernelName.empty() ? "--operator" : "--kernel");
  llvm::StringRef device = options.device;
  if (device == "cpu" && options.precision != GPUPrecision::F32 &&
      options.precision != GPUPrecision::BF16)
    return refuse("precision", "f32 or bf16 on the device 'cpu'",
                  stringifyGPUPrecision(options.precision));
  if (options.precision != GPUPrecision::F32 && device != "cpu" &&
      !device.starts_with("cuda") && !device.starts_with("emulator"))
    return refuse("precision", "the device 'cpu', 'cuda' or 'emulator'",
                  "'" + options.device + "'");
  // Written so that NaN fails.
  if (!(options.tolerance >= 0))
    return refuse("tolerance", "a number of at least 0",
                  llvm::formatv("{0}", double(options.tolerance)).str());
  if (options.runs.getNumOccurrences() && options.runs == 0)
    return refuse("runs", "a number of at least 1", "0");
  if (options.draws.getNumOccurrences() && options.check != "exact")
    return refuse("draws", "--check=exact",
                  options.check.getNumOccurrences() ? "another check"
                                                    : "no check");
  return llvm::Error::success();
}

llvm::Expected<RunReport> run(const RunSettings &settings) {
  bool isOperator = !settings.operatorName.empty();
  bool isKernel = !settings.kernelName.empty();
  if (isOperator + isKernel + !settings.function.empty() != 1)
    return createStringError("expected one of --operator=NAME, --kernel=NAME "
                             "and --function=NAME");
  if (settings.file.empty() && !isOperator && !isKernel)
    return createStringError("no input file");
  if (settings.profile && (settings.device != "cpu" || settings.exact))
    return createStringError(
        "--profile requires the device 'cpu' and no exact "
        "check, got " +
        (settings.exact ? "--check=exact" : "'" + settings.device + "'"));
  if (isRuntimeDevice(settings.device) || isEmulator(settings.device))
    if (llvm::Error error = requireGPU("--device=" + settings.device))
      return error;
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  if (isKernel)
    return runKernel(*context, settings);
  return isOperator ? runOperator(*context, settings)
                    : runFunction(*context, settings);
}

} // namespace

int main(int argc, char **argv) {
  kas::ignoreFileSizeSignal();
  kas::addVersionPrinter();
  llvm::InitLLVM initialize(argc, argv);
  removeLibraryOptions();
  keepFreedMemory();
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "Run an operator or a function\n", &llvm::errs()))
    return 1;
  auto fail = [](llvm::Error error) {
    llvm::handleAllErrors(std::move(error),
                          [](const llvm::ErrorInfoBase &error) {
                            llvm::WithColor::error(llvm::errs(), "kas-run")
                                << error.message() << "\n";
                          });
    return 1;
  };
  if (llvm::Error error = checkOptions(options))
    return fail(std::move(error));
  RunSettings settings = options.get();
  if (settings.worker) {
    if (llvm::Error error = runWorker(*makeContext(), settings))
      return fail(std::move(error));
    return 0;
  }
  auto report = run(settings);
  if (!report)
    return fail(report.takeError());
  report->print(llvm::outs(), settings.json);
  return report->ok ? 0 : 1;
}
