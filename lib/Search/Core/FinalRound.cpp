//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates the best candidates once more by the evaluators of the final round,
// and skips those whose predicted least time is too large.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/FinalRound.h"
#include <chrono>
#include <limits>
#include <mutex>
#include <thread>

using namespace kas;
using namespace kas::search;
using llvm::Error;

/// A metric of a result, or nothing.
static std::optional<double> getMetric(const SearchResult &result,
                                       const char *name) {
  const auto *metrics = std::get_if<Metrics>(&result.outcome);
  if (!metrics)
    return std::nullopt;
  auto found = metrics->find(name);
  return found == metrics->end() ? std::nullopt : std::optional(found->second);
}

/// Joins what the final round found to `result`.
static void join(SearchResult &result, const Outcome &found) {
  if (const auto *more = std::get_if<Metrics>(&found))
    std::get<Metrics>(result.outcome).insert(more->begin(), more->end());
  else
    result.outcome = found;
}

Error kas::search::runFinalRound(
    llvm::MutableArrayRef<SearchResult> results,
    llvm::ArrayRef<Evaluator *> evaluators, unsigned threads,
    const std::map<uint64_t, Outcome> &known,
    llvm::function_ref<Error(const SearchResult &, double)> record) {
  std::mutex mutex;
  size_t next = 0;
  std::optional<std::string> failure;
  // The least time that was measured rules out what cannot be below.
  double least = std::numeric_limits<double>::infinity();
  auto work = [&] {
    for (;;) {
      SearchResult *result = nullptr;
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (next == results.size() || failure)
          return;
        result = &results[next++];
        if (getMetric(*result, "predicted_least_ms").value_or(0) > least)
          continue;
      }
      if (auto found = known.find(result->candidate.id); found != known.end()) {
        if (const auto *metrics = std::get_if<Metrics>(&found->second))
          for (Evaluator *evaluator : evaluators)
            evaluator->observe(*metrics);
        join(*result, found->second);
        std::lock_guard<std::mutex> lock(mutex);
        least =
            std::min(least, getMetric(*result, "latency_ms").value_or(least));
        continue;
      }
      auto start = std::chrono::steady_clock::now();
      Outcome outcome = evaluate(result->candidate, evaluators);
      double seconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - start)
                           .count();
      std::lock_guard<std::mutex> lock(mutex);
      if (Error error = record({result->candidate, outcome}, seconds)) {
        std::string message = llvm::toString(std::move(error));
        if (!failure)
          failure = std::move(message);
      }
      join(*result, outcome);
      least = std::min(least, getMetric(*result, "latency_ms").value_or(least));
    }
  };
  std::vector<std::thread> others;
  for (unsigned index = 1; index < threads; ++index)
    others.emplace_back(work);
  work();
  for (std::thread &thread : others)
    thread.join();
  if (failure)
    return llvm::createStringError(*failure);
  return Error::success();
}
