//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates candidates by worker processes of a shell command that exchange
// JSON lines (docs/guide/searching.md has the protocol).
//
// Each worker is a process that handles one request at a time; the threads of
// the driver share them through a queue of idle workers. A request is one line,
// so is an answer, matched by `id`. Losing a worker never loses the search: the
// process is replaced and the candidate retried.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/ExternalEvaluator.h"
#include "kas/Search/Operators/OperatorPrinter.h"
#include "kas/Support/ChildProcess.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using Clock = ChildProcess::Clock;

namespace {

/// One process that evaluates, or will.
struct Worker {
  /// Handed to the process, which may choose a device or a core by it.
  unsigned index = 0;
  /// None before the first candidate and after it was of no use.
  std::unique_ptr<ChildProcess> process;
  /// It ended, hangs, or answered nonsense: it is of no use any more.
  bool isLost = false;

  /// Says so; `reason` is why. The error is for the caller to return; the
  /// process is replaced later, by `evaluate(const CandidateText &)`.
  Error lose(const llvm::Twine &reason) {
    isLost = true;
    return createStringError(reason);
  }
};

class ExternalEvaluator final : public Evaluator {
public:
  explicit ExternalEvaluator(const EvaluatorSettings &settings);

  /// Starts one worker, to see that the command is one.
  Error probe();

  llvm::StringRef getName() const override { return "external"; }
  /// Whatever the program does, nothing is known about its repeatability.
  bool isDeterministic() const override { return false; }
  Expected<Metrics> evaluate(const Solution &solution) override;
  Expected<Metrics> evaluateBaseline(const Baseline &baseline) override;

private:
  /// The loop over attempts.
  Expected<Metrics> evaluate(const CandidateText &candidate);
  std::string makeRequest(const CandidateText &candidate, uint64_t &id);
  Error start(Worker &worker);
  /// One attempt. An error says that the candidate has failed, or that the
  /// worker is lost.
  Expected<Metrics> evaluate(Worker &worker, uint64_t id,
                             llvm::StringRef request);
  Expected<Metrics> readAnswer(Worker &worker, uint64_t id,
                               Clock::time_point deadline);
  /// Counts what it reports, and says once that there is more of it.
  void report(unsigned &reports, const Worker &worker, const llvm::Twine &what);
  std::unique_ptr<Worker> takeWorker();
  void giveBack(std::unique_ptr<Worker> worker);

  /// A copy with `describe` filled in.
  EvaluatorSettings settings;
  /// Guards all that follows.
  std::mutex mutex;
  /// Signals that a worker was given back.
  std::condition_variable isFree;
  /// Those that wait, the longest first.
  std::deque<std::unique_ptr<Worker>> idle;
  /// The identifier of the next request. Retries of a candidate keep theirs.
  uint64_t requests = 0;
  /// What the first answer that had it said. Milliseconds of the reference
  /// kernel. Measured times are relative to it, so all workers must use the
  /// same number.
  std::optional<double> referenceMs;
  /// Of lines that are no JSON objects and of workers that were lost: counted
  /// apart, so that a worker that prints much does not hide that another dies.
  unsigned lineReports = 0, lossReports = 0;
};

} // namespace

// Prints operators in their symbolic form: the worker gets the values of the
// symbols next to it. The printer is shared by all threads and locks itself.
std::function<Expected<CandidateText>(const Solution &)>
kas::search::makeOperatorDescription(
    std::shared_ptr<const SearchProblem> problem) {
  return [problem, printer = std::make_shared<OperatorPrinter>(problem)](
             const Solution &solution) -> Expected<CandidateText> {
    CandidateText text{
        "operator",
        printer->print(static_cast<const OperatorGraph &>(solution)),
        {},
        {problem->multiplicities.begin(), problem->multiplicities.end()}};
    // One object per binding, each with a value for every symbol of the
    // problem.
    for (const Binding &binding : problem->bindings) {
      auto &values = text.bindings.emplace_back();
      for (unsigned symbol = 0; symbol < problem->symbols.size(); ++symbol)
        values.emplace_back(problem->symbols.getName(symbol), binding[symbol]);
    }
    return text;
  };
}

ExternalEvaluator::ExternalEvaluator(const EvaluatorSettings &given)
    : settings(given) {
  if (!settings.describe)
    settings.describe = makeOperatorDescription(settings.problem);
  // One worker at least, whatever the options say. Processes start on first
  // use.
  for (unsigned index = 0; index < std::max(settings.workers, 1u); ++index) {
    idle.push_back(std::make_unique<Worker>());
    idle.back()->index = index;
  }
}

/// The limit of memory is set in the child, before the command runs.
Error ExternalEvaluator::start(Worker &worker) {
  auto process = ChildProcess::start(
      {settings.command, settings.memoryLimit, worker.index});
  if (!process)
    return process.takeError();
  worker.process = std::move(*process);
  return Error::success();
}

/// Runs before any candidate, so there is no need for locks. A command that is
/// mistyped ends within a fraction of a second, and its first line usually says
/// why; a worker that waits for input is still running at the deadline.
Error ExternalEvaluator::probe() {
  Worker &worker = *idle.front();
  if (Error error = start(worker))
    return error;
  auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(settings.probeSeconds));
  // Running: keep the process for the first candidate.
  if (!worker.process->endsUntil(deadline))
    return Error::success();
  Expected<std::string> line = worker.process->readLine(deadline);
  std::string reason = line ? "printed '" + *line + "' and ended"
                            : llvm::toString(line.takeError());
  return createStringError("requires a command that waits for candidates, but "
                           "of '" +
                           settings.command + "' " + reason);
}

/// One JSON object in one line; `id` is set to its number.
std::string ExternalEvaluator::makeRequest(const CandidateText &candidate,
                                           uint64_t &id) {
  std::optional<double> reference;
  {
    // Only the counters need the lock, not the printing.
    std::lock_guard<std::mutex> lock(mutex);
    id = requests++;
    reference = referenceMs;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] {
    // JSON has no unsigned 64-bit numbers.
    json.attribute("id", static_cast<int64_t>(id));
    // The noun (`operator`, `kernel`, ...) is the name of the member with the
    // IR.
    json.attribute(candidate.noun, candidate.text);
    json.attributeArray("bindings", [&] {
      for (const auto &binding : candidate.bindings)
        json.object([&] {
          for (const auto &[name, value] : binding)
            json.attribute(name, value);
        });
    });
    json.attributeArray("multiplicities", [&] {
      for (int64_t multiplicity : candidate.multiplicities)
        json.value(multiplicity);
    });
    // From the second request on, when the first answer has set the scale.
    if (reference)
      json.attribute("reference_ms", *reference);
    // What evaluators add, such as `milestones` of a training.
    for (const auto &[name, value] : candidate.more)
      json.attribute(name, value);
  });
  stream << "\n";
  return text;
}

/// What cannot be printed is escaped, what is long is cut. A worker may print
/// anything: binary data must not reach the terminal.
static std::string quote(llvm::StringRef line) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "'";
  llvm::printEscapedString(line.take_front(80), stream);
  stream << (line.size() > 80 ? "...'" : "'");
  return text;
}

/// `reports` is one of the two counters, which also selects the closing
/// message. The lock serializes calls of `settings.report`, as promised there.
void ExternalEvaluator::report(unsigned &reports, const Worker &worker,
                               const llvm::Twine &what) {
  // Per kind; enough to see what goes wrong, not enough to flood the screen.
  constexpr unsigned most = 20;
  std::lock_guard<std::mutex> lock(mutex);
  if (!settings.report || reports > most)
    return;
  if (reports++ == most)
    settings.report(
        &reports == &lineReports
            ? "more lines that are no JSON objects are not reported"
            : "more workers that are started again are not reported");
  else
    settings.report("worker " + std::to_string(worker.index) + " " +
                    what.str());
}

/// A line that is no JSON, with null for the numbers that JSON does not have
/// but some programs write. Python's json.dumps writes NaN and Infinity. Turned
/// into null they become metrics that are no numbers, so the candidate fails
/// with a reason instead of the worker being lost.
static std::string replaceNonFinite(llvm::StringRef line) {
  std::string result;
  bool isString = false;
  while (!line.empty()) {
    // An escaped character, which may be a quote, does not end a string.
    if (isString && line.starts_with("\\")) {
      result += line.take_front(2);
      line = line.drop_front(std::min<size_t>(2, line.size()));
      continue;
    }
    // Inside of a string the words are text.
    isString ^= line.front() == '"';
    if (!isString &&
        (line.consume_front("NaN") || line.consume_front("-Infinity") ||
         line.consume_front("Infinity"))) {
      result += "null";
      continue;
    }
    result += line.front();
    line = line.drop_front();
  }
  return result;
}

/// The strict reading comes first: replacing is for lines that it refuses.
static Expected<llvm::json::Value> parseAnswer(llvm::StringRef line) {
  Expected<llvm::json::Value> value = llvm::json::parse(line);
  if (value)
    return value;
  llvm::consumeError(value.takeError());
  return llvm::json::parse(replaceNonFinite(line));
}

/// Booleans, strings and null are no metrics.
static Expected<Metrics> readMetrics(const llvm::json::Object &object) {
  Metrics metrics;
  for (const auto &[name, value] : object) {
    std::optional<double> number = value.getAsNumber();
    if (!number || !std::isfinite(*number))
      return createStringError("metric '" + name.str() +
                               "' requires a finite number");
    metrics[name.str()] = *number;
  }
  return metrics;
}

/// Reads lines until one is the answer. Lines that do not begin with a brace
/// are taken for output of libraries that print; everything else that is not
/// the answer loses the worker, since its next line could then belong to
/// another request.
Expected<Metrics> ExternalEvaluator::readAnswer(Worker &worker, uint64_t id,
                                                Clock::time_point deadline) {
  for (;;) {
    Expected<std::string> line = worker.process->readLine(deadline);
    if (!line)
      // Ended, or not ready by the deadline.
      return worker.lose(llvm::toString(line.takeError()));
    if (!llvm::StringRef(*line).ltrim().starts_with("{")) {
      report(lineReports, worker,
             "wrote what is no JSON object: " + quote(*line));
      continue;
    }
    auto broken = [&] {
      return worker.lose("the worker answered " + quote(*line));
    };
    Expected<llvm::json::Value> value = parseAnswer(*line);
    if (!value) {
      llvm::consumeError(value.takeError());
      return broken();
    }
    // A line that begins with a brace and parses is an object.
    const llvm::json::Object *object = value->getAsObject();
    std::optional<int64_t> answered = object->getInteger("id");
    // The answer to an earlier request, or to none: the worker is out of step.
    if (!answered || *answered < 0 || static_cast<uint64_t>(*answered) != id)
      return broken();
    // The first answer of all workers sets the scale for all later requests.
    if (std::optional<double> reference = object->getNumber("reference_ms")) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!referenceMs && *reference > 0)
        referenceMs = reference;
    }
    // The candidate has failed, the worker is fine.
    if (std::optional<llvm::StringRef> error = object->getString("error"))
      return createStringError(*error);
    if (const llvm::json::Object *metrics = object->getObject("metrics"))
      return readMetrics(*metrics);
    return broken();
  }
}

/// The deadline covers the start of the process, the request and the answer.
Expected<Metrics> ExternalEvaluator::evaluate(Worker &worker, uint64_t id,
                                              llvm::StringRef request) {
  // 30 s if no limit is given: a worker that hangs must not stop the search.
  auto deadline =
      Clock::now() +
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
          settings.timeLimit > 0 ? settings.timeLimit : 30));
  if (!worker.process)
    if (Error error = start(worker))
      return worker.lose(llvm::toString(std::move(error)));
  if (Error error = worker.process->write(request, deadline))
    return worker.lose(llvm::toString(std::move(error)));
  return readAnswer(worker, id, deadline);
}

/// Blocks until a worker is idle. The one that has waited longest is taken, so
/// the processes are used evenly.
std::unique_ptr<Worker> ExternalEvaluator::takeWorker() {
  std::unique_lock<std::mutex> lock(mutex);
  isFree.wait(lock, [&] { return !idle.empty(); });
  std::unique_ptr<Worker> worker = std::move(idle.front());
  idle.pop_front();
  return worker;
}

void ExternalEvaluator::giveBack(std::unique_ptr<Worker> worker) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(worker));
  }
  // After the lock is released, so the thread that wakes does not wait for it.
  isFree.notify_one();
}

Expected<Metrics> ExternalEvaluator::evaluate(const Solution &solution) {
  Expected<CandidateText> candidate = settings.describe(solution);
  if (!candidate)
    return candidate.takeError();
  return evaluate(*candidate);
}

// Programs need not know what is in the network: only evaluators whose workers
// do ask for it.
Expected<Metrics>
ExternalEvaluator::evaluateBaseline(const Baseline &baseline) {
  return baseline.isNetwork ? Metrics() : evaluate(baseline.text);
}

/// Retries are for lost workers only: a candidate that a worker has refused
/// would be refused again. Any idle worker may take the next attempt.
Expected<Metrics> ExternalEvaluator::evaluate(const CandidateText &candidate) {
  uint64_t id;
  std::string request = makeRequest(candidate, id);
  // Ends by `retries`.
  for (unsigned attempt = 0;; ++attempt) {
    std::unique_ptr<Worker> worker = takeWorker();
    Expected<Metrics> metrics = evaluate(*worker, id, request);
    if (metrics) {
      giveBack(std::move(worker));
      return metrics;
    }
    Error error = metrics.takeError();
    if (!worker->isLost) {
      giveBack(std::move(worker));
      return error;
    }
    // The process is killed by the destructor and started again for its next
    // candidate.
    std::string reason = llvm::toString(std::move(error));
    report(lossReports, *worker, "is started again: " + reason);
    worker->process.reset();
    worker->isLost = false;
    giveBack(std::move(worker));
    // The number of attempts is of interest only if there were several.
    if (attempt == settings.retries && attempt == 0)
      return createStringError(reason);
    if (attempt == settings.retries)
      // `retries` + 1 attempts were made in all.
      return createStringError(
          llvm::formatv("{0} (attempt {1} of {1})", reason, attempt + 1).str());
  }
}

Expected<std::unique_ptr<Evaluator>>
kas::search::makeExternalEvaluator(const EvaluatorSettings &settings) {
  if (settings.command.empty())
    return createStringError(
        "requires the option 'external' for the evaluator 'external'");
  auto evaluator = std::make_unique<ExternalEvaluator>(settings);
  // A wrong command is an error before the search begins, not a failure of
  // every candidate.
  if (Error error = evaluator->probe())
    return error;
  return evaluator;
}
