//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Wraps a searcher so that each proposal and outcome is in the database before
// it counts, and replays a database into a new searcher.
//
// An algorithm is a deterministic function of its calls, so the database needs
// no snapshot of its state: the same calls of `ask` and `tell`, in the recorded
// order, bring a new searcher to the same state.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/StoredSearcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;

StoredSearcher::StoredSearcher(Searcher &searcher, SearchStore &store,
                               Printer print)
    : searcher(searcher), store(store), print(std::move(print)) {}

/// Asks the searcher for one candidate and compares it with the recorded one.
Error StoredSearcher::replayAsk(const StoredCandidate &stored,
                                llvm::DenseMap<uint64_t, Candidate> &inFlight) {
  auto differs = [&](const llvm::Twine &got) {
    return createStringError(
        "search database '" + store.getPath() + "': candidate " +
        llvm::Twine(stored.id) + " requires the one that the file has, got " +
        got + "; the program or its limits on effort have changed");
  };
  std::vector<Candidate> asked = searcher.ask(1);
  if (asked.empty())
    return differs("none");
  Candidate &candidate = asked.front();
  // The key is enough: it identifies a candidate on every machine.
  if (candidate.id != stored.id || candidate.solution->key() != stored.key)
    return differs("another");
  inFlight.try_emplace(stored.id, std::move(candidate));
  return Error::success();
}

Error StoredSearcher::replay() {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::Expected<std::vector<StoredCandidate>> stored = store.readCandidates();
  if (!stored)
    return stored.takeError();
  // By event: the candidate, and whether it is its outcome that came. Proposals
  // and outcomes of parallel evaluations interleave; the order between them is
  // what algorithms that learn depend on.
  std::vector<std::tuple<uint64_t, bool, StoredCandidate *>> events;
  for (StoredCandidate &candidate : *stored) {
    events.emplace_back(candidate.askEvent, false, &candidate);
    if (candidate.tellEvent)
      events.emplace_back(*candidate.tellEvent, true, &candidate);
  }
  llvm::sort(events, llvm::less_first());
  llvm::DenseMap<uint64_t, Candidate> inFlight;
  for (auto [event, isOutcome, candidate] : events) {
    if (!isOutcome) {
      if (Error error = replayAsk(*candidate, inFlight))
        return error;
      continue;
    }
    // A recorded outcome has always a recorded proposal before it.
    if (Error error = searcher.tell(candidate->id, *candidate->outcome))
      return error;
    auto entry = inFlight.find(candidate->id);
    replayed.push_back({entry->second, std::move(*candidate->outcome)});
    inFlight.erase(entry);
  }
  // Outcomes are in the order of their arrival; callers expect that of the
  // identifiers.
  llvm::sort(replayed, [](const SearchResult &a, const SearchResult &b) {
    return a.candidate.id < b.candidate.id;
  });
  // The run ended before these were evaluated.
  for (const StoredCandidate &candidate : *stored)
    if (auto found = inFlight.find(candidate.id); found != inFlight.end())
      pending.push_back(found->second);
  return Error::success();
}

/// The first failure is the one to report; later ones are mostly its
/// consequences. The lock is held by the caller.
void StoredSearcher::fail(Error error) {
  std::string message = llvm::toString(std::move(error));
  if (!failure)
    failure = std::move(message);
  stopped = true;
}

Error StoredSearcher::takeError() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure)
    return Error::success();
  std::string message = std::move(*failure);
  failure.reset();
  return createStringError(message);
}

// Wall-clock time, for people and statistics only.
static double getUnixTime() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// One by one, whatever `count` is: the sequence of calls must be reproducible
/// by `replay`, which asks for one at a time.
std::vector<Candidate> StoredSearcher::ask(unsigned count) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<Candidate> result;
  while (result.size() < count && !stopped) {
    Candidate candidate;
    // Recorded already, so it is not recorded again.
    if (!pending.empty()) {
      candidate = std::move(pending.front());
      pending.pop_front();
    } else {
      std::vector<Candidate> asked = searcher.ask(1);
      if (asked.empty())
        break;
      candidate = std::move(asked.front());
      StoredCandidate row;
      row.id = candidate.id;
      row.key = candidate.solution->key();
      row.text = print(*candidate.solution);
      row.parent = candidate.parent;
      row.askedAt = getUnixTime();
      // A candidate that is not in the file is not handed out.
      if (Error error = store.recordAsk(row)) {
        fail(std::move(error));
        break;
      }
    }
    // For the duration; a candidate of an earlier run starts now.
    started[candidate.id] = Clock::now();
    result.push_back(std::move(candidate));
  }
  return result;
}

/// The wrapped searcher hears of the outcome before the database, because it
/// rejects an outcome that makes no sense, and such an outcome must not be
/// recorded.
Error StoredSearcher::tell(uint64_t id, Outcome outcome) {
  std::lock_guard<std::mutex> lock(mutex);
  auto start = started.find(id);
  double seconds =
      start == started.end()
          ? 0
          : std::chrono::duration<double>(Clock::now() - start->second).count();
  started.erase(id);
  if (Error error = searcher.tell(id, outcome))
    return error;
  // What follows a gap could not be replayed.
  if (failure)
    return Error::success();
  if (Error error = store.recordTell(id, outcome, seconds)) {
    fail(std::move(error));
    return Error::success();
  }
  // Once a second: statistics are for readers that look at a running search.
  if (Clock::now() - statisticsRecorded >= std::chrono::seconds(1)) {
    if (Error error = store.recordStatistics(searcher.getStatistics()))
      fail(std::move(error));
    statisticsRecorded = Clock::now();
  }
  return Error::success();
}

bool StoredSearcher::isExhausted() const {
  std::lock_guard<std::mutex> lock(mutex);
  return pending.empty() && searcher.isExhausted();
}

/// Without the lock, as `ask` holds it.
void StoredSearcher::stop() {
  stopped = true;
  searcher.stop();
}

SearchStatistics StoredSearcher::getStatistics() const {
  return searcher.getStatistics();
}
