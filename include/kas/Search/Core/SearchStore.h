//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The database of a search: one file that a killed search goes on from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_SEARCHSTORE_H
#define KAS_SEARCH_CORE_SEARCHSTORE_H

#include "kas/Search/Core/Searcher.h"

namespace kas::search {

/// What a search is, by name: its space, algorithm, seed and all else that its
/// candidates and their outcomes follow from. A file goes on only with the
/// settings it was made with.
using SearchSettings = std::map<std::string, std::string, std::less<>>;

/// One row of a search database.
struct StoredCandidate {
  uint64_t id = 0;
  /// `Solution::key()`; no two candidates of a file have the same.
  uint64_t key = 0;
  /// The IR of the candidate.
  std::string text;
  /// The candidate that it was made from, for algorithms that vary others.
  std::optional<uint64_t> parent;
  /// The position of the proposal in the file's sequence of events, which
  /// counts proposals and outcomes together from 0; and the outcome, once it is
  /// known.
  uint64_t askEvent = 0;
  std::optional<uint64_t> tellEvent;
  /// Nothing while the candidate is being evaluated.
  std::optional<Outcome> outcome;
  /// The outcome of the final round, for the best only; nothing where there was
  /// none. It is of no concern to the algorithm.
  std::optional<Outcome> finalOutcome;
  /// When it was proposed, in seconds since 1970, and how long its evaluation
  /// took.
  double askedAt = 0, seconds = 0;

  /// What is known in all: the metrics of both outcomes, the first failure, or
  /// nothing.
  std::optional<Outcome> getOutcome() const;
};

/// What candidates are compared with, as it is kept.
struct StoredBaseline {
  /// The number of the network itself; others count on downwards.
  static constexpr int64_t networkId = -1;

  int64_t id = networkId;
  std::string name;
  /// The IR; empty where the network itself is all that is known.
  std::string text;
  /// By which evaluators there are metrics.
  std::vector<std::string> evaluators;
};

/// One number of a curve: what a training had come to after an epoch.
struct TrainingPoint {
  /// The candidate that was trained, or `StoredBaseline::id`.
  int64_t candidate = StoredBaseline::networkId;
  uint64_t seed = 0, epoch = 0;
  std::string name;
  double value = 0;
};

/// A file of SQLite (sqlite.org) with the tables `setting`, `candidate`,
/// `metric`, `final_candidate`, `final_metric` and `statistic`, and `training`
/// and `baseline` once there are such rows; docs/guide/searching.md describes
/// them. What was
/// recorded survives the end of the process, whatever its cause; the last
/// second may be lost when the machine itself fails, but the file stays sound.
/// One thread at a time may use an object.
class SearchStore {
public:
  /// The version of the tables, `PRAGMA user_version` of the file.
  static constexpr int schemaVersion = 1;
  /// `PRAGMA application_id` of the file: "kasS".
  static constexpr int applicationId = 0x6b617353;

  /// Opens the file at `path` to go on with the search that `settings`
  /// describe, or makes it when there is none or an empty one. Errors that
  /// change nothing: a file that is damaged, of another kind, of another schema
  /// or of other settings, that may not be written, or that another process has
  /// open in this way. `information` is kept beside the settings when the file
  /// is made, and never compared.
  static llvm::Expected<std::unique_ptr<SearchStore>>
  open(llvm::StringRef path, const SearchSettings &settings,
       const SearchSettings &information = {});

  /// Opens an existing file to read it, also while a search writes it.
  static llvm::Expected<std::unique_ptr<SearchStore>>
  openToRead(llvm::StringRef path);

  SearchStore(const SearchStore &) = delete;
  SearchStore &operator=(const SearchStore &) = delete;
  /// Closes the file without more ado, like the end of the process.
  ~SearchStore();

  llvm::StringRef getPath() const;
  /// Settings and information.
  const SearchSettings &getSettings() const;

  /// All candidates by identifier.
  llvm::Expected<std::vector<StoredCandidate>> readCandidates() const;

  llvm::Expected<std::map<std::string, uint64_t>> readStatistics() const;

  /// Records a proposal; `askEvent`, `tellEvent`, `outcome` and `seconds` of
  /// `candidate` are not used.
  llvm::Error recordAsk(const StoredCandidate &candidate);

  /// Records the outcome of a candidate that has none. Metrics must be finite.
  llvm::Error recordTell(uint64_t id, const Outcome &outcome, double seconds);

  /// The same for the final round.
  llvm::Error recordFinal(uint64_t id, const Outcome &outcome, double seconds);

  /// Records curves; numbers that are there are replaced.
  llvm::Error recordTraining(llvm::ArrayRef<TrainingPoint> points);
  /// All curves, by candidate, seed, epoch and name.
  llvm::Expected<std::vector<TrainingPoint>> readTraining() const;

  /// Records a baseline, or that more is known of it, with metrics or curves.
  llvm::Error recordBaseline(const StoredBaseline &baseline,
                             llvm::ArrayRef<TrainingPoint> points = {});
  /// The network itself first.
  llvm::Expected<std::vector<StoredBaseline>> readBaselines() const;

  llvm::Error recordStatistics(const SearchStatistics &statistics);

  /// Copies rows as they are, all or none; but for the time of final rounds.
  llvm::Error insert(llvm::ArrayRef<StoredCandidate> candidates);

  /// All that SQLite can check of a file.
  llvm::Error checkIntegrity() const;

  /// Closes the file properly: what is left is the one file, without the log
  /// that SQLite keeps beside it. Nothing may be called afterwards.
  void close();

private:
  struct Impl;
  explicit SearchStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// What `mergeSearches` did.
struct MergeCounts {
  uint64_t candidates = 0, duplicates = 0;
};

/// Makes the file `output`, which must not exist, of the candidates of two
/// searches of the same space. Of a candidate that is in both, the better known
/// outcome is kept (metrics before a failure, a failure before none); of two
/// with metrics, those of `first` and what only `second` has. Identifiers are
/// given anew, `first`'s first; lineages are kept. The result can be read, but
/// no search goes on from it.
llvm::Expected<MergeCounts> mergeSearches(const SearchStore &first,
                                          const SearchStore &second,
                                          llvm::StringRef output);

} // namespace kas::search

#endif // KAS_SEARCH_CORE_SEARCHSTORE_H
