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
// A code is (left operand << 20 | right operand << 16 | parameter). Codes are
// bounded from above (`getNumCodes`) and then tried one by one: `makeStep` says
// whether a code is a step, `isFeasible` whether the kernel can be completed
// after it.
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"

using namespace kas;
using namespace kas::search;

/// Nothing for a code that is no step.
std::optional<PendingStep> kas::search::makeStep(KernelSpace &space,
                                                 const KernelStateData &data,
                                                 KernelStep step,
                                                 uint32_t code) {
  return KernelStepBuilder(space, data, step, code).make();
}

/// How many codes there are for the last operand of `step`, at most. Upper
/// bounds: codes that are no step are found by trying. Parameters are decoded
/// by the function of the step in KernelSteps.cpp.
static unsigned getNumParameters(const KernelSpace &space, KernelStep step,
                                 const FlatNode &left) {
  using enum KernelStep;
  const KernelLimits &limits = space.problem->limits;
  unsigned rank = left.shape.rank;
  switch (step) {
  case FC:
    // New variable or output channels, with or without groups.
    return 4;
  case Scale:
    // Channels, or spatial dimensions.
    return 2;
  case Mix:
    // Same size, new variable, or output size; for each dimension, or all
    // spatial ones.
    return 3 * (rank + 1);
  case Group:
    return space.divisors.size();
  case Shift:
    // Forwards and backwards by each amount.
    return rank * 2 * limits.shift;
  case Unfold:
    // A set of dimensions, a window, and a dilation.
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
    // Any set of dimensions; few are legal.
    return 1u << rank;
  case MatMul:
    // The variants of `makeMatMul`.
    return 5;
  default:
    return 1;
  }
}

/// The same where it depends on both operands. Of a merge: the factors that a
/// variable may take.
static unsigned getNumMatches(KernelSpace &space, const KernelStateData &data,
                              const FlatNode &left, const FlatNode &right) {
  // The factors of a ratio: no more than those of both sizes together. Without
  // a variable in the left operand there is nothing to choose.
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

/// The result has the shape of its (right) operand. For these the last step can
/// be checked against the output before it is made.
static bool keepsShape(KernelStep step) {
  using enum KernelStep;
  return step == Shift || step == Shuffle || step == Reorder ||
         step == InverseReorder || step == Softmax || step == Norm ||
         isMerge(step) || (step >= Scale && step <= Sqr);
}

/// Reads neighbours, for some operands. Steps without this cannot help to cover
/// a spatial dimension.
static bool mayCover(KernelStep step) {
  using enum KernelStep;
  return step == Shift || step == Unfold || step == Softmax || step == MatMul ||
         step == Mix || (step >= FoldSum && step <= FoldMax);
}

/// Enough steps are left after one of this kind for all that a kernel must
/// have: a part of `isFeasible` that does not need the step. A cheap filter
/// that spares making steps.
static bool canAfford(KernelSpace &space, const KernelStateData &data,
                      unsigned numLeaves, KernelStep step, unsigned left,
                      std::optional<unsigned> right) {
  const KernelLimits &limits = space.problem->limits;
  // After the step there is one leaf more, its result, and its operands are
  // none any more.
  unsigned leaves = numLeaves + 1;
  leaves -= data.nodes[left].users == 0;
  if (right && *right != left)
    leaves -= data.nodes[*right].users == 0;
  // Merging n leaves takes n - 1 steps.
  unsigned needed = leaves - 1;
  unsigned weights = data.numWeights + (step == KernelStep::FC);
  // Weights that are missing need a step each.
  needed += weights < limits.minWeights ? limits.minWeights - weights : 0;
  needed += (space.toCover & ~data.covered) != 0 && !mayCover(step);
  // A shuffle makes sense only with groups, which are missing.
  needed += data.hasShuffle && !data.hasGroup && step != KernelStep::Group &&
            step != KernelStep::GroupAll;
  // The step itself is one of those that are left.
  if (leaves > limits.width || needed > data.getNumLeft() - 1)
    return false;
  // The last step must produce the output.
  return data.getNumLeft() > 1 || !keepsShape(step) ||
         matchOutput(space, data.nodes[right.value_or(left)].shape);
}

/// How many codes there are for these operands, at most. 0 if the step cannot
/// be afforded.
static unsigned getNumCodes(KernelSpace &space, const KernelStateData &data,
                            unsigned numLeaves, KernelStep step, unsigned left,
                            std::optional<unsigned> right) {
  if (!canAfford(space, data, numLeaves, step, left, right))
    return 0;
  return isMerge(step)
             ? getNumMatches(space, data, data.nodes[left], data.nodes[*right])
             : getNumParameters(space, step, data.nodes[left]);
}

/// Makes the step to test it; this is the cost of listing moves.
static bool isPossible(KernelSpace &space, const KernelStateData &data,
                       KernelStep step, uint32_t code) {
  std::optional<PendingStep> pending = makeStep(space, data, step, code);
  return pending && isFeasible(space, data, *pending);
}

/// Codes ascend with the left, then the right operand, then the parameter;
/// `first` resumes within that order.
void kas::search::forEachMove(KernelSpace &space, const KernelStateData &data,
                              unsigned kind, uint32_t first,
                              llvm::function_ref<bool(uint32_t)> found) {
  auto step = static_cast<KernelStep>(kind);
  if (!space.problem->limits.steps[kind] || data.getNumLeft() == 0)
    return;
  // One pseudo operand for steps with a single operand.
  unsigned rights = isBinary(step) ? data.numNodes : 1;
  unsigned numLeaves = data.getNumLeaves();
  for (unsigned left = first >> 20; left < data.numNodes; ++left)
    // Only for the first left operand the loop starts in the middle.
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

/// Rejection sampling: operands and a parameter uniformly, with room for the
/// largest number of codes of any operands, so that each code is equally
/// probable. Listing all codes is the fallback.
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
  // Draw and reject; what is not found so is listed. 24 attempts mostly find a
  // step where a tenth of the codes are one; where few are, listing is cheaper.
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
