//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The key of a finished operator: equal for operators that differ only in the
// numbering of equal parts (rules O, M and W of
// docs/internals/canonical-form.md).
//
// A hash of the expressions is not enough, since different expressions may
// compute the same: the identities W8, W9, M8 to M12, S8, H3, H5 to H8, U6 and
// T4 relate operators of which neither can be ruled out step by step. So each
// coordinate is brought to a normal form, `Sum`, in which both sides of an
// identity are equal, and the key is a hash of the normal forms, the least one
// over all ways to number equal parts.
//
//===----------------------------------------------------------------------===//

#include "FlatGraph.h"
#include "GraphRules.h"
#include "GraphWeightRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

namespace {
/// The least hash of an operator over all ways to number equal reductions (O4),
/// equal outputs where axes may be swapped (O5), and equal factors of one
/// unordered output (M11).
class FinalKey {
public:
  /// Groups, factors and atoms do not depend on the numbering, so they are
  /// found once.
  FinalKey(GraphSpace &space, const GraphStateData &state)
      : space(space), graph(space, state), hashes(graph.nodes.size()),
        values(graph.nodes.size()), labels(graph.nodes.size()) {
    findGroups();
    findFactors();
    findAtoms();
    // An unordered dimension of the input is a set of factors (D1), an ordered
    // one a single coordinate.
    for (unsigned index : graph.data) {
      llvm::SmallVector<unsigned, 6> &factors = dimensions.emplace_back();
      unsigned dimension = space.firstOutput + dimensions.size() - 1;
      if (space.problem->inputs[dimension].isUnordered)
        addFactors(index, factors);
      else
        factors.push_back(index);
    }
  }

  /// Tries all numberings: the product of the factorials of the groups, which
  /// is small, as equal reductions are few.
  uint64_t compute() {
    permute(0);
    return least;
  }

private:
  /// Leaves that may be renamed into each other, by shape. Their shape hash,
  /// which ignores which of equal leaves they are. `labels` starts with the
  /// numbers that the search gave.
  void findGroups() {
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      const Expr &expr = space.getExpr(node.expr);
      bool isOutput = expr.kind == CoordKind::Output;
      if (!isOutput && expr.kind != CoordKind::Reduce)
        continue;
      // Outputs that are not interchangeable keep their number, the position in
      // the signature.
      labels[index] = expr.first;
      if (isOutput && !space.isSwappable(expr))
        continue;
      auto *group = llvm::find_if(groups, [&](llvm::ArrayRef<unsigned> other) {
        return space.getShapeHash(graph.nodes[other.front()].expr) ==
               space.getShapeHash(node.expr);
      });
      if (group == groups.end())
        group = &groups.emplace_back();
      group->push_back(index);
    }
  }

  /// M11: the coordinates that an unordered output is merged to, those that are
  /// merged no further by size. Example: an output of g*s*C' points merged to
  /// g, s and C'. Whichever of two factors of equal size is meant is not
  /// visible, since the order of the points of an unordered output is free.
  void findFactors() {
    roles.assign(graph.nodes.size(), 0);
    llvm::SmallVector<uint8_t, 24> isMerged(graph.nodes.size(), 0);
    // A coordinate that is merged further is no factor, only what it is merged
    // to.
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      roles[index] = index;
      const Expr &expr = space.getExpr(node.expr);
      if (expr.kind == CoordKind::MergeQuotient ||
          expr.kind == CoordKind::MergeRemainder)
        isMerged[node.first] = true;
    }
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      const Expr &expr = space.getExpr(node.expr);
      std::optional<ExprId> channel = getChannel(space, node.expr);
      if (!channel || *channel == node.expr)
        continue;
      // Most operators do not merge an unordered output: then this list stays
      // empty.
      if (channelParts.empty())
        channelParts.assign(graph.nodes.size(), 0);
      bool isOfOutput = expr.first == *channel;
      uint64_t whole =
          isOfOutput ? combineHash(startHash(CoordKind::Output,
                                             space.getExpr(*channel).size),
                                   labels[node.first])
                     : channelParts[node.first];
      // The whole is hashed by its own parts, from the output downwards.
      channelParts[index] = hashHalf(expr, whole);
      if (isMerged[index])
        continue;
      auto *group = llvm::find_if(factors, [&](const Factors &other) {
        return other.channel == *channel && other.size == expr.size;
      });
      if (group == factors.end())
        group = &factors.emplace_back(Factors{*channel, expr.size, {}});
      group->nodes.push_back(index);
    }
    // Only two or more factors of one size can be exchanged.
    llvm::erase_if(
        factors, [](const Factors &group) { return group.nodes.size() == 1; });
  }

  /// W8: weights by their atoms; what follows from those of one weight may as
  /// well be taken by it as dropped.
  void findAtoms() {
    for (llvm::ArrayRef<unsigned> weight : graph.weights) {
      llvm::SmallVector<ExprId, 8> coords;
      for (unsigned index : weight)
        coords.push_back(graph.nodes[index].expr);
      llvm::SmallVector<unsigned, 8> &atoms = weights.emplace_back();
      atomsOfWeights.push_back(getWeightAtoms(space, coords));
      for (ExprId id : atomsOfWeights.back())
        atoms.push_back(find(id));
    }
    // An expanded coordinate that follows from what a weight has may as well be
    // dropped by the weight: then it leaves no trace.
    for (unsigned index : graph.expanded) {
      // M9: with the quotient goes what is carried into.
      while (const Expr *split =
                 getCarriedSplit(space, graph.nodes[index].expr))
        index = find(split->first);
      if (llvm::none_of(weights, [&](llvm::ArrayRef<unsigned> atoms) {
            return followsFrom(index, atoms);
          }))
        expanded.push_back(index);
    }
  }

  /// `index` can be computed from the atoms.
  bool followsFrom(unsigned index, llvm::ArrayRef<unsigned> atoms) const {
    const FlatGraph::Node &node = graph.nodes[index];
    const Expr &expr = space.getExpr(node.expr);
    if (llvm::is_contained(atoms, index))
      return true;
    if (expr.kind == CoordKind::Output || expr.kind == CoordKind::Reduce)
      return false;
    // M9: the remainder is a shift of what the split has inside.
    if (std::optional<ExprId> inner = getShiftedRemainder(space, node.expr))
      return followsFrom(find(*inner), atoms);
    bool isBinary =
        expr.kind == CoordKind::Split || expr.kind == CoordKind::Unfold;
    return followsFrom(node.first, atoms) &&
           (!isBinary || followsFrom(node.second, atoms));
  }

  /// The leaves of nested splits.
  void addFactors(unsigned index, llvm::SmallVectorImpl<unsigned> &factors) {
    if (space.getExpr(graph.nodes[index].expr).kind != CoordKind::Split) {
      factors.push_back(index);
      return;
    }
    addFactors(graph.nodes[index].first, factors);
    addFactors(graph.nodes[index].second, factors);
  }

  /// All orders of the labels of a group, then of the next group; after the
  /// last one the factors.
  void permute(unsigned group) {
    if (group == groups.size())
      return exchange(0);
    llvm::SmallVector<unsigned, 6> order;
    for (unsigned index : groups[group])
      order.push_back(space.getExpr(graph.nodes[index].expr).first);
    llvm::sort(order);
    do {
      for (auto [index, label] : llvm::zip_equal(groups[group], order))
        labels[index] = label;
      permute(group + 1);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  /// M11: each factor stands for one of its size.
  void exchange(unsigned group) {
    if (group == factors.size()) {
      least = std::min(least, computeOnce());
      return;
    }
    llvm::SmallVector<unsigned, 4> order = factors[group].nodes;
    llvm::sort(order);
    do {
      for (auto [index, role] : llvm::zip_equal(factors[group].nodes, order))
        roles[index] = role;
      exchange(group + 1);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  /// The node of an expression that is known to be in the graph. Linear, but
  /// graphs have at most a few dozen nodes.
  unsigned find(ExprId id) const {
    return llvm::find_if(
               graph.nodes,
               [&](const FlatGraph::Node &node) { return node.expr == id; }) -
           graph.nodes.begin();
  }

  bool isCarryVoid(const Expr &split) const {
    return kas::search::isCarryVoid(space, atomsOfWeights, split);
  }

  /// What a coordinate is, up to what is added to it. The value is root +
  /// carries + shift, up to renaming.
  struct Sum {
    uint64_t root = 0;
    /// A sum over what is carried into it, in any order (M10).
    uint64_t carries = 0;
    /// A sum of 1, -1 and products of these with sizes, modulo 2^64 (H7).
    uint64_t shift = 0;

    Sum plus(uint64_t amount) const { return {root, carries, shift + amount}; }
  };

  /// All amounts are 1 or -1: the second operand says which.
  static uint64_t getAmount(const Expr &shift) {
    return shift.second ? ~uint64_t(0) : 1;
  }

  /// An odd number for each size, so that products and quotients of sizes are
  /// those of their numbers. In this way shift * number(size) is well defined
  /// for sizes that do not divide evenly: modulo 2^64 every odd number has an
  /// inverse.
  uint64_t getNumber(SizeId size) const {
    uint64_t product = 1;
    for (unsigned i = 0; i < space.sizes.getNumPowers(); ++i) {
      int exponent = space.sizes[size].powers.get(i);
      uint64_t factor = mixBits(i + 1) | 1, inverse = factor;
      // Newton's iteration for the inverse modulo 2^64: each step doubles the
      // number of correct bits, of which `factor` itself gives the first three.
      for (unsigned step = 0; exponent < 0 && step < 5; ++step)
        inverse *= 2 - factor * inverse;
      for (int j = 0; j < std::abs(exponent); ++j)
        product *= exponent < 0 ? inverse : factor;
    }
    return product;
  }

  /// The coordinate without its shift.
  static uint64_t hashUnshifted(const Sum &sum) {
    if (sum.carries == 0)
      return sum.root;
    return combineHash(combineHash(sum.root, sum.carries),
                       static_cast<uint64_t>(CoordKind::MergeQuotient));
  }
  /// Without a shift the same as `hashUnshifted`, so coordinates that end up
  /// unshifted are equal to those that were never shifted.
  uint64_t hash(const Sum &sum, SizeId size) const {
    if (sum.shift == 0)
      return hashUnshifted(sum);
    return combineHash(
        combineHash(startHash(CoordKind::Shift, size), hashUnshifted(sum)),
        sum.shift);
  }
  /// A hash to which the operands are added.
  uint64_t startHash(CoordKind kind, SizeId size) const {
    return combineHash(static_cast<uint64_t>(kind), space.sizes[size].hash);
  }

  /// H8: a reduction or a factor of an unordered output, plus what is carried
  /// into it: a shift renames its points, for the weights that have it, too.
  /// Not when it carries into something itself that sees where it wraps around.
  bool isRenamed(ExprId id) const {
    if (space.getExpr(id).kind == CoordKind::Reduce || getChannel(space, id))
      return true;
    if (const Expr *split = getCarriedSplit(space, id))
      return isRenamed(split->first);
    // A remainder of a shift of a split is the shift of the split's inner
    // operand (M9).
    std::optional<ExprId> inner = getShiftedRemainder(space, id);
    return inner && isCarryUnseen(space.getExpr(id)) && isRenamed(*inner);
  }
  /// Of the remainder of the shift of a split. The carry is seen where the
  /// quotient is used, and changes what the outer operand's weights read.
  bool isCarryUnseen(const Expr &half) const {
    return isQuotientDropped(half) ||
           isCarryVoid(space.getExpr(space.getExpr(half.first).first));
  }
  /// The sum of a coordinate with a shift added, or unchanged where the shift
  /// only renames points.
  Sum addShift(ExprId id, uint64_t amount) const {
    const Sum &base = values[find(id)];
    return isRenamed(id) ? base : base.plus(amount);
  }

  /// H7: a shift of the outer half is one of the whole by the inner size. The
  /// root of a split is made of unshifted operands; the shift of the outer one
  /// is added at the end, scaled.
  Sum makeSplit(SizeId size, const Sum &outer, const Sum &inner,
                SizeId innerSize) const {
    uint64_t root =
        combineHash(startHash(CoordKind::Split, size), hashUnshifted(outer));
    return {combineHash(root, hash(inner, innerSize)), 0,
            outer.shift * getNumber(innerSize)};
  }

  /// S8: halves of one merge side by side are the whole, whatever weights there
  /// are; also when the outer one is shifted (H3, H7).
  std::optional<Sum> joinHalves(ExprId outer, ExprId inner) const {
    // Shifts above the outer half become shifts of the whole, scaled by the
    // inner size.
    uint64_t shift = 0;
    while (space.getExpr(outer).kind == CoordKind::Shift) {
      const Expr &expr = space.getExpr(outer);
      outer = expr.first;
      if (!isRenamed(outer))
        shift += getAmount(expr);
    }
    const Expr &x = getRole(outer), &y = getRole(inner);
    if (x.kind != CoordKind::MergeQuotient ||
        y.kind != CoordKind::MergeRemainder || x.first != y.first ||
        x.second != y.second)
      return std::nullopt;
    return getWhole(x.first).plus(shift * getNumber(y.size));
  }
  /// What a factor stands for in the current exchange (M11); other coordinates
  /// stand for themselves.
  const Expr &getRole(ExprId id) const {
    return space.getExpr(graph.nodes[roles[find(id)]].expr);
  }
  /// Of an unordered output it may be further down.
  Sum getWhole(ExprId id) const {
    unsigned index = find(id);
    return isChannelPart(index) ? Sum{channelParts[index]} : values[index];
  }
  bool isChannelPart(unsigned index) const {
    return !channelParts.empty() && channelParts[index];
  }
  /// A shift of halves of one merge side by side.
  bool isJoined(const Expr &shift) const {
    if (shift.kind != CoordKind::Shift)
      return false;
    const Expr &split = space.getExpr(shift.first);
    return split.kind == CoordKind::Split &&
           joinHalves(split.first, split.second).has_value();
  }
  /// From special to general: halves of one merge; an inner number; a half next
  /// to a split that begins with the other half; and a plain split.
  Sum evaluateSplit(const Expr &split) const {
    if (std::optional<Sum> whole = joinHalves(split.first, split.second))
      return *whole;
    const Expr &inner = space.getExpr(split.second);
    // T4.
    if (isConstant(find(split.second)))
      return makeStride(split.size, values[find(split.first)], inner.size)
          .plus(values[find(split.second)].shift);
    if (inner.kind == CoordKind::Split)
      if (std::optional<Sum> whole = joinHalves(split.first, inner.first))
        return makeSplit(split.size, *whole, values[find(inner.second)],
                         space.getExpr(inner.second).size);
    return makeSplit(split.size, values[find(split.first)],
                     values[find(split.second)], inner.size);
  }

  /// The number 0 as a coordinate. A stride of the number 0, whatever its base
  /// would be.
  uint64_t hashZero(SizeId size) const {
    return startHash(CoordKind::Stride, size);
  }
  bool isConstant(unsigned index) const {
    return values[index].root ==
           hashZero(space.getExpr(graph.nodes[index].expr).size);
  }

  /// A shift of the base is one of the whole by the factor.
  Sum makeStride(SizeId size, const Sum &base, SizeId factor) const {
    uint64_t root = combineHash(
        combineHash(startHash(CoordKind::Stride, size), hashUnshifted(base)),
        space.sizes[factor].hash);
    return {root, 0, base.shift * getNumber(factor)};
  }

  /// T4: the halves of a shift of a stride of i by f, merged by a block. When
  /// the block divides f, the remainder is a number, and the quotient a stride
  /// of i; when f divides the block, they are those of i by the rest of the
  /// block, the remainder with a stride and a shift. Cases by which of block
  /// and factor divides the other; nothing is known where neither does.
  std::optional<Sum> evaluateHalfOfStride(const Expr &half) const {
    const Expr &shift = space.getExpr(half.first);
    const Expr &stride = space.getExpr(shift.first);
    if (shift.kind != CoordKind::Shift || stride.kind != CoordKind::Stride)
      return std::nullopt;
    bool isQuotient = half.kind == CoordKind::MergeQuotient;
    uint64_t amount = getAmount(shift);
    SizeId block = half.second, factor = stride.second;
    std::optional<SizeId> rest = divide(factor, block);
    const Sum &base = values[find(stride.first)];
    SizeId baseSize = space.getExpr(stride.first).size;
    // -1 / B is -1. Floor division: a shift by -1 borrows from the quotient,
    // one by 1 does not carry into it.
    Sum moved = base.plus(amount == 1 ? 0 : amount);
    // The block divides the factor.
    if (rest || factor == block) {
      if (!isQuotient)
        return Sum{hashZero(block), 0, amount};
      return rest ? makeStride(half.size, base, *rest)
                        .plus(amount == 1 ? 0 : amount)
                  : moved;
    }
    // The factor divides the block.
    rest = divide(block, factor);
    if (!rest)
      return std::nullopt;
    if (isQuotient)
      return Sum{
          hashHalf({half.kind, half.size, 0, *rest}, hash(moved, baseSize))};
    Sum part = {hashHalf({half.kind, *rest, 0, *rest}, hash(base, baseSize))};
    return makeStride(block, part, factor).plus(amount);
  }

  /// H5, H7, H8. A shift of a split whose carry nothing sees is the shift of
  /// the inner operand (H5).
  Sum evaluateShift(const Expr &shift) const {
    const Expr &split = space.getExpr(shift.first);
    uint64_t amount = getAmount(shift);
    if (isCarryVoid(split))
      return makeSplit(split.size, values[find(split.first)],
                       addShift(split.second, amount),
                       space.getExpr(split.second).size);
    return addShift(shift.first, amount);
  }

  /// H6: the remainder of a merge of a shift is the shift of the remainder; the
  /// quotient, when it is dropped, may as well be that of what is shifted.
  bool isQuotientDropped(const Expr &half) const {
    return llvm::any_of(graph.expanded, [&](unsigned index) {
      const Expr &dropped = space.getExpr(graph.nodes[index].expr);
      return dropped.kind == CoordKind::MergeQuotient &&
             dropped.first == half.first && dropped.second == half.second;
    });
  }

  /// `whole` is the hash of what is merged.
  uint64_t hashHalf(const Expr &half, uint64_t whole) const {
    return combineHash(combineHash(startHash(half.kind, half.size), whole),
                       space.sizes[half.second].hash);
  }

  /// M12: the halves of the shift of a split of a and b are those of b, beside
  /// a, when the block divides b's size and the carry is void (H5); those of a
  /// when b's size divides the block and the quotient is dropped (H6).
  std::optional<Sum> evaluateHalfOfSplit(const Expr &half) const {
    const Expr &shift = space.getExpr(half.first);
    const Expr &split = space.getExpr(shift.first);
    // Merges of shifts of splits only; others are left to `evaluateHalf`.
    if (shift.kind != CoordKind::Shift || split.kind != CoordKind::Split)
      return std::nullopt;
    bool isQuotient = half.kind == CoordKind::MergeQuotient;
    SizeId innerSize = space.getExpr(split.second).size;
    SizeId block = half.second;
    if (std::optional<SizeId> rest = divide(innerSize, block);
        rest && isCarryVoid(split)) {
      Sum inner = addShift(split.second, getAmount(shift));
      Expr part{half.kind, isQuotient ? *rest : block, 0, block};
      if (!isQuotient)
        return Sum{hashHalf(part, hashUnshifted(inner)), 0, inner.shift};
      Sum sum = {hashHalf(part, hash(inner, innerSize))};
      return makeSplit(half.size, values[find(split.first)], sum, *rest);
    }
    // The block is a multiple of the inner size: whole rows of a.
    std::optional<SizeId> rest = divide(block, innerSize);
    if (!rest || !isQuotientDropped(half))
      return std::nullopt;
    Expr part{half.kind, isQuotient ? half.size : *rest, 0, *rest};
    Sum outer = {hashHalf(part, hashes[find(split.first)])};
    return isQuotient
               ? outer
               : makeSplit(block, outer, values[find(split.second)], innerSize)
                     .plus(getAmount(shift));
  }
  /// A quotient other than 1 that is a size.
  std::optional<SizeId> divide(SizeId size, SizeId by) const {
    SizeId quotient = space.sizes.divide(size, by);
    // 1 is excluded, as a block of 1 is no merge.
    if (quotient == SizeTable::one || !space.sizes[quotient].isLegal)
      return std::nullopt;
    return quotient;
  }

  /// The halves of the shift of a split of a and b, merged by b's size: a plus
  /// the carry of b, and the shift of b (M9); a shifted a makes it shifted, too
  /// (M8). In the order of the identities from special to general; each returns
  /// when it applies.
  Sum evaluateHalf(ExprId id) const {
    const Expr &half = space.getExpr(id);
    const Expr &whole = space.getExpr(half.first);
    // S8: halves side by side are a whole, which carries nothing into one.
    bool isShiftedWhole = isJoined(whole);
    if (std::optional<ExprId> inner = getShiftedRemainder(space, id);
        inner && !isShiftedWhole)
      return isCarryUnseen(half) ? addShift(*inner, getAmount(whole))
                                 : values[find(*inner)].plus(getAmount(whole));
    if (const Expr *split = getCarriedSplit(space, id);
        split && !isShiftedWhole) {
      Sum sum = values[find(split->first)];
      if (!isCarryVoid(*split))
        sum.carries +=
            mixBits(combineHash(hashes[find(split->second)], whole.second));
      return sum;
    }
    if (std::optional<Sum> sum = evaluateHalfOfSplit(half))
      return *sum;
    if (std::optional<Sum> sum = evaluateHalfOfStride(half))
      return *sum;
    // No identity applies: a half of the normal form of what is merged. The
    // remainder of a shifted coordinate is the shifted remainder, if the
    // quotient is dropped (H6).
    const Sum &merged = values[find(half.first)];
    bool isRemainder = half.kind == CoordKind::MergeRemainder;
    if (merged.shift == 0 || !(isRemainder || isQuotientDropped(half)))
      return {hashHalf(half, hashes[find(half.first)])};
    uint64_t root = hashHalf(half, hashUnshifted(merged));
    return {root, 0, isRemainder ? merged.shift : 0};
  }

  /// W9: a weight that is indexed by a shift, or by the remainder of one, is a
  /// rotated one.
  uint64_t hashAtom(unsigned index) const {
    const Expr &expr = space.getExpr(graph.nodes[index].expr);
    // Only remainders: quotients of a shift depend on its carry.
    if (expr.kind == CoordKind::MergeRemainder && !evaluateHalfOfStride(expr)) {
      const Sum &merged = values[find(expr.first)];
      if (merged.shift != 0)
        return hashHalf(expr, hashUnshifted(merged));
    }
    return hashUnshifted(values[index]);
  }

  /// U6: what is below the first position stays there, whatever windows that
  /// look back come later; around a circle windows add up. So those on one base
  /// are a set.
  uint64_t hashUnfold(unsigned index) const {
    const Expr &expr = space.getExpr(graph.nodes[index].expr);
    uint64_t hash = startHash(expr.kind, expr.size);
    const SpaceLimits &limits = space.problem->limits;
    if (!limits.lookBack && !limits.cyclic)
      return combineHash(combineHash(hash, hashes[graph.nodes[index].first]),
                         hashes[graph.nodes[index].second]);
    uint64_t windows = 0;
    // The windows of nested unfolds as a sum, the base below all of them.
    for (; space.getExpr(graph.nodes[index].expr).kind == CoordKind::Unfold;
         index = graph.nodes[index].first)
      windows += mixBits(hashes[graph.nodes[index].second]);
    return combineHash(combineHash(hash, hashes[index]), windows);
  }

  /// The normal form of a node, from those of its operands.
  Sum evaluate(unsigned index) const {
    // A part of an unordered output is what its role says.
    if (isChannelPart(index))
      return {channelParts[roles[index]]};
    const FlatGraph::Node &node = graph.nodes[index];
    const Expr &expr = space.getExpr(node.expr);
    switch (expr.kind) {
    case CoordKind::Output:
    case CoordKind::Reduce:
      return {combineHash(startHash(expr.kind, expr.size), labels[index])};
    case CoordKind::Split:
      return evaluateSplit(expr);
    case CoordKind::Unfold:
      return {hashUnfold(index)};
    case CoordKind::Shift:
      return evaluateShift(expr);
    case CoordKind::MergeQuotient:
    case CoordKind::MergeRemainder:
      return evaluateHalf(node.expr);
    case CoordKind::Stride:
      return makeStride(expr.size, values[node.first], expr.second);
    }
    llvm_unreachable("all kinds are known");
  }

  /// Order does not count.
  uint64_t hashSet(llvm::ArrayRef<unsigned> set) const {
    uint64_t sum = set.size();
    for (unsigned index : set)
      sum += mixBits(hashes[index]);
    return mixBits(sum);
  }

  /// A number says nothing about the element (T4).
  uint64_t hashWeight(llvm::ArrayRef<unsigned> atoms) const {
    uint64_t sum = llvm::count_if(
        atoms, [&](unsigned index) { return !isConstant(index); });
    for (unsigned index : atoms)
      if (!isConstant(index))
        sum += mixBits(hashAtom(index));
    return mixBits(sum);
  }

  /// The key for one numbering of the groups and exchange of the factors.
  /// Evaluates all nodes again: each may depend on the labels.
  uint64_t computeOnce() {
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      values[index] = evaluate(index);
      hashes[index] = hash(values[index], space.getExpr(node.expr).size);
    }
    // Input dimensions by position, weights and expanded coordinates as sets.
    uint64_t hash = 0, swapped = 0;
    for (auto [position, factors] : llvm::enumerate(dimensions)) {
      const Dimension &input =
          space.problem->inputs[space.firstOutput + position];
      uint64_t dimension = combineHash(
          space.sizes[space.targets[position]].hash, hashSet(factors));
      // Ordered dimensions may be exchanged (O5).
      if (space.problem->limits.swapAxes && !input.isUnordered)
        swapped += mixBits(dimension);
      else
        hash = combineHash(hash, dimension);
    }
    hash = combineHash(hash, swapped);
    // Weights by their atoms, so that equal weights in different forms agree.
    uint64_t sum = graph.weights.size();
    for (llvm::ArrayRef<unsigned> weight : weights)
      sum += mixBits(hashWeight(weight));
    // What is dropped counts by its root: shifts of it do not matter.
    uint64_t dropped = llvm::count_if(
        expanded, [&](unsigned index) { return !isConstant(index); });
    for (unsigned index : expanded)
      if (!isConstant(index))
        dropped += mixBits(values[index].root);
    return combineHash(combineHash(hash, sum), mixBits(dropped));
  }

  /// All that follows is indexed by node, if not said otherwise.
  GraphSpace &space;
  FlatGraph graph;
  llvm::SmallVector<llvm::SmallVector<unsigned, 6>, 4> groups, dimensions;
  /// By weight: its atoms, as nodes and as expressions.
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>, 4> weights;
  llvm::SmallVector<llvm::SmallVector<ExprId, 8>, 4> atomsOfWeights;
  llvm::SmallVector<unsigned, 4> expanded;
  /// The hashes of the normal forms, for the current numbering.
  llvm::SmallVector<uint64_t, 24> hashes;
  llvm::SmallVector<Sum, 24> values;
  /// Of leaves: the number that the leaf has in this numbering.
  llvm::SmallVector<uint32_t, 24> labels;
  /// Factors of one size of one unordered output.
  struct Factors {
    ExprId channel;
    SizeId size;
    llvm::SmallVector<unsigned, 4> nodes;
  };
  llvm::SmallVector<Factors, 2> factors;
  /// By node: the factor that it stands for; itself for all but those.
  llvm::SmallVector<unsigned, 24> roles;
  /// By node: the hash of what unordered outputs are merged to; 0 or nothing
  /// for all others.
  llvm::SmallVector<uint64_t, 24> channelParts;
  uint64_t least = ~uint64_t(0);
};
} // namespace

uint64_t kas::search::computeFinalKey(GraphSpace &space,
                                      const GraphStateData &state) {
  return FinalKey(space, state).compute();
}
