//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One hash for all ways to write down a kernel.
//
// Steps are expressions of their operands, and a kernel has no two equal ones,
// so the hashes of all steps, taken from the input on, tell kernels apart. What
// is arbitrary is undone by the least hash over all choices: the names of the
// variables, and which of several weighted steps of one kind on one tensor
// comes first.
//
//===----------------------------------------------------------------------===//

#include "KernelStateImpl.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/bit.h"

using namespace kas;
using namespace kas::search;

/// Mixes two hashes; not symmetric, so order counts.
static uint64_t combine(uint64_t a, uint64_t b) {
  return mixBits(a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull);
}

namespace {

/// A backtracking search over labels within a loop over names; both are small:
/// at most 4 variables, and few weighted steps of one kind on one tensor.
class CanonicalHash {
public:
  CanonicalHash(const KernelSpace &space, llvm::ArrayRef<FlatNode> nodes)
      : space(space), nodes(nodes) {
    // Only variables that occur are permuted.
    unsigned used = 0;
    for (const FlatNode &node : nodes) {
      used |= space.sizes.getVariables(node.size);
      numWeighted += isWeighted(node);
    }
    // Their numbers, ascending.
    for (; used; used &= used - 1)
      variables.push_back(llvm::countr_zero(used));
    hashes.resize(nodes.size());
    labels.resize(nodes.size());
  }

  /// At most 4! = 24 permutations.
  uint64_t run() {
    llvm::SmallVector<unsigned, 4> order(variables.size());
    for (unsigned place = 0; place < order.size(); ++place)
      order[place] = place;
    // Every permutation renames the variables and hashes the kernel again.
    do {
      for (unsigned place = 0; place < order.size(); ++place)
        names[variables[place]] = order[place];
      visit(0, 0);
    } while (std::next_permutation(order.begin(), order.end()));
    return least;
  }

private:
  /// Two such steps are different tensors, though they are written alike: each
  /// has weights of its own.
  static bool isWeighted(const FlatNode &node) {
    return node.step == KernelStep::FC || node.step == KernelStep::Scale ||
           node.step == KernelStep::Norm || node.step == KernelStep::Mix;
  }

  /// A hash that knows variables by their name in the current permutation only.
  /// `KernelSizes::getHash` does not see variables at all.
  uint64_t getSizeHash(SizeId id) const {
    unsigned used = space.sizes.getVariables(id);
    if (used == 0)
      return space.sizes.getHash(id);
    uint64_t hash = space.sizes.getHash(id);
    const Size &size = space.sizes[id];
    unsigned first =
        space.problem->symbols.size() - space.problem->rules.variables.size();
    // Exponents by name: a sum, so that the order does not count.
    for (; used; used &= used - 1) {
      unsigned variable = llvm::countr_zero(used);
      hash +=
          combine(names[variable] + 1,
                  static_cast<uint64_t>(size.getExponent(first + variable)));
    }
    return hash;
  }

  /// Of the expression that the node is: the step with its parameters and the
  /// hashes of its operands. Nodes with equal hashes are equal tensors.
  uint64_t getHash(const FlatNode &node) const {
    uint64_t hash = static_cast<uint64_t>(node.step) + 1;
    if (node.step == KernelStep::Input)
      return mixBits(hash);
    // Bits in separate fields: dims 8, amount 8, three flags, window.
    hash = combine(hash, node.dims | uint64_t(uint8_t(node.amount)) << 8 |
                             uint64_t(node.transposesLeft) << 16 |
                             uint64_t(node.transposesRight) << 17 |
                             uint64_t(node.isScaled) << 18 |
                             uint64_t(node.window) << 20);
    hash = combine(hash, getSizeHash(node.size));
    // What each dimension becomes; the product does not say.
    if (node.step == KernelStep::Mix)
      for (unsigned mask = node.dims; mask; mask &= mask - 1)
        hash = combine(hash,
                       getSizeHash(node.shape.dims[llvm::countr_zero(mask)]));
    uint64_t left = hashes[node.left];
    if (node.right < 0)
      return combine(hash, left);
    uint64_t right = hashes[node.right];
    // The operands may be swapped, so their order must not count.
    if (node.isAligned && node.step != KernelStep::Sub && left > right)
      std::swap(left, right);
    // Where nothing is repeated, the place of the block means nothing.
    if (node.implied[1] != oneSize)
      hash = combine(hash, getSizeHash(node.prefixSize));
    return combine(combine(hash, left), right);
  }

  /// Hashes the nodes from `index` on; `sum` is that of those before. Without
  /// labels it is a loop; each weighted step branches over its labels. `least`
  /// collects the result.
  void visit(unsigned index, uint64_t sum) {
    for (; index < nodes.size(); ++index) {
      uint64_t hash = getHash(nodes[index]);
      labels[index] = 0;
      // Without `repeats` no two weighted steps of one kind are on one tensor,
      // so labels are not needed.
      if (isWeighted(nodes[index]) && space.problem->limits.repeats) {
        bases[index] = hash;
        // Any label that is not taken; those in use must be the first ones.
        for (unsigned label = 1; label <= numWeighted; ++label) {
          if (isTaken(index, label))
            continue;
          labels[index] = label;
          hashes[index] = combine(hash, label);
          visit(index + 1, sum + mixBits(hashes[index]));
        }
        return;
      }
      hashes[index] = hash;
      sum += mixBits(hash);
    }
    // A complete labelling: count it if the labels of each group are 1, 2, ...,
    // so that a relabelling by larger numbers does not add other hashes.
    if (areLabelsFirst())
      least = std::min(least, mixBits(sum));
  }

  /// Equal steps on equal tensors need different labels.
  bool isTaken(unsigned index, unsigned label) const {
    for (unsigned other = 0; other < index; ++other)
      if (labels[other] == label && bases[other] == bases[index])
        return true;
    return false;
  }
  /// For each label above 1 the label before it is in use for the same step.
  bool areLabelsFirst() const {
    for (unsigned index = 0; index < nodes.size(); ++index) {
      if (labels[index] < 2)
        continue;
      bool hasPrevious = false;
      for (unsigned other = 0; other < nodes.size(); ++other)
        hasPrevious |=
            labels[other] + 1 == labels[index] && bases[other] == bases[index];
      if (!hasPrevious)
        return false;
    }
    return true;
  }

  const KernelSpace &space;
  llvm::ArrayRef<FlatNode> nodes;
  llvm::SmallVector<unsigned, 4> variables;
  std::array<unsigned, KernelProblem::maxVariables> names = {};
  unsigned numWeighted = 0;
  llvm::SmallVector<uint64_t, 16> hashes;
  /// By node: the hash without its label.
  std::array<uint64_t, KernelProblem::maxSteps + 1> bases = {};
  llvm::SmallVector<unsigned, 16> labels;
  uint64_t least = ~uint64_t(0);
};

} // namespace

uint64_t kas::search::getCanonicalHash(const KernelSpace &space,
                                       llvm::ArrayRef<FlatNode> nodes) {
  return CanonicalHash(space, nodes).run();
}
