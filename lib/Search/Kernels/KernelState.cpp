//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of a tensor-level search: its moves, and how a rollout draws them.
//
// A kernel is built from the input towards the output, primitive by primitive
// (Canvas, section 6.1). `apply` is cheap and `nextMove` expensive, so rollouts
// draw moves (`drawMove`) instead of listing them.
//
//===----------------------------------------------------------------------===//

#include "KernelStateImpl.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;
using namespace kas::solver;

/// Translates the problem to interned sizes once.
KernelSpace::KernelSpace(std::shared_ptr<const KernelProblem> given)
    : problem(std::move(given)), sizes(*problem) {
  const TensorShape &output = problem->output;
  // Channels of the output count by their product only.
  for (unsigned dim = 0; dim < output.dims.size(); ++dim)
    if (dim < output.numChannelDims)
      outputChannels =
          sizes.multiply(outputChannels, sizes.intern(output.dims[dim]));
    else
      outputSpatial.push_back(sizes.intern(output.dims[dim]));
  for (unsigned divisor : problem->divisors)
    divisors.push_back(sizes.intern(Size::symbol(divisor)));
  // By spatial dimension of the input.
  for (const auto &symbols : problem->windows) {
    windows.emplace_back();
    for (unsigned symbol : symbols)
      windows.back().push_back(sizes.intern(Size::symbol(symbol)));
    maxWindows = std::max<unsigned>(maxWindows, symbols.size());
  }

  // The input is node 0 of every kernel.
  FlatNode &node = root.nodes[root.numNodes++];
  const TensorShape &input = problem->input;
  for (unsigned dim = 0; dim < input.dims.size(); ++dim) {
    bool isSpatial = dim >= input.numChannelDims;
    SizeId size = sizes.intern(input.dims[dim]);
    node.shape.append(size, isSpatial ? Spatial + dim - input.numChannelDims
                                      : Channel);
    node.elements = sizes.multiply(node.elements, size);
    if (!isSpatial)
      continue;
    // Shifts must be smaller than the image at every layer.
    int64_t extent = INT64_MAX;
    for (const Binding &binding : problem->rules.bindings)
      extent = std::min(extent, input.dims[dim].evaluate(binding).value_or(1));
    extents.push_back(extent);
    // `neighbours` demands that each spatial dimension is covered by some step.
    if (problem->limits.neighbours)
      toCover |= 1u << (dim - input.numChannelDims);
  }
  node.shape.numChannels = input.numChannelDims;
}

/// The copy of the root's data is the whole state.
KernelState::KernelState(std::shared_ptr<KernelSpace> space)
    : space(space), data(space->root) {}

std::unique_ptr<State>
kas::search::makeKernelState(std::shared_ptr<const KernelProblem> problem) {
  return std::make_unique<KernelState>(
      std::make_shared<KernelSpace>(std::move(problem)));
}

/// Names of kinds show in statistics of the tree search.
llvm::StringRef KernelState::getKindName(unsigned kind) const {
  if (kind == stepsKind)
    return "steps";
  if (kind == groupsKind)
    return "groups";
  return getName(static_cast<KernelStep>(kind));
}

/// Kinds are equally probable but for layers with weights, see below; then
/// `drawStep` draws operands and parameters.
std::optional<Move> KernelState::drawMove(Random &random) const {
  // The number of steps or of groups: few moves, so they are listed.
  if (data.numSteps == 0 || data.isFinished) {
    llvm::SmallVector<Move, 16> moves;
    State::getMoves(moves);
    return moves.empty() ? std::nullopt
                         : std::optional(moves[random.below(moves.size())]);
  }
  // A kernel has about the mean of the allowed numbers of weights; without this
  // there would be one for some thirty other primitives.
  const KernelLimits &limits = space->problem->limits;
  double wanted =
      0.5 * (limits.minWeights + limits.maxWeights) - data.numWeights;
  // Between 2 % and 90 %, so that neither kind is ever excluded.
  double share = std::clamp(wanted / data.getNumLeft(), 0.02, 0.9);
  constexpr auto fc = static_cast<unsigned>(KernelStep::FC);
  bool wantsWeight = static_cast<double>(random.uniform()) < share;
  // Kinds without a move are drawn and set aside.
  llvm::SmallVector<unsigned, numKernelSteps> kinds;
  for (unsigned kind = 0; kind < numKernelSteps; ++kind)
    if (kind != fc && limits.steps[kind])
      kinds.push_back(kind);
  // A kind that turns out to have no move is not drawn again.
  while (wantsWeight || !kinds.empty()) {
    unsigned kind = fc;
    if (!wantsWeight) {
      size_t index = random.below(kinds.size());
      kind = kinds[index];
      kinds[index] = kinds.back();
      kinds.pop_back();
    }
    wantsWeight = false;
    if (auto code =
            drawStep(*space, data, static_cast<KernelStep>(kind), random))
      return Move{kind, *code};
  }
  // Nothing but a layer is left.
  if (auto code = drawStep(*space, data, KernelStep::FC, random))
    return Move{fc, *code};
  return std::nullopt;
}

/// Finished, and the number of groups chosen where the kernel uses it.
bool KernelState::isTerminal() const {
  return data.isFinished && !data.needsGroups;
}

/// Three phases: the number of steps, the steps, the number of groups.
std::optional<Move> KernelState::nextMove(unsigned kind,
                                          std::optional<Move> previous) const {
  std::optional<Move> result;
  uint32_t first = previous ? previous->code + 1 : 0;
  // Code = number of steps.
  if (data.numSteps == 0) {
    const KernelLimits &limits = space->problem->limits;
    first = std::max(first, limits.minSteps);
    if (kind == stepsKind && first <= limits.maxSteps)
      result = Move{kind, first};
    return result;
  }
  if (data.isFinished) {
    if (kind == groupsKind && !isTerminal())
      // Numbers of groups that are within the budgets.
      for (; first < space->problem->groupCandidates.size() && !result; ++first)
        if (isWithinBudgets(*space, data.getNodes(), first))
          result = Move{kind, first};
    return result;
  }
  if (kind < numKernelSteps)
    forEachMove(*space, data, kind, first, [&](uint32_t code) {
      result = Move{kind, code};
      return true;
    });
  return result;
}

/// The default would list each kind from its beginning for every single move.
void KernelState::getMoves(llvm::SmallVectorImpl<Move> &moves) const {
  if (data.numSteps == 0 || data.isFinished)
    return State::getMoves(moves);
  for (unsigned kind = 0; kind < numKernelSteps; ++kind)
    forEachMove(*space, data, kind, 0, [&](uint32_t code) {
      moves.push_back({kind, code});
      return false;
    });
}

/// The codes are those of `nextMove`.
void KernelState::apply(Move move) {
  if (move.kind == stepsKind) {
    data.numSteps = static_cast<uint8_t>(move.code);
    return;
  }
  if (move.kind == groupsKind) {
    // 0 means that none is chosen.
    data.groups = static_cast<uint8_t>(move.code + 1);
    data.needsGroups = false;
    return;
  }
  // Made again instead of being kept in the move: moves are 8 bytes.
  std::optional<PendingStep> pending =
      makeStep(*space, data, static_cast<KernelStep>(move.kind), move.code);
  assert(pending && "a move that this state gave");
  addStep(*space, data, *pending);
  // After the last step the output is matched: a variable may still take a
  // value.
  if (data.getNumLeft() > 0)
    return;
  auto match = matchOutput(*space, data.nodes[data.numNodes - 1].shape);
  assert(match && "the last move completes the kernel");
  if (match->first >= 0)
    substitute(*space, data, match->first, match->second);
  data.isFinished = true;
  data.needsGroups = usesGroups(*space, data.getNodes());
}

/// States with the same steps in another order have the same key: the future
/// depends on the set of tensors only.
uint64_t KernelState::key() const {
  uint64_t hash = getCanonicalHash(*space, data.getNodes());
  if (data.isFinished)
    // The number of groups is part of the finished kernel.
    return mixBits(hash + data.groups);
  // The rest of the rollout depends on how many steps there are to be.
  return mixBits(hash ^ mixBits(0x1000u + data.numSteps));
}
