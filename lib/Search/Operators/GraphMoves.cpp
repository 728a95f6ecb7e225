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
// A candidate move passes, from cheap to expensive: the side conditions of its
// kind (GraphRules.cpp), the order of commuting moves (O1), interchangeable
// coordinates (O2), and the shape distance of the state after it, which is
// mostly known from a hash that is updated by a few terms. Only when that is
// unknown the move is made in a copy.
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

/// Keys are compared as numbers: the kind in the upper 4 bits, then a hash of
/// what the move does.
static constexpr uint64_t makeKey(unsigned kind, uint64_t hash) {
  return uint64_t(kind) << 60 | hash >> 4;
}
/// Of a view of one coordinate.
static uint64_t getUnaryKey(unsigned kind, uint64_t base, uint64_t parameter) {
  return makeKey(kind, combineHash(combineHash(kind, base), parameter));
}
/// Operands in their order, which matters for splits and unfolds.
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

/// Hashes are of contents, never of positions, so a move has one key in
/// whatever state it is made.
uint64_t kas::search::getMoveKey(GraphSpace &space, const GraphStateData &state,
                                 unsigned kind, uint32_t code) {
  auto getHash = [&](unsigned index) {
    return space.getHash(state.live[index].expr);
  };
  unsigned high = code >> 8, low = code & 0xff;
  switch (kind) {
  // These two are outside of the order: reductions come first, and the end
  // last.
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
    // Everything about the live coordinates that does not depend on the move is
    // computed once.
    for (auto [index, coord] : llvm::enumerate(live)) {
      hashes[index] = space.getHash(coord.expr);
      items[index] = getItemHash(coord);
      itemSum += items[index];
      bases += isShareableBase(space, coord);
      canAnyBecomeWindow |= canBecomeWindow(space, coord);
      // Pairs of twins, by index.
      if (space.options.useTwins)
        for (unsigned other = 0; other < index; ++other)
          if (areTwins(space, live[other], coord))
            twins.emplace_back(other, index);
    }
    budget = getShapeBudget(space, state);
    areWeightsComplete = budget.weights == 0;
    // As it is before staleness (see getShapeBudget) is known. The distance has
    // to know whether weights may still come. This is the number before
    // staleness is taken into account: `spend` does that for each move.
    budget.weights = getNumWeightsLeft();
    budget.needsMadeWindow = false;
  }

  /// Returns true when the visitor wants no more. `begin` is the first code to
  /// visit.
  bool run(unsigned kindToList, uint32_t begin) {
    kind = kindToList;
    first = begin;
    // Hopeless states have no moves: no weight will come, and the FLOPs are out
    // of bounds, or a property cannot be met any more.
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
  /// Masks have one bit for each weight, hence the fixed maximum.
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
  /// See `ShapeDistance::hashItem`: which weights index a reduction matters
  /// only when no more weights come.
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
  /// this sum. The state after the move is not made: its items are those of
  /// this state, less what the move uses, plus what it makes.
  bool isReachableAfter(uint32_t code, uint64_t key, const ItemSum &sum,
                        const ShapeBudget &rest) {
    if (!space.options.useDistance)
      return true;
    uint64_t items = rest.weights > 0 ? sum.before : sum.after;
    bool isNear = space.queries.measure([&] {
      if (std::optional<bool> known = space.distance.recall(
              ShapeDistance::getKey(items, rest), left - 1))
        return *known;
      // Unknown: make the move, and let the distance work it out.
      GraphStateData child;
      child.assign(state);
      applyMove(space, child, kind, code, key);
      return isReachable(space, child);
    });
    // A view that makes all stale comes after the last weight. Once no weight
    // can come any more the FLOPs are final, but for windows.
    return isNear && (rest.weights > 0 || areWeightsComplete ||
                      kind == ContractMove || canMeetBudget());
  }

  /// Worked out once per state, and only when it is needed.
  bool canHaveProperties() {
    if (!isHopeful)
      isHopeful = !space.properties || space.properties->canHold(state);
    return *isHopeful;
  }

  /// Also once per state.
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
    // A view makes all contractions stale that commute with it. New ones are
    // possible only on its result, if that is fresh, or on results of merges
    // and unfolds to come.
    bool canFreshen =
        rest.merge > 0 || (rest.unfold > 0 && bases + numBases > 0);
    if (space.options.useOrdering && !isFresh && !canFreshen)
      rest.weights = 0;
    // After a split all unfolds come too late, but for those on what is made
    // from now on.
    rest.needsMadeWindow = kind >= SplitMove && !isInUnfold &&
                           !canAnyBecomeWindow && needsMadeWindow(space, rest);
    return rest;
  }
  bool isFresh(const LiveCoord &coord) const {
    return isShareable(space, coord);
  }

  /// The result of a view, with its expression where `needsSight`. Only then
  /// the distance looks at the expression; interning costs time.
  LiveCoord name(LiveCoord result, CoordKind kind, unsigned first,
                 uint32_t second) {
    if (needsSight(space, result) && (result.flags & LiveCoord::HasWindow))
      result.expr = space.intern({kind, result.size, live[first].expr, second});
    return result;
  }

  /// True when the visitor has enough.
  bool offer(uint32_t code) { return visit(Move{kind, code}); }

  //===--------------------------------------------------------------------===//
  // Views of one coordinate
  //===--------------------------------------------------------------------===//

  /// O2: another coordinate is as good and comes first. Of twins the one with
  /// the smaller key is used.
  bool isLaterTwin(unsigned index, uint64_t key, uint64_t parameter) const {
    return llvm::any_of(twins, [&](std::pair<uint8_t, uint8_t> pair) {
      if (pair.first != index && pair.second != index)
        return false;
      unsigned other = pair.first == index ? pair.second : pair.first;
      return getUnaryKey(kind, hashes[other], parameter) < key;
    });
  }

  /// All checks of a view of one coordinate that the rules allow. `result` and
  /// `second` are what it makes; null for an expand. `parameter` and `low` mean
  /// the same, as a hash and as a number in the code.
  bool tryUnary(unsigned index, unsigned low, uint64_t parameter,
                uint8_t ShapeBudget::*count, const LiveCoord *result,
                const LiveCoord *second = nullptr) {
    uint32_t code = index << 8 | low;
    if (code < first)
      return false;
    uint64_t key = getUnaryKey(kind, hashes[index], parameter);
    // Views commute with a weight that shares the coordinate, so it counts when
    // the coordinate was made or last shared.
    if (isStale(key, live[index].sinceShared) ||
        isLaterTwin(index, key, parameter))
      return false;
    ItemSum sum = itemSum;
    sum -= items[index];
    int numBases = -int(isShareableBase(space, live[index]));
    bool isAnyFresh = false, isInUnfold = false;
    // The effect on the items, on the bases of unfolds, and on what may be
    // indexed.
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

  /// By each factor that the signature or a coefficient gives.
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
        // T2, S7: a size within the limits.
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

  /// By each block of the coordinate's size.
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

  /// By 1, and by -1 where the space allows it.
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

  /// The coordinate disappears without a weight: the output is constant along
  /// it.
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

  /// Of all moves that swapping twins leads to, the one with the least key is
  /// taken.
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

  /// The same for a view of two coordinates, in this order.
  bool tryBinary(unsigned a, unsigned b, uint8_t ShapeBudget::*count,
                 const LiveCoord &result) {
    uint32_t code = a << 8 | b;
    uint64_t key = getBinaryKey(kind, hashes[a], hashes[b]);
    // Either operand may be the one that makes the move possible only now.
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

  /// a is the base, b the window.
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

  /// a is the outer operand, b the inner one. Orders and twins are cheaper to
  /// check than the rules of splits, so they come first.
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

  /// What the choices for some of the coordinates come to. Accumulated from the
  /// highest live coordinate to the lowest.
  struct Choice {
    uint32_t code = 0;
    // The sum of `getUseTerm`: the key of the contraction.
    uint64_t terms = 0;
    ItemSum items;
    // The least of what the used coordinates remember.
    uint64_t since = ~uint64_t(0);
    // Occurrences, elements at the least, and elements that are taken from
    // outputs.
    Powers usage;
    double elements = 1, taken = 1;
    // The weights that index all coordinates so far: none may have all of them
    // (W4).
    uint8_t commonWeights = 0xff;
    bool hasTaken = false, hasShared = false;
  };

  /// Prepares, for each coordinate, what using it would do; then enumerates all
  /// combinations of uses.
  bool listContract() {
    for (auto [index, coord] : llvm::enumerate(live)) {
      isUsable[index] = !isFrozen(index) && isShareable(space, coord);
      if (!isUsable[index])
        continue;
      canTake[index] = isTakeable(space, coord);
      // The coordinate after it was shared.
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
    // 3^n combinations at most, cut off early by occurrences and limits.
    return chooseUse(live.size(), choice);
  }

  /// Chooses for the coordinates below `end`, so that codes ascend. At each
  /// coordinate: unused, then taken, then shared.
  bool chooseUse(unsigned end, const Choice &choice) {
    if (end == 0)
      return tryContract(choice);
    unsigned index = end - 1;
    // What is above already says that all codes are too small.
    auto isPast = [&](const Choice &next) {
      return (next.code | ((uint64_t(1) << (2 * index)) - 1)) < first;
    };
    // Not used.
    if (!isPast(choice) && chooseUse(index, choice))
      return true;
    if (!isUsable[index])
      return false;
    const LiveCoord &coord = live[index];
    const SizeInfo &info = sizes[coord.size];
    Choice next = choice;
    next.usage = next.usage + (info.usage & sizes.getPrimaryMask());
    // Each further coordinate only adds occurrences.
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
    // Shared: it stays in the data, with one more weight.
    shared.code |= Shared << (2 * index);
    shared.terms += terms[Shared][index];
    shared.items += sharedItems[index];
    shared.since = std::min(shared.since, coord.sinceMade);
    shared.hasShared = true;
    return !isPast(shared) && chooseUse(index, shared);
  }

  /// Exchanging the uses of two twins gives the same weight.
  bool isLaterTwin(const Choice &choice, uint64_t key) const {
    return llvm::any_of(twins, [&](std::pair<uint8_t, uint8_t> pair) {
      auto [a, b] = pair;
      WeightUse ofA = getUse(choice.code, a), ofB = getUse(choice.code, b);
      return ofA != ofB &&
             getContractKey(choice.terms - terms[ofA][a] - terms[ofB][b] +
                            terms[ofB][a] + terms[ofA][b]) < key;
    });
  }

  /// The complete choice: its limits first, then the order, then the rules for
  /// weights.
  bool tryContract(const Choice &choice) {
    // W2; W4: no weight is absorbed by one that is there.
    if ((limits.weightTakes && !choice.hasTaken) ||
        (limits.weightShares && !choice.hasShared) || choice.code == 0 ||
        choice.commonWeights != 0 || choice.code < first ||
        choice.elements < static_cast<double>(limits.weightElements))
      return false;
    // Sums of terms are the same for all orders of the coordinates.
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

  /// Weights only add up. A bound on parameters that is exceeded stays
  /// exceeded.
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

  /// One move for each assignment of coordinates to input dimensions (F1).
  bool listFinish() {
    uint32_t code = 0;
    std::optional<bool> isAllowed;
    bool isStopped = false;
    forEachMatch(space, state, [&](llvm::ArrayRef<unsigned>) {
      // The costs do not depend on the assignment, so they are checked once,
      // and only if there is an assignment.
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
  /// Steps that are left.
  int left;
  unsigned kind = 0;
  uint32_t first = 0;
  ShapeBudget budget;
  bool areWeightsComplete = false, canAnyBecomeWindow = false;
  std::optional<bool> isBudgetMet, isHopeful;
  /// How many live coordinates an unfold could make indexable by a weight.
  int bases = 0;
  /// By live coordinate.
  ItemSum itemSum, items[GraphSpace::maxLive], sharedItems[GraphSpace::maxLive];
  uint64_t hashes[GraphSpace::maxLive];
  uint64_t terms[3][GraphSpace::maxLive] = {};
  bool isUsable[GraphSpace::maxLive], canTake[GraphSpace::maxLive];
  llvm::SmallVector<std::pair<uint8_t, uint8_t>, 8> twins;
};

} // namespace

/// Reductions come before everything else, so they are handled on their own.
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
