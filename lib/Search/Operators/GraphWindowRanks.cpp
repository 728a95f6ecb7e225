//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights that meet in stacked windows (W17).
//
// Convolutions in a row, such as a 3x3 one on top of another, sum the products
// of two weights into one larger window. With one of the weights given, each
// sum is a linear function of the elements of the other; the two weights are
// one large weight if these functions are linearly independent, which is
// decided by the rank of a matrix modulo a prime (kas/Support/PrimeField.h).
//
//===----------------------------------------------------------------------===//

#include "CoordProgram.h"
#include "GraphWeightRules.h"
#include "kas/Support/PrimeField.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <map>
#include <set>

using namespace kas;
using namespace kas::search;

namespace {

using Exprs = llvm::SmallVector<ExprId, 8>;

/// Numbers for the values that some coordinates have. Equal values get the same
/// number.
class Elements {
public:
  unsigned getNumber(llvm::SmallVector<int64_t, 8> values) {
    return numbers.try_emplace(std::move(values), numbers.size()).first->second;
  }

private:
  std::map<llvm::SmallVector<int64_t, 8>, unsigned> numbers;
};

/// Unfolds on each other, from `base`, which is made of outputs, to `top`,
/// which data has. `windows` are the reductions in them. Example:
/// unfold(unfold(h, k1), k2) has the base h and the windows {k1, k2}.
struct Stack {
  ExprId top = 0, base = 0;
  Exprs windows;
};

class WindowRanks {
public:
  WindowRanks(const GraphSpace &space, const GraphStateData &state)
      : space(space) {
    for (const LiveCoord &coord : state.getLive())
      space.getFactors(coord.expr, data);
    for (unsigned number = 0; number < state.numWeights; ++number)
      weights.emplace_back(space.getWeight(state.weights[number]));
  }

  bool isFull() const {
    return llvm::any_of(data, [&](ExprId top) {
      std::optional<Stack> stack = getStack(top);
      return stack && isFull(*stack);
    });
  }

private:
  /// Calls `visit` with what `id` is made of, down to leaves and `end`; until
  /// it returns false. Recursive; `end` counts as a leaf whatever it is made
  /// of.
  bool allLeaves(ExprId id, std::optional<ExprId> end,
                 llvm::function_ref<bool(ExprId)> visit) const {
    const Expr &expr = space.getExpr(id);
    if (id == end || expr.kind == CoordKind::Output ||
        expr.kind == CoordKind::Reduce)
      return visit(id);
    bool isBinary =
        expr.kind == CoordKind::Split || expr.kind == CoordKind::Unfold;
    return allLeaves(expr.first, end, visit) &&
           (!isBinary || allLeaves(expr.second, end, visit));
  }
  bool isKind(ExprId id, CoordKind kind) const {
    return space.getExpr(id).kind == kind;
  }

  /// None unless there are two unfolds or more, and nothing else that data has
  /// depends on their windows. The windows must be reductions, and the base a
  /// function of outputs alone.
  std::optional<Stack> getStack(ExprId top) const {
    Stack stack{top, top, {}};
    unsigned height = 0;
    for (; isKind(stack.base, CoordKind::Unfold); ++height) {
      allLeaves(space.getExpr(stack.base).second, std::nullopt,
                [&](ExprId leaf) {
                  stack.windows.push_back(leaf);
                  return true;
                });
      stack.base = space.getExpr(stack.base).first;
    }
    auto isOutput = [&](ExprId id) { return isKind(id, CoordKind::Output); };
    auto isOther = [&](ExprId id) {
      return !llvm::is_contained(stack.windows, id);
    };
    // Anything else that depends on a window would see the two weights apart.
    if (height < 2 || llvm::any_of(stack.windows, isOutput) ||
        !allLeaves(stack.base, std::nullopt, isOutput) ||
        llvm::any_of(
            data,
            [&](ExprId id) {
              return id != top && !allLeaves(id, std::nullopt, isOther);
            }))
      return std::nullopt;
    return stack;
  }

  /// The coordinates of a weight that depend on nothing but the windows and the
  /// base, and the others. A coordinate that mixes both kinds makes the
  /// question undecidable here: then nothing.
  struct Parts {
    Exprs inside, rest;
    bool hasWindow = false;
  };
  std::optional<Parts> getParts(llvm::ArrayRef<ExprId> weight,
                                const Stack &stack) const {
    Parts parts;
    for (ExprId id : weight) {
      bool isInside = true, hasWindow = false;
      allLeaves(id, stack.base, [&](ExprId leaf) {
        bool isWindow = llvm::is_contained(stack.windows, leaf);
        hasWindow |= isWindow;
        isInside &= isWindow || leaf == stack.base;
        return true;
      });
      if (hasWindow && !isInside)
        return std::nullopt;
      parts.hasWindow |= hasWindow;
      (isInside ? parts.inside : parts.rest).push_back(id);
    }
    return parts;
  }

  /// Exactly two weights may have windows of the stack.
  bool isFull(const Stack &stack) const {
    llvm::SmallVector<Parts, 2> pair;
    for (llvm::ArrayRef<ExprId> weight : weights) {
      std::optional<Parts> parts = getParts(weight, stack);
      if (!parts)
        return false;
      if (parts->hasWindow)
        pair.push_back(std::move(*parts));
    }
    return pair.size() == 2 &&
           (isFull(stack, pair[0], pair[1]) || isFull(stack, pair[1], pair[0]));
  }

  /// Whether the sums take all values when the elements of `fixed` are given.
  /// Those of `free` are others for each value of what it has outside. Tried in
  /// both directions, as either weight may be the one that is given.
  bool isFull(const Stack &stack, const Parts &fixed, const Parts &free) const {
    auto isOfFree = [&](ExprId id) {
      return llvm::is_contained(free.rest, id);
    };
    // Otherwise `fixed` would have more values than `free` can follow.
    return llvm::all_of(fixed.rest, isOfFree) &&
           llvm::all_of(llvm::seq<unsigned>(0, space.problem->bindings.size()),
                        [&](unsigned binding) {
                          return !hasFewer(stack, free, binding) &&
                                 isFullAt(stack, fixed, free, binding);
                        });
  }

  int64_t getExtent(ExprId id, unsigned binding) const {
    return space.sizes[space.getExpr(id).size].values[binding];
  }

  /// Whether there are fewer elements than sums at a place of the base where no
  /// window leaves it. A necessary condition, cheap: n elements cannot give
  /// more than n independent sums. `sums` is the length of the stacked window,
  /// k1 + k2 - 1 for two.
  bool hasFewer(const Stack &stack, const Parts &free, unsigned binding) const {
    int64_t elements = 1, sums = 1;
    for (ExprId id : stack.windows)
      if (llvm::any_of(free.inside, [&](ExprId part) {
            return !allLeaves(part, stack.base,
                              [&](ExprId leaf) { return leaf != id; });
          }))
        elements *= getExtent(id, binding);
    for (ExprId id = stack.top; id != stack.base; id = space.getExpr(id).first)
      sums += getExtent(space.getExpr(id).second, binding) - 1;
    return elements < std::min(sums, getExtent(stack.top, binding));
  }

  /// There is a sum for each place of the base and the top; those of the same
  /// products are one. A sum is a list of products, each of an element of
  /// `free` and one of `fixed`.
  bool isFullAt(const Stack &stack, const Parts &fixed, const Parts &free,
                unsigned binding) const {
    Exprs leaves = {stack.base}, roots = {stack.top};
    llvm::append_range(leaves, stack.windows);
    llvm::append_range(roots, fixed.inside);
    llvm::append_range(roots, free.inside);
    CoordProgram program(space, leaves, roots, binding);
    // The numbers of elements are those of the order in which they come up.
    auto getElement = [&](Elements &elements, size_t begin, size_t end) {
      llvm::SmallVector<int64_t, 8> values;
      for (size_t root = begin; root < end; ++root)
        values.push_back(program.getRoot(root));
      return elements.getNumber(std::move(values));
    };
    size_t numFixed = 1 + fixed.inside.size();
    Elements fixedElements, freeElements;
    using Products = std::vector<std::pair<unsigned, unsigned>>;
    // By position below and above the stack.
    std::map<std::pair<int64_t, int64_t>, Products> sums;
    do {
      if (program.evaluate())
        sums[{program.getLeaf(0), program.getRoot(0)}].emplace_back(
            getElement(freeElements, numFixed, roots.size()),
            getElement(fixedElements, 1, numFixed));
    } while (program.advance(0, program.getNumLeaves()));
    // Equal sums at different positions are one condition.
    std::set<Products> different;
    for (auto &[place, products] : sums) {
      llvm::sort(products);
      different.insert(std::move(products));
    }
    return areFull(different);
  }

  /// Row by row: adding a row that depends on the ones before fails. Products
  /// of the same element add up.
  template <typename Sums>
  static bool areFull(const Sums &sums) {
    PrimeField::Echelon rows;
    return llvm::all_of(sums, [&](const auto &products) {
      PrimeField::SparseRow row;
      for (auto [element, given] : products)
        PrimeField::addTo(row[element], getValue(given));
      return rows.add(std::move(row));
    });
  }

  /// Any values will do that have no relation to one another. Hashes stand for
  /// the given elements: a rank that is full for some values is full for nearly
  /// all.
  static uint64_t getValue(unsigned element) {
    return mixBits(element + 1) % PrimeField::prime;
  }

  /// The factors of the data, and the weights as coordinates.
  const GraphSpace &space;
  llvm::SmallVector<ExprId, 16> data;
  llvm::SmallVector<Exprs, 4> weights;
};

} // namespace

/// W17 is about pairs of weights.
bool kas::search::hasFullWindows(const GraphSpace &space,
                                 const GraphStateData &state) {
  return state.numWeights > 1 && WindowRanks(space, state).isFull();
}
