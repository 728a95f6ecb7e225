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
// The final round is for evaluators that are too slow for every candidate, such
// as training or measured latency of whole networks.
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

/// A metric of a result, or nothing. Nothing for a failure, too.
static std::optional<double> getMetric(const SearchResult &result,
                                       const char *name) {
  const auto *metrics = std::get_if<Metrics>(&result.outcome);
  if (!metrics)
    return std::nullopt;
  auto found = metrics->find(name);
  return found == metrics->end() ? std::nullopt : std::optional(found->second);
}

/// Joins what the final round found to `result`. A failure in the final round
/// makes the candidate a failure: metrics of the first round alone would let it
/// stay ahead of others.
static void join(SearchResult &result, const Outcome &found) {
  if (const auto *more = std::get_if<Metrics>(&found))
    // Metrics of the first round win over those of the same name.
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
  // `predicted_least_ms` is a lower bound of the time, so a candidate whose
  // bound is above a time that was measured cannot be the fastest one.
  double least = std::numeric_limits<double>::infinity();
  // The same queue for all threads as in the baselines; results are taken in
  // their order, best first, so that `least` falls early.
  auto work = [&] {
    for (;;) {
      SearchResult *result = nullptr;
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (next == results.size() || failure)
          return;
        result = &results[next++];
        // Skipped, not failed: the result keeps its metrics of the first round.
        if (getMetric(*result, "predicted_least_ms").value_or(0) > least)
          continue;
      }
      // Outcomes of an earlier run on the same database are not computed again,
      // but evaluators that compare candidates must know of them.
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
      // Outside of the lock.
      auto start = std::chrono::steady_clock::now();
      Outcome outcome = evaluate(result->candidate, evaluators);
      double seconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - start)
                           .count();
      // The lock guards `record`, which writes to the database, and `join`.
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
