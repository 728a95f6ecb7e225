//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the moves of a state, in canonical order and without those that the
// rules exclude (docs/internals/canonical-form.md).
//
//===----------------------------------------------------------------------===//

#include "GraphProperties.h"
#include "GraphRules.h"
#include "GraphWeightRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

//===----------------------------------------------------------------------===//
// Order of moves
//===----------------------------------------------------------------------===//

static constexpr uint64_t makeKey(unsigned kind, uint64_t hash) {
  return uint64_t(kind) << 60 | hash >> 4;
}
static uint64_t getUnaryKey(unsigned kind, uint64_t base, uint64_t parameter) {
  return makeKey(kind, combineHash(combineHash(kind, base), parameter));
}
static uint64_t getBinaryKey(unsigned kind, uint64_t first, uint64_t second) {
  return makeKey(kind, combineHash(combineHash(kind, first), second));
}
/// A weight is a set: its key is that of a sum.
static uint64_t getUseTerm(uint64_t coord, WeightUse use) {
  return use == Unused ? 0 : mixBits(coord + use * 0x9e3779b97f4a7c15ull);
}
static uint64_t getContractKey(uint64_t sum) {
  return makeKey(ContractMove, mixBits(sum));
}

uint64_t kas::search::getMoveKey(GraphSpace &space, const GraphStateData &state,
                                 unsigned kind, uint32_t code) {
  auto getHash = [&](unsigned index) {
    return space.getHash(state.live[index].expr);
  };
  unsigned high = code >> 8, low = code & 0xff;
  switch (kind) {
  case ReduceMove:
  case FinishMove:
    return 0;
  case ContractMove: {
    uint64_t sum = 0;
    for (unsigned index = 0; index < state.numLive; ++index)
      sum += getUseTerm(getHash(index), getUse(code, index));
    return getContractKey(sum);
  }
  case StrideMove:
    return getUnaryKey(
        kind, getHash(high),
        space.sizes[space.distance.getStrideFactors()[low]].hash);
  case MergeMove:
    return getUnaryKey(
        kind, getHash(high),
        space.sizes[space.sizes.getBlocks(state.live[high].size)[low]].hash);
  case UnfoldMove:
  case SplitMove:
    return getBinaryKey(kind, getHash(high), getHash(low));
  default:
    return getUnaryKey(kind, getHash(high), low);
  }
}

//===----------------------------------------------------------------------===//
// Generation
//===----------------------------------------------------------------------===//

namespace {

/// Lists the moves of one state. A move is looked at in this order: its rules,
/// its place among moves that commute, twins, and the distance after it; most
/// are decided by the memo of the distance, from the sum over the live
/// coordinates less what the move uses plus what it makes.
class MoveGenerator {
public:
  MoveGenerator(GraphSpace &space, const GraphStateData &state,
                llvm::function_ref<bool(Move)> visit)
      : space(space), sizes(space.sizes), limits(space.problem->limits),
        state(state), live(state.getLive()), visit(visit),
        left(limits.depth - state.steps) {
    for (auto [index, coord] : llvm::enumerate(live)) {
      hashes[index] = space.getHash(coord.expr);
      items[index] = getItemHash(coord);
      itemSum += items[index];
      bases += isShareableBase(space, coord);
      canAnyBecomeWindow |= canBecomeWindow(space, coord);
      if (space.options.useTwins)
        for (unsigned other = 0; other < index; ++other)
          if (areTwins(space, live[other], coord))
            twins.emplace_back(other, index);
    }
    budget = getShapeBudget(space, state);
    areWeightsComplete = budget.weights == 0;
    // As it is before staleness (see getShapeBudget) is known.
    budget.weights = getNumWeightsLeft();
    budget.needsMadeWindow = false;
  }

  /// Returns true when the visitor wants no more.
  bool run(unsigned kindToList, uint32_t begin) {
    kind = kindToList;
    first = begin;
    if ((areWeightsComplete && !canMeetBudget()) || !canHaveProperties())
      return false;
    if (kind == FinishMove)
      return listFinish();
    if (left <= 0)
      return false;
    switch (kind) {
    case ContractMove:
      return getNumWeightsLeft() && listContract();
    case StrideMove:
      return budget.stride && listStride();
    case MergeMove:
      return budget.merge && listMerge();
    case UnfoldMove:
      return budget.unfold && listUnfold();
    case SplitMove:
      return budget.split && listSplit();
    case ShiftMove:
      return budget.shift && listShift();
    default:
      return budget.expand && listExpand();
    }
  }

private:
  uint8_t getNumWeightsLeft() const {
    return std::min(limits.weights, GraphSpace::maxWeights) - state.numWeights;
  }
  /// A sum over coordinates as the distance sees them, while more weights may
  /// come and when none do.
  struct ItemSum {
    uint64_t before = 0, after = 0;
    ItemSum &operator+=(const ItemSum &other) {
      before += other.before;
      after += other.after;
      return *this;
    }
    ItemSum &operator-=(const ItemSum &other) {
      before -= other.before;
      after -= other.after;
      return *this;
    }
  };
  ItemSum getItemHash(const LiveCoord &coord) const {
    ShapeItem item = getShapeItem(space, coord);
    uint64_t hash = ShapeDistance::hashItem(item);
    if (item.weights == 0)
      return {hash, hash};
    return {ShapeDistance::hashItem(ShapeDistance::forgetWeights(item)), hash};
  }
  /// O3.
  bool isFrozen(unsigned index) const {
    return live[index].height >= limits.chain;
  }
  /// O1: what commutes with the move came later in the order.
  bool isStale(uint64_t key, uint64_t since) const {
    return space.options.useOrdering && key <= since;
  }

  /// Whether the input can be reached after a move that leaves the items with
  /// this sum.
  bool isReachableAfter(uint32_t code, uint64_t key, const ItemSum &sum,
                        const ShapeBudget &rest) {
    if (!space.options.useDistance)
      return true;
    uint64_t items = rest.weights > 0 ? sum.before : sum.after;
    bool isNear = space.queries.measure([&] {
      if (std::optional<bool> known = space.distance.recall(
              ShapeDistance::getKey(items, rest), left - 1))
        return *known;
      GraphStateData child;
      child.assign(state);
      applyMove(space, child, kind, code, key);
      return isReachable(space, child);
    });
    // A view that makes all stale comes after the last weight.
    return isNear && (rest.weights > 0 || areWeightsComplete ||
                      kind == ContractMove || canMeetBudget());
  }

  bool canHaveProperties() {
    if (!isHopeful)
      isHopeful = !space.properties || space.properties->canHold(state);
    return *isHopeful;
  }

  bool canMeetBudget() {
    if (!isBudgetMet)
      isBudgetMet = kas::search::canMeetBudget(space, state);
    return *isBudgetMet;
  }

  /// The budget of views that are left after a view that makes
  /// `numBases` more coordinates that an unfold could make fresh, and leaves
  /// a fresh one or not, and one that can be in an unfold or not.
  ShapeBudget spend(uint8_t ShapeBudget::*count, int numBases, bool isFresh,
                    bool isInUnfold) const {
    ShapeBudget rest = budget;
    --(rest.*count);
    bool canFreshen =
        rest.merge > 0 || (rest.unfold > 0 && bases + numBases > 0);
    if (space.options.useOrdering && !isFresh && !canFreshen)
      rest.weights = 0;
    rest.needsMadeWindow = kind >= SplitMove && !isInUnfold &&
                           !canAnyBecomeWindow && needsMadeWindow(space, rest);
    return rest;
  }
  bool isFresh(const LiveCoord &coord) const {
    return isShareable(space, coord);
  }

  /// The result of a view, with its expression where `needsSight`.
  LiveCoord name(LiveCoord result, CoordKind kind, unsigned first,
                 uint32_t second) {
    if (needsSight(space, result) && (result.flags & LiveCoord::HasWindow))
      result.expr = space.intern({kind, result.size, live[first].expr, second});
    return result;
  }

  bool offer(uint32_t code) { return visit(Move{kind, code}); }

  //===--------------------------------------------------------------------===//
  // Views of one coordinate
  //===--------------------------------------------------------------------===//

  /// O2: another coordinate is as good and comes first.
  bool isLaterTwin(unsigned index, uint64_t key, uint64_t parameter) const {
    return llvm::any_of(twins, [&](std::pair<uint8_t, uint8_t> pair) {
      if (pair.first != index && pair.second != index)
        return false;
      unsigned other = pair.first == index ? pair.second : pair.first;
      return getUnaryKey(kind, hashes[other], parameter) < key;
    });
  }

  bool tryUnary(unsigned index, unsigned low, uint64_t parameter,
                uint8_t ShapeBudget::*count, const LiveCoord *result,
                const LiveCoord *second = nullptr) {
    uint32_t code = index << 8 | low;
    if (code < first)
      return false;
    uint64_t key = getUnaryKey(kind, hashes[index], parameter);
    if (isStale(key, live[index].sinceShared) ||
        isLaterTwin(index, key, parameter))
      return false;
    ItemSum sum = itemSum;
    sum -= items[index];
    int numBases = -int(isShareableBase(space, live[index]));
    bool isAnyFresh = false, isInUnfold = false;
    for (const LiveCoord *made : {result, second}) {
      if (!made)
        continue;
      sum += getItemHash(*made);
      numBases += isShareableBase(space, *made);
      isAnyFresh |= isFresh(*made);
      isInUnfold |= canBeInUnfold(space, *made);
    }
    return isReachableAfter(code, key, sum,
                            spend(count, numBases, isAnyFresh, isInUnfold)) &&
           offer(code);
  }

  bool listStride() {
    for (unsigned index = 0; index < live.size(); ++index) {
      if (isFrozen(index))
        continue;
      for (auto [low, factor] :
           llvm::enumerate(space.distance.getStrideFactors())) {
        if (!canStride(space, state, live[index], factor))
          continue;
        LiveCoord result = name(makeStride(space, live[index], factor),
                                CoordKind::Stride, index, factor);
        const SizeInfo &info = sizes[result.size];
        if (!info.isLegal || ((result.flags & LiveCoord::Strided) &&
                              info.max > limits.strideSize))
          continue;
        if (tryUnary(index, low, sizes[factor].hash, &ShapeBudget::stride,
                     &result))
          return true;
      }
    }
    return false;
  }

  bool listMerge() {
    for (unsigned index = 0; index < live.size(); ++index) {
      if (isFrozen(index) || !canMerge(space, state, live[index]))
        continue;
      for (auto [low, block] :
           llvm::enumerate(sizes.getBlocks(live[index].size))) {
        if (!canMergeBy(space, state, live[index], block))
          continue;
        LiveCoord high = name(makeQuotient(space, live[index], block),
                              CoordKind::MergeQuotient, index, block);
        LiveCoord remainder = name(makeRemainder(space, live[index], block),
                                   CoordKind::MergeRemainder, index, block);
        if (tryUnary(index, low, sizes[block].hash, &ShapeBudget::merge, &high,
                     &remainder))
          return true;
      }
    }
    return false;
  }

  bool listShift() {
    for (unsigned index = 0; index < live.size(); ++index)
      for (bool isBackward : {false, true}) {
        if (isFrozen(index) || !canShift(space, live[index], isBackward))
          continue;
        LiveCoord result =
            name(makeShift(live[index]), CoordKind::Shift, index, isBackward);
        if (tryUnary(index, isBackward, isBackward, &ShapeBudget::shift,
                     &result))
          return true;
      }
    return false;
  }

  bool listExpand() {
    for (unsigned index = 0; index < live.size(); ++index)
      if (!isFrozen(index) && canExpand(space, state, live[index]) &&
          tryUnary(index, 0, 0, &ShapeBudget::expand, nullptr))
        return true;
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Views of two coordinates
  //===--------------------------------------------------------------------===//

  bool isLaterTwin(unsigned a, unsigned b, uint64_t key) const {
    return llvm::any_of(twins, [&](std::pair<uint8_t, uint8_t> pair) {
      auto swap = [&](unsigned index) {
        return index == pair.first    ? pair.second
               : index == pair.second ? pair.first
                                      : index;
      };
      unsigned x = swap(a), y = swap(b);
      return (x != a || y != b) &&
             getBinaryKey(kind, hashes[x], hashes[y]) < key;
    });
  }

  bool tryBinary(unsigned a, unsigned b, uint8_t ShapeBudget::*count,
                 const LiveCoord &result) {
    uint32_t code = a << 8 | b;
    uint64_t key = getBinaryKey(kind, hashes[a], hashes[b]);
    uint64_t since = std::min(live[a].sinceShared, live[b].sinceShared);
    if (isStale(key, since) || isLaterTwin(a, b, key))
      return false;
    ItemSum sum = itemSum;
    sum -= items[a];
    sum -= items[b];
    sum += getItemHash(result);
    int numBases = int(isShareableBase(space, result)) -
                   int(isShareableBase(space, live[a])) -
                   int(isShareableBase(space, live[b]));
    return isReachableAfter(code, key, sum,
                            spend(count, numBases, isFresh(result),
                                  canBeInUnfold(space, result))) &&
           offer(code);
  }

  bool listUnfold() {
    for (unsigned a = 0; a < live.size(); ++a)
      for (unsigned b = 0; b < live.size(); ++b) {
        if (a == b || (a << 8 | b) < first || isFrozen(a) || isFrozen(b) ||
            !canUnfold(space, state, live[a], live[b]))
          continue;
        LiveCoord result = name(makeUnfold(live[a], live[b]), CoordKind::Unfold,
                                a, live[b].expr);
        if (tryBinary(a, b, &ShapeBudget::unfold, result))
          return true;
      }
    return false;
  }

  bool listSplit() {
    for (unsigned a = 0; a < live.size(); ++a)
      for (unsigned b = 0; b < live.size(); ++b) {
        if (a == b || (a << 8 | b) < first || isFrozen(a) || isFrozen(b))
          continue;
        uint64_t key = getBinaryKey(kind, hashes[a], hashes[b]);
        if (isStale(key, std::min(live[a].sinceShared, live[b].sinceShared)) ||
            !canSplit(space, state, live[a], live[b]) ||
            !canPool(space, state, live[a], live[b]))
          continue;
        LiveCoord result = name(makeSplit(space, live[a], live[b]),
                                CoordKind::Split, a, live[b].expr);
        if (tryBinary(a, b, &ShapeBudget::split, result))
          return true;
      }
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Contractions
  //===--------------------------------------------------------------------===//

  /// What the choices for some of the coordinates come to.
  struct Choice {
    uint32_t code = 0;
    uint64_t terms = 0;
    ItemSum items;
    uint64_t since = ~uint64_t(0);
    Powers usage;
    double elements = 1, taken = 1;
    uint8_t commonWeights = 0xff;
    bool hasTaken = false, hasShared = false;
  };

  bool listContract() {
    for (auto [index, coord] : llvm::enumerate(live)) {
      isUsable[index] = !isFrozen(index) && isShareable(space, coord);
      if (!isUsable[index])
        continue;
      canTake[index] = isTakeable(space, coord);
      LiveCoord shared = coord;
      shared.weights |= 1 << state.numWeights;
      shared.flags &= ~LiveCoord::Unweighted;
      ++shared.height;
      sharedItems[index] = getItemHash(shared);
      for (WeightUse use : {Taken, Shared})
        terms[use][index] = getUseTerm(hashes[index], use);
    }
    Choice choice;
    choice.usage = state.usage;
    choice.items = itemSum;
    return chooseUse(live.size(), choice);
  }

  /// Chooses for the coordinates below `end`, so that codes ascend.
  bool chooseUse(unsigned end, const Choice &choice) {
    if (end == 0)
      return tryContract(choice);
    unsigned index = end - 1;
    // What is above already says that all codes are too small.
    auto isPast = [&](const Choice &next) {
      return (next.code | ((uint64_t(1) << (2 * index)) - 1)) < first;
    };
    if (!isPast(choice) && chooseUse(index, choice))
      return true;
    if (!isUsable[index])
      return false;
    const LiveCoord &coord = live[index];
    const SizeInfo &info = sizes[coord.size];
    Choice next = choice;
    next.usage = next.usage + (info.usage & sizes.getPrimaryMask());
    if (!sizes.isWithinOccurrences(next.usage)) // W5
      return false;
    next.elements *= static_cast<double>(info.min);
    next.commonWeights &= coord.weights;
    next.items -= items[index];
    Choice shared = next;
    if (canTake[index]) {
      next.code |= Taken << (2 * index);
      next.terms += terms[Taken][index];
      next.since = std::min(next.since, coord.sinceShared);
      next.hasTaken = true;
      if (coord.kind != CoordKind::Reduce)
        next.taken *= static_cast<double>(info.max);
      if (next.taken <= static_cast<double>(limits.mergeElements) &&
          !isPast(next) && chooseUse(index, next))
        return true;
    }
    shared.code |= Shared << (2 * index);
    shared.terms += terms[Shared][index];
    shared.items += sharedItems[index];
    shared.since = std::min(shared.since, coord.sinceMade);
    shared.hasShared = true;
    return !isPast(shared) && chooseUse(index, shared);
  }

  bool isLaterTwin(const Choice &choice, uint64_t key) const {
    return llvm::any_of(twins, [&](std::pair<uint8_t, uint8_t> pair) {
      auto [a, b] = pair;
      WeightUse ofA = getUse(choice.code, a), ofB = getUse(choice.code, b);
      return ofA != ofB &&
             getContractKey(choice.terms - terms[ofA][a] - terms[ofB][b] +
                            terms[ofB][a] + terms[ofA][b]) < key;
    });
  }

  bool tryContract(const Choice &choice) {
    // W2; W4: no weight is absorbed by one that is there.
    if ((limits.weightTakes && !choice.hasTaken) ||
        (limits.weightShares && !choice.hasShared) || choice.code == 0 ||
        choice.commonWeights != 0 || choice.code < first ||
        choice.elements < static_cast<double>(limits.weightElements))
      return false;
    uint64_t key = getContractKey(choice.terms);
    if (isStale(key, choice.since) || isLaterTwin(choice, key) ||
        !isWeightCanonical(space, state, choice.code) ||
        !isWithinParams(choice.code))
      return false;
    ShapeBudget rest = budget;
    --rest.weights;
    rest.needsWeight = false;
    return isReachableAfter(choice.code, key, choice.items, rest) &&
           offer(choice.code);
  }

  /// Weights only add up.
  bool isWithinParams(uint32_t code) const {
    std::optional<double> most = space.problem->budget.maxParams;
    if (!most)
      return true;
    double params = state.params;
    for (size_t binding = 0; binding < space.problem->bindings.size();
         ++binding) {
      auto product =
          static_cast<double>(space.problem->multiplicities[binding]);
      for (unsigned index = 0; index < live.size(); ++index)
        if (getUse(code, index) != Unused)
          product *=
              static_cast<double>(sizes[live[index].size].values[binding]);
      params += product;
    }
    return params <= *most;
  }

  //===--------------------------------------------------------------------===//
  // The end
  //===--------------------------------------------------------------------===//

  bool listFinish() {
    uint32_t code = 0;
    std::optional<bool> isAllowed;
    bool isStopped = false;
    forEachMatch(space, state, [&](llvm::ArrayRef<unsigned>) {
      if (!isAllowed)
        isAllowed = isFinishable(space, state);
      if (!*isAllowed)
        return true;
      uint32_t own = code++;
      isStopped = own >= first && offer(own);
      return isStopped;
    });
    return isStopped;
  }

  GraphSpace &space;
  SizeTable &sizes;
  const SpaceLimits &limits;
  const GraphStateData &state;
  llvm::ArrayRef<LiveCoord> live;
  llvm::function_ref<bool(Move)> visit;
  int left;
  unsigned kind = 0;
  uint32_t first = 0;
  ShapeBudget budget;
  bool areWeightsComplete = false, canAnyBecomeWindow = false;
  std::optional<bool> isBudgetMet, isHopeful;
  int bases = 0;
  ItemSum itemSum, items[GraphSpace::maxLive], sharedItems[GraphSpace::maxLive];
  uint64_t hashes[GraphSpace::maxLive];
  uint64_t terms[3][GraphSpace::maxLive] = {};
  bool isUsable[GraphSpace::maxLive], canTake[GraphSpace::maxLive];
  llvm::SmallVector<std::pair<uint8_t, uint8_t>, 8> twins;
};

} // namespace

void kas::search::forEachMove(GraphSpace &space, const GraphStateData &state,
                              unsigned firstKind, unsigned lastKind,
                              uint32_t begin,
                              llvm::function_ref<bool(Move)> visit) {
  if (state.isFinished)
    return;
  if (firstKind == ReduceMove) {
    bool isStopped = false;
    forEachReduce(space, state, begin, [&](uint32_t code) {
      isStopped = visit(Move{ReduceMove, code});
      return isStopped;
    });
    if (isStopped || lastKind == ReduceMove)
      return;
    firstKind = ContractMove;
  }
  MoveGenerator generator(space, state, visit);
  for (unsigned kind = firstKind; kind <= lastKind; ++kind)
    if (generator.run(kind, begin))
      return;
}
