//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The multiply-adds of the best stages under all bindings at once, by dynamic
// programming over sets of reductions and weights, in microseconds.
//
// `planStages` (kas/Schedule/StagePlan.h) finds the same optimum with the
// stages themselves; this file computes the value for all bindings at once,
// since a search asks for it at nearly every state.
// docs/internals/rationale/stages.md has the model.
//
//===----------------------------------------------------------------------===//

#include "StagedCost.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include <limits>

using namespace kas;
using namespace kas::search;

// Of what cannot be done.
static constexpr double infinite = std::numeric_limits<double>::infinity();

/// What depends on the problem alone: outputs and batch at each binding.
StagedCost::StagedCost(const SearchProblem &problem, const SizeTable &sizes)
    : problem(problem), sizes(sizes), numBindings(problem.bindings.size()) {
  for (const Binding &binding : problem.bindings) {
    double product = 1;
    for (const Dimension &output : problem.outputs)
      product *= static_cast<double>(output.size.evaluate(binding).value_or(1));
    outputs.push_back(product);
    batch.push_back(
        problem.hasBatch()
            ? static_cast<double>(
                  problem.outputs.front().size.evaluate(binding).value_or(1))
            : 1);
  }
  // Powers of two, and multiples of 8 above. Values of bindings are processed
  // in vectors of 1, 2, 4 or 8 lanes; the rest of a vector is padding.
  lanes = numBindings <= 8 ? llvm::bit_ceil(numBindings)
                           : (numBindings + 7) / 8 * 8;
  outputs.resize(lanes, 0);
}

/// A choice is a set of reductions and weights; `needed` are those that the
/// operands of a node need, `above` adds the node's own.
void StagedCost::findDependences() {
  reductions.clear();
  needed.assign(nodes.size(), 0);
  above.assign(nodes.size(), 0);
  for (unsigned index = 0; index < nodes.size(); ++index)
    if (nodes[index].kind == CoordKind::Reduce) {
      above[index] = Choice(1) << reductions.size();
      reductions.push_back(index);
    }
  numReductions = reductions.size();
  for (auto [number, weight] : llvm::enumerate(weights))
    for (unsigned index : weight)
      above[index] |= Choice(1) << (numReductions + number);
  for (unsigned index = 0; index < nodes.size(); ++index) {
    if (isLeaf(index))
      continue;
    needed[index] = above[nodes[index].first];
    if (isBinary(index))
      needed[index] |= above[nodes[index].second];
    above[index] |= needed[index];
  }
}

/// Fills `dataReductions` and `weightReductions`: what is summed before a
/// tensor has it is summed with that tensor.
void StagedCost::findReached() {
  reached.assign(nodes.size(), 0);
  for (auto [number, index] : llvm::enumerate(reductions))
    reached[index] = Choice(1) << number;
  // Operands come first.
  for (unsigned index = 0; index < nodes.size(); ++index) {
    if (isLeaf(index))
      continue;
    reached[index] = reached[nodes[index].first];
    if (isBinary(index))
      reached[index] |= reached[nodes[index].second];
  }
  dataReductions = 0;
  for (unsigned index : data)
    dataReductions |= reached[index];
  weightReductions.assign(weights.size(), 0);
  for (auto [number, weight] : llvm::enumerate(weights))
    for (unsigned index : weight)
      weightReductions[number] |= reached[index];
}

/// The reductions that what is done has, the data among it: those of the others
/// are summed before, with the weights. Reductions that only weights not yet
/// done have are part of those weights.
StagedCost::Choice StagedCost::getReached(Choice done) const {
  Choice result = dataReductions;
  for (unsigned number = 0; number < weights.size(); ++number)
    if (done >> (numReductions + number) & 1)
      result |= weightReductions[number];
  return result;
}

/// Fills `conflicts`: a weight that is not done needs what is not done. A
/// weight cannot be left for later if one of its coordinates is summed before
/// it.
void StagedCost::findConflicts() {
  Choice reductionMask = (Choice(1) << numReductions) - 1;
  conflicts.assign(weights.size(), 0);
  for (auto [number, weight] : llvm::enumerate(weights))
    for (unsigned index : weight) {
      conflicts[number] |= needed[index];
      if (nodes[index].kind == CoordKind::Reduce)
        conflicts[number] |= above[index] & reductionMask;
    }
}

/// Lists the sets that may be done together, by ascending number, with the
/// elements they leave. All but the empty one have a reduction. At most
/// 2^(reductions + weights) sets, of which few are legal.
void StagedCost::findChoices() {
  findConflicts();
  choices.assign(1, 0);
  Choice all = (Choice(1) << (numReductions + weights.size())) - 1;
  Choice reductionMask = (Choice(1) << numReductions) - 1;
  // All but the empty one have a reduction, as a stage without one is a view.
  for (Choice done = 1; done <= all; ++done) {
    if (!(done & reductionMask))
      continue;
    bool isLegal = true;
    for (auto [number, conflict] : llvm::enumerate(conflicts))
      isLegal &= (done >> (numReductions + number) & 1) || !(conflict & done);
    if (isLegal)
      choices.push_back(done);
  }
  reachedOf.clear();
  for (Choice done : choices)
    reachedOf.push_back(getReached(done));
  elementsOf.assign(choices.size() * lanes, 0);
  for (unsigned index = 1; index < choices.size(); ++index)
    computeElements(choices[index], &elementsOf[index * lanes]);
  // Products of sizes for all sets of reductions, from the set without its
  // lowest element.
  points.assign(size_t(reductionMask + 1) * lanes, 1);
  for (Choice set = 1; set <= reductionMask; ++set)
    for (unsigned b = 0; b < numBindings; ++b)
      points[set * lanes + b] =
          points[(set & (set - 1)) * lanes + b] *
          sizesOf[reductions[llvm::countr_zero(set)] * lanes + b];
}

/// Then a cut below the merge may be smaller than the halves, see
/// `isMergedStride`.
bool StagedCost::hasMergedStride() const {
  // `strided` is a set of nodes as one word: operands come first.
  uint64_t strided = 0;
  for (auto [index, node] : llvm::enumerate(nodes)) {
    if (isLeaf(index))
      continue;
    bool isStrided = node.kind == CoordKind::Stride ||
                     (strided >> node.first & 1) ||
                     (isBinary(index) && (strided >> node.second & 1));
    strided |= uint64_t(isStrided) << index;
    if (isStrided && isHalf(index))
      return true;
  }
  return false;
}

/// Halves of which a weight to come has one must exist after the stage, so they
/// are pinned.
void StagedCost::startCut(Choice done) {
  pinned = 0;
  if (!isMergedStride)
    return;
  for (auto [number, weight] : llvm::enumerate(weights))
    if (!(done >> (numReductions + number) & 1))
      for (unsigned half : weight)
        for (unsigned index = 0; index < nodes.size(); ++index)
          if (isHalf(half) && isHalf(index) &&
              nodes[index].first == nodes[half].first)
            pinned |= uint64_t(1) << index;
}

/// Elements of the smallest cut below the nodes `open`. From the highest node
/// to the lowest: operands have lower numbers, so each node is seen once. A
/// half may be cut itself or below, which is tried both ways.
double StagedCost::findSmallestCut(uint64_t open, unsigned binding) const {
  double product = 1;
  while (open) {
    unsigned index = 63 - llvm::countl_zero(open);
    uint64_t bit = uint64_t(1) << index;
    const Node &node = nodes[index];
    auto size = static_cast<double>(sizes[node.size].values[binding]);
    open &= ~bit;
    switch (node.kind) {
    case CoordKind::Split:
      open |= uint64_t(1) << node.first | uint64_t(1) << node.second;
      break;
    case CoordKind::Shift:
    case CoordKind::Stride:
      open |= uint64_t(1) << node.first;
      break;
    case CoordKind::MergeQuotient:
    case CoordKind::MergeRemainder: {
      // A pinned half cannot be cut below.
      if (pinned & bit) {
        product *= size;
        break;
      }
      double ofThis = size * findSmallestCut(open, binding);
      double ofOperand =
          findSmallestCut(open | uint64_t(1) << node.first, binding);
      return product * std::min(ofThis, ofOperand);
    }
    default:
      product *= size;
    }
  }
  return product;
}

/// Fills `bottoms`: strides make coordinates larger, windows are larger than
/// their base. For all nodes at once, when no merge is above a stride: then the
/// smallest cut of a view is that of its operands.
void StagedCost::findBottoms() {
  bottoms.clear();
  for (auto [index, node] : llvm::enumerate(nodes)) {
    bool isView = node.kind == CoordKind::Shift ||
                  node.kind == CoordKind::Stride ||
                  node.kind == CoordKind::Split;
    uint64_t bottom = uint64_t(1) << index;
    if (isView && !isMergedStride) {
      bottom = bottoms[node.first];
      if (isBinary(index))
        bottom |= bottoms[node.second];
    }
    bottoms.push_back(bottom);
  }
}

/// By node and binding, what the loops below multiply by.
void StagedCost::findSizes() {
  sizesOf.assign(nodes.size() * lanes, 1);
  for (auto [index, node] : llvm::enumerate(nodes))
    for (unsigned b = 0; b < numBindings; ++b)
      sizesOf[index * lanes + b] =
          static_cast<double>(sizes[node.size].values[b]);
}

/// The nodes that index what is left when `done` is done; with a merge of a
/// stride those that are cut below. A set of nodes, one bit each.
uint64_t StagedCost::getFrontier(Choice done) const {
  Choice summed = done & ((Choice(1) << numReductions) - 1);
  // Of the nodes below one. Operands come first.
  uint64_t below[maxNodes];
  for (unsigned index = 0; index < nodes.size(); ++index) {
    if (needed[index] & done) {
      below[index] = below[nodes[index].first];
      if (isBinary(index))
        below[index] |= below[nodes[index].second];
      continue;
    }
    // A reduction that is done is used above only.
    bool isDone =
        nodes[index].kind == CoordKind::Reduce && (above[index] & summed) != 0;
    below[index] = isDone ? 0 : bottoms[index];
  }
  uint64_t frontier = 0;
  // What is removed does not index the intermediate, unless it is summed later.
  for (unsigned index : data)
    if (!(removed >> index & 1) || (needed[index] & done))
      frontier |= below[index];
  for (auto [number, weight] : llvm::enumerate(weights))
    if (done >> (numReductions + number) & 1)
      for (unsigned index : weight)
        frontier |= below[index];
  return frontier;
}

/// The product of the sizes of the frontier, by binding.
void StagedCost::computeElements(Choice done, double *elements) {
  startCut(done);
  llvm::copy(batch, elements);
  uint64_t frontier = getFrontier(done);
  // With a merge of a stride the cut depends on the binding.
  if (isMergedStride) {
    for (unsigned binding = 0; frontier && binding < numBindings; ++binding)
      elements[binding] *= findSmallestCut(frontier, binding);
  } else {
    for (uint64_t rest = frontier; rest; rest &= rest - 1) {
      const double *factors = &sizesOf[llvm::countr_zero(rest) * lanes];
      for (unsigned b = 0; b < lanes; ++b)
        elements[b] *= factors[b];
    }
  }
  // A tensor with a removed coordinate is no scalar.
  bool isAnyRemoved = llvm::any_of(data, [&](unsigned index) {
    return (removed >> index & 1) && !(needed[index] & done);
  });
  if (frontier || isAnyRemoved || problem.hasBatch())
    return;
  // A scalar is repeated along one coordinate.
  std::fill_n(elements, numBindings, infinite);
  for (unsigned index = 0; index < nodes.size(); ++index)
    if (isLeaf(index) && !(above[index] & done))
      for (unsigned binding = 0; binding < numBindings; ++binding)
        elements[binding] = std::min(
            elements[binding],
            static_cast<double>(sizes[nodes[index].size].values[binding]));
}

/// Fills what is best for a choice, or at the end for the output. Only the last
/// stage may be without a reduction, and one that takes nothing is a view. For
/// every smaller choice: the cost until there, plus the stage from there to
/// here. `Lanes` bindings at a time, a constant by which the compiler unrolls.
/// Most of the time of a search goes here.
template <unsigned Lanes>
void StagedCost::relax(unsigned index) {
  Choice reductionMask = (Choice(1) << numReductions) - 1,
         to = getChoice(index);
  bool isLast = index == choices.size();
  const double *elements = getElements(index);
  for (unsigned chunk = 0; chunk < lanes; chunk += Lanes) {
    double result[Lanes], factors[Lanes];
    std::fill_n(result, Lanes, infinite);
    std::copy_n(elements + chunk, Lanes, factors);
    for (unsigned from = 0; from < index; ++from) {
      Choice taken = to & ~choices[from];
      // From a subset, with a reduction in the difference, unless this is the
      // output.
      if ((choices[from] & ~to) || (!(taken & reductionMask) && !isLast))
        continue;
      const double *loops = &points[(taken & reachedOf[from]) * lanes + chunk];
      const double *start = &best[from * lanes + chunk];
      // 0 for a stage that takes nothing: it is a view.
      double isProduct = taken ? 1 : 0;
      for (unsigned b = 0; b < Lanes; ++b) {
        double macs = start[b] + factors[b] * loops[b] * isProduct;
        result[b] = macs < result[b] ? macs : result[b];
      }
    }
    std::copy_n(result, Lanes, &best[index * lanes + chunk]);
  }
}

/// The empty choice costs nothing; the last one is the whole operator.
template <unsigned Lanes>
double StagedCost::computeMacsOfChoices() {
  best.assign((choices.size() + 1) * lanes, infinite);
  std::fill_n(best.begin(), lanes, 0);
  for (unsigned index = 1; index <= choices.size(); ++index)
    relax<Lanes>(index);
  const double *total = &best[choices.size() * lanes];
  double sum = 0;
  for (unsigned b = 0; b < numBindings; ++b)
    sum += total[b] * static_cast<double>(problem.multiplicities[b]);
  return sum;
}

/// Chooses the width of the vectors.
double StagedCost::computeMacsOfChoices() {
  switch (lanes) {
  case 1:
    return computeMacsOfChoices<1>();
  case 2:
    return computeMacsOfChoices<2>();
  case 4:
    return computeMacsOfChoices<4>();
  default:
    return computeMacsOfChoices<8>();
  }
}

/// The last choice before one, or before the output, on the best way to it
/// under a binding. The costs of the ways were not kept with their
/// predecessors, so they are computed again and compared exactly: the same
/// operations in the same order give the same doubles.
unsigned StagedCost::findPrevious(unsigned index, unsigned binding) const {
  Choice reductionMask = (Choice(1) << numReductions) - 1,
         to = getChoice(index);
  bool isLast = index == choices.size();
  double elements = getElements(index)[binding];
  // The cost of the way that ends with a stage from here.
  auto isOnWay = [&](unsigned from) {
    Choice taken = to & ~choices[from];
    double loops = points[(taken & reachedOf[from]) * lanes + binding];
    return !(choices[from] & ~to) && ((taken & reductionMask) || isLast) &&
           best[from * lanes + binding] + elements * loops * (taken ? 1 : 0) ==
               best[index * lanes + binding];
  };
  // Of equal ways, the last stage takes most, all others least. The same
  // tie-breaking as `planStages`, so that both find the same stages.
  auto all = llvm::seq(index);
  unsigned found = isLast ? *llvm::find_if(all, isOnWay)
                          : *llvm::find_if(llvm::reverse(all), isOnWay);
  assert(isOnWay(found) && "the least is that of some way");
  return found;
}

/// The weights in the order in which the best stages of a binding take them.
/// From the output back to the data, then reversed.
void StagedCost::findWeightOrder(unsigned binding) {
  weightOrder.clear();
  for (unsigned index = choices.size(); index != 0;) {
    unsigned previous = findPrevious(index, binding);
    Choice taken = getChoice(index) & ~choices[previous];
    for (unsigned number = 0; number < weights.size(); ++number)
      if (taken >> (numReductions + number) & 1)
        weightOrder.push_back(number);
    index = previous;
  }
  std::reverse(weightOrder.begin(), weightOrder.end());
}

double StagedCost::computeMacs() {
  isMergedStride = problem.limits.stride > 0 && hasMergedStride();
  assert(nodes.size() <= maxNodes && "too many nodes");
  findSizes();
  findBottoms();
  findDependences();
  findReached();
  findChoices();
  return computeMacsOfChoices();
}

/// The nodes in `removable` do not index intermediates in which they are not
/// summed.
double StagedCost::computeLeastFlops(uint64_t removable) {
  removed = removable;
  double macs = computeMacs();
  removed = 0;
  return 2 * macs;
}

/// The order of weights is that of the largest binding, where it matters most.
std::optional<GraphCost> StagedCost::compute() {
  double flops = computeFlops(), params = 0;
  findWeightOrder(std::distance(outputs.begin(), llvm::max_element(outputs)));
  for (unsigned binding = 0; binding < numBindings; ++binding)
    for (llvm::ArrayRef<unsigned> weight : weights) {
      auto product = static_cast<double>(problem.multiplicities[binding]);
      for (unsigned index : weight)
        product *=
            static_cast<double>(sizes[nodes[index].size].values[binding]);
      params += product;
    }
  // As in `isFinishable`; also catches NaN.
  constexpr double most = 0x1p63;
  if (!(flops < most) || !(params < most))
    return std::nullopt;
  return GraphCost{static_cast<uint64_t>(flops), static_cast<uint64_t>(params)};
}
