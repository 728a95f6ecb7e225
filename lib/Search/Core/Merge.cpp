//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Merges two search databases into a new one.
//
// Rows are matched by the key of the candidate (`Solution::key`), which is the
// same on every machine. Metrics of both files are joined; times of evaluation
// stay with the outcome that is kept.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SearchStore.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FileSystem.h"

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// How much is known: nothing, a failure, metrics.
static int getRank(const StoredCandidate &candidate) {
  if (!candidate.outcome)
    return 0;
  return std::holds_alternative<Failure>(*candidate.outcome) ? 1 : 2;
}

/// Takes what is better known of `other` into `candidate`. Nothing is lost:
/// with metrics in both, names that only `other` has are added. A final outcome
/// is kept together with the outcome that it continues.
static void improve(StoredCandidate &candidate, const StoredCandidate &other) {
  int rank = getRank(candidate), otherRank = getRank(other);
  if (otherRank > rank) {
    candidate.outcome = other.outcome;
    candidate.finalOutcome = other.finalOutcome;
    candidate.seconds = other.seconds;
    candidate.askedAt = other.askedAt;
  } else if (rank == 2 && otherRank == 2) {
    // Both have metrics: `first` wins where both have a name.
    const Metrics &more = std::get<Metrics>(*other.outcome);
    std::get<Metrics>(*candidate.outcome).insert(more.begin(), more.end());
    if (!candidate.finalOutcome)
      candidate.finalOutcome = other.finalOutcome;
  }
}

/// What both have; the algorithm of what no search made is `merge`. A setting
/// that differs, such as the seed, is not true of the result. The algorithm
/// `merge` is that of no searcher, so no search can go on from the file.
static SearchSettings mergeSettings(const SearchSettings &first,
                                    const SearchSettings &second) {
  SearchSettings result;
  for (const auto &[name, value] : first)
    if (auto other = second.find(name);
        other != second.end() && other->second == value)
      result[name] = value;
  result["algorithm"] = "merge";
  return result;
}

Expected<MergeCounts> kas::search::mergeSearches(const SearchStore &first,
                                                 const SearchStore &second,
                                                 llvm::StringRef output) {
  // The space is the only setting that must agree. Different algorithms, seeds
  // and evaluators are what one wants to merge.
  auto getSpace = [](const SearchStore &store) {
    auto space = store.getSettings().find("space");
    return space == store.getSettings().end() ? "" : space->second;
  };
  if (getSpace(first) != getSpace(second))
    return createStringError("requires two searches of one space, got those "
                             "of '" +
                             first.getPath() + "' and '" + second.getPath() +
                             "'");
  if (llvm::sys::fs::exists(output))
    return createStringError("'" + output + "' exists already");
  // Candidates in the order of the result; an index is an identifier there.
  MergeCounts counts;
  std::vector<StoredCandidate> merged;
  std::map<uint64_t, size_t> byKey;
  for (const SearchStore *store : {&first, &second}) {
    Expected<std::vector<StoredCandidate>> candidates = store->readCandidates();
    if (!candidates)
      return candidates.takeError();
    // From the identifiers of this file to those of the result.
    llvm::DenseMap<uint64_t, uint64_t> ids;
    for (StoredCandidate &candidate : *candidates) {
      auto [known, isNew] = byKey.try_emplace(candidate.key, merged.size());
      ids[candidate.id] = known->second;
      if (!isNew) {
        ++counts.duplicates;
        improve(merged[known->second], candidate);
        continue;
      }
      candidate.id = merged.size();
      // A parent was proposed before its child, so it has its new identifier
      // already.
      if (candidate.parent)
        candidate.parent = ids.lookup(*candidate.parent);
      merged.push_back(std::move(candidate));
    }
  }
  // Outcomes follow proposals. Events only have to be consistent, since nobody
  // replays them: first all proposals, then all outcomes.
  uint64_t event = merged.size();
  for (StoredCandidate &candidate : merged) {
    candidate.askEvent = candidate.id;
    candidate.tellEvent.reset();
    if (candidate.outcome)
      candidate.tellEvent = event++;
  }
  counts.candidates = merged.size();
  Expected<std::unique_ptr<SearchStore>> store = SearchStore::open(
      output, mergeSettings(first.getSettings(), second.getSettings()));
  if (!store)
    return store.takeError();
  Error error = (*store)->insert(merged);
  // No half-written file stays, nor the files that SQLite keeps next to it.
  if (error) {
    store->reset();
    for (const char *suffix : {"", "-wal", "-shm"})
      llvm::sys::fs::remove(output + suffix);
    return error;
  }
  (*store)->close();
  return counts;
}
