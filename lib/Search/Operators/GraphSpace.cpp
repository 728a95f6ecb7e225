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
// Everything is interned, so that states hold numbers, and equality is
// comparison of numbers. Hashes are of contents.
//
//===----------------------------------------------------------------------===//

#include "GraphSpace.h"
#include "GraphProperties.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

/// All input dimensions but a batch.
static llvm::SmallVector<SizeId, 4> getTargets(const SearchProblem &problem,
                                               SizeTable &sizes) {
  llvm::SmallVector<SizeId, 4> targets;
  for (const Dimension &input :
       llvm::ArrayRef(problem.inputs).drop_front(problem.hasBatch()))
    targets.push_back(sizes.intern(input.size));
  return targets;
}

/// The sizes of reductions are enumerated once: they are the codes of the first
/// moves.
GraphSpace::GraphSpace(std::shared_ptr<const SearchProblem> problem,
                       const GraphStateOptions &options)
    : problem(problem), options(options), sizes(*problem),
      firstOutput(problem->hasBatch()), targets(getTargets(*problem, sizes)),
      distance(*problem, sizes, targets, options.maxDistanceBytes),
      cost(*problem, sizes), knownFlops(size_t(1) << 16) {
  // Symbols that only unordered input dimensions have: -1 is a mask of all ones
  // in an exponent of 8 bits.
  Powers ordered;
  auto inputs = llvm::ArrayRef(problem->inputs).drop_front(firstOutput);
  for (auto [input, target] : llvm::zip_equal(inputs, targets))
    for (unsigned i = 0; i < sizes.getNumPowers(); ++i)
      if (sizes.getPrimaryMask().get(i) && sizes[target].powers.get(i) > 0)
        (input.isUnordered ? channelMask : ordered).set(i, -1);
  channelMask = {channelMask.low & ~ordered.low,
                 channelMask.high & ~ordered.high};
  // All combinations of exponents.
  addReduceSizes(0, Powers());
  llvm::sort(reduceSizes,
             [&](SizeId a, SizeId b) { return sizes[a].size < sizes[b].size; });
  distance.allowReductions(reduceSizes);
  // R2, with the elements of the input at each binding.
  for (size_t binding = 0; binding < problem->bindings.size(); ++binding) {
    double points = problem->limits.reduceRatio;
    for (SizeId target : targets)
      points *= static_cast<double>(sizes[target].values[binding]);
    maxReducePoints.push_back(points);
  }
  // Last: it uses the tables above.
  if (problem->limits.hasProperties())
    properties = std::make_unique<GraphProperties>(*this);
}

GraphSpace::~GraphSpace() = default;

/// R3: primary symbols up to the fourth power, coefficients from -2 to 2, as
/// occurrences allow. `powers` has the exponents below `index`. Sizes of 1 and
/// illegal ones are skipped.
void GraphSpace::addReduceSizes(unsigned index, Powers powers) {
  if (index == sizes.getNumPowers()) {
    SizeId id = sizes.intern(powers);
    const SizeInfo &info = sizes[id];
    if (info.isLegal && info.max >= 2)
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

/// `isShape` ignores which of equal leaves it is.
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

/// Operands of views add up, as views do not change what a stage computes;
/// unfolds and merges do.
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

/// By hash alone: with 64 bits, collisions among millions of expressions are
/// improbable.
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

/// A weight is a set of coordinates.
uint32_t GraphSpace::internWeight(llvm::ArrayRef<ExprId> coords) {
  WeightEntry entry{llvm::SmallVector<ExprId, 8>(coords), coords.size()};
  for (ExprId coord : coords)
    entry.hash += mixBits(getHash(coord));
  entry.hash = mixBits(entry.hash);
  if (const uint32_t *id = weightIds.find(entry.hash))
    return *id;
  // Sorted by number, so that equal sets are stored alike.
  llvm::sort(entry.coords);
  uint32_t id = weights.size();
  weightIds[entry.hash] = id;
  weights.push_back(std::move(entry));
  return id;
}

/// In the order of the dimension's digits.
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
