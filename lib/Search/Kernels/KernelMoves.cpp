//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which primitives may follow a partial kernel, and drawing one of them.
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"

using namespace kas;
using namespace kas::search;

std::optional<PendingStep> kas::search::makeStep(KernelSpace &space,
                                                 const KernelStateData &data,
                                                 KernelStep step,
                                                 uint32_t code) {
  return StepMaker(space, data, step, code).make();
}

/// How many codes there are for the last operand of `step`, at most.
static unsigned getNumParameters(const KernelSpace &space, KernelStep step,
                                 const FlatNode &left) {
  using enum KernelStep;
  const KernelLimits &limits = space.problem->limits;
  unsigned rank = left.shape.rank;
  switch (step) {
  case FC:
    return 4;
  case Scale:
    return 2;
  case Mix:
    return 3 * (rank + 1);
  case Group:
    return space.divisors.size();
  case Shift:
    return rank * 2 * limits.shift;
  case Unfold:
    return (1u << rank) * space.maxWindows * limits.dilation;
  case Shuffle:
    return left.shape.numChannels * space.divisors.size();
  case Reorder:
  case InverseReorder:
    return rank;
  case FoldSum:
  case FoldMean:
  case FoldMax:
  case Softmax:
    return 1u << rank;
  case MatMul:
    return 5;
  default:
    return 1;
  }
}

/// The same where it depends on both operands.
static unsigned getNumMatches(KernelSpace &space, const KernelStateData &data,
                              const FlatNode &left, const FlatNode &right) {
  // The factors of a ratio: no more than those of both sizes together.
  bool mayChoose = llvm::any_of(
      llvm::ArrayRef(left.shape.dims).take_front(left.shape.rank),
      [&](SizeId size) { return space.sizes.getVariables(size) != 0; });
  if (!mayChoose)
    return 1;
  SizeId ratio = space.sizes.divide(right.elements, left.elements);
  return ratio == noSize
             ? 1
             : std::max<size_t>(space.sizes.getFactors(ratio).size(), 1);
}

/// The result has the shape of its (right) operand.
static bool keepsShape(KernelStep step) {
  using enum KernelStep;
  return step == Shift || step == Shuffle || step == Reorder ||
         step == InverseReorder || step == Softmax || step == Norm ||
         isMerge(step) || (step >= Scale && step <= Sqr);
}

/// Reads neighbours, for some operands.
static bool mayCover(KernelStep step) {
  using enum KernelStep;
  return step == Shift || step == Unfold || step == Softmax || step == MatMul ||
         step == Mix || (step >= FoldSum && step <= FoldMax);
}

/// Enough steps are left after one of this kind for all that a kernel must
/// have: a part of `isFeasible` that does not need the step.
static bool canAfford(KernelSpace &space, const KernelStateData &data,
                      unsigned numLeaves, KernelStep step, unsigned left,
                      std::optional<unsigned> right) {
  const KernelLimits &limits = space.problem->limits;
  unsigned leaves = numLeaves + 1;
  leaves -= data.nodes[left].users == 0;
  if (right && *right != left)
    leaves -= data.nodes[*right].users == 0;
  unsigned needed = leaves - 1;
  unsigned weights = data.numWeights + (step == KernelStep::FC);
  needed += weights < limits.minWeights ? limits.minWeights - weights : 0;
  needed += (space.toCover & ~data.covered) != 0 && !mayCover(step);
  needed += data.hasShuffle && !data.hasGroup && step != KernelStep::Group &&
            step != KernelStep::GroupAll;
  if (leaves > limits.width || needed > data.getNumLeft() - 1)
    return false;
  return data.getNumLeft() > 1 || !keepsShape(step) ||
         matchOutput(space, data.nodes[right.value_or(left)].shape);
}

/// How many codes there are for these operands, at most.
static unsigned getNumCodes(KernelSpace &space, const KernelStateData &data,
                            unsigned numLeaves, KernelStep step, unsigned left,
                            std::optional<unsigned> right) {
  if (!canAfford(space, data, numLeaves, step, left, right))
    return 0;
  return isMerge(step)
             ? getNumMatches(space, data, data.nodes[left], data.nodes[*right])
             : getNumParameters(space, step, data.nodes[left]);
}

static bool isPossible(KernelSpace &space, const KernelStateData &data,
                       KernelStep step, uint32_t code) {
  std::optional<PendingStep> pending = makeStep(space, data, step, code);
  return pending && isFeasible(space, data, *pending);
}

void kas::search::forEachMove(KernelSpace &space, const KernelStateData &data,
                              unsigned kind, uint32_t first,
                              llvm::function_ref<bool(uint32_t)> found) {
  auto step = static_cast<KernelStep>(kind);
  if (!space.problem->limits.steps[kind] || data.getNumLeft() == 0)
    return;
  unsigned rights = isBinary(step) ? data.numNodes : 1;
  unsigned numLeaves = data.getNumLeaves();
  for (unsigned left = first >> 20; left < data.numNodes; ++left)
    for (unsigned right = left == first >> 20 ? first >> 16 & 15 : 0;
         right < rights; ++right) {
      uint32_t base = left << 20 | right << 16;
      unsigned numCodes =
          getNumCodes(space, data, numLeaves, step, left,
                      isBinary(step) ? std::optional(right) : std::nullopt);
      for (uint32_t code = std::max(base, first); code < base + numCodes;
           ++code)
        if (isPossible(space, data, step, code) && found(code))
          return;
    }
}

std::optional<uint32_t> kas::search::drawStep(KernelSpace &space,
                                              const KernelStateData &data,
                                              KernelStep step, Random &random) {
  // Operands that can be afforded, with room for the most codes of any.
  struct Operands {
    uint32_t base;
    unsigned numCodes;
  };
  llvm::SmallVector<Operands, 64> all;
  unsigned most = 0, numLeaves = data.getNumLeaves();
  for (unsigned left = 0; left < data.numNodes; ++left)
    for (unsigned right = 0; right < (isBinary(step) ? data.numNodes : 1u);
         ++right) {
      unsigned numCodes =
          getNumCodes(space, data, numLeaves, step, left,
                      isBinary(step) ? std::optional(right) : std::nullopt);
      if (numCodes == 0)
        continue;
      all.push_back({left << 20 | right << 16, numCodes});
      most = std::max(most, numCodes);
    }
  if (all.empty())
    return std::nullopt;
  // Draw and reject; what is not found so is listed.
  for (unsigned attempt = 0; attempt < 24; ++attempt) {
    const Operands &operands = all[random.below(all.size())];
    auto parameter = static_cast<unsigned>(random.below(most));
    if (parameter < operands.numCodes &&
        isPossible(space, data, step, operands.base + parameter))
      return operands.base + parameter;
  }
  llvm::SmallVector<uint32_t, 64> codes;
  forEachMove(space, data, static_cast<unsigned>(step), 0, [&](uint32_t code) {
    codes.push_back(code);
    return false;
  });
  if (codes.empty())
    return std::nullopt;
  return codes[random.below(codes.size())];
}
