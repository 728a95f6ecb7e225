//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StagedCost.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include <limits>

using namespace kas;
using namespace kas::search;

static constexpr double infinite = std::numeric_limits<double>::infinity();

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
  // Powers of two, and multiples of 8 above.
  lanes = numBindings <= 8 ? llvm::bit_ceil(numBindings)
                           : (numBindings + 7) / 8 * 8;
  outputs.resize(lanes, 0);
}

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

/// Fills `conflicts`: a weight that is not done needs what is not done.
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
/// elements they leave. All but the empty one have a reduction.
void StagedCost::findChoices() {
  findConflicts();
  choices.assign(1, 0);
  Choice all = getAll();
  Choice reductionMask = (Choice(1) << numReductions) - 1;
  for (Choice done = 1; done <= all; ++done) {
    if (!(done & reductionMask))
      continue;
    bool isLegal = true;
    for (auto [number, conflict] : llvm::enumerate(conflicts))
      isLegal &= (done >> (numReductions + number) & 1) || !(conflict & done);
    if (isLegal)
      choices.push_back(done);
  }
  elementsOf.assign(choices.size() * lanes, 0);
  for (unsigned index = 1; index < choices.size(); ++index)
    computeElements(choices[index], &elementsOf[index * lanes]);
  points.assign(size_t(reductionMask + 1) * lanes, 1);
  for (Choice set = 1; set <= reductionMask; ++set)
    for (unsigned b = 0; b < numBindings; ++b)
      points[set * lanes + b] =
          points[(set & (set - 1)) * lanes + b] *
          static_cast<double>(
              sizes[nodes[reductions[llvm::countr_zero(set)]].size].values[b]);
}

/// Shares are in order.
bool StagedCost::isInOrder(Choice done) const {
  Choice doneWeights = done >> numReductions;
  for (auto [number, others] : llvm::enumerate(before))
    if ((doneWeights >> number & 1) && (others & ~doneWeights))
      return false;
  return true;
}

/// Strides make coordinates larger, windows are larger than their base.
void StagedCost::multiplySmallestCut(unsigned index, double *elements) {
  if (visited >> index & 1)
    return;
  const Node &node = nodes[index];
  switch (node.kind) {
  case CoordKind::Split:
    multiplySmallestCut(node.first, elements);
    return multiplySmallestCut(node.second, elements);
  case CoordKind::Shift:
  case CoordKind::Stride:
    return multiplySmallestCut(node.first, elements);
  default:
    visited |= uint64_t(1) << index;
    hasCut = true;
    for (unsigned binding = 0; binding < numBindings; ++binding)
      elements[binding] *=
          static_cast<double>(sizes[node.size].values[binding]);
  }
}

void StagedCost::multiplyCut(unsigned index, Choice done, double *elements) {
  if (!(needed[index] & done)) {
    // A reduction that is done is used above only.
    bool isDone =
        nodes[index].kind == CoordKind::Reduce &&
        (above[index] & done & ((Choice(1) << numReductions) - 1)) != 0;
    if (!isDone)
      multiplySmallestCut(index, elements);
    return;
  }
  multiplyCut(nodes[index].first, done, elements);
  if (isBinary(index))
    multiplyCut(nodes[index].second, done, elements);
}

void StagedCost::computeElements(Choice done, double *elements) {
  visited = 0;
  hasCut = problem.hasBatch();
  llvm::copy(batch, elements);
  for (unsigned index : data) {
    if ((removed >> index & 1) && !(needed[index] & done))
      hasCut = true;
    else
      multiplyCut(index, done, elements);
  }
  for (auto [number, weight] : llvm::enumerate(weights))
    if (done >> (numReductions + number) & 1)
      for (unsigned index : weight)
        multiplyCut(index, done, elements);
  if (hasCut)
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

/// The multiply-adds per point of what a stage makes are the products of what
/// it sums, once for each weight.
double StagedCost::getTensors(Choice taken) const {
  return taken ? std::max(llvm::popcount(taken >> numReductions), 1) : 0;
}

/// The least multiply-adds until `to` is done, by binding; `elements` are those
/// of what it leaves. Only the last stage may be without a reduction.
/// Most of the time of a search goes here.
template <unsigned Lanes>
void StagedCost::relax(Choice to, bool isLast, const double *elements,
                       double *least) const {
  Choice reductionMask = (Choice(1) << numReductions) - 1;
  for (unsigned chunk = 0; chunk < lanes; chunk += Lanes) {
    double result[Lanes], factors[Lanes];
    std::fill_n(result, Lanes, infinite);
    std::copy_n(elements + chunk, Lanes, factors);
    for (unsigned from : inOrder) {
      Choice taken = to & ~choices[from];
      if ((choices[from] & ~to) || (!(taken & reductionMask) && !isLast))
        continue;
      double tensors = getTensors(taken);
      const double *loops = &points[(taken & reductionMask) * lanes + chunk];
      const double *start = &best[from * lanes + chunk];
      for (unsigned b = 0; b < Lanes; ++b) {
        double macs = start[b] + factors[b] * loops[b] * tensors;
        result[b] = macs < result[b] ? macs : result[b];
      }
    }
    std::copy_n(result, Lanes, least + chunk);
  }
}

template <unsigned Lanes>
double StagedCost::computeMacsInOneOrder() {
  best.assign((choices.size() + 1) * lanes, infinite);
  std::fill_n(best.begin(), lanes, 0);
  inOrder.assign(1, 0);
  for (unsigned to = 1; to < choices.size(); ++to) {
    if (!isInOrder(choices[to]))
      continue;
    relax<Lanes>(choices[to], /*isLast=*/false, &elementsOf[to * lanes],
                 &best[to * lanes]);
    inOrder.push_back(to);
  }
  // The last stage makes the output.
  double *total = &best[choices.size() * lanes];
  relax<Lanes>(getAll(), /*isLast=*/true, outputs.data(), total);
  double sum = 0;
  for (unsigned b = 0; b < numBindings; ++b)
    sum += total[b] * static_cast<double>(problem.multiplicities[b]);
  return sum;
}

double StagedCost::computeMacsInOneOrder() {
  switch (lanes) {
  case 1:
    return computeMacsInOneOrder<1>();
  case 2:
    return computeMacsInOneOrder<2>();
  case 4:
    return computeMacsInOneOrder<4>();
  default:
    return computeMacsInOneOrder<8>();
  }
}

/// The last choice before `to` on the best way to it under a binding.
unsigned StagedCost::findPrevious(Choice to, bool isLast,
                                  const double *elements, double least,
                                  unsigned binding) const {
  Choice reductionMask = (Choice(1) << numReductions) - 1;
  auto isOnWay = [&](unsigned from) {
    Choice taken = to & ~choices[from];
    return !(choices[from] & ~to) && ((taken & reductionMask) || isLast) &&
           best[from * lanes + binding] +
                   elements[binding] *
                       points[(taken & reductionMask) * lanes + binding] *
                       getTensors(taken) ==
               least;
  };
  // Of equal ways, the last stage takes most, all others least.
  const auto *first = llvm::find_if(inOrder, isOnWay);
  while (!isLast && first != inOrder.end()) {
    const auto *next = std::find_if(first + 1, inOrder.end(), isOnWay);
    if (next == inOrder.end())
      break;
    first = next;
  }
  assert(first != inOrder.end() && "the least is that of some way");
  return *first;
}

/// Weights of one stage have the number of that stage.
llvm::SmallVector<std::pair<unsigned, unsigned>, 4>
StagedCost::traceWeights(unsigned binding) const {
  llvm::SmallVector<std::pair<unsigned, unsigned>, 4> order;
  Choice after = getAll();
  unsigned index =
      findPrevious(after, /*isLast=*/true, outputs.data(),
                   best[choices.size() * lanes + binding], binding);
  for (unsigned stage = nodes.size();; --stage) {
    Choice done = choices[index];
    for (unsigned number = 0; number < weights.size(); ++number)
      if ((after & ~done) >> (numReductions + number) & 1)
        order.emplace_back(number, stage);
    if (after == done || done == 0)
      break;
    after = done;
    index = findPrevious(done, /*isLast=*/false, &elementsOf[index * lanes],
                         best[index * lanes + binding], binding);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

/// A share chain is cut from its top: a weight can be done only when those that
/// share the coordinate above it are. The last two weights of a coordinate that
/// the data does not use share it evenly.
void StagedCost::orderShares(llvm::ArrayRef<unsigned> order) {
  before.assign(weights.size(), 0);
  for (unsigned index = 0; index < nodes.size(); ++index) {
    bool isUsedElsewhere =
        llvm::is_contained(data, index) ||
        llvm::any_of(llvm::seq<unsigned>(0, nodes.size()), [&](unsigned user) {
          return !isLeaf(user) &&
                 (nodes[user].first == index ||
                  (isBinary(user) && nodes[user].second == index));
        });
    uint32_t above = 0;
    for (unsigned number : order) {
      if (!llvm::is_contained(weights[number], index))
        continue;
      if (isUsedElsewhere || llvm::popcount(above) > 1)
        before[number] |= above;
      above |= 1 << number;
    }
  }
}

double StagedCost::computeMacs() {
  findDependences();
  findChoices();
  before.assign(weights.size(), 0);
  double macs = computeMacsInOneOrder();
  // Most operators are as fast with shares in one order as in any.
  unsigned costliest = 0;
  for (unsigned b = 1; b < numBindings; ++b)
    if (outputs[b] > outputs[costliest])
      costliest = b;
  weightOrder.clear();
  for (auto [number, stage] : traceWeights(costliest))
    weightOrder.push_back(number);
  orderShares(weightOrder);
  auto agrees = [&](unsigned binding) {
    uint32_t done = 0;
    auto trace = traceWeights(binding);
    for (unsigned begin = 0, end = 0; begin < trace.size(); begin = end) {
      while (end < trace.size() && trace[end].second == trace[begin].second)
        done |= 1 << trace[end++].first;
      for (unsigned index = begin; index < end; ++index)
        if (before[trace[index].first] & ~done)
          return false;
    }
    return true;
  };
  if (weights.size() < 2 || llvm::all_of(llvm::seq(numBindings), agrees))
    return macs;
  auto order = llvm::to_vector<4>(llvm::seq<unsigned>(0, weights.size()));
  macs = infinite;
  do {
    orderShares(order);
    double inOrder = computeMacsInOneOrder();
    if (inOrder < macs)
      weightOrder = order;
    macs = std::min(macs, inOrder);
  } while (std::next_permutation(order.begin(), order.end()));
  return macs;
}

double StagedCost::computeLeastFlops(uint64_t removable) {
  findDependences();
  before.assign(weights.size(), 0);
  removed = removable;
  findChoices();
  removed = 0;
  return 2 * computeMacsInOneOrder();
}

std::optional<GraphCost> StagedCost::compute() {
  double flops = computeFlops(), params = 0;
  for (unsigned binding = 0; binding < numBindings; ++binding)
    for (llvm::ArrayRef<unsigned> weight : weights) {
      auto product = static_cast<double>(problem.multiplicities[binding]);
      for (unsigned index : weight)
        product *=
            static_cast<double>(sizes[nodes[index].size].values[binding]);
      params += product;
    }
  constexpr double most = 0x1p63;
  if (!(flops < most) || !(params < most))
    return std::nullopt;
  return GraphCost{static_cast<uint64_t>(flops), static_cast<uint64_t>(params)};
}
