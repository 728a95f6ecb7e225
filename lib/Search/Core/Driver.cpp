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
// The driver is the only place where a search runs in parallel: a searcher is
// locked inside, evaluators are safe to be called from several threads.
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

/// Metrics of later evaluators do not replace those of earlier ones (`merge`
/// keeps what is there). Evaluators that compare candidates are given only
/// candidates that all of them have accepted.
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
  // Signals the thread of the clock that the search is over.
  std::condition_variable done;
  uint64_t started = 0;
  bool finished = false;
  auto start = std::chrono::steady_clock::now();
  auto isLate = [&] {
    // Checked before a candidate is requested: an evaluation that has begun is
    // always completed.
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
        // Both limits are on what is begun. With `evaluations` alone the set of
        // candidates does not depend on the speed of any thread.
        if (started >= limits.evaluations || isLate())
          return;
        // An empty answer means that the space is exhausted, or that the effort
        // for one call is spent: this thread ends in both cases.
        candidates = searcher.ask(1);
        if (candidates.empty())
          return;
        ++started;
      }
      // Outside of the lock: this is where nearly all the time goes.
      Outcome outcome = evaluate(candidates.front(), evaluators);
      // The candidate was proposed and has no outcome yet, so `tell` has no
      // reason to fail.
      llvm::cantFail(searcher.tell(candidates.front().id, outcome));
      std::lock_guard<std::mutex> lock(mutex);
      results.push_back({candidates.front(), std::move(outcome)});
      if (progress)
        progress(results.back());
    }
  };

  // A searcher may look for a candidate longer than the time allows. The loop
  // above looks at the clock between candidates only. This thread interrupts a
  // call of `ask` that is under way.
  std::thread clock;
  std::mutex clockMutex;
  // Without a limit there is no such thread, and nothing depends on a clock.
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
  // Ends the wait early. `finished` is written under the lock of the wait,
  // otherwise the signal could fall between the test of the predicate and the
  // wait, and be lost.
  if (clock.joinable()) {
    {
      std::lock_guard<std::mutex> lock(clockMutex);
      finished = true;
    }
    done.notify_all();
    clock.join();
  }
  // Threads finish in any order; the identifiers are in the order of the
  // proposals.
  llvm::sort(results, [](const SearchResult &a, const SearchResult &b) {
    return a.candidate.id < b.candidate.id;
  });
  return results;
}
