//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Asynchronous successive halving (Li et al., "A System for Massively Parallel
// Hyperparameter Tuning", MLSys 2020, section 3).
//
// A candidate is not held back to wait for others: it is compared with those
// that have reached the rung before it. So early candidates are promoted more
// easily than in synchronous halving.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/Halving.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace kas;
using namespace kas::search;

/// One of so many candidates is trained on. The paper's eta.
static constexpr size_t reduction = 3;

/// No rungs at all are legal: then every candidate is trained to the end.
llvm::Expected<std::unique_ptr<Halving>>
Halving::create(llvm::ArrayRef<int64_t> rungs) {
  int64_t last = 0;
  for (int64_t rung : rungs) {
    if (rung <= last)
      return llvm::createStringError(
          "requires rungs that are positive and ascend, got " +
          llvm::Twine(rung) +
          (last ? " after " + llvm::Twine(last) : llvm::Twine()));
    last = rung;
  }
  return std::unique_ptr<Halving>(new Halving(rungs));
}

/// The accuracy that a candidate must exceed at each rung to be in the best
/// third of those known and itself.
std::vector<Halving::Milestone> Halving::getMilestones() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<Milestone> milestones;
  // With n known accuracies ceil((n + 1) / 3) candidates are kept, itself
  // included. For the first two that is all of rank 1: the first one is always
  // promoted, the second one has to be better than the first.
  for (auto [rung, known] : llvm::zip_equal(rungs, accuracies)) {
    // Of these and the next one, so many are trained on.
    size_t kept = llvm::divideCeil(known.size() + 1, reduction);
    milestones.push_back({rung, kept <= known.size()
                                    ? known[kept - 1]
                                    : std::numeric_limits<double>::lowest()});
  }
  return milestones;
}

/// Sorted insertion, the best first. Of equal accuracies the earlier one stays
/// ahead.
void Halving::observe(const Metrics &metrics) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto [rung, known] : llvm::zip_equal(rungs, accuracies)) {
    // A candidate that was stopped early has no metric for later rungs.
    auto found = metrics.find("accuracy_" + std::to_string(rung));
    if (found != metrics.end())
      known.insert(llvm::upper_bound(known, found->second, std::greater<>()),
                   found->second);
  }
}
