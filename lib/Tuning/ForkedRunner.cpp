//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/ForkedRunner.h"
#include "kas/Runtime/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

using namespace kas;
using llvm::Error;
using llvm::Expected;
using Clock = std::chrono::steady_clock;

std::string MeasureOptions::getProtocol() const {
  return llvm::formatv("{0} threads, weights prepared ahead, least {1} time of "
                       "{2} runs in turn with no schedule",
                       threads, threads == 1 ? "processor" : "wall-clock", runs)
      .str();
}

/// Seconds that this thread has run; with more threads, those of the clock.
static double getSeconds(unsigned threads) {
  timespec now = {};
  if (threads != 1 || ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
    return monotonicSeconds();
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

/// The largest error of `actual`.
static double getError(llvm::ArrayRef<Tensor> actual,
                       llvm::ArrayRef<Tensor> expected) {
  double error = 0;
  for (auto [a, e] : llvm::zip_equal(actual, expected))
    error = std::max(error, maxRelativeError(a, e));
  return error;
}

Expected<std::unique_ptr<ForkedRunner>>
ForkedRunner::create(mlir::ModuleOp module, llvm::StringRef function,
                     const MeasureOptions &options) {
  std::unique_ptr<ForkedRunner> runner(new ForkedRunner());
  runner->module = module;
  runner->name = function.str();
  runner->options = options;
  runner->pipeline.threads = options.threads;
  runner->pipeline.prepareWeights = true;
  auto compiled = compileForCPU(module, function, runner->pipeline);
  if (!compiled)
    return compiled.takeError();
  const FunctionSignature &signature = compiled->getSignature();
  auto arguments = signature.makeArguments({}, options.seed);
  if (!arguments)
    return arguments.takeError();
  runner->arguments = std::move(*arguments);
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  compiled->prepare(runner->arguments);
  (*compiled)(runner->arguments, *results);
  runner->unchanged = std::make_unique<CompiledFunction>(std::move(*compiled));
  runner->expected = std::move(*results);
  if (options.plainLoops)
    if (Error error = runner->compareWithLoops())
      return error;
  return runner;
}

/// From now on, results are compared with those of plain loops.
Error ForkedRunner::compareWithLoops() {
  CPUPipelineOptions plain = pipeline;
  plain.prepareWeights = false;
  plain.registerTiles = false;
  auto reference = compileForCPU(module, name, plain);
  if (!reference)
    return reference.takeError();
  auto results = reference->getSignature().makeResults();
  if (!results)
    return results.takeError();
  double start = getSeconds(options.threads);
  (*reference)(arguments, *results);
  plainMs = (getSeconds(options.threads) - start) * 1e3;
  double error = getError(expected, *results);
  expected = std::move(*results);
  if (error <= options.tolerance)
    return Error::success();
  return llvm::createStringError(
      llvm::formatv("expected register tiles that compute what plain loops do, "
                    "within {0:e2}, got {1:e2}",
                    options.tolerance, error));
}

/// Times both in turn, `pairs` times, and takes the least of each: what else
/// runs on the machine makes times longer, never shorter. Short ones run
/// several times at once.
static void comparePairs(llvm::function_ref<void()> base,
                         llvm::function_ref<void()> variant, int64_t pairs,
                         unsigned threads, StoredMeasurement &measurement) {
  auto time = [threads](llvm::function_ref<void()> function, int64_t times) {
    double start = getSeconds(threads);
    for (int64_t i = 0; i < times; ++i)
      function();
    return (getSeconds(threads) - start) * 1e3 / static_cast<double>(times);
  };
  constexpr double leastMs = 0.1, mostTimes = 1000;
  time(variant, 1);
  double first = time(base, 1);
  auto times = static_cast<int64_t>(
      std::clamp(std::ceil(leastMs / std::max(first, 1e-6)), 1., mostTimes));
  measurement.ms = measurement.defaultMs =
      std::numeric_limits<double>::infinity();
  for (int64_t pair = 0; pair < pairs; ++pair) {
    measurement.defaultMs = std::min(measurement.defaultMs, time(base, times));
    measurement.ms = std::min(measurement.ms, time(variant, times));
  }
  measurement.ratio = measurement.ms / measurement.defaultMs;
}

/// Compiles the module as it is now, checks and times it.
Expected<StoredMeasurement> ForkedRunner::compileAndTime(int64_t scale) {
  auto function = compileForCPU(module, name, pipeline);
  if (!function)
    return function.takeError();
  auto results = function->getSignature().makeResults();
  if (!results)
    return results.takeError();
  function->prepare(arguments);
  (*function)(arguments, *results);
  StoredMeasurement measurement;
  measurement.compileMs = function->getCompileMilliseconds();
  measurement.error = getError(*results, expected);
  if (!(measurement.error <= options.tolerance))
    return llvm::createStringError(
        llvm::formatv("expected results within {0:e2}, got {1:e2}",
                      options.tolerance, measurement.error));
  comparePairs([&] { (*unchanged)(arguments, *results); },
               [&] { (*function)(arguments, *results); }, options.runs * scale,
               options.threads, measurement);
  return measurement;
}

static void writeAll(int output, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t count = ::write(output, text.data(), text.size());
    if (count < 0 && errno != EINTR)
      return;
    if (count > 0)
      text = text.drop_front(static_cast<size_t>(count));
  }
}

void ForkedRunner::work(int output, llvm::function_ref<void()> change,
                        int64_t scale) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Stack traces and messages of candidates are of no use to anybody.
  for (int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (int null = ::open("/dev/null", O_WRONLY); null >= 0)
      ::dup2(null, stream);
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
    ::signal(number, SIG_DFL);
  rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (options.memoryLimit) {
    rlimit memory = {options.memoryLimit, options.memoryLimit};
    ::setrlimit(RLIMIT_AS, &memory);
  }
  change();
  Expected<StoredMeasurement> measured = compileAndTime(scale);
  std::string text;
  if (measured)
    text = llvm::formatv("ok {0:e12} {1:e12} {2:e12} {3:e12}", measured->ms,
                         measured->defaultMs, measured->compileMs,
                         measured->error);
  else
    text = "failed " + llvm::toString(measured.takeError());
  writeAll(output, text);
  ::_exit(0);
}

/// All that comes until the end; nothing when `deadline` comes first.
static std::optional<std::string> readAll(int input,
                                          Clock::time_point deadline) {
  std::string text;
  for (;;) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      return std::nullopt;
    pollfd request = {input, POLLIN, 0};
    int ready = ::poll(&request, 1,
                       static_cast<int>(std::min<int64_t>(left.count(), 1000)));
    if (ready <= 0)
      continue;
    char block[4096];
    ssize_t count = ::read(input, block, sizeof(block));
    if (count == 0)
      return text;
    if (count > 0)
      text.append(block, static_cast<size_t>(count));
    else if (errno != EINTR)
      return text;
  }
}

/// Reads what a worker has written.
static StoredMeasurement parse(llvm::StringRef text, int status) {
  StoredMeasurement measurement;
  if (text.consume_front("failed ")) {
    measurement.failure = text.trim().str();
    return measurement;
  }
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ');
  double *numbers[] = {&measurement.ms, &measurement.defaultMs,
                       &measurement.compileMs, &measurement.error};
  bool isGood = WIFEXITED(status) && words.size() == 5 && words[0] == "ok";
  if (isGood)
    for (auto [number, word] :
         llvm::zip(numbers, llvm::ArrayRef(words).drop_front()))
      isGood &= !word.getAsDouble(*number);
  if (isGood) {
    measurement.ratio = measurement.ms / measurement.defaultMs;
    return measurement;
  }
  measurement.failure =
      WIFSIGNALED(status)
          ? std::string("the worker died: ") + ::strsignal(WTERMSIG(status))
          : "the worker ended without an answer";
  return measurement;
}

StoredMeasurement ForkedRunner::measure(llvm::function_ref<void()> change,
                                        int64_t scale) {
  StoredMeasurement failed;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC)) {
    failed.failure = std::string("cannot start a worker: ") + ::strerror(errno);
    return failed;
  }
  pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    work(ends[1], change, scale);
  }
  ::close(ends[1]);
  if (child < 0) {
    failed.failure = std::string("cannot start a worker: ") + ::strerror(errno);
    ::close(ends[0]);
    return failed;
  }
  auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(
                                     options.limitSeconds * 1e3));
  std::optional<std::string> text = readAll(ends[0], deadline);
  ::close(ends[0]);
  if (!text)
    ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (text)
    return parse(*text, status);
  failed.failure = llvm::formatv("expected an end within {0} s, got none",
                                 options.limitSeconds);
  return failed;
}
