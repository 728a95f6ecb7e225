//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphStateImpl.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;

std::unique_ptr<State>
kas::makeGraphState(std::shared_ptr<const SearchProblem> problem,
                    const GraphStateOptions &options) {
  return std::make_unique<GraphState>(
      std::make_shared<GraphSpace>(std::move(problem), options));
}

GraphState::GraphState(std::shared_ptr<GraphSpace> space) : space(space) {
  const SearchProblem &problem = *space->problem;
  for (unsigned index = space->firstOutput; index < problem.outputs.size();
       ++index) {
    const Dimension &output = problem.outputs[index];
    SizeId size = space->sizes.intern(output.size);
    Expr expr{CoordKind::Output, size, index, 0};
    live.push_back(make(expr, output.isUnordered ? 0 : LiveCoord::Position));
    live.back().flags |= LiveCoord::Unweighted;
  }
}

llvm::StringRef GraphState::getKindName(unsigned kind) const {
  static constexpr llvm::StringLiteral names[NumGraphMoves] = {
      "reduce", "contract", "merge",  "split", "shift",
      "unfold", "stride",   "expand", "finish"};
  return names[kind];
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

/// Codes are numbers of a fixed format for each kind, so that the next move is
/// the next number that the rules allow.
uint32_t GraphState::getNumCodes(unsigned kind) const {
  const StepLimits &limits = space->problem->limits;
  constexpr uint32_t maxLive = GraphSpace::maxLive;
  auto within = [&](unsigned limit, uint32_t codes) {
    return counts[kind] < limit ? codes : 0;
  };
  if (isFinished)
    return 0;
  if (kind == FinishMove)
    return 1;
  if (steps >= limits.depth)
    return 0;
  uint32_t coords = live.size();
  switch (kind) {
  case ReduceMove:
    return steps == counts[ReduceMove] && coords < maxLive
               ? within(limits.reduce, space->reduceSizes.size())
               : 0;
  case ContractMove: {
    uint32_t codes = 1;
    for (const LiveCoord &coord : live)
      codes *= isAtom(coord) ? 3 : 1;
    return within(std::min(limits.weights, GraphSpace::maxWeights), codes);
  }
  case MergeMove:
    return coords < maxLive ? within(limits.merge, coords << 8) : 0;
  case SplitMove:
    return within(limits.split, coords << 8);
  case ShiftMove:
    return within(limits.shift, coords << 8);
  case UnfoldMove:
    return within(limits.unfold, coords << 8);
  case StrideMove:
    return within(limits.stride, coords << 8);
  case ExpandMove:
    return within(limits.expand, coords << 8);
  }
  return 0;
}

/// How many values the low byte of a code may have beside this high part.
uint32_t GraphState::getNumPartners(unsigned kind, uint32_t high) const {
  switch (kind) {
  case MergeMove:
    return space->distance.getBlocks(live[high].size).size();
  case SplitMove:
  case UnfoldMove:
    return live.size();
  case ShiftMove:
    return 2;
  case StrideMove:
    return space->distance.getStrideFactors().size();
  case ExpandMove:
    return 1;
  default:
    return 256;
  }
}

std::optional<Move> GraphState::nextMove(unsigned kind,
                                         std::optional<Move> previous) const {
  uint32_t end = getNumCodes(kind);
  for (uint32_t code = previous ? previous->code + 1 : 0; code < end; ++code) {
    if (kind == ContractMove && !isContractionAllowed(getUses(code)))
      continue;
    // The low byte counts partners: skip the numbers beyond.
    if ((code & 0xff) >= getNumPartners(kind, code >> 8)) {
      code |= 0xff;
      continue;
    }
    if (GraphState child = *this; child.tryMove(kind, code))
      return Move{kind, code};
  }
  return std::nullopt;
}

bool GraphState::tryMove(unsigned kind, uint32_t code) {
  unsigned high = code >> 8, low = code & 0xff;
  auto isMade = [&] {
    switch (kind) {
    case ReduceMove:
      return tryReduce(code);
    case ContractMove:
      return tryContract(code);
    case MergeMove:
      return tryMerge(high, low);
    case SplitMove:
      return trySplit(high, low);
    case ShiftMove:
      return tryShift(high, low);
    case UnfoldMove:
      return tryUnfold(high, low);
    case StrideMove:
      return tryStride(high, low);
    case ExpandMove:
      return tryExpand(high);
    default:
      return tryFinish();
    }
  };
  if (!isMade())
    return false;
  ++counts[kind];
  if (kind == FinishMove)
    return true;
  ++steps;
  return kind == ReduceMove ? isReachableByReductions() : isReachable();
}

void GraphState::apply(Move move) {
  [[maybe_unused]] bool isMade = tryMove(move.kind, move.code);
  assert(isMade && "a move of another state");
}

bool GraphState::isAtom(const LiveCoord &coord) const {
  switch (space->getExpr(coord.expr).kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
    return true;
  default:
    return false;
  }
}

LiveCoord GraphState::make(const Expr &expr, uint8_t flags) const {
  return {space->intern(expr), expr.size, flags, 0};
}

void GraphState::replace(const LiveCoord &result, unsigned first,
                         std::optional<unsigned> second) {
  live[first] = result;
  if (second)
    live.erase(live.begin() + *second);
}

/// Counts the symbols of a reduction or of a weight's dimension (W5).
bool GraphState::useSymbols(SizeId size) {
  const SearchProblem &problem = *space->problem;
  for (unsigned symbol = 0; symbol < problem.symbols.size(); ++symbol) {
    occurrences[symbol] +=
        std::abs(space->sizes[size].size.getExponent(symbol));
    if (occurrences[symbol] > problem.occurrences[symbol])
      return false;
  }
  return true;
}

bool GraphState::tryReduce(uint32_t index) {
  if (index < lastReduce) // R1
    return false;
  SizeId size = space->reduceSizes[index];
  if (!useSymbols(size))
    return false;
  uint32_t equal = llvm::count_if(reductions, [&](ExprId reduction) {
    return space->getExpr(reduction).size == size;
  });
  live.push_back(
      make({CoordKind::Reduce, size, equal, 0}, LiveCoord::Unweighted));
  reductions.push_back(live.back().expr);
  lastReduce = index;
  return isWithinBudget(); // R2
}

GraphState::Uses GraphState::getUses(uint32_t code) const {
  Uses uses = {};
  for (auto [index, coord] : llvm::enumerate(live))
    if (isAtom(coord)) {
      uses[index] = code % 3;
      code /= 3;
    }
  return uses;
}

/// W4: one of the weights would contain the other.
bool GraphState::containsWeight(llvm::ArrayRef<ExprId> coords) const {
  return llvm::any_of(weights, [&](uint32_t id) {
    llvm::ArrayRef<ExprId> weight = space->getWeight(id);
    auto isIn = [](llvm::ArrayRef<ExprId> a, llvm::ArrayRef<ExprId> b) {
      return llvm::all_of(a,
                          [&](ExprId c) { return llvm::is_contained(b, c); });
    };
    return isIn(coords, weight) || isIn(weight, coords);
  });
}

/// W2, W3, twins.
bool GraphState::isContractionAllowed(const Uses &uses) const {
  bool hasReduction = false, hasShared = false;
  for (auto [index, coord] : llvm::enumerate(live)) {
    const Expr &expr = space->getExpr(coord.expr);
    bool isReduction = expr.kind == CoordKind::Reduce;
    hasReduction |= isReduction && uses[index];
    hasShared |= uses[index] == Shared;
    if (isReduction && uses[index] == Taken &&
        (!coord.weights || space->sizes[coord.size].max > maxRank))
      return false;
    if (!isReduction || expr.first == 0)
      continue;
    for (auto [other, twin] : llvm::enumerate(live)) {
      const Expr &twinExpr = space->getExpr(twin.expr);
      if (twinExpr.kind == CoordKind::Reduce && twinExpr.size == expr.size &&
          twinExpr.first < expr.first && twin.weights == coord.weights &&
          uses[other] < uses[index])
        return false;
    }
  }
  return hasReduction && hasShared;
}

/// W6: beside the reduction, the weight has more elements than the reduction.
bool GraphState::isLowRank(ExprId reduction,
                           llvm::ArrayRef<ExprId> weight) const {
  const SizeInfo &rank = space->sizes[space->getExpr(reduction).size];
  for (size_t binding = 0; binding < rank.values.size(); ++binding) {
    int64_t others = 1;
    for (ExprId coord : weight)
      if (coord != reduction && others <= maxRank)
        others *= space->sizes[space->getExpr(coord).size].values[binding];
    if (rank.values[binding] >= others)
      return false;
  }
  return true;
}

bool GraphState::tryContract(uint32_t code) {
  Uses uses = getUses(code);
  if (!isContractionAllowed(uses))
    return false;
  llvm::SmallVector<ExprId, 6> coords;
  llvm::SmallVector<LiveCoord, GraphSpace::maxLive> rest;
  for (auto [index, coord] : llvm::enumerate(live)) {
    if (uses[index] != Unused) {
      coords.push_back(coord.expr);
      if (!useSymbols(coord.size))
        return false;
      coord.weights |= 1 << weights.size();
      coord.flags &= ~LiveCoord::Unweighted;
    }
    if (uses[index] != Taken)
      rest.push_back(coord);
  }
  if (containsWeight(coords))
    return false;
  for (auto [index, coord] : llvm::enumerate(live)) {
    if (uses[index] != Taken ||
        space->getExpr(coord.expr).kind != CoordKind::Reduce)
      continue;
    if (!isLowRank(coord.expr, coords))
      return false;
    for (uint32_t weight : weights)
      if (llvm::is_contained(space->getWeight(weight), coord.expr) &&
          !isLowRank(coord.expr, space->getWeight(weight)))
        return false;
  }
  live = rest;
  weights.push_back(space->internWeight(std::move(coords)));
  return isWithinBudget();
}

bool GraphState::tryMerge(unsigned coord, unsigned block) {
  LiveCoord whole = live[coord];
  CoordKind kind = space->getExpr(whole.expr).kind;
  if ((kind != CoordKind::Output && kind != CoordKind::MergeRemainder) ||
      whole.weights) // M1
    return false;
  llvm::ArrayRef<SizeId> blocks = space->distance.getBlocks(whole.size);
  SizeId inner = blocks[block];
  SizeId outer = *space->sizes.divide(whole.size, inner);
  const SizeInfo &innerInfo = space->sizes[inner];
  const SizeInfo &outerInfo = space->sizes[outer];
  if (!(whole.flags & LiveCoord::Position) &&
      std::tie(innerInfo.values, innerInfo.size) <
          std::tie(outerInfo.values, outerInfo.size)) // M3
    return false;
  replace(
      make({CoordKind::MergeQuotient, outer, whole.expr, inner}, whole.flags),
      coord);
  live.push_back(
      make({CoordKind::MergeRemainder, inner, whole.expr, inner}, whole.flags));
  return true;
}

uint8_t GraphState::getWeightsOf(ExprId expr) const {
  uint8_t mask = 0;
  for (auto [index, weight] : llvm::enumerate(weights))
    if (llvm::is_contained(space->getWeight(weight), expr))
      mask |= 1 << index;
  return mask;
}

/// Of two equal reductions with the same weights the first goes first.
bool GraphState::isFirstTwin(unsigned coord) const {
  const Expr &expr = space->getExpr(live[coord].expr);
  return expr.kind != CoordKind::Reduce ||
         llvm::none_of(live, [&](const LiveCoord &other) {
           const Expr &twin = space->getExpr(other.expr);
           return twin.kind == CoordKind::Reduce && twin.size == expr.size &&
                  twin.first < expr.first &&
                  other.weights == live[coord].weights;
         });
}

/// S2, S3, S4.
bool GraphState::isSplitCanonical(const LiveCoord &outer,
                                  const LiveCoord &inner,
                                  SizeId product) const {
  llvm::SmallVector<ExprId, 6> factors;
  space->getFactors(outer.expr, factors);
  space->getFactors(inner.expr, factors);
  bool isChannel = space->isChannel(product);
  auto rank = [&](ExprId id) {
    const Expr &expr = space->getExpr(id);
    return std::tuple(expr.kind, space->sizes[expr.size].size,
                      space->getHash(id));
  };
  for (unsigned i = 0; i < factors.size(); ++i)
    for (unsigned j = i + 1; j < factors.size(); ++j) {
      const Expr &a = space->getExpr(factors[i]);
      const Expr &b = space->getExpr(factors[j]);
      bool haveSameWeights =
          getWeightsOf(factors[i]) == getWeightsOf(factors[j]);
      if (a.kind == CoordKind::Reduce && b.kind == CoordKind::Reduce &&
          haveSameWeights)
        return false;
      bool isInOrder = a.kind == CoordKind::MergeQuotient &&
                       b.kind == CoordKind::MergeRemainder && j == i + 1;
      bool isReversed = a.kind == CoordKind::MergeRemainder &&
                        b.kind == CoordKind::MergeQuotient;
      bool areHalves = isInOrder || (isChannel && isReversed);
      if (areHalves && haveSameWeights && a.first == b.first &&
          a.second == b.second)
        return false;
      if (isChannel && rank(factors[j]) < rank(factors[i]))
        return false;
    }
  return true;
}

bool GraphState::trySplit(unsigned outer, unsigned inner) {
  if (inner == outer)
    return false;
  const LiveCoord &a = live[outer], &b = live[inner];
  if (space->getExpr(a.expr).kind == CoordKind::Split || // S1
      ((a.flags | b.flags) & LiveCoord::Strided))
    return false;
  bool areTwins = space->getExpr(a.expr).kind == CoordKind::Reduce &&
                  space->getExpr(b.expr).kind == CoordKind::Reduce &&
                  a.size == b.size;
  if (!areTwins && (!isFirstTwin(outer) || !isFirstTwin(inner)))
    return false;
  std::optional<SizeId> product = space->sizes.multiply(a.size, b.size);
  if (!product || !space->sizes[*product].isLegal ||
      !isSplitCanonical(a, b, *product))
    return false;
  replace(make({CoordKind::Split, *product, a.expr, b.expr}, a.flags | b.flags),
          outer, inner);
  return true;
}

bool GraphState::tryShift(unsigned coord, bool isBackward) {
  const LiveCoord &base = live[coord];
  CoordKind kind = space->getExpr(base.expr).kind;
  const SizeInfo &info = space->sizes[base.size];
  bool isShiftable = kind == CoordKind::Output || kind == CoordKind::Unfold ||
                     kind == CoordKind::MergeQuotient ||
                     kind == CoordKind::MergeRemainder;
  if (!isShiftable || !(base.flags & LiveCoord::Position) || base.weights ||
      info.min < 2 || (isBackward && info.max == 2)) // H1; C3
    return false;
  replace(
      make({CoordKind::Shift, base.size, base.expr, isBackward}, base.flags),
      coord);
  return true;
}

bool GraphState::tryUnfold(unsigned coord, unsigned window) {
  if (window == coord)
    return false;
  const LiveCoord &base = live[coord], &taps = live[window];
  const Expr &baseExpr = space->getExpr(base.expr);
  CoordKind tapsKind = space->getExpr(taps.expr).kind;
  bool isBase = isAtom(base) || baseExpr.kind == CoordKind::Stride ||
                baseExpr.kind == CoordKind::Unfold;
  if (!isBase || !(base.flags & LiveCoord::Position)) // U1
    return false;
  const SizeInfo &baseInfo = space->sizes[base.size];
  const SizeInfo &info = space->sizes[taps.size];
  bool isInside = llvm::all_of(
      llvm::zip_equal(baseInfo.values, info.values), [](auto values) {
        return std::get<0>(values) >= 2 * std::get<1>(values);
      });
  if (!info.isOdd || info.min < 3 || info.max > maxWindow || !isInside) // U2
    return false;
  if ((taps.flags & (LiveCoord::Position | LiveCoord::Unweighted)) ||
      tapsKind == CoordKind::Unfold || tapsKind == CoordKind::Shift) // U3
    return false;
  if (!isFirstTwin(window))
    return false;
  if (baseExpr.kind == CoordKind::Unfold) { // U4
    llvm::SmallVector<ExprId, 6> inner, outer;
    space->getReductions(base.expr, inner);
    space->getReductions(taps.expr, outer);
    for (ExprId a : inner)
      for (ExprId b : outer)
        if (getWeightsOf(a) == getWeightsOf(b))
          return false;
  }
  uint8_t flags = (base.flags | taps.flags) & ~LiveCoord::Strided;
  replace(make({CoordKind::Unfold, base.size, base.expr, taps.expr}, flags),
          coord, window);
  return true;
}

bool GraphState::tryStride(unsigned coord, unsigned factor) {
  llvm::ArrayRef<SizeId> factors = space->distance.getStrideFactors();
  const LiveCoord &base = live[coord];
  std::optional<SizeId> size =
      space->sizes.multiply(base.size, factors[factor]);
  if (!isAtom(base) || !size || !space->sizes[*size].isLegal)
    return false;
  if (base.flags & LiveCoord::Position) { // T1
    if (!space->distance.isSignatureStride(factors[factor]))
      return false;
  } else { // T2
    const SizeInfo &info = space->sizes[*size];
    if ((base.flags & LiveCoord::Unweighted) || !info.isOdd ||
        info.max > maxWindow || !isFirstTwin(coord))
      return false;
  }
  bool isPosition = base.flags & LiveCoord::Position;
  replace(make({CoordKind::Stride, *size, base.expr, factors[factor]},
               base.flags | (isPosition ? 0 : LiveCoord::Strided)),
          coord);
  return true;
}

bool GraphState::tryExpand(unsigned coord) {
  const LiveCoord &base = live[coord];
  if (!isAtom(base) || base.weights ||
      space->getExpr(base.expr).kind == CoordKind::Reduce) // E1
    return false;
  expanded.push_back(base.expr);
  live.erase(live.begin() + coord);
  return true;
}

bool GraphState::tryFinish() {
  for (const LiveCoord &coord : live)
    if (coord.flags & LiveCoord::Strided) // T3
      return false;
  if (!matchInputs()) // F1
    return false;
  if (weights.empty() && space->problem->limits.weights > 0) // F2
    return false;
  int64_t pooling = 1;
  for (ExprId reduction : reductions)
    if (!getWeightsOf(reduction))
      pooling *= space->sizes[space->getExpr(reduction).size].max;
  if (pooling > maxPooling) // F3
    return false;
  std::optional<GraphCost> cost = getCost();
  std::optional<double> minFlops = space->problem->budget.minFlops;
  if (!cost || !isWithinBudget() || (minFlops && cost->flops < *minFlops)) // F4
    return false;
  isFinished = true;
  return true;
}
