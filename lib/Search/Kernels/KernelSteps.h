//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step of a kernel: its shape, costs, and what it needs.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_KERNELS_KERNELSTEPS_H
#define LIB_SEARCH_KERNELS_KERNELSTEPS_H

#include "KernelStateImpl.h"
#include "kas/Solver/TensorRules.h"
#include "llvm/ADT/bit.h"

namespace kas::search {

inline bool isMerge(KernelStep step) {
  return step >= KernelStep::Add && step <= KernelStep::Max;
}
inline bool isBinary(KernelStep step) {
  return isMerge(step) || step == KernelStep::MatMul;
}

/// Tensors of the search, for `solver::TensorRules`.
struct FlatDomain {
  using Size = SizeId;
  using Shape = FlatShape;
  using Product = SizeId;
  KernelSizes &sizes;

  SizeId one() const { return oneSize; }
  SizeId multiply(SizeId a, SizeId b) const { return sizes.multiply(a, b); }
  SizeId divide(SizeId a, SizeId b) const { return sizes.divide(a, b); }
  bool contains(unsigned mask, unsigned dim) const { return mask >> dim & 1; }
  void add(SizeId &product, SizeId size) const {
    product = multiply(product, size);
  }
  void add(SizeId &product, const FlatShape &x, solver::DimRange range) const {
    add(product, solver::TensorRules<FlatDomain>(*this).getProduct(x, range));
  }
  void add(SizeId &product, const FlatShape &x, unsigned mask) const {
    SizeId part = oneSize;
    for (; mask; mask &= mask - 1)
      part = multiply(part, x.dims[llvm::countr_zero(mask)]);
    add(product, part);
  }
};

/// Makes one step of a kernel.
class KernelStepBuilder {
public:
  KernelStepBuilder(KernelSpace &space, const KernelStateData &data,
                    KernelStep step, uint32_t code)
      : space(space), sizes(space.sizes), rules({space.sizes}), data(data),
        limits(space.problem->limits), code(code & 0xffff) {
    node.step = step;
    node.left = static_cast<int8_t>(code >> 20);
    node.right = isBinary(step) ? static_cast<int8_t>(code >> 16 & 15) : -1;
  }

  std::optional<PendingStep> make() {
    if (!makeByKind() || !finish())
      return std::nullopt;
    return pending;
  }

private:
  const FlatNode &left() const { return data.nodes[node.left]; }
  const FlatNode &right() const { return data.nodes[node.right]; }

  bool makeByKind();
  /// What holds for every step: the result fits, and so do its sizes.
  bool finish();
  /// Only one like it may read the operand.
  bool isTaken() const;
  bool isRepeated() const;

  using Rules = solver::TensorRules<FlatDomain>;
  /// The shape and the costs by the rules.
  void take(const Rules::Step &step);
  /// Bits of the dimensions for which `predicate` of the role holds.
  template <typename Predicate>
  static unsigned getMask(const FlatShape &shape, Predicate predicate) {
    unsigned mask = 0;
    for (unsigned dim = 0; dim < shape.rank; ++dim)
      if (predicate(shape.roles[dim]))
        mask |= 1u << dim;
    return mask;
  }
  static bool isWindow(unsigned role) {
    return role >= Window && role < Spatial;
  }
  static bool isSpatial(unsigned role) { return role >= Spatial; }

  // One operand.
  bool makeFC();
  /// The first variable that does not occur; nothing when there is none left.
  SizeId getFreshVariable();
  bool makeGroup();
  bool makeGroupAll();
  bool makeShift();
  bool makeUnfold();
  bool makeTranspose();
  bool makeShuffle();
  bool makeReorder();
  bool makeScale();
  bool makeNorm();
  bool makeMix();
  /// Gives the dimensions in `node.dims` new sizes; false when that is no step
  /// of its own.
  bool chooseMixedSizes(unsigned choice);
  bool makeUnary();
  /// Dimensions that are reduced together: a single one, all windows, all
  /// spatial ones; for a softmax all channels, too.
  bool isReducedSet(unsigned mask) const;
  /// All channel dimensions but groups.
  static unsigned getPerGroupMask(const FlatShape &shape);
  /// What is reduced reads neighbours.
  void coverReduced(unsigned mask);
  bool makeFold();
  bool makeSoftmax();

  // Two operands.
  /// Dimensions that both have wait for the same inverses.
  bool haveSameReorders() const;
  /// A merge of the same two, possibly swapped, was made.
  bool isMerged() const;
  bool makeMerge();
  /// The variables in the denominator of `size`.
  unsigned getVariablesBelow(SizeId size) const;
  /// A variable below takes the factor number `code` of what is above.
  bool chooseFactor(SizeId ratio);
  bool makeMatMul();
  /// A variable makes both the same where they are not.
  bool equalize(SizeId a, SizeId b);

  KernelSpace &space;
  KernelSizes &sizes;
  Rules rules;
  const KernelStateData &data;
  const KernelLimits &limits;
  uint32_t code;
  PendingStep pending;
  FlatNode &node = pending.node;
};

} // namespace kas::search

#endif // LIB_SEARCH_KERNELS_KERNELSTEPS_H
