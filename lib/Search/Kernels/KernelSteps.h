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

namespace kas::search {

inline bool isMerge(KernelStep step) {
  return step >= KernelStep::Add && step <= KernelStep::Max;
}
inline bool isBinary(KernelStep step) {
  return isMerge(step) || step == KernelStep::MatMul;
}

/// Makes one step of a kernel.
class StepMaker {
public:
  StepMaker(KernelSpace &space, const KernelStateData &data, KernelStep step,
            uint32_t code)
      : space(space), sizes(space.sizes), data(data),
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

  SizeId getProduct(const FlatShape &shape, unsigned first, unsigned last) {
    SizeId product = oneSize;
    for (unsigned dim = first; dim < last; ++dim)
      product = sizes.multiply(product, shape.dims[dim]);
    return product;
  }
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

  void setFlops(unsigned factor, SizeId size) {
    node.flopsFactor = static_cast<uint8_t>(factor);
    node.flops = size;
  }
  SizeId getElements(const FlatShape &shape) {
    return getProduct(shape, 0, shape.rank);
  }

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
  const KernelStateData &data;
  const KernelLimits &limits;
  uint32_t code;
  PendingStep pending;
  FlatNode &node = pending.node;
};

} // namespace kas::search

#endif // LIB_SEARCH_KERNELS_KERNELSTEPS_H
