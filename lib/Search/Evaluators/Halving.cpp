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
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/Halving.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace kas;
using namespace kas::search;

/// One of so many candidates is trained on.
static constexpr size_t reduction = 3;

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

std::vector<Halving::Milestone> Halving::getMilestones() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<Milestone> milestones;
  for (auto [rung, known] : llvm::zip_equal(rungs, accuracies)) {
    // Of these and the next one, so many are trained on.
    size_t kept = llvm::divideCeil(known.size() + 1, reduction);
    milestones.push_back({rung, kept <= known.size()
                                    ? known[kept - 1]
                                    : std::numeric_limits<double>::lowest()});
  }
  return milestones;
}

void Halving::observe(const Metrics &metrics) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto [rung, known] : llvm::zip_equal(rungs, accuracies)) {
    auto found = metrics.find("accuracy_" + std::to_string(rung));
    if (found != metrics.end())
      known.insert(llvm::upper_bound(known, found->second, std::greater<>()),
                   found->second);
  }
}
