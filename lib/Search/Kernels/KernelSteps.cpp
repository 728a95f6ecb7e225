//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by all steps, and steps with one operand.
//
// Each `make...` function decodes `code`, checks what the step requires of its
// operands, sets the result's shape and roles, and takes costs and implied
// sizes from `solver::TensorRules`, which the dialect's type inference uses as
// well. It returns false for codes that are no step, among them those that a
// shorter kernel covers (docs/internals/tensor-level.md, "Left out").
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"
#include "kas/Dialect/Kas/IR/KasDag.h"

using namespace kas;
using namespace kas::search;

/// ReLU, GELU, Sigmoid, TanH.
static bool isActivation(KernelStep step) {
  return step >= KernelStep::ReLU && step <= KernelStep::TanH;
}

/// `after` of `before` is the identity, or has a shorter form, or is one that
/// Canvas leaves out (facts: an activation of the input or of an activation).
/// Examples: abs(exp(x)) = exp(x), relu(sqr(x)) = sqr(x), sqr(neg(x)) = sqr(x),
/// and sqrt(sqr(x)) = abs(x).
static bool isRedundant(KernelStep before, KernelStep after) {
  using enum KernelStep;
  if (isActivation(after) && (before == Input || isActivation(before)))
    return true;
  // Idempotent, self-inverse, or a chain that Canvas leaves out as well.
  if (before == after)
    return true;
  auto isOneOf = [&](std::initializer_list<KernelStep> list) {
    return llvm::is_contained(list, before);
  };
  switch (after) {
  case Abs:
    return isOneOf({Exp, Neg, Sigmoid, ReLU, Sqrt, Sqr, Softmax});
  case ReLU:
    return isOneOf({Abs, Exp, Sqrt, Sqr, Softmax});
  case Sqrt:
    return isOneOf({Abs, Neg, Sqr});
  case Sqr:
    return isOneOf({Abs, Neg, Sqrt});
  default:
    return false;
  }
}

/// Starts with the operand's shape: steps that keep it need not set it.
bool KernelStepBuilder::makeByKind() {
  using enum KernelStep;
  node.shape = left().shape;
  node.reorders = left().reorders;
  node.flops = noSize;
  node.params = noSize;
  switch (node.step) {
  case FC:
    return makeFC();
  case Group:
    return makeGroup();
  case GroupAll:
    return makeGroupAll();
  case Shift:
    return makeShift();
  case Unfold:
    return makeUnfold();
  case Transpose:
    return makeTranspose();
  case Shuffle:
    return makeShuffle();
  case Reorder:
  case InverseReorder:
    return makeReorder();
  case Scale:
    return makeScale();
  case Norm:
    return makeNorm();
  case Mix:
    return makeMix();
  case FoldSum:
  case FoldMean:
  case FoldMax:
    return makeFold();
  case Softmax:
    return makeSoftmax();
  case Add:
  case Sub:
  case Mul:
  case Min:
  case Max:
    return makeMerge();
  case MatMul:
    return makeMatMul();
  case Input:
    return false;
  default:
    return makeUnary();
  }
}

/// Costs are sizes, too: elements times a small factor.
void KernelStepBuilder::take(const Rules::Step &step) {
  node.shape = step.shape;
  llvm::copy(step.implied, node.implied.begin());
  node.flopsFactor = static_cast<uint8_t>(step.flopsFactor);
  node.flops = step.flopsFactor ? step.flops : noSize;
  // Weights of one shape each; norm has four.
  node.params = step.numWeights ? step.weight : noSize;
  if (step.numWeights > 1)
    node.params = sizes.multiply(sizes.intern(*Size::constant(step.numWeights)),
                                 node.params);
}

/// The last check of every step: the result and all of its sizes are legal.
bool KernelStepBuilder::finish() {
  if (node.shape.rank == 0 || node.shape.rank > limits.rank)
    return false;
  node.elements = rules.getProduct(node.shape, {0, node.shape.rank});
  if (node.elements == noSize)
    return false;
  if (node.flopsFactor && node.flops == noSize)
    return false;
  // `canSubstitute` needs the variables of the node.
  summarize(space, node);
  // With a substitution the whole kernel is checked, with the step.
  if (pending.variable >= 0)
    return canSubstitute(space, data.getNodes(), &node, pending.variable,
                         pending.value);
  return isLegalShape(space, node.shape) &&
         llvm::all_of(
             node.implied,
             [&](SizeId size) { return isLegalImplied(space, size); }) &&
         isSmallEnough(space, node.elements);
}

/// Two layers on one tensor compute two functions of one family: a single layer
/// with more outputs covers most uses, so `repeats` is off by default.
bool KernelStepBuilder::isTaken() const {
  if (limits.repeats)
    return false;
  return llvm::any_of(data.getNodes(), [&](const FlatNode &other) {
    // Scales of different dimensions are different; so are mixes.
    return other.step == node.step && other.left == node.left &&
           ((node.step != KernelStep::Scale && node.step != KernelStep::Mix) ||
            other.dims == node.dims);
  });
}

/// The same step on the same operands is the same tensor.
bool KernelStepBuilder::isRepeated() const {
  return llvm::any_of(data.getNodes(), [&](const FlatNode &other) {
    return other.step == node.step && other.left == node.left &&
           other.right == node.right && other.dims == node.dims &&
           other.amount == node.amount && other.size == node.size &&
           other.window == node.window &&
           other.transposesLeft == node.transposesLeft &&
           other.transposesRight == node.transposesRight &&
           other.isScaled == node.isScaled;
  });
}

/// The lowest number that is free, so that equal kernels introduce variables in
/// the same order.
SizeId KernelStepBuilder::getFreshVariable() {
  unsigned variable = llvm::countr_one(data.variables);
  if (variable >= limits.variables)
    return noSize;
  unsigned first =
      space.problem->symbols.size() - space.problem->rules.variables.size();
  return sizes.intern(Size::symbol(first + variable));
}

/// Code bit 0: a new variable (0) or the channels of the output (1) as the
/// number of outputs. Bit 1: look at groups (0) or mix all channels (1).
bool KernelStepBuilder::makeFC() {
  const FlatShape &shape = left().shape;
  if (code > 3 || data.numWeights >= limits.maxWeights || isTaken() ||
      shape.numChannels == 0)
    return false;
  // Over groups that were not made only now, a layer may mix all channels.
  bool ignoresGroups = code >= 2;
  if (ignoresGroups &&
      (shape.roles[0] != DimRole::Group || left().step == KernelStep::Group ||
       left().step == KernelStep::GroupAll))
    return false;
  if (code % 2 == 0) {
    node.size = getFreshVariable();
    if (node.size == noSize)
      return false;
  } else {
    node.size = space.outputChannels;
  }
  // With groups, each of them has a layer of its own.
  unsigned groups = shape.roles[0] == DimRole::Group && !ignoresGroups;
  node.amount = static_cast<int8_t>(groups);
  take(rules.fc(shape, groups, node.size));
  return node.params != noSize;
}

/// Splits the first channel dimension in (groups, rest); the divisor is a
/// symbol. One dimension of groups at most.
bool KernelStepBuilder::makeGroup() {
  const FlatShape &shape = left().shape;
  if (code >= space.divisors.size() || shape.numChannels == 0 ||
      shape.roles[0] != DimRole::Channel || shape.hasRole(DimRole::Group) ||
      shape.rank == KernelProblem::maxRank)
    return false;
  node.size = space.divisors[code];
  take(rules.group(shape, 0, node.size));
  node.shape.roles[0] = DimRole::Group;
  // One channel per group is `group_all`.
  return node.shape.dims[1] != oneSize && !isRepeated();
}

/// One group for each channel.
bool KernelStepBuilder::makeGroupAll() {
  const FlatShape &shape = left().shape;
  if (code != 0 || shape.numChannels == 0 || shape.hasRole(DimRole::Group) ||
      shape.rank + 2 - shape.numChannels > KernelProblem::maxRank)
    return false;
  // All channel dimensions become one of groups; the channels left are 1.
  take(rules.groupAll(shape));
  node.shape.roles[0] = DimRole::Group;
  return node.shape.dims[0] != oneSize && !isRepeated();
}

/// `code` = (dimension, amount, direction). The image is shifted cyclically
/// along a spatial dimension.
bool KernelStepBuilder::makeShift() {
  const FlatShape &shape = left().shape;
  unsigned dim = code / (2 * limits.shift), rest = code % (2 * limits.shift);
  if (dim >= shape.rank || !isSpatial(shape.roles[dim]))
    return false;
  unsigned spatial = shape.roles[dim] - Spatial;
  int amount = static_cast<int>(rest / 2) + 1;
  // A shift by the whole image is none.
  if (amount >= space.extents[spatial])
    return false;
  // Shifts in a row are in the order of their dimensions, one for each. So of
  // the orders of several shifts one is left.
  if (left().step == KernelStep::Shift && left().dims >= 1u << dim)
    return false;
  node.dims = static_cast<uint8_t>(1u << dim);
  node.amount = static_cast<int8_t>(rest % 2 ? -amount : amount);
  node.covers = static_cast<uint8_t>(1u << spatial);
  return !isRepeated();
}

/// `code` = (set of spatial dimensions, window, dilation). Each dimension gets
/// a window dimension among the channels, in the order of the set.
bool KernelStepBuilder::makeUnfold() {
  const FlatShape &shape = left().shape;
  unsigned dilation = code % limits.dilation;
  unsigned window = code / limits.dilation % space.maxWindows;
  unsigned mask = code / limits.dilation / space.maxWindows;
  // Windows of windows are larger windows.
  if (mask == 0 || mask >> shape.rank || left().step == KernelStep::Unfold ||
      KernelProblem::maxRank < unsigned(shape.rank + llvm::popcount(mask)))
    return false;
  llvm::SmallVector<SizeId, 2> windows;
  for (unsigned dim = 0; dim < shape.rank; ++dim) {
    if (!(mask >> dim & 1))
      continue;
    if (!isSpatial(shape.roles[dim]))
      return false;
    unsigned spatial = shape.roles[dim] - Spatial;
    // Also left out: a second window of a dimension while the first one is
    // there.
    if (window >= space.windows[spatial].size() ||
        shape.hasRole(Window + spatial))
      return false;
    node.covers |= 1u << spatial;
    windows.push_back(space.windows[spatial][window]);
  }
  take(rules.unfold(shape, windows));
  // Window dimensions are inserted before the spatial ones.
  unsigned at = shape.numChannels;
  for (unsigned rest = mask; rest; rest &= rest - 1)
    node.shape.roles[at++] = static_cast<uint8_t>(
        Window + shape.roles[llvm::countr_zero(rest)] - Spatial);
  node.dims = static_cast<uint8_t>(mask);
  node.amount = static_cast<int8_t>(dilation + 1);
  node.window = static_cast<uint8_t>(window);
  return !isRepeated();
}

/// Swaps the two spatial dimensions. Twice in a row is nothing.
bool KernelStepBuilder::makeTranspose() {
  FlatShape &shape = node.shape;
  unsigned first = shape.numChannels;
  if (code != 0 || shape.rank != first + 2 || !isSpatial(shape.roles[first]) ||
      !isSpatial(shape.roles[first + 1]) ||
      left().step == KernelStep::Transpose)
    return false;
  node.dims = static_cast<uint8_t>(3u << first);
  std::swap(shape.dims[first], shape.dims[first + 1]);
  std::swap(shape.roles[first], shape.roles[first + 1]);
  return !isRepeated();
}

/// Permutes channels so that those of different groups alternate: 1 2 3 4 5 6
/// by 2 gives 1 4 2 5 3 6.
bool KernelStepBuilder::makeShuffle() {
  const FlatShape &shape = left().shape;
  if (space.divisors.empty())
    return false;
  unsigned dim = code / space.divisors.size();
  if (dim >= shape.numChannels || shape.roles[dim] != DimRole::Channel ||
      left().step == KernelStep::Shuffle)
    return false;
  node.size = space.divisors[code % space.divisors.size()];
  node.dims = static_cast<uint8_t>(1u << dim);
  take(rules.shuffle(shape, dim, node.size));
  // With one channel per group the permutation is the identity.
  return node.implied[1] != oneSize && !isRepeated();
}

/// Even positions first, then odd ones, along a spatial dimension, or back;
/// each must be undone before the end. At most 3 deep, as there are two bits.
bool KernelStepBuilder::makeReorder() {
  const FlatShape &shape = left().shape;
  bool isInverse = node.step == KernelStep::InverseReorder;
  KernelStep opposite =
      isInverse ? KernelStep::Reorder : KernelStep::InverseReorder;
  if (code >= shape.rank || !isSpatial(shape.roles[code]))
    return false;
  node.dims = static_cast<uint8_t>(1u << code);
  if (left().step == opposite && left().dims == node.dims)
    return false;
  unsigned place = 2 * (shape.roles[code] - Spatial);
  unsigned depth = left().reorders >> place & 3;
  // Nothing to undo, or no room.
  if (isInverse ? depth == 0 : depth == 3)
    return false;
  node.reorders =
      static_cast<uint8_t>(isInverse ? left().reorders - (1u << place)
                                     : left().reorders + (1u << place));
  return !isRepeated();
}

/// Code 0: a weight for all channel dimensions; code 1: for all spatial ones.
bool KernelStepBuilder::makeScale() {
  const FlatShape &shape = left().shape;
  if (code > 1)
    return false;
  unsigned all = (1u << shape.rank) - 1;
  unsigned channels = (1u << shape.numChannels) - 1;
  node.dims = static_cast<uint8_t>(code == 0 ? channels : all & ~channels);
  if (node.dims == 0 || isTaken() || left().step == KernelStep::Scale)
    return false;
  take(rules.scale(shape, unsigned(node.dims)));
  // A single weight is no scale.
  return node.params != oneSize && node.params != noSize;
}

/// Normalization with the four weights of inference per channel: factor,
/// offset, mean, variance.
bool KernelStepBuilder::makeNorm() {
  const FlatShape &shape = left().shape;
  if (code != 0 || shape.numChannels == 0 || isTaken() ||
      left().step == KernelStep::Norm)
    return false;
  take(rules.norm(shape));
  return node.params != noSize;
}

// A learned map along one dimension, or along all spatial ones at once. A
// layer has all channels, and groups stay apart.
bool KernelStepBuilder::makeMix() {
  const FlatShape &shape = left().shape;
  unsigned dim = code / 3;
  if (dim > shape.rank)
    return false;
  // Code `rank` is all spatial dimensions at once.
  unsigned mask = dim < shape.rank ? 1u << dim : getMask(shape, isSpatial);
  if (mask == 0 || (dim == shape.rank && llvm::has_single_bit(mask)))
    return false;
  // A map along the only channel dimension is a layer.
  if (dim < shape.rank &&
      (shape.dims[dim] == oneSize || shape.roles[dim] == DimRole::Group ||
       (dim == 0 && shape.numChannels == 1)))
    return false;
  node.dims = static_cast<uint8_t>(mask);
  // The weight can do what moved the dimensions right before.
  using enum KernelStep;
  bool wasMoved = left().step == Shift || left().step == Shuffle ||
                  left().step == Reorder || left().step == InverseReorder;
  if (isTaken() || (wasMoved && (left().dims & ~mask) == 0) ||
      !chooseMixedSizes(code % 3))
    return false;
  coverReduced(mask);
  take(rules.mix(shape, node.shape, mask));
  for (; mask; mask &= mask - 1) {
    unsigned at = llvm::countr_zero(mask);
    node.size = sizes.multiply(node.size, node.shape.dims[at]);
    // Positions mean nothing afterwards.
    if (isSpatial(shape.roles[at]))
      node.reorders &= ~(3u << 2 * (shape.roles[at] - Spatial));
  }
  return node.params != noSize;
}

/// `choice` 0 keeps the sizes, 1 makes the first one a new variable and the
/// others 1, 2 takes the sizes of the output.
bool KernelStepBuilder::chooseMixedSizes(unsigned choice) {
  const FlatShape &shape = left().shape;
  SizeId first = choice == 1 ? getFreshVariable() : oneSize;
  bool isChanged = false, hasOne = false;
  for (unsigned mask = node.dims; mask; mask &= mask - 1) {
    unsigned dim = llvm::countr_zero(mask);
    SizeId &size = node.shape.dims[dim];
    hasOne |= size == oneSize;
    if (choice == 1)
      size = dim == unsigned(llvm::countr_zero(node.dims)) ? first : oneSize;
    else if (unsigned axis = shape.roles[dim] - Spatial;
             choice == 2 && axis < space.outputSpatial.size())
      size = space.outputSpatial[axis];
    isChanged |= size != shape.dims[dim];
  }
  // As it is: not where a map along fewer dimensions does the same.
  return choice == 0 ? llvm::has_single_bit(node.dims) || !hasOne
                     : isChanged && first != noSize;
}

/// `code` is always 0. Costs depend on the function, see `getFlopsPerElement`.
bool KernelStepBuilder::makeUnary() {
  if (code != 0 || isRedundant(left().step, node.step) || isRepeated())
    return false;
  auto kind =
      static_cast<DagUnaryKind>(static_cast<unsigned>(node.step) -
                                static_cast<unsigned>(KernelStep::ReLU));
  take(rules.unary(left().shape, getFlopsPerElement(kind)));
  return true;
}

/// Other sets of dimensions would be many and of little use.
bool KernelStepBuilder::isReducedSet(unsigned mask) const {
  const FlatShape &shape = left().shape;
  if (mask == 0 || mask >> shape.rank)
    return false;
  for (unsigned dim = 0; dim < shape.rank; ++dim)
    // Reducing a dimension of size 1 changes nothing.
    if ((mask >> dim & 1) && shape.dims[dim] == oneSize)
      return false;
  return llvm::has_single_bit(mask) || mask == getMask(shape, isSpatial) ||
         mask == getMask(shape, isWindow) ||
         (node.step == KernelStep::Softmax &&
          (mask == (1u << shape.numChannels) - 1 ||
           mask == getPerGroupMask(shape)));
}

/// With a dimension of groups, softmax over all channels within a group.
unsigned KernelStepBuilder::getPerGroupMask(const FlatShape &shape) {
  return getMask(shape, [](unsigned role) { return role != DimRole::Group; }) &
         ((1u << shape.numChannels) - 1);
}

/// A reduction over a window, or a whole spatial dimension, sees neighbours.
void KernelStepBuilder::coverReduced(unsigned mask) {
  const FlatShape &shape = left().shape;
  for (unsigned dim = 0; dim < shape.rank; ++dim)
    if ((mask >> dim & 1) && shape.roles[dim] >= Window)
      // The low four bits of a role are the spatial dimension.
      node.covers |= 1u << (shape.roles[dim] & 15);
}

/// `code` is the set of dimensions. Folds of one kind in a row that could be
/// one are left out.
bool KernelStepBuilder::makeFold() {
  const FlatShape &shape = left().shape;
  if (!isReducedSet(code))
    return false;
  node.dims = static_cast<uint8_t>(code);
  // Two folds of one kind over dimensions that could go at once. The role
  // without the number of its dimension: Window, Spatial or 0.
  unsigned role = shape.roles[llvm::countr_zero(code)] & ~15u;
  if (left().step == node.step && left().foldedRole == role && role != 0)
    return false;
  node.foldedRole = static_cast<uint8_t>(role);
  coverReduced(code);
  take(rules.fold(shape, unsigned(code)));
  // A dimension that is gone has nothing to undo.
  for (unsigned dim = 0; dim < shape.rank; ++dim)
    if ((code >> dim & 1) && isSpatial(shape.roles[dim]))
      node.reorders &= ~(3u << 2 * (shape.roles[dim] - Spatial));
  return !isRepeated();
}

/// Keeps the shape; `code` as for folds.
bool KernelStepBuilder::makeSoftmax() {
  if (!isReducedSet(code) || left().step == KernelStep::Softmax)
    return false;
  node.dims = static_cast<uint8_t>(code);
  coverReduced(code);
  take(rules.softmax(left().shape));
  return !isRepeated();
}
