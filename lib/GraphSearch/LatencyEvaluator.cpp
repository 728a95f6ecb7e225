//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/GraphSearch/LatencyEvaluator.h"
#include "kas/GraphSearch/OperatorPrinter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

using namespace kas;
using llvm::createStringError;
using llvm::Expected;

namespace {

/// A file that is gone with this object.
class TemporaryFile {
public:
  static Expected<TemporaryFile> create(llvm::StringRef suffix,
                                        llvm::StringRef contents = "");
  TemporaryFile(TemporaryFile &&other) : path(std::move(other.path)) {
    other.path.clear();
  }
  TemporaryFile &operator=(TemporaryFile &&) = delete;
  ~TemporaryFile() {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }
  llvm::StringRef getPath() const { return path; }

private:
  explicit TemporaryFile(llvm::StringRef path) : path(path) {}
  std::string path;
};

class LatencyEvaluator final : public Evaluator {
public:
  LatencyEvaluator(const EvaluatorSettings &settings, std::string runner)
      : settings(settings), runner(std::move(runner)),
        printer(settings.problem) {}

  llvm::StringRef getName() const override { return "latency"; }
  bool isDeterministic() const override { return false; }
  Expected<Metrics> evaluate(const Solution &solution) override;

private:
  Expected<double> measure(llvm::StringRef file, const Binding &binding);

  EvaluatorSettings settings;
  std::string runner;
  OperatorPrinter printer;
};

} // namespace

Expected<TemporaryFile> TemporaryFile::create(llvm::StringRef suffix,
                                              llvm::StringRef contents) {
  int descriptor = -1;
  llvm::SmallString<128> path;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile(
          "kas-latency", suffix, descriptor, path))
    return createStringError(error, "cannot make a temporary file: " +
                                        error.message());
  TemporaryFile file(path);
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << contents;
  stream.close();
  if (!stream.has_error())
    return file;
  std::error_code error = stream.error();
  stream.clear_error();
  return createStringError(error,
                           "cannot write '" + path + "': " + error.message());
}

/// The median that `text`, one JSON object, reports.
static Expected<double> readMedian(llvm::StringRef text) {
  Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  if (const llvm::json::Object *object = value->getAsObject())
    if (std::optional<double> median = object->getNumber("median_ms"))
      if (std::isfinite(*median) && *median >= 0)
        return *median;
  return createStringError("the runner reports no median_ms");
}

/// The first line of the file, for messages.
static std::string readFirstLine(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return "";
  return (*buffer)->getBuffer().split('\n').first.str();
}

/// Runs a program until it ends, or kills it after `seconds`. Unlike LLVM's
/// waiting with a limit, which has one alarm for the whole process, this may be
/// done by several threads at once.
static llvm::Error run(llvm::ArrayRef<llvm::StringRef> arguments,
                       llvm::ArrayRef<std::optional<llvm::StringRef>> redirects,
                       double seconds) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  std::string message;
  bool isNotStarted = false;
  llvm::sys::ProcessInfo child = llvm::sys::ExecuteNoWait(
      arguments.front(), arguments, /*Env=*/std::nullopt, redirects,
      /*MemoryLimit=*/0, &message, &isNotStarted);
  if (isNotStarted)
    return createStringError("cannot start the runner: " + message);
  for (;;) {
    llvm::sys::ProcessInfo ended =
        llvm::sys::Wait(child, /*SecondsToWait=*/0, &message);
    if (ended.Pid == child.Pid) {
      if (ended.ReturnCode == 0)
        return llvm::Error::success();
      if (ended.ReturnCode < 0)
        return createStringError("the runner crashed: " + message);
      return createStringError("the runner ends with code " +
                               llvm::Twine(ended.ReturnCode));
    }
    if (std::chrono::duration<double>(Clock::now() - start).count() > seconds) {
      ::kill(child.Pid, SIGKILL);
      (void)llvm::sys::Wait(child, std::nullopt, &message);
      return createStringError(
          llvm::formatv("the runner takes more than {0} s", seconds).str());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Expected<double> LatencyEvaluator::measure(llvm::StringRef file,
                                           const Binding &binding) {
  Expected<TemporaryFile> output = TemporaryFile::create("json");
  if (!output)
    return output.takeError();
  Expected<TemporaryFile> errors = TemporaryFile::create("txt");
  if (!errors)
    return errors.takeError();
  std::string bind = "--bind=";
  const SymbolSet &symbols = settings.problem->symbols;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    bind += (llvm::Twine(symbol ? "," : "") + symbols.getName(symbol) + "=" +
             llvm::Twine(binding[symbol]))
                .str();
  llvm::StringRef arguments[] = {runner,   file,         "--operator=candidate",
                                 bind,     "--time",     "--runs=7",
                                 "--json", "--threads=1"};
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(), output->getPath(), errors->getPath()};
  if (llvm::Error error = run(arguments, redirects, settings.timeLimit)) {
    std::string line = readFirstLine(errors->getPath());
    return createStringError(llvm::toString(std::move(error)) +
                             (line.empty() ? "" : ": " + line));
  }
  auto text = llvm::MemoryBuffer::getFile(output->getPath());
  if (!text)
    return llvm::errorCodeToError(text.getError());
  return readMedian((*text)->getBuffer());
}

Expected<Metrics> LatencyEvaluator::evaluate(const Solution &solution) {
  const SearchProblem &problem = *settings.problem;
  Expected<TemporaryFile> file = TemporaryFile::create(
      "mlir", printer.print(static_cast<const OperatorGraph &>(solution)));
  if (!file)
    return file.takeError();
  double sum = 0;
  for (auto [binding, multiplicity] :
       llvm::zip_equal(problem.bindings, problem.multiplicities)) {
    Expected<double> median = measure(file->getPath(), binding);
    if (!median)
      return median.takeError();
    sum += *median * static_cast<double>(multiplicity);
    if (problem.budget.maxLatencyMs && sum > *problem.budget.maxLatencyMs)
      return createStringError("over the latency budget");
  }
  return Metrics{{"latency_ms", sum}};
}

/// `kas-run` beside the running executable, else on the path.
static Expected<std::string> findRunner(llvm::StringRef name) {
  bool isPath = name.contains('/');
  if (name.empty()) {
    static int anchor;
    llvm::SmallString<128> beside(llvm::sys::path::parent_path(
        llvm::sys::fs::getMainExecutable(nullptr, &anchor)));
    llvm::sys::path::append(beside, "kas-run");
    if (llvm::sys::fs::can_execute(beside))
      return beside.str().str();
    name = "kas-run";
  }
  if (isPath) {
    if (llvm::sys::fs::can_execute(name))
      return name.str();
  } else if (llvm::ErrorOr<std::string> found =
                 llvm::sys::findProgramByName(name)) {
    return *found;
  }
  return createStringError("requires a program that runs candidates, found no "
                           "executable '" +
                           name + "'");
}

Expected<std::unique_ptr<Evaluator>>
kas::makeLatencyEvaluator(const EvaluatorSettings &settings) {
  Expected<std::string> runner = findRunner(settings.runner);
  if (!runner)
    return runner.takeError();
  return std::make_unique<LatencyEvaluator>(settings, std::move(*runner));
}
