//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Progress of a search on a stream: a line for terminals, or JSON lines
// (docs/guide/searching.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SearchReport.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace kas;
using namespace kas::search;
using Clock = std::chrono::steady_clock;

/// The time starts with the report, so it covers listing the space, too.
SearchReport::SearchReport(llvm::raw_ostream &stream, Mode mode,
                           const Objective &objective,
                           const SearchLimits &limits,
                           std::function<SearchStatistics()> getStatistics)
    : stream(stream), mode(mode), objective(objective), limits(limits),
      getStatistics(std::move(getStatistics)), start(Clock::now()) {}

SearchReport::~SearchReport() {
  if (hasLine)
    clearLine();
}

/// Called under the lock. The best candidate and the front are kept for the
/// line only; `finish` computes its own from all results.
void SearchReport::count(const SearchResult &result) {
  const auto *metrics = std::get_if<Metrics>(&result.outcome);
  ++(metrics ? evaluated : failed);
  // Without a report nobody asks. In other modes nobody asks, and the front
  // costs O(front) per candidate.
  if (!metrics || mode != Mode::Line)
    return;
  if (names.empty())
    names = getMetricNames(result);
  front.insert(result.candidate.id, objective.getPoint(*metrics, names));
  // The objective compares lists, so a list of two tells which one is better.
  std::vector<SearchResult> pair = {result};
  if (best)
    pair.push_back(*best);
  objective.sort(pair);
  best = pair.front();
}

/// Replayed results count as evaluated but not for the speed, see
/// `getTimeLeft`.
void SearchReport::addReplayed(llvm::ArrayRef<SearchResult> results) {
  std::lock_guard<std::mutex> lock(mutex);
  replayed = results.size();
  for (const SearchResult &result : results)
    count(result);
}

void SearchReport::add(const SearchResult &result) {
  std::lock_guard<std::mutex> lock(mutex);
  count(result);
  if (mode == Mode::Json)
    printCandidate(result, "candidate");
  // Ten times a second at most: writing to a terminal is slow, and evaluations
  // may be fast.
  if (mode == Mode::Line &&
      Clock::now() - printed >= std::chrono::milliseconds(100))
    printLine();
}

void SearchReport::addFinal(const SearchResult &result, uint64_t wanted) {
  std::lock_guard<std::mutex> lock(mutex);
  ++finals;
  if (mode == Mode::Json)
    printCandidate(result, "final");
  // Candidates of the final round are few and slow, so each one is shown.
  if (mode == Mode::Line) {
    clearLine();
    stream << llvm::formatv("final round: {0}/{1} evaluated", finals, wanted);
    stream.flush();
    hasLine = true;
  }
}

static double getSeconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

static void printMetrics(llvm::json::OStream &json, const Metrics &metrics) {
  json.attributeObject("metrics", [&] {
    for (const auto &[name, value] : metrics)
      json.attribute(name, value);
  });
}

/// One line and one write: events of several processes on one stream stay
/// whole.
void SearchReport::printCandidate(const SearchResult &result,
                                  llvm::StringRef event) {
  std::string line;
  llvm::raw_string_ostream text(line);
  llvm::json::OStream json(text);
  json.object([&] {
    json.attribute("event", event);
    json.attribute("id", static_cast<int64_t>(result.candidate.id));
    json.attribute("seconds", getSeconds(Clock::now() - start));
    if (const auto *failure = std::get_if<Failure>(&result.outcome))
      json.attribute("failure", failure->reason);
    else
      printMetrics(json, std::get<Metrics>(result.outcome));
  });
  stream << line + "\n";
}

/// A line of text also in the mode of the terminal: baselines are few, and stay
/// on the screen.
void SearchReport::addBaseline(llvm::StringRef name, const Metrics &metrics) {
  std::lock_guard<std::mutex> lock(mutex);
  if (mode == Mode::Quiet)
    return;
  std::string line;
  llvm::raw_string_ostream text(line);
  if (mode == Mode::Json) {
    llvm::json::OStream json(text);
    json.object([&] {
      json.attribute("event", "baseline");
      json.attribute("name", name);
      printMetrics(json, metrics);
    });
  } else {
    // The progress line is erased; the next event writes it again.
    clearLine();
    text << name << ":";
    for (const auto &[metric, value] : metrics)
      text << " " << metric << " " << llvm::format("%.4g", value);
  }
  stream << line + "\n";
}

/// `12 s`, `5 min`, `3.2 h`.
static std::string formatSeconds(double seconds) {
  if (seconds < 100)
    return llvm::formatv("{0:f0} s", seconds).str();
  if (seconds < 6000)
    return llvm::formatv("{0:f0} min", seconds / 60).str();
  return llvm::formatv("{0:f1} h", seconds / 3600).str();
}

/// The sooner of two ends: the limit of time, and the number of evaluations at
/// the speed of this run so far. `?` without either.
std::string SearchReport::getTimeLeft() const {
  double elapsed = getSeconds(Clock::now() - start);
  std::optional<double> left;
  if (limits.seconds > 0)
    left = std::max(limits.seconds - elapsed, 0.0);
  uint64_t done = evaluated + failed;
  // Replayed candidates took no time in this run. From 2^40 on a limit means
  // that there is none.
  if (done > replayed && limits.evaluations < (uint64_t(1) << 40)) {
    double rest =
        static_cast<double>(limits.evaluations) - static_cast<double>(done);
    double estimate = elapsed * rest / static_cast<double>(done - replayed);
    left = left ? std::min(*left, estimate) : estimate;
  }
  return left ? formatSeconds(std::max(*left, 0.0)) : "?";
}

/// Back to the first column, and erase to its end: ANSI codes, since the mode
/// is for terminals only.
void SearchReport::clearLine() {
  stream << "\r\033[K";
  hasLine = false;
}

void SearchReport::printLine() {
  SearchStatistics statistics = getStatistics();
  // Without a limit no total is shown.
  uint64_t done = evaluated + failed;
  std::string line =
      llvm::formatv("{0}", done).str() +
      (limits.evaluations < (uint64_t(1) << 40)
           ? llvm::formatv("/{0}", limits.evaluations).str()
           : "") +
      llvm::formatv(" evaluated, {0} distinct, {1:f0} % valid",
                    statistics.asked,
                    done ? 100.0 * static_cast<double>(evaluated) /
                               static_cast<double>(done)
                         : 0.0)
          .str();
  if (best) {
    line += ", best";
    for (const auto &[name, value] : std::get<Metrics>(best->outcome))
      line +=
          llvm::formatv(" {0} {1}", name, llvm::format("%.4g", value)).str();
  }
  line +=
      llvm::formatv(", front {0}, {1} left", front.size(), getTimeLeft()).str();
  // A line that wraps could not be erased by a carriage return, so it is cut to
  // the width of the window. The report goes to the standard error.
  winsize window = {};
  if (!::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) && window.ws_col > 1 &&
      line.size() >= window.ws_col)
    line.resize(window.ws_col - 1u);
  clearLine();
  stream << line;
  stream.flush();
  hasLine = true;
  printed = Clock::now();
}

void SearchReport::message(const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  if (mode == Mode::Json) {
    stream << llvm::formatv("{0}\n", llvm::json::Value(llvm::json::Object{
                                         {"event", "message"},
                                         {"text", llvm::json::fixUTF8(text)}}))
                  .str();
    return;
  }
  if (mode == Mode::Line)
    clearLine();
  // One call, so that lines of several threads do not mix.
  stream << "kas-search: " + text + "\n";
}

/// The best by what the final round has added, which only some of `results`
/// have: all metrics of each. The metric to sort by is the first one that not
/// all rows have: the final round must have added it.
static void printFinals(llvm::raw_ostream &stream,
                        llvm::ArrayRef<SearchResult> results,
                        llvm::ArrayRef<std::string> names) {
  // A screen of rows; all of them are in the database.
  constexpr size_t maxRows = 20;
  std::vector<std::pair<const Metrics *, uint64_t>> rows;
  for (const SearchResult &result : results)
    if (const auto *metrics = std::get_if<Metrics>(&result.outcome))
      rows.push_back({metrics, result.candidate.id});
  auto isFinal = [&](const std::string &name) {
    return !llvm::all_of(rows, [&](const auto &row) {
      return row.first->find(name) != row.first->end();
    });
  };
  // No metric is missing anywhere: there was no final round, or it was about
  // all candidates.
  const auto *final = llvm::find_if(names, isFinal);
  if (final == names.end())
    return;
  llvm::erase_if(rows, [&](const auto &row) {
    return row.first->find(*final) == row.first->end();
  });
  llvm::sort(rows, [&](const auto &a, const auto &b) {
    return std::pair(a.first->at(*final), a.second) <
           std::pair(b.first->at(*final), b.second);
  });
  stream << llvm::formatv("final round of {0}, the least {1}:\n{2,10}",
                          rows.size(), *final, "candidate");
  for (const std::string &name : names)
    stream << llvm::formatv(" {0,14}", name);
  stream << "\n";
  for (const auto &[metrics, id] :
       llvm::ArrayRef(rows).take_front(std::min(rows.size(), maxRows))) {
    stream << llvm::formatv("{0,10}", id);
    for (const std::string &name : names)
      if (auto found = metrics->find(name); found != metrics->end())
        stream << " " << llvm::format("%14.6g", found->second);
      else
        stream << llvm::formatv(" {0,14}", "-");
    stream << "\n";
  }
}

/// The front is computed from `results`, which after a final round have more
/// metrics than the reports of single candidates.
void SearchReport::finish(llvm::ArrayRef<SearchResult> results,
                          bool isExhausted) {
  std::lock_guard<std::mutex> lock(mutex);
  if (mode == Mode::Quiet)
    return;
  std::vector<std::string> known = getMetricNames(results);
  std::vector<std::string> axes = objective.getAxisNames(known);
  ParetoFront front = getFront(objective, results);
  std::vector<ObjectivePoint> points;
  for (const SearchResult &result : results)
    if (const auto *metrics = std::get_if<Metrics>(&result.outcome))
      points.push_back(objective.getPoint(*metrics, known));
  double hypervolume = getNormalizedHypervolume(points);
  SearchStatistics statistics = getStatistics();
  double seconds = getSeconds(Clock::now() - start);
  // The text is complete before it is written, so messages of other threads do
  // not come in between.
  std::string text;
  llvm::raw_string_ostream output(text);
  if (mode == Mode::Json) {
    llvm::json::OStream json(output);
    json.object([&] {
      json.attribute("event", "front");
      json.attribute("hypervolume", hypervolume);
      json.attributeArray("axes", [&] {
        for (const std::string &axis : axes)
          json.value(axis);
      });
      json.attributeArray("members", [&] {
        for (const ParetoFront::Member &member : front.getMembers())
          json.object([&] {
            json.attribute("id", static_cast<int64_t>(member.id));
            json.attributeArray("point", [&] {
              for (double value : member.point)
                // JSON has no infinity; null means unknown.
                std::isfinite(value) ? json.value(value) : json.value(nullptr);
            });
          });
      });
    });
    output << "\n";
    llvm::json::OStream end(output);
    end.object([&] {
      end.attribute("event", "end");
      end.attribute("seconds", seconds);
      end.attribute("exhausted", isExhausted);
      end.attribute("evaluated", static_cast<int64_t>(evaluated));
      end.attribute("failed", static_cast<int64_t>(failed));
      end.attribute("replayed", static_cast<int64_t>(replayed));
      end.attribute("asked", static_cast<int64_t>(statistics.asked));
      end.attribute("expansions", static_cast<int64_t>(statistics.expansions));
      end.attribute("rollouts", static_cast<int64_t>(statistics.rollouts));
      end.attribute("dead_ends", static_cast<int64_t>(statistics.deadEnds));
      end.attribute("duplicates", static_cast<int64_t>(statistics.duplicates));
    });
    output << "\n";
  } else {
    clearLine();
    output << llvm::formatv(
        "{0} evaluated and {1} failed in {2:f1} s{3}; front "
        "of {4}, hypervolume {5:f4}:\n",
        evaluated, failed, seconds, isExhausted ? ", all there are" : "",
        front.size(), hypervolume);
    output << llvm::formatv("{0,10}", "candidate");
    for (const std::string &axis : axes)
      output << llvm::formatv(" {0,14}", axis);
    output << "\n";
    for (const ParetoFront::Member &member : front.getMembers()) {
      output << llvm::formatv("{0,10}", member.id);
      for (double value : member.point)
        output << " " << llvm::format("%14.6g", value);
      output << "\n";
    }
    printFinals(output, results, known);
  }
  stream << text;
  stream.flush();
}
