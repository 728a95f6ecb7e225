//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates the candidates of a searcher on several threads, in the order of
// its sequence.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Driver.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace kas;
using namespace kas::search;

Outcome kas::search::evaluate(const Candidate &candidate,
                              llvm::ArrayRef<Evaluator *> evaluators) {
  Metrics metrics;
  for (Evaluator *evaluator : evaluators) {
    llvm::Expected<Metrics> some = evaluator->evaluate(*candidate.solution);
    if (!some)
      return Failure{evaluator->getName().str() + ": " +
                     llvm::toString(some.takeError())};
    metrics.merge(*some);
  }
  for (Evaluator *evaluator : evaluators)
    evaluator->observe(metrics);
  return metrics;
}

std::vector<SearchResult> kas::search::runSearch(
    Searcher &searcher, llvm::ArrayRef<Evaluator *> evaluators,
    const SearchLimits &limits,
    llvm::function_ref<void(const SearchResult &)> progress) {
  std::vector<SearchResult> results;
  std::mutex mutex;
  std::condition_variable done;
  uint64_t started = 0;
  bool finished = false;
  auto start = std::chrono::steady_clock::now();
  auto isLate = [&] {
    std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    return limits.seconds > 0 && elapsed.count() >= limits.seconds;
  };

  auto work = [&] {
    for (;;) {
      std::vector<Candidate> candidates;
      {
        // One thread asks at a time: the set of those evaluated is a prefix of
        // the searcher's sequence.
        std::lock_guard<std::mutex> lock(mutex);
        if (started >= limits.evaluations || isLate())
          return;
        candidates = searcher.ask(1);
        if (candidates.empty())
          return;
        ++started;
      }
      Outcome outcome = evaluate(candidates.front(), evaluators);
      llvm::cantFail(searcher.tell(candidates.front().id, outcome));
      std::lock_guard<std::mutex> lock(mutex);
      results.push_back({candidates.front(), std::move(outcome)});
      if (progress)
        progress(results.back());
    }
  };

  // A searcher may look for a candidate longer than the time allows.
  std::thread clock;
  std::mutex clockMutex;
  if (limits.seconds > 0)
    clock = std::thread([&] {
      std::unique_lock<std::mutex> lock(clockMutex);
      if (!done.wait_for(lock, std::chrono::duration<double>(limits.seconds),
                         [&] { return finished; }))
        searcher.stop();
    });
  std::vector<std::thread> threads;
  for (unsigned index = 1; index < limits.threads; ++index)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  if (clock.joinable()) {
    {
      std::lock_guard<std::mutex> lock(clockMutex);
      finished = true;
    }
    done.notify_all();
    clock.join();
  }
  llvm::sort(results, [](const SearchResult &a, const SearchResult &b) {
    return a.candidate.id < b.candidate.id;
  });
  return results;
}
