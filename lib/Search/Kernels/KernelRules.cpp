//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The invariants of a partial kernel that can be completed: legal sizes,
// steps that are left, budgets.
//
// Feasibility: what Canvas checks of a finished kernel is tested here after
// every step, as a bound on the steps that are left
// (docs/internals/tensor-level.md, "Feasibility"). Bounds must never exclude a
// kernel that could be completed; `KernelBruteForceTest` checks this.
//
//===----------------------------------------------------------------------===//

#include "KernelStateImpl.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <numeric>

using namespace kas;
using namespace kas::search;
using namespace kas::solver;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Theorem 1 for sizes that `at` maps; false when one does not fit. Canvas,
/// Theorem 1: at most one variable in all dimensions, and none in spatial ones.
/// `at` maps a size to what it is after a substitution.
template <typename Map>
static bool isLegalShape(const KernelSpace &space, const FlatShape &shape,
                         Map at) {
  unsigned degree = 0;
  for (unsigned dim = 0; dim < shape.rank; ++dim) {
    SizeId size = at(shape.dims[dim]);
    if (!space.sizes.isLegal(size))
      return false;
    // 255 when a variable is in a denominator, which fails here as well.
    unsigned ofDim = space.sizes.getDegree(size);
    // The solver of budgets takes one variable in a size, with or without the
    // theorem.
    if (ofDim > 1)
      return false;
    if (dim >= shape.numChannels && ofDim > 0 && space.problem->requiresTheorem)
      return false;
    degree += ofDim;
  }
  // One variable in the whole shape.
  return degree <= 1;
}

bool kas::search::isLegalShape(const KernelSpace &space,
                               const FlatShape &shape) {
  return ::isLegalShape(space, shape, [](SizeId size) { return size; });
}

/// Implied sizes are integers that no dimension shows, such as the channels per
/// group.
bool kas::search::isLegalImplied(const KernelSpace &space, SizeId size) {
  const KernelSizes &sizes = space.sizes;
  if (!sizes.isLegal(size))
    return false;
  // The budget solver takes c/x or c*x, for one variable x.
  if (!sizes.isBelow(size))
    return sizes.getDegree(size) <= 1;
  unsigned used = sizes.getVariables(size);
  return llvm::has_single_bit(used) &&
         sizes.getExponent(size, llvm::countr_zero(used)) == -1;
}

/// A tensor with too many elements cannot be allocated, however good the
/// kernel. The least value decides, as variables may still be chosen.
bool kas::search::isSmallEnough(const KernelSpace &space, SizeId elements) {
  const KernelLimits &limits = space.problem->limits;
  return elements != noSize &&
         space.sizes.getLargest(elements) * static_cast<double>(limits.batch) <=
             static_cast<double>(limits.maxElements);
}

/// Sub is between Add and Max in the enumeration.
static bool isCommutative(KernelStep step) {
  return step >= KernelStep::Add && step <= KernelStep::Max &&
         step != KernelStep::Sub;
}

/// A merge of two shapes that are one, element by element. Such a merge may
/// have its operands swapped.
static bool isAlignedMerge(const KernelSpace &space,
                           llvm::ArrayRef<FlatNode> nodes,
                           const FlatNode &node) {
  return node.step >= KernelStep::Add && node.step <= KernelStep::Max &&
         nodes[node.left].shape.hasSameDims(nodes[node.right].shape);
}

/// Calls `visit` with each size of a node that may hold a variable. One list
/// for all passes over sizes, so that none is forgotten. `Node` may be const.
template <typename Node, typename Visit>
static void forEachSize(Node &node, Visit visit) {
  for (unsigned dim = 0; dim < node.shape.rank; ++dim)
    visit(node.shape.dims[dim]);
  for (auto *size :
       {&node.size, &node.prefixSize, &node.implied[0], &node.implied[1],
        &node.flops, &node.params, &node.elements})
    visit(*size);
}

/// A cache: most nodes have no variable, and substitutions skip them.
void kas::search::summarize(const KernelSpace &space, FlatNode &node) {
  node.variables = 0;
  forEachSize(node, [&](SizeId size) {
    if (size != noSize)
      node.variables |= space.sizes.getVariables(size);
  });
}

/// What a node adds to the totals of a kernel. At the least values of
/// variables, so a lower bound.
static std::pair<double, double> getTotals(const KernelSizes &sizes,
                                           const FlatNode &node) {
  return {node.flopsFactor ? node.flopsFactor * sizes.getTotal(node.flops) : 0,
          node.params != noSize ? sizes.getTotal(node.params) : 0};
}

/// Returns the changed copy.
static FlatNode substituteIn(KernelSizes &sizes, FlatNode node,
                             unsigned variable, SizeId value) {
  forEachSize(node, [&](SizeId &size) {
    size = sizes.substitute(size, variable, value);
  });
  return node;
}

/// `node` stays legal with `value` for `variable`. Without making the copy:
/// this runs for each factor that is tried.
static bool canSubstituteIn(const KernelSpace &space, KernelSizes &sizes,
                            const FlatNode &node, unsigned variable,
                            SizeId value) {
  auto put = [&](SizeId size) {
    return sizes.substitute(size, variable, value);
  };
  if (!::isLegalShape(space, node.shape, put))
    return false;
  for (SizeId size : node.implied)
    if (!isLegalImplied(space, put(size)))
      return false;
  // A cost that does not fit 16-bit sizes cannot be represented.
  return isSmallEnough(space, put(node.elements)) &&
         (!node.flopsFactor || put(node.flops) != noSize) &&
         (node.params == noSize || put(node.params) != noSize);
}

/// A substitution changes the whole kernel at once, so all its nodes must stay
/// legal. `last` is the step that needs it, not yet among `nodes`.
bool kas::search::canSubstitute(KernelSpace &space,
                                llvm::ArrayRef<FlatNode> nodes,
                                const FlatNode *last, unsigned variable,
                                SizeId value) {
  KernelSizes &sizes = space.sizes;
  if (last && !canSubstituteIn(space, sizes, *last, variable, value))
    return false;
  for (const FlatNode &node : nodes)
    if ((node.variables >> variable & 1) &&
        !canSubstituteIn(space, sizes, node, variable, value))
      return false;
  // Two merges of the same two operands that commute now would be one. Example:
  // add(a, b) and add(b, a) of different shapes are different kernels; with
  // equal shapes they are one.
  auto put = [&](SizeId size) {
    return sizes.substitute(size, variable, value);
  };
  auto areSame = [&](const FlatShape &a, const FlatShape &b) {
    return a.rank == b.rank && a.numChannels == b.numChannels &&
           llvm::all_of(llvm::seq<unsigned>(a.rank), [&](unsigned dim) {
             return put(a.dims[dim]) == put(b.dims[dim]);
           });
  };
  auto clash = [&](const FlatNode &a, const FlatNode &b) {
    return a.step == b.step && a.left == b.right && a.right == b.left &&
           isCommutative(a.step) &&
           areSame(nodes[a.left].shape, nodes[a.right].shape);
  };
  for (unsigned i = 0; i < nodes.size(); ++i) {
    if (!isCommutative(nodes[i].step))
      continue;
    if (last && clash(nodes[i], *last))
      return false;
    for (unsigned j = i + 1; j < nodes.size(); ++j)
      if (clash(nodes[i], nodes[j]))
        return false;
  }
  return true;
}

/// Totals are summed up again, since any node may have changed.
void kas::search::substitute(KernelSpace &space, KernelStateData &data,
                             unsigned variable, SizeId value) {
  data.flops = data.params = 0;
  for (FlatNode &node :
       llvm::MutableArrayRef(data.nodes).take_front(data.numNodes)) {
    if (node.variables >> variable & 1) {
      node = substituteIn(space.sizes, node, variable, value);
      summarize(space, node);
    }
    auto [flops, params] = getTotals(space.sizes, node);
    data.flops += flops;
    data.params += params;
  }
  // Shapes that are equal now make merges aligned.
  for (unsigned index = 0; index < data.numNodes; ++index)
    data.nodes[index].isAligned =
        isAlignedMerge(space, data.getNodes(), data.nodes[index]);
  // The variable is free to be used again.
  data.variables &= ~(1u << variable);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// `pending` was made for this state. Updates everything that is kept about the
/// kernel as a whole.
void kas::search::addStep(KernelSpace &space, KernelStateData &data,
                          const PendingStep &pending) {
  const FlatNode &node = data.nodes[data.numNodes++] = pending.node;
  auto [flops, params] = getTotals(space.sizes, node);
  data.flops += flops;
  data.params += params;
  ++data.nodes[node.left].users;
  if (node.right >= 0)
    ++data.nodes[node.right].users;
  data.covered |= node.covers;
  data.numWeights += node.step == KernelStep::FC;
  data.hasGroup |=
      node.step == KernelStep::Group || node.step == KernelStep::GroupAll;
  data.hasShuffle |= node.step == KernelStep::Shuffle;
  data.variables |= space.sizes.getVariables(node.size);
  // Last: the substitution concerns the new node, too.
  if (pending.variable >= 0)
    substitute(space, data, pending.variable, pending.value);
}

/// The output has the spatial dimensions of the signature in their order;
/// channels need only agree in their product, as the output is a view. A
/// variable in the product takes what is missing.
std::optional<std::pair<int, SizeId>>
kas::search::matchOutput(KernelSpace &space, const FlatShape &shape) {
  KernelSizes &sizes = space.sizes;
  unsigned numSpatial = space.outputSpatial.size();
  // Windows that are left would count as channels here.
  if (shape.rank - shape.numChannels != numSpatial)
    return std::nullopt;
  for (unsigned dim = 0; dim < numSpatial; ++dim)
    // The size and the role: a transposed image is no output.
    if (shape.dims[shape.numChannels + dim] != space.outputSpatial[dim] ||
        shape.roles[shape.numChannels + dim] != Spatial + dim)
      return std::nullopt;
  SizeId channels = oneSize;
  for (unsigned dim = 0; dim < shape.numChannels; ++dim)
    channels = sizes.multiply(channels, shape.dims[dim]);
  SizeId ratio = sizes.divide(space.outputChannels, channels);
  if (ratio == oneSize)
    return std::pair(-1, oneSize);
  // No variable to solve for, or several.
  if (ratio == noSize || !llvm::has_single_bit(sizes.getVariables(ratio)))
    return std::nullopt;
  int variable = llvm::countr_zero(sizes.getVariables(ratio));
  unsigned first =
      space.problem->symbols.size() - space.problem->rules.variables.size();
  // The ratio is (value) / x: only then x can take the value.
  if (sizes[ratio].getExponent(first + variable) != -1)
    return std::nullopt;
  SizeId value =
      sizes.multiply(ratio, sizes.intern(Size::symbol(first + variable)));
  if (!sizes.isLegal(value))
    return std::nullopt;
  return std::pair(variable, value);
}

/// The last step is `pending`: its result becomes the output. Makes the step in
/// a copy. A kernel that uses groups needs one number of groups within the
/// budgets; which one is the next move.
static bool completes(KernelSpace &space, const KernelStateData &data,
                      const PendingStep &pending) {
  KernelStateData after = data;
  addStep(space, after, pending);
  auto match = matchOutput(space, after.nodes[after.numNodes - 1].shape);
  if (!match)
    return false;
  if (match->first >= 0) {
    if (!canSubstitute(space, after.getNodes(), nullptr, match->first,
                       match->second))
      return false;
    substitute(space, after, match->first, match->second);
  }
  if (!usesGroups(space, after.getNodes()))
    return isWithinBudgets(space, after.getNodes(), 0);
  for (unsigned groups = 0; groups < space.problem->groupCandidates.size();
       ++groups)
    if (isWithinBudgets(space, after.getNodes(), groups))
      return true;
  return false;
}

namespace {

/// What the leaves of a kernel can still become, according to their shapes. A
/// bound by the shapes of the leaves: with few steps left, they must fit
/// together. Looks one or two steps ahead only, as the cost is paid for every
/// move that is tried.
class Prospect {
public:
  Prospect(KernelSpace &space, const KernelStateData &data,
           const PendingStep &pending)
      : space(space), sizes(space.sizes), pending(pending) {
    // Shapes after the substitution that the step needs.
    for (int index = 0; index < data.numNodes; ++index) {
      FlatShape shape = getShape(data.nodes[index].shape);
      // Operands of the step are leaves no longer.
      bool isLeaf = data.nodes[index].users == 0 &&
                    index != pending.node.left && index != pending.node.right;
      (isLeaf ? leaves : others).push_back(shape);
    }
    leaves.push_back(getShape(pending.node.shape));
  }

  /// With `spare` steps beside those that merge the leaves, and `weights`
  /// fully-connected layers at most. `spare` is the number of steps beyond the
  /// merges: 0 means that only merges follow.
  bool canFinish(unsigned spare, unsigned weights) {
    // Two free steps can change any shape, as far as this test knows.
    if (spare >= 2)
      return true;
    bool hasOutput = llvm::any_of(
        leaves, [&](const FlatShape &leaf) { return isOutput(leaf); });
    if (spare == 0)
      return hasOutput && canMergeAll();
    // The one spare step may do anything else.
    if (hasOutput)
      return true;
    // No leaf is an output: the spare step must make one.
    return llvm::any_of(leaves, [&](const FlatShape &leaf) {
      return canBeFixed(leaf, weights > 0);
    });
  }

private:
  /// The shape with the substitution of `pending`.
  FlatShape getShape(FlatShape shape) {
    if (pending.variable >= 0)
      for (unsigned dim = 0; dim < shape.rank; ++dim)
        shape.dims[dim] =
            sizes.substitute(shape.dims[dim], pending.variable, pending.value);
    return shape;
  }

  bool isOutput(const FlatShape &shape) {
    return matchOutput(space, shape).has_value();
  }

  /// `left` can be repeated to the shape of `right`, perhaps by a substitution.
  bool canMerge(const FlatShape &left, const FlatShape &right) {
    SizeId ratio = sizes.divide(getElements(right), getElements(left));
    if (ratio == noSize)
      return false;
    if (sizes.isLegal(ratio))
      return true;
    // A variable below may take what it needs.
    return sizes.getVariables(getElements(left)) != 0;
  }
  /// The product of all dimensions; `noSize` when it does not fit.
  SizeId getElements(const FlatShape &shape) {
    SizeId product = oneSize;
    for (unsigned dim = 0; dim < shape.rank; ++dim)
      product = sizes.multiply(product, shape.dims[dim]);
    return product;
  }

  /// Every leaf but an output goes into another one. Products of matrices are
  /// not looked at closely. A leaf that merges into no other one is stuck; one
  /// leaf, the last, need not merge.
  bool canMergeAll() {
    unsigned stuck = 0;
    for (unsigned left = 0; left < leaves.size(); ++left) {
      // A single leaf has nothing to merge with.
      bool merges = leaves.size() == 1;
      // Of two leaves the other one must be the output, as nothing follows.
      for (unsigned right = 0; right < leaves.size() && !merges; ++right)
        merges = left != right &&
                 (leaves.size() > 2 || isOutput(leaves[right])) &&
                 canMerge(leaves[left], leaves[right]);
      stuck += !merges;
    }
    return stuck <= 1;
  }

  /// One step makes an output of `leaf`, or merges it into one. The steps that
  /// can change a shape to that of the output in one go: a layer or a `mix`
  /// (any channels), a fold, a transposition, or a merge with a tensor that is
  /// an output already.
  bool canBeFixed(const FlatShape &leaf, bool hasWeight) {
    bool isSpatial = leaf.rank - leaf.numChannels == space.outputSpatial.size();
    for (unsigned dim = 0; isSpatial && dim < space.outputSpatial.size(); ++dim)
      isSpatial = leaf.dims[leaf.numChannels + dim] == space.outputSpatial[dim];
    // A layer gives any number of channels.
    if (isSpatial && hasWeight)
      return true;
    if (space.problem->limits.steps[static_cast<unsigned>(KernelStep::Mix)] &&
        leaf.rank - leaf.numChannels == space.outputSpatial.size())
      return true;
    if (isSpatial && canFold(leaf))
      return true;
    // With the two spatial dimensions swapped.
    FlatShape swapped = leaf;
    if (leaf.rank == leaf.numChannels + 2) {
      std::swap(swapped.dims[leaf.rank - 1], swapped.dims[leaf.rank - 2]);
      std::swap(swapped.roles[leaf.rank - 1], swapped.roles[leaf.rank - 2]);
      if (isOutput(swapped))
        return true;
    }
    return llvm::any_of(others, [&](const FlatShape &other) {
      return isOutput(other) && canMerge(leaf, other);
    });
  }

  /// Without one channel dimension, or without all windows, it is an output.
  /// Folding removes dimensions, one channel dimension or all windows at once.
  bool canFold(const FlatShape &leaf) {
    auto without = [&](auto isFolded) {
      FlatShape rest;
      for (unsigned dim = 0; dim < leaf.rank; ++dim)
        if (dim >= leaf.numChannels || !isFolded(dim)) {
          rest.append(leaf.dims[dim], leaf.roles[dim]);
          rest.numChannels += dim < leaf.numChannels;
        }
      return isOutput(rest);
    };
    for (unsigned dim = 0; dim < leaf.numChannels; ++dim)
      if (without([&](unsigned other) { return other == dim; }))
        return true;
    return without([&](unsigned dim) { return leaf.roles[dim] >= Window; });
  }

  KernelSpace &space;
  KernelSizes &sizes;
  const PendingStep &pending;
  llvm::SmallVector<FlatShape, 8> leaves, others;
};

} // namespace

/// First the counts of steps, then shapes, then budgets: from cheap to
/// expensive.
bool kas::search::isFeasible(KernelSpace &space, const KernelStateData &data,
                             const PendingStep &pending) {
  const KernelLimits &limits = space.problem->limits;
  const FlatNode &node = pending.node;
  unsigned left = data.getNumLeft() - 1;
  // The leaves after the step: its result, and all others that it does not use.
  unsigned leaves = 1, mostReorders = 0;
  auto countReorders = [&](const FlatNode &leaf) {
    unsigned sum = 0;
    // Two bits for each of four spatial dimensions.
    for (unsigned place = 0; place < 8; place += 2)
      sum += leaf.reorders >> place & 3;
    mostReorders = std::max(mostReorders, sum);
  };
  countReorders(node);
  for (int index = 0; index < data.numNodes; ++index)
    if (data.nodes[index].users == 0 && index != node.left &&
        index != node.right) {
      ++leaves;
      countReorders(data.nodes[index]);
    }
  unsigned weights = data.numWeights + (node.step == KernelStep::FC);
  bool hasGroup = data.hasGroup || node.step == KernelStep::Group ||
                  node.step == KernelStep::GroupAll;
  bool hasShuffle = data.hasShuffle || node.step == KernelStep::Shuffle;
  // A map along the dimensions undoes all at once.
  if (limits.steps[static_cast<unsigned>(KernelStep::Mix)])
    mostReorders = std::min(mostReorders, 1u);
  // Each needs steps of its own. A lower bound on the steps that must still
  // come.
  unsigned needed = leaves - 1 + mostReorders;
  needed += weights < limits.minWeights ? limits.minWeights - weights : 0;
  needed += (space.toCover & ~(data.covered | node.covers)) != 0;
  needed += hasShuffle && !hasGroup;
  // `width` limits how many tensors wait to be merged.
  if (leaves > limits.width || needed > left)
    return false;
  if (left == 0)
    return completes(space, data, pending);
  // With two or more free steps the shapes say nothing.
  if (left - (leaves - 1) < 2 &&
      !Prospect(space, data, pending)
           .canFinish(left - (leaves - 1), limits.maxWeights - weights))
    return false;

  // The lower budgets cannot be decided yet, as further steps add to the costs.
  const KernelProblem &problem = *space.problem;
  if (!problem.maxFlops && !problem.maxParams)
    return true;
  double flops = data.flops, params = data.params;
  auto add = [&](const FlatNode &step) {
    auto [ofFlops, ofParams] = getTotals(space.sizes, step);
    flops += ofFlops;
    params += ofParams;
  };
  // Without a substitution the totals just grow by the step.
  if (pending.variable < 0) {
    add(node);
  } else {
    auto put = [&](const FlatNode &step) {
      return substituteIn(space.sizes, step, pending.variable, pending.value);
    };
    // A substitution may change every node.
    flops = params = 0;
    for (const FlatNode &step : data.getNodes())
      add(step.variables >> pending.variable & 1 ? put(step) : step);
    add(put(node));
  }
  return (!problem.maxFlops ||
          flops <= static_cast<double>(*problem.maxFlops)) &&
         (!problem.maxParams ||
          params <= static_cast<double>(*problem.maxParams));
}

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

namespace {
struct Totals {
  double flops = 0, params = 0;
};
} // namespace

/// Lower bounds count only when the kernel has no variable left (`isExact`):
/// else the values can be raised.
static bool isWithin(const KernelProblem &problem, const Totals &totals,
                     bool isExact) {
  auto isBetween = [&](double value, std::optional<int64_t> lower,
                       std::optional<int64_t> upper) {
    // Sums of doubles: a hair of room. 1e-12 is far more than rounding, and
    // less than one in budgets of interest.
    return (!upper || value <= static_cast<double>(*upper) * (1 + 1e-12)) &&
           (!lower || !isExact ||
            value >= static_cast<double>(*lower) * (1 - 1e-12));
  };
  return isBetween(totals.flops, problem.minFlops, problem.maxFlops) &&
         isBetween(totals.params, problem.minParams, problem.maxParams);
}

/// The least values of the variables are the least common multiples of what the
/// sizes demand; larger values cost more, so a kernel that is over the budget
/// with them has no legal values at all.
bool kas::search::isWithinBudgets(KernelSpace &space,
                                  llvm::ArrayRef<FlatNode> nodes,
                                  unsigned groups) {
  KernelSizes &sizes = space.sizes;
  const KernelProblem &problem = *space.problem;
  size_t numLayers = problem.multiplicities.size();
  // By layer and variable: the least value that makes all sizes integers.
  llvm::SmallVector<std::array<double, KernelProblem::maxVariables>, 16> least(
      numLayers, {1, 1, 1, 1});
  bool isFree = false;
  // The size is (a / b) * x, and x must be a multiple of b / gcd(a, b).
  auto require = [&](SizeId size) {
    if (sizes.getDegree(size) != 1)
      return;
    isFree = true;
    unsigned variable = llvm::countr_zero(sizes.getVariables(size));
    llvm::ArrayRef<int64_t> steps = sizes.getSteps(size, groups);
    for (size_t layer = 0; layer < numLayers; ++layer) {
      double &value = least[layer][variable];
      auto step = static_cast<double>(steps[layer]);
      // Values are small integers in doubles, so the test is exact.
      if (std::fmod(value, step) != 0)
        value = static_cast<double>(
            std::lcm(static_cast<int64_t>(value), steps[layer]));
    }
  };
  for (const FlatNode &node : nodes) {
    for (unsigned dim = 0; dim < node.shape.rank; ++dim)
      require(node.shape.dims[dim]);
    for (SizeId size : node.implied)
      require(size);
  }
  // Where a variable must divide something, so must its least value. Example: a
  // layer over x groups, x free: x must divide its outputs.
  auto divides = [&](SizeId size) {
    if (!sizes.isBelow(size))
      return true;
    unsigned variable = llvm::countr_zero(sizes.getVariables(size));
    llvm::ArrayRef<double> values = sizes.getValues(size, groups);
    for (size_t layer = 0; layer < numLayers; ++layer)
      if (std::fmod(values[layer], least[layer][variable]) != 0)
        return false;
    return true;
  };
  for (const FlatNode &node : nodes)
    if (!llvm::all_of(node.implied, divides))
      return false;
  // The exact value of a size at the least values.
  auto evaluate = [&](SizeId size, size_t layer) {
    double value = sizes.getValues(size, groups)[layer];
    for (unsigned used = sizes.getVariables(size); used; used &= used - 1) {
      unsigned variable = llvm::countr_zero(used);
      int exponent = sizes.getExponent(size, variable);
      for (; exponent > 0; --exponent)
        value *= least[layer][variable];
      for (; exponent < 0; ++exponent)
        value /= least[layer][variable];
    }
    return value;
  };
  Totals totals;
  for (const FlatNode &node : nodes)
    for (size_t layer = 0; layer < numLayers; ++layer) {
      auto count = static_cast<double>(problem.multiplicities[layer]);
      if (node.flopsFactor)
        totals.flops += count * node.flopsFactor * evaluate(node.flops, layer);
      if (node.params != noSize)
        totals.params += count * evaluate(node.params, layer);
      if (evaluate(node.elements, layer) *
              static_cast<double>(problem.limits.batch) >
          static_cast<double>(problem.limits.maxElements))
        return false;
    }
  // Without free sizes the totals are exact, so lower budgets hold or not.
  return isWithin(problem, totals, !isFree);
}

/// Only then there is a number of groups to choose.
bool kas::search::usesGroups(const KernelSpace &space,
                             llvm::ArrayRef<FlatNode> nodes) {
  if (!space.problem->groups)
    return false;
  unsigned symbol = *space.problem->groups;
  auto occurs = [&](SizeId size) {
    return size != noSize && space.sizes[size].getExponent(symbol) != 0;
  };
  return llvm::any_of(nodes, [&](const FlatNode &node) {
    return occurs(node.size) || llvm::any_of(node.implied, occurs) ||
           llvm::any_of(
               llvm::ArrayRef(node.shape.dims).take_front(node.shape.rank),
               occurs);
  });
}
