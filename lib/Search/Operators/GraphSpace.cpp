//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables of one search of operators: sizes, expressions of coordinates, and
// what depends on them.
//
//===----------------------------------------------------------------------===//

#include "GraphSpace.h"
#include "GraphProperties.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

static llvm::SmallVector<SizeId, 4> getTargets(const SearchProblem &problem,
                                               SizeTable &sizes) {
  llvm::SmallVector<SizeId, 4> targets;
  for (const Dimension &input :
       llvm::ArrayRef(problem.inputs).drop_front(problem.hasBatch()))
    targets.push_back(sizes.intern(input.size));
  return targets;
}

GraphSpace::GraphSpace(std::shared_ptr<const SearchProblem> problem,
                       const GraphStateOptions &options)
    : problem(problem), options(options), sizes(*problem),
      firstOutput(problem->hasBatch()), targets(getTargets(*problem, sizes)),
      distance(*problem, sizes, targets, options.maxDistanceBytes),
      cost(*problem, sizes), knownFlops(size_t(1) << 16) {
  Powers ordered;
  auto inputs = llvm::ArrayRef(problem->inputs).drop_front(firstOutput);
  for (auto [input, target] : llvm::zip_equal(inputs, targets))
    for (unsigned i = 0; i < sizes.getNumPowers(); ++i)
      if (sizes.getPrimaryMask().get(i) && sizes[target].powers.get(i) > 0)
        (input.isUnordered ? channelMask : ordered).set(i, -1);
  channelMask = {channelMask.low & ~ordered.low,
                 channelMask.high & ~ordered.high};
  addReduceSizes(0, Powers());
  llvm::sort(reduceSizes,
             [&](SizeId a, SizeId b) { return sizes[a].size < sizes[b].size; });
  distance.allowReductions(reduceSizes);
  for (size_t binding = 0; binding < problem->bindings.size(); ++binding) {
    double points = problem->limits.reduceRatio;
    for (SizeId target : targets)
      points *= static_cast<double>(sizes[target].values[binding]);
    maxReducePoints.push_back(points);
  }
  if (problem->limits.hasProperties())
    properties = std::make_unique<GraphProperties>(*this);
}

GraphSpace::~GraphSpace() = default;

/// R3: primary symbols up to the fourth power, coefficients from -2 to 2, as
/// occurrences allow.
void GraphSpace::addReduceSizes(unsigned index, Powers powers) {
  if (index == sizes.getNumPowers()) {
    SizeId id = sizes.intern(powers);
    const SizeInfo &info = sizes[id];
    if (info.isLegal && info.isShareable && info.max >= 2)
      reduceSizes.push_back(id);
    return;
  }
  bool isPrimary = sizes.getPrimaryMask().get(index);
  int allowed = sizes.getOccurrences().get(index);
  int least = isPrimary ? 0 : -std::min(allowed, 2);
  int most = std::min(allowed, isPrimary ? 4 : 2);
  for (int exponent = least; exponent <= most; ++exponent) {
    powers.set(index, exponent);
    addReduceSizes(index + 1, powers);
  }
}

uint64_t GraphSpace::computeHash(const Expr &expr, bool isShape) const {
  auto getOperand = [&](ExprId id) {
    return isShape ? getShapeHash(id) : getHash(id);
  };
  uint64_t hash =
      combineHash(static_cast<uint64_t>(expr.kind), sizes[expr.size].hash);
  switch (expr.kind) {
  case CoordKind::Output:
    return isShape && isSwappable(expr) ? hash : combineHash(hash, expr.first);
  case CoordKind::Reduce:
    return isShape ? hash : combineHash(hash, expr.first);
  case CoordKind::Split:
  case CoordKind::Unfold:
    hash = combineHash(hash, getOperand(expr.first));
    return combineHash(hash, getOperand(expr.second));
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
  case CoordKind::Stride:
    hash = combineHash(hash, getOperand(expr.first));
    return combineHash(hash, sizes[expr.second].hash);
  case CoordKind::Shift:
    hash = combineHash(hash, getOperand(expr.first));
    return combineHash(hash, expr.second);
  }
  llvm_unreachable("all kinds are handled");
}

uint64_t GraphSpace::computeCostHash(const Expr &expr, uint64_t hash) const {
  switch (expr.kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
    return mixBits(hash);
  case CoordKind::Split:
    return getCostHash(expr.first) + getCostHash(expr.second);
  case CoordKind::Shift:
  case CoordKind::Stride:
    return getCostHash(expr.first);
  case CoordKind::Unfold:
    hash = combineHash(sizes[expr.size].hash, getCostHash(expr.first));
    return combineHash(hash, getCostHash(expr.second));
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
    hash =
        combineHash(static_cast<uint64_t>(expr.kind), getCostHash(expr.first));
    return combineHash(hash, sizes[expr.size].hash);
  }
  llvm_unreachable("all kinds are handled");
}

ExprId GraphSpace::intern(const Expr &expr) {
  uint64_t hash = computeHash(expr, /*isShape=*/false);
  if (const ExprId *id = exprIds.find(hash))
    return *id;
  ExprId id = exprs.size();
  exprs.push_back({expr, hash, computeHash(expr, /*isShape=*/true),
                   computeCostHash(expr, hash)});
  exprIds[hash] = id;
  return id;
}

uint32_t GraphSpace::internWeight(llvm::ArrayRef<ExprId> coords) {
  WeightEntry entry{llvm::SmallVector<ExprId, 8>(coords), coords.size()};
  for (ExprId coord : coords)
    entry.hash += mixBits(getHash(coord));
  entry.hash = mixBits(entry.hash);
  if (const uint32_t *id = weightIds.find(entry.hash))
    return *id;
  llvm::sort(entry.coords);
  uint32_t id = weights.size();
  weightIds[entry.hash] = id;
  weights.push_back(std::move(entry));
  return id;
}

void GraphSpace::getFactors(ExprId id,
                            llvm::SmallVectorImpl<ExprId> &factors) const {
  const Expr &expr = getExpr(id);
  if (expr.kind != CoordKind::Split) {
    factors.push_back(id);
    return;
  }
  getFactors(expr.first, factors);
  getFactors(expr.second, factors);
}
