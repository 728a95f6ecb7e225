//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Successive halving: which candidates are trained on. `Bracket` waits for all
// candidates of a rung, `Halving` for none.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_HALVING_H
#define KAS_SEARCH_CORE_HALVING_H

#include "kas/Search/Core/Evaluator.h"
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace kas::search {

/// How brackets are made and halved.
struct HalvingPolicy {
  /// How many candidates are compared with each other.
  size_t size = 9;
  /// After so many epochs the best are trained on; those after the last rung to
  /// the end. There may be none.
  std::vector<int64_t> rungs = {1, 3, 6};
  /// The share of candidates that is trained on after a rung.
  double keep = 1.0 / 3;

  /// An error for a size of 0, a share that is not in (0, 1], and rungs that
  /// are not positive or do not ascend.
  llvm::Error check() const;
  /// How many of `count` candidates are trained on: the share, at least one.
  size_t countKept(size_t count) const;
  /// The policy for trainings of so many epochs, without the rungs that these
  /// do not have.
  HalvingPolicy forEpochs(int64_t epochs) const;
};

/// Candidates of a search, by their numbers, that are compared with each other
/// (Jamieson, Talwalkar, "Non-stochastic Best Arm Identification and
/// Hyperparameter Optimization", AISTATS 2016, section 3): a rung waits for all
/// of its candidates, so what goes on does not depend on which of them ends
/// first.
class Bracket {
public:
  /// What is known of a candidate from before an interruption. Others are
  /// compared with it again.
  struct Known {
    int64_t epochs;
    double score;
  };

  /// `ends` has the ends of all rungs in epochs, that of the whole training
  /// last.
  Bracket(const HalvingPolicy &policy, std::vector<int64_t> ends,
          llvm::ArrayRef<uint64_t> candidates,
          std::map<uint64_t, Known> known = {});

  /// Whether all candidates are out.
  bool isDone() const { return candidates.empty(); }
  /// How many are in, and how many of these are to be trained in this rung.
  size_t size() const { return candidates.size(); }
  size_t countLeft() const { return waiting.size() + running.size(); }
  size_t getRung() const { return rung; }
  bool isRunning(uint64_t id) const { return running.count(id); }
  /// How many epochs a candidate has been trained for.
  int64_t getEpochs(uint64_t id) const;

  /// The next candidate to train, and to the end of which epoch; the one with
  /// the least number first.
  std::optional<std::pair<uint64_t, int64_t>> take();
  /// The outcome of a candidate that was taken; more is better. Returns those
  /// that are out, the best first: of equal scores the older one is better.
  std::vector<uint64_t> finish(uint64_t id, int64_t epochs, double score);
  std::vector<uint64_t> fail(uint64_t id);

private:
  std::vector<uint64_t> advance();

  HalvingPolicy policy;
  std::vector<int64_t> ends;
  std::map<uint64_t, Known> known;
  /// Each is in, and waits, runs or has a score in this rung.
  std::set<uint64_t> candidates, waiting, running;
  std::map<uint64_t, double> scores;
  std::map<uint64_t, int64_t> epochs;
  size_t rung = 0;
};

/// Successive halving without waiting (Li et al.: "A System for Massively
/// Parallel Hyperparameter Tuning", MLSys 2020, section 3): after each rung, a
/// number of epochs, a candidate is trained on while its accuracy is in the
/// best third of those of the candidates before it and itself. The first one
/// always is. Any number of threads.
class Halving {
public:
  /// Errors: rungs that are not positive or do not ascend.
  static llvm::Expected<std::unique_ptr<Halving>>
  create(llvm::ArrayRef<int64_t> rungs);

  struct Milestone {
    int64_t epoch;
    /// What must be exceeded to be trained on: of equal ones the first is.
    double accuracy;
  };
  /// For the next candidate, by what is known now.
  std::vector<Milestone> getMilestones() const;

  /// Takes note of the metrics `accuracy_R` of the rungs R that a candidate has
  /// reached.
  void observe(const Metrics &metrics);

private:
  explicit Halving(llvm::ArrayRef<int64_t> rungs)
      : rungs(rungs), accuracies(rungs.size()) {}

  std::vector<int64_t> rungs;
  mutable std::mutex mutex;
  /// By rung, the best first.
  std::vector<std::vector<double>> accuracies;
};

} // namespace kas::search

#endif // KAS_SEARCH_CORE_HALVING_H
