//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which training of a search comes next, and when a search ends: brackets of
// successive halving within a budget.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_TRAININGPLAN_H
#define KAS_SEARCH_CORE_TRAININGPLAN_H

#include "kas/Search/Core/Halving.h"
#include <limits>

namespace kas::search {

struct TrainingPlanOptions {
  HalvingPolicy halving;
  /// Of a whole training.
  int64_t epochs = 1;
  /// How many trainings run at once.
  size_t workers = 1;
  /// How many candidates at most are trained again in the end, and how often
  /// each.
  size_t finalCount = 0, finalSeeds = 1;
  /// The budget: candidates with those of earlier runs, and effort in whole
  /// trainings. That of time is passed to each call.
  size_t candidates = std::numeric_limits<size_t>::max();
  double trainings = std::numeric_limits<double>::infinity();
};

/// Says what to train. The caller has the candidates and the clock: here they
/// are numbers, and seconds that the caller has measured. For one thread.
///
/// Without a limit of time nothing depends on what was measured.
class TrainingPlan {
public:
  /// Errors: those of `HalvingPolicy::check`, and a number that must be at
  /// least 1 and is not.
  static llvm::Expected<TrainingPlan> create(TrainingPlanOptions options);

  /// What is known of a search, by the caller.
  struct State {
    /// How long until the budget of time is over.
    double secondsLeft = std::numeric_limits<double>::infinity();
    /// Candidates with an outcome, and those that were trained to the end.
    size_t known = 0, whole = 0;
  };

  // Times. A job of n epochs is taken to need `fixed + n * epoch` seconds,
  // fitted to the jobs that ended.

  /// A training of the network itself, or a part of it, took so long: this
  /// counts until the first job of a candidate has ended.
  void learn(int64_t epochs, double seconds);
  bool hasLearned() const { return !prior.empty(); }
  /// The seconds of a job; 0 as long as nothing is known.
  double predict(int64_t epochs) const;
  /// Of the final round of so many candidates.
  double predictFinal(size_t count) const;
  /// Until all brackets, and a new one of so many candidates, are done.
  double predictBrackets(size_t size) const;
  /// How many times each of so many baselines is trained: as often as
  /// finalists, or as there is a third of the time for; at least once.
  size_t countBaselineSeeds(size_t baselines, double secondsLeft) const;

  // Brackets.

  /// How many candidates a new bracket may have, beside `others` that an
  /// interruption has left of it: as many as end in time with their final
  /// trainings; 0 where the budget is spent or two brackets are open.
  size_t getRoom(const State &state, size_t others = 0) const;
  /// A new bracket.
  void open(llvm::ArrayRef<uint64_t> candidates,
            std::map<uint64_t, Bracket::Known> known = {});
  /// See `Bracket::take`; of the oldest bracket that has something to train.
  std::optional<std::pair<uint64_t, int64_t>> take();
  /// A candidate was trained to the end of `epochs` by a job of so many
  /// seconds, or its training failed. Returns those that are out; an error
  /// where it was not taken.
  llvm::Expected<std::vector<uint64_t>> finish(uint64_t id, int64_t epochs,
                                               double score, double seconds);
  llvm::Expected<std::vector<uint64_t>> fail(uint64_t id);
  /// So far, in whole trainings; without those of baselines and of the final
  /// round.
  double getEffort() const { return effort; }

private:
  explicit TrainingPlan(TrainingPlanOptions given);
  llvm::Expected<Bracket *> find(uint64_t id);

  TrainingPlanOptions options;
  /// The ends of all rungs.
  std::vector<int64_t> ends;
  /// Epochs and seconds: of the network itself, and of candidates.
  std::vector<std::pair<int64_t, double>> prior, jobs;
  std::vector<Bracket> brackets;
  double effort = 0;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_TRAININGPLAN_H
