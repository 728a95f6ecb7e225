//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions that only weights have, or what they carry: ranks.
//
// Three kinds of weights that together are one weight: ranks with as many
// points as they need (W14, W15), ranks in a weight that another one absorbs
// (W18), and carries (W16). Stacks of windows are in GraphWindowRanks.cpp.
//
//===----------------------------------------------------------------------===//

#include "GraphWeightRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::search;

namespace {

/// The weights that have the same reductions, the last one being added, and
/// what they would be together.
class Rank {
public:
  /// `others` is a set of weights that are there. One bit for each of them; the
  /// reductions are those that exactly these weights have.
  Rank(const GraphSpace &space, const GraphStateData &state, uint32_t code,
       uint32_t others)
      : space(space), state(state), code(code), others(others) {
    addCoords();
  }

  /// W14: under every binding, the reductions have as many points as some
  /// choice of all weights but one has elements beside those of that one. At
  /// some binding fewer points make a restriction, and then the operator stays.
  bool isFull() const {
    return llvm::all_of(bindings(), [&](unsigned binding) {
      return llvm::any_of(
          llvm::seq<unsigned>(0, atoms.size()), [&](unsigned free) {
            return getPoints(binding) >= getElementsBeside(free, binding);
          });
    });
  }

  /// W15: under every binding, the weights have as many elements as one that
  /// is indexed by all that they are, but for the reductions. If so the single
  /// weight is no larger, so the rank saves nothing.
  bool isCostly() const {
    return llvm::all_of(bindings(), [&](unsigned binding) {
      double sum = 0;
      llvm::SmallVector<ExprId, 8> joined;
      for (llvm::ArrayRef<ExprId> weight : atoms) {
        sum += getPoints(binding) * getProduct(weight, binding);
        insert(joined, weight);
      }
      return sum >= getProduct(joined, binding);
    });
  }

private:
  llvm::iota_range<unsigned> bindings() const {
    return llvm::seq<unsigned>(0, space.problem->bindings.size());
  }

  static void insert(llvm::SmallVectorImpl<ExprId> &all,
                     llvm::ArrayRef<ExprId> some) {
    for (ExprId id : some)
      if (!llvm::is_contained(all, id))
        all.push_back(id);
  }

  /// By weight, what it is indexed by without the reductions. Atoms rather than
  /// coordinates, so that a coordinate in another form is recognized (W8).
  void addCoords() {
    llvm::SmallVector<ExprId, 8> added;
    for (unsigned index = 0; index < state.numLive; ++index) {
      const LiveCoord &coord = state.live[index];
      if (getUse(code, index) == Taken && coord.kind == CoordKind::Reduce &&
          coord.weights == others)
        reductions.push_back(coord.expr);
      if (getUse(code, index) != Unused)
        added.push_back(coord.expr);
    }
    auto add = [&](llvm::ArrayRef<ExprId> coords) {
      atoms.push_back(getWeightAtoms(space, coords));
      llvm::erase_if(atoms.back(), [&](ExprId id) {
        return llvm::is_contained(reductions, id);
      });
    };
    for (unsigned number = 0; number < state.numWeights; ++number)
      if (others >> number & 1)
        add(space.getWeight(state.weights[number]));
    add(added);
  }

  double getProduct(llvm::ArrayRef<ExprId> coords, unsigned binding) const {
    double product = 1;
    for (ExprId id : coords)
      product *= static_cast<double>(
          space.sizes[space.getExpr(id).size].values[binding]);
    return product;
  }
  double getPoints(unsigned binding) const {
    return getProduct(reductions, binding);
  }
  /// The elements of the product of all weights but `free`, without those of
  /// `free`.
  double getElementsBeside(unsigned free, unsigned binding) const {
    llvm::SmallVector<ExprId, 8> beside;
    for (auto [index, weight] : llvm::enumerate(atoms))
      if (index != free)
        insert(beside, weight);
    llvm::erase_if(
        beside, [&](ExprId id) { return llvm::is_contained(atoms[free], id); });
    return getProduct(beside, binding);
  }

  const GraphSpace &space;
  const GraphStateData &state;
  uint32_t code, others;
  llvm::SmallVector<ExprId, 2> reductions;
  llvm::SmallVector<llvm::SmallVector<ExprId, 8>, 3> atoms;
};

} // namespace

/// For each reduction that the new weight takes away from other weights.
bool kas::search::makesFullRank(const GraphSpace &space,
                                const GraphStateData &state, uint32_t code) {
  for (unsigned index = 0; index < state.numLive; ++index) {
    const LiveCoord &coord = state.live[index];
    if (getUse(code, index) != Taken || coord.kind != CoordKind::Reduce ||
        !coord.weights)
      continue;
    Rank rank(space, state, code, coord.weights);
    if (rank.isFull() || (space.problem->limits.rankSaves && rank.isCostly()))
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Ranks of what another weight has
//===----------------------------------------------------------------------===//

namespace {

/// The weights with the one being added. `kept` is what the data has after the
/// contraction.
class AbsorbedRanks {
public:
  AbsorbedRanks(const GraphSpace &space, const GraphStateData &state,
                uint32_t code)
      : space(space) {
    for (unsigned number = 0; number < state.numWeights; ++number)
      weights.emplace_back(space.getWeight(state.weights[number]));
    llvm::SmallVector<ExprId, 8> &added = weights.emplace_back();
    for (unsigned index = 0; index < state.numLive; ++index) {
      if (getUse(code, index) != Unused)
        added.push_back(state.live[index].expr);
      if (getUse(code, index) != Taken)
        kept.push_back(state.live[index].expr);
    }
    for (llvm::ArrayRef<ExprId> weight : weights)
      atoms.push_back(getWeightAtoms(space, weight));
  }

  /// W18. True when some weight absorbs another one.
  bool any() const {
    auto numbers = llvm::seq<unsigned>(0, weights.size());
    return llvm::any_of(numbers, [&](unsigned absorbing) {
      return llvm::any_of(numbers, [&](unsigned weight) {
        return weight != absorbing && isAbsorbed(weight, absorbing);
      });
    });
  }

private:
  /// `absorbing` has all that `weight` has, and all that the weights have which
  /// are joined to it by ranks. A worklist: weights joined by ranks,
  /// transitively.
  bool isAbsorbed(unsigned weight, unsigned absorbing) const {
    llvm::SmallVector<unsigned, 4> joined = {weight};
    // A coordinate that is neither absorbed nor a rank decides against it.
    for (unsigned next = 0; next < joined.size(); ++next)
      for (ExprId id : atoms[joined[next]]) {
        if (llvm::is_contained(atoms[absorbing], id))
          continue;
        if (!isRank(id))
          return false;
        for (unsigned other = 0; other < atoms.size(); ++other)
          if (llvm::is_contained(atoms[other], id) &&
              !llvm::is_contained(joined, other))
            joined.push_back(other);
      }
    return true;
  }

  /// A reduction that weights are indexed by, and nothing else has or depends
  /// on.
  bool isRank(ExprId id) const {
    return space.getExpr(id).kind == CoordKind::Reduce &&
           llvm::none_of(
               kept,
               [&](ExprId other) { return hasBelow(space, other, id); }) &&
           llvm::none_of(weights, [&](llvm::ArrayRef<ExprId> weight) {
             return llvm::any_of(weight, [&](ExprId other) {
               return other != id && hasBelow(space, other, id);
             });
           });
  }

  const GraphSpace &space;
  llvm::SmallVector<llvm::SmallVector<ExprId, 8>, 4> weights, atoms;
  llvm::SmallVector<ExprId, 8> kept;
};

} // namespace

bool kas::search::absorbsRank(const GraphSpace &space,
                              const GraphStateData &state, uint32_t code) {
  // Two weights with a rank, and one that has all that they have.
  return state.numWeights >= 2 && AbsorbedRanks(space, state, code).any();
}

//===----------------------------------------------------------------------===//
// Carries
//===----------------------------------------------------------------------===//

namespace {

/// The weights with the one being added, and what data may still have. Carries
/// arise from shifts of splits: see M9.
class Carries {
public:
  Carries(const GraphSpace &space, const GraphStateData &state, uint32_t code)
      : space(space), state(state), code(code) {
    for (unsigned number = 0; number < state.numWeights; ++number)
      weights.emplace_back(space.getWeight(state.weights[number]));
    llvm::SmallVector<ExprId, 8> &added = weights.emplace_back();
    for (unsigned index = 0; index < state.numLive; ++index)
      if (getUse(code, index) != Unused)
        added.push_back(state.live[index].expr);
  }

  /// W16. A weight with the remainder of a shift of split(a, r), r a rank, and
  /// another one with the quotient.
  bool isFull() const {
    for (llvm::ArrayRef<ExprId> weight : weights)
      for (ExprId id : weight) {
        std::optional<ExprId> inner = getShiftedRemainder(space, id);
        if (inner && space.getExpr(*inner).kind == CoordKind::Reduce &&
            countUsers(*inner) == 0 && isOnlyIn(id, 1) &&
            isJoined(weight, space.getExpr(id)))
          return true;
      }
    return false;
  }

private:
  /// How many weights are indexed by it.
  unsigned countUsers(ExprId id) const {
    return llvm::count_if(weights, [&](llvm::ArrayRef<ExprId> weight) {
      return llvm::is_contained(weight, id);
    });
  }
  /// So many weights have it and nothing else will.
  bool isOnlyIn(ExprId id, unsigned count) const {
    for (unsigned index = 0; index < state.numLive; ++index)
      if (state.live[index].expr == id && getUse(code, index) != Taken)
        return false;
    return countUsers(id) == count;
  }

  /// Whether another weight has the quotient beside `remainder`, and all else
  /// that `weight` has.
  bool isJoined(llvm::ArrayRef<ExprId> weight, const Expr &remainder) const {
    return llvm::any_of(weights, [&](llvm::ArrayRef<ExprId> other) {
      if (other.data() == weight.data())
        return false;
      const ExprId *quotient = llvm::find_if(other, [&](ExprId id) {
        const Expr &half = space.getExpr(id);
        // The quotient that belongs to the remainder.
        return half.kind == CoordKind::MergeQuotient &&
               half.first == remainder.first && half.second == remainder.second;
      });
      return quotient != other.end() &&
             isOnlyIn(*quotient, 1 + llvm::is_contained(weight, *quotient)) &&
             llvm::all_of(weight, [&](ExprId id) {
               return &space.getExpr(id) == &remainder ||
                      llvm::is_contained(other, id);
             });
    });
  }

  const GraphSpace &space;
  const GraphStateData &state;
  uint32_t code;
  llvm::SmallVector<llvm::SmallVector<ExprId, 8>, 4> weights;
};

} // namespace

bool kas::search::makesFullCarry(const GraphSpace &space,
                                 const GraphStateData &state, uint32_t code) {
  return state.numWeights != 0 && Carries(space, state, code).isFull();
}
