//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which candidates are trained on.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_HALVING_H
#define KAS_SEARCH_EVALUATORS_HALVING_H

#include "kas/Search/Core/Evaluator.h"
#include <mutex>
#include <vector>

namespace kas::search {

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

#endif // KAS_SEARCH_EVALUATORS_HALVING_H
