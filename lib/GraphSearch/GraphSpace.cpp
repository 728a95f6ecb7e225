//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphSpace.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;

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
      targets(getTargets(*problem, sizes)), firstOutput(problem->hasBatch()),
      distance(*problem, sizes, targets) {
  addReduceSizes(Size(), 0, 0);
  for (unsigned symbol = 0; symbol < problem->symbols.size(); ++symbol)
    if (problem->symbols.getKind(symbol) == SymbolKind::Primary)
      addReduceSizes(Size::symbol(symbol), 0, 0);
  llvm::sort(reduceSizes,
             [&](SizeId a, SizeId b) { return sizes[a].size < sizes[b].size; });
}

/// R3: `size` times every product of powers of the coefficients from `symbol`
/// on.
void GraphSpace::addReduceSizes(Size size, unsigned symbol, unsigned powers) {
  if (symbol == problem->symbols.size()) {
    SizeId id = sizes.intern(size);
    const SizeInfo &info = sizes[id];
    if (info.isLegal && info.isAllowed && info.min >= 2)
      reduceSizes.push_back(id);
    return;
  }
  bool isCoefficient =
      problem->symbols.getKind(symbol) == SymbolKind::Coefficient;
  int reach = isCoefficient ? std::min(2u, 3 - powers) : 0;
  for (int exponent = -reach; exponent <= reach; ++exponent)
    if (auto product = size.multiply(Size::symbol(symbol, exponent)))
      addReduceSizes(*product, symbol + 1, powers + std::abs(exponent));
}

ExprId GraphSpace::intern(const Expr &expr) {
  uint64_t hash = combineHash(static_cast<uint64_t>(expr.kind),
                              sizes[expr.size].size.hash());
  switch (expr.kind) {
  case CoordKind::Output:
  case CoordKind::Reduce:
    hash = combineHash(hash, expr.first);
    break;
  case CoordKind::Split:
  case CoordKind::Unfold:
    hash = combineHash(hash, hashes[expr.first]);
    hash = combineHash(hash, hashes[expr.second]);
    break;
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
  case CoordKind::Stride:
    hash = combineHash(hash, hashes[expr.first]);
    hash = combineHash(hash, sizes[expr.second].size.hash());
    break;
  case CoordKind::Shift:
    hash = combineHash(hash, hashes[expr.first]);
    hash = combineHash(hash, expr.second);
    break;
  }
  llvm::SmallVector<ExprId, 1> &ids = exprsByHash[hash >> 1];
  for (ExprId id : ids)
    if (exprs[id] == expr)
      return id;
  ids.push_back(exprs.size());
  exprs.push_back(expr);
  hashes.push_back(hash);
  return ids.back();
}

uint64_t
GraphSpace::getHash(ExprId id,
                    const llvm::DenseMap<ExprId, unsigned> &labels) const {
  const Expr &expr = exprs[id];
  uint64_t hash = combineHash(static_cast<uint64_t>(expr.kind),
                              sizes[expr.size].size.hash());
  switch (expr.kind) {
  case CoordKind::Output:
    return combineHash(hash, expr.first);
  case CoordKind::Reduce:
    return combineHash(hash, labels.lookup(id));
  case CoordKind::Split:
  case CoordKind::Unfold:
    hash = combineHash(hash, getHash(expr.first, labels));
    return combineHash(hash, getHash(expr.second, labels));
  case CoordKind::MergeQuotient:
  case CoordKind::MergeRemainder:
  case CoordKind::Stride:
    hash = combineHash(hash, getHash(expr.first, labels));
    return combineHash(hash, sizes[expr.second].size.hash());
  case CoordKind::Shift:
    hash = combineHash(hash, getHash(expr.first, labels));
    return combineHash(hash, expr.second);
  }
  llvm_unreachable("all kinds are handled");
}

uint32_t GraphSpace::internWeight(llvm::SmallVector<ExprId, 6> coords) {
  llvm::sort(coords);
  uint64_t hash = coords.size();
  for (ExprId coord : coords)
    hash = combineHash(hash, hashes[coord]);
  llvm::SmallVector<uint32_t, 1> &ids = weightsByHash[hash >> 1];
  for (uint32_t id : ids)
    if (weights[id] == coords)
      return id;
  ids.push_back(weights.size());
  weights.push_back(std::move(coords));
  return ids.back();
}

void GraphSpace::getFactors(ExprId id,
                            llvm::SmallVectorImpl<ExprId> &factors) const {
  if (exprs[id].kind != CoordKind::Split) {
    factors.push_back(id);
    return;
  }
  getFactors(exprs[id].first, factors);
  getFactors(exprs[id].second, factors);
}

void GraphSpace::getReductions(
    ExprId id, llvm::SmallVectorImpl<ExprId> &reductions) const {
  const Expr &expr = exprs[id];
  switch (expr.kind) {
  case CoordKind::Output:
    return;
  case CoordKind::Reduce:
    reductions.push_back(id);
    return;
  case CoordKind::Split:
  case CoordKind::Unfold:
    getReductions(expr.first, reductions);
    getReductions(expr.second, reductions);
    return;
  default:
    getReductions(expr.first, reductions);
  }
}

bool GraphSpace::isChannel(SizeId size) const {
  for (unsigned symbol = 0; symbol < problem->symbols.size(); ++symbol) {
    if (problem->symbols.getKind(symbol) == SymbolKind::Coefficient ||
        sizes[size].size.getExponent(symbol) == 0)
      continue;
    bool isUnordered = false, isOrdered = false;
    for (const Dimension &input : problem->inputs)
      if (input.size.getExponent(symbol) != 0)
        (input.isUnordered ? isUnordered : isOrdered) = true;
    if (isUnordered && !isOrdered)
      return true;
  }
  return false;
}
