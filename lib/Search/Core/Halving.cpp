//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Successive halving, in two forms.
//
// A bracket holds candidates back until all of a rung are trained: they are
// compared with each other, and the outcome does not depend on the order in
// which trainings end. It needs to know the candidates beforehand, and to train
// one in parts. Asynchronous halving (Li et al., "A System for Massively
// Parallel Hyperparameter Tuning", MLSys 2020, section 3) compares a candidate
// with those that have reached the rung before it, so early candidates are
// promoted more easily: for evaluators, which see one candidate at a time.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/Halving.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;

/// One of so many candidates is trained on by asynchronous halving. The paper's
/// eta.
static constexpr size_t reduction = 3;

static Error checkRungs(llvm::ArrayRef<int64_t> rungs) {
  int64_t last = 0;
  for (int64_t rung : rungs) {
    if (rung <= last)
      return createStringError(
          "requires rungs that are positive and ascend, got " +
          llvm::Twine(rung) +
          (last ? " after " + llvm::Twine(last) : llvm::Twine()));
    last = rung;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// With waiting
//===----------------------------------------------------------------------===//

Error HalvingPolicy::check() const {
  if (size == 0)
    return createStringError("requires a size of at least 1 for halving, got "
                             "0");
  // NaN is neither.
  if (!(keep > 0 && keep <= 1))
    return createStringError("requires a share to keep above 0 and at most 1, "
                             "got " +
                             std::to_string(keep));
  return checkRungs(rungs);
}

size_t HalvingPolicy::countKept(size_t count) const {
  // So that a third of nine is three.
  constexpr double rounding = 1e-9;
  auto kept = static_cast<size_t>(
      std::floor(static_cast<double>(count) * keep + rounding));
  return std::max<size_t>(1, kept);
}

HalvingPolicy HalvingPolicy::forEpochs(int64_t epochs) const {
  HalvingPolicy policy = *this;
  llvm::erase_if(policy.rungs, [&](int64_t rung) { return rung >= epochs; });
  return policy;
}

Bracket::Bracket(const HalvingPolicy &policy, std::vector<int64_t> ends,
                 llvm::ArrayRef<uint64_t> candidates,
                 std::map<uint64_t, Known> known)
    : policy(policy), ends(std::move(ends)), known(std::move(known)),
      candidates(candidates.begin(), candidates.end()),
      waiting(this->candidates) {}

int64_t Bracket::getEpochs(uint64_t id) const {
  auto found = epochs.find(id);
  return found == epochs.end() ? 0 : found->second;
}

std::optional<std::pair<uint64_t, int64_t>> Bracket::take() {
  if (waiting.empty())
    return std::nullopt;
  uint64_t id = *waiting.begin();
  waiting.erase(waiting.begin());
  running.insert(id);
  return std::pair(id, ends[rung]);
}

std::vector<uint64_t> Bracket::finish(uint64_t id, int64_t trained,
                                      double score) {
  running.erase(id);
  epochs[id] = trained;
  scores[id] = score;
  return advance();
}

std::vector<uint64_t> Bracket::fail(uint64_t id) {
  running.erase(id);
  candidates.erase(id);
  return advance();
}

/// Once all of a rung are trained, the next one starts with those that are kept
/// of it. From before an interruption, those that got as far are in the order,
/// those that got further before all others.
std::vector<uint64_t> Bracket::advance() {
  if (countLeft() > 0 || isDone())
    return {};
  for (const auto &[id, one] : known)
    if (one.epochs >= ends[rung])
      scores[id] = one.epochs == ends[rung]
                       ? one.score
                       : std::numeric_limits<double>::infinity();
  std::vector<std::pair<uint64_t, double>> order(scores.begin(), scores.end());
  llvm::sort(order, [](const auto &a, const auto &b) {
    return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
  });
  bool isLast = rung + 1 == ends.size();
  size_t kept = isLast ? 0 : policy.countKept(order.size());
  std::vector<uint64_t> out;
  for (const auto &[id, score] : llvm::drop_begin(order, kept))
    if (candidates.erase(id))
      out.push_back(id);
  scores.clear();
  waiting = candidates;
  if (!isLast)
    ++rung;
  return out;
}

//===----------------------------------------------------------------------===//
// Without waiting
//===----------------------------------------------------------------------===//

/// No rungs at all are legal: then every candidate is trained to the end.
llvm::Expected<std::unique_ptr<Halving>>
Halving::create(llvm::ArrayRef<int64_t> rungs) {
  if (Error error = checkRungs(rungs))
    return error;
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
