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

struct Worker {
  unsigned index = 0;
  /// None before the first candidate and after it was of no use.
  std::unique_ptr<ChildProcess> process;
  /// It ended, hangs, or answered nonsense: it is of no use any more.
  bool isLost = false;

  /// Says so; `reason` is why.
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
  bool isDeterministic() const override { return false; }
  Expected<Metrics> evaluate(const Solution &solution) override;
  Expected<Metrics> evaluateBaseline(const Baseline &baseline) override;

private:
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

  EvaluatorSettings settings;
  std::mutex mutex;
  std::condition_variable isFree;
  /// Those that wait, the longest first.
  std::deque<std::unique_ptr<Worker>> idle;
  uint64_t requests = 0;
  /// What the first answer that had it said.
  std::optional<double> referenceMs;
  /// Of lines that are no JSON objects and of workers that were lost: counted
  /// apart, so that a worker that prints much does not hide that another dies.
  unsigned lineReports = 0, lossReports = 0;
};

} // namespace

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
  for (unsigned index = 0; index < std::max(settings.workers, 1u); ++index) {
    idle.push_back(std::make_unique<Worker>());
    idle.back()->index = index;
  }
}

Error ExternalEvaluator::start(Worker &worker) {
  auto process = ChildProcess::start(
      {settings.command, settings.memoryLimit, worker.index});
  if (!process)
    return process.takeError();
  worker.process = std::move(*process);
  return Error::success();
}

Error ExternalEvaluator::probe() {
  Worker &worker = *idle.front();
  if (Error error = start(worker))
    return error;
  auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(settings.probeSeconds));
  if (!worker.process->endsUntil(deadline))
    return Error::success();
  Expected<std::string> line = worker.process->readLine(deadline);
  std::string reason = line ? "printed '" + *line + "' and ended"
                            : llvm::toString(line.takeError());
  return createStringError("requires a command that waits for candidates, but "
                           "of '" +
                           settings.command + "' " + reason);
}

std::string ExternalEvaluator::makeRequest(const CandidateText &candidate,
                                           uint64_t &id) {
  std::optional<double> reference;
  {
    std::lock_guard<std::mutex> lock(mutex);
    id = requests++;
    reference = referenceMs;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attribute("id", static_cast<int64_t>(id));
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
    if (reference)
      json.attribute("reference_ms", *reference);
    for (const auto &[name, value] : candidate.more)
      json.attribute(name, value);
  });
  stream << "\n";
  return text;
}

/// What cannot be printed is escaped, what is long is cut.
static std::string quote(llvm::StringRef line) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "'";
  llvm::printEscapedString(line.take_front(80), stream);
  stream << (line.size() > 80 ? "...'" : "'");
  return text;
}

void ExternalEvaluator::report(unsigned &reports, const Worker &worker,
                               const llvm::Twine &what) {
  constexpr unsigned most = 20;
  std::lock_guard<std::mutex> lock(mutex);
  if (!settings.report || reports > most)
    return;
  if (reports++ == most)
    settings.report(
        &reports == &lineReports
            ? "more lines that are no JSON objects are not reported"
            : "more workers that are started anew are not reported");
  else
    settings.report("worker " + std::to_string(worker.index) + " " +
                    what.str());
}

/// A line that is no JSON, with null for the numbers that JSON does not have
/// but some programs write.
static std::string replaceNonFinite(llvm::StringRef line) {
  std::string result;
  bool isString = false;
  while (!line.empty()) {
    if (isString && line.starts_with("\\")) {
      result += line.take_front(2);
      line = line.drop_front(std::min<size_t>(2, line.size()));
      continue;
    }
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

static Expected<llvm::json::Value> parseAnswer(llvm::StringRef line) {
  Expected<llvm::json::Value> value = llvm::json::parse(line);
  if (value)
    return value;
  llvm::consumeError(value.takeError());
  return llvm::json::parse(replaceNonFinite(line));
}

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

Expected<Metrics> ExternalEvaluator::readAnswer(Worker &worker, uint64_t id,
                                                Clock::time_point deadline) {
  for (;;) {
    Expected<std::string> line = worker.process->readLine(deadline);
    if (!line)
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
    const llvm::json::Object *object = value->getAsObject();
    std::optional<int64_t> answered = object->getInteger("id");
    if (!answered || *answered < 0 || static_cast<uint64_t>(*answered) != id)
      return broken();
    if (std::optional<double> reference = object->getNumber("reference_ms")) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!referenceMs && *reference > 0)
        referenceMs = reference;
    }
    if (std::optional<llvm::StringRef> error = object->getString("error"))
      return createStringError(*error);
    if (const llvm::json::Object *metrics = object->getObject("metrics"))
      return readMetrics(*metrics);
    return broken();
  }
}

Expected<Metrics> ExternalEvaluator::evaluate(Worker &worker, uint64_t id,
                                              llvm::StringRef request) {
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

Expected<Metrics> ExternalEvaluator::evaluate(const CandidateText &candidate) {
  uint64_t id;
  std::string request = makeRequest(candidate, id);
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
    std::string reason = llvm::toString(std::move(error));
    report(lossReports, *worker, "is started anew: " + reason);
    worker->process.reset();
    worker->isLost = false;
    giveBack(std::move(worker));
    if (attempt == settings.retries && attempt == 0)
      return createStringError(reason);
    if (attempt == settings.retries)
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
  if (Error error = evaluator->probe())
    return error;
  return evaluator;
}
