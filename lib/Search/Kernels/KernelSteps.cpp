//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all steps have in common, and steps with one operand.
//
//===----------------------------------------------------------------------===//

#include "KernelSteps.h"
#include "kas/Dialect/Kas/IR/KasDag.h"

using namespace kas;
using namespace kas::search;

static bool isActivation(KernelStep step) {
  return step >= KernelStep::ReLU && step <= KernelStep::TanH;
}

/// `after` of `before` is the identity, or has a shorter form, or is one that
/// Canvas leaves out (facts: an activation of the input or of an activation).
static bool isRedundant(KernelStep before, KernelStep after) {
  using enum KernelStep;
  if (isActivation(after) && (before == Input || isActivation(before)))
    return true;
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

bool StepMaker::makeByKind() {
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

void StepMaker::take(const Rules::Step &step) {
  node.shape = step.shape;
  llvm::copy(step.implied, node.implied.begin());
  node.flopsFactor = static_cast<uint8_t>(step.flopsFactor);
  node.flops = step.flopsFactor ? step.flops : noSize;
  node.params = step.numWeights ? step.weight : noSize;
  if (step.numWeights > 1)
    node.params = sizes.multiply(sizes.intern(*Size::constant(step.numWeights)),
                                 node.params);
}

bool StepMaker::finish() {
  if (node.shape.rank == 0 || node.shape.rank > limits.rank)
    return false;
  node.elements = rules.getProduct(node.shape, {0, node.shape.rank});
  if (node.elements == noSize)
    return false;
  if (node.flopsFactor && node.flops == noSize)
    return false;
  summarize(space, node);
  if (pending.variable >= 0)
    return canSubstitute(space, data.getNodes(), &node, pending.variable,
                         pending.value);
  return isLegalShape(space, node.shape) &&
         llvm::all_of(
             node.implied,
             [&](SizeId size) { return isLegalImplied(space, size); }) &&
         isSmallEnough(space, node.elements);
}

bool StepMaker::isTaken() const {
  if (limits.repeats)
    return false;
  return llvm::any_of(data.getNodes(), [&](const FlatNode &other) {
    return other.step == node.step && other.left == node.left &&
           ((node.step != KernelStep::Scale && node.step != KernelStep::Mix) ||
            other.dims == node.dims);
  });
}

bool StepMaker::isRepeated() const {
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

SizeId StepMaker::getFreshVariable() {
  unsigned variable = llvm::countr_one(data.variables);
  if (variable >= limits.variables)
    return noSize;
  unsigned first =
      space.problem->symbols.size() - space.problem->rules.variables.size();
  return sizes.intern(Size::symbol(first + variable));
}

bool StepMaker::makeFC() {
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
  unsigned groups = shape.roles[0] == DimRole::Group && !ignoresGroups;
  node.amount = static_cast<int8_t>(groups);
  take(rules.fc(shape, groups, node.size));
  return node.params != noSize;
}

bool StepMaker::makeGroup() {
  const FlatShape &shape = left().shape;
  if (code >= space.divisors.size() || shape.numChannels == 0 ||
      shape.roles[0] != DimRole::Channel || shape.hasRole(DimRole::Group) ||
      shape.rank == KernelProblem::maxRank)
    return false;
  node.size = space.divisors[code];
  take(rules.group(shape, 0, node.size));
  node.shape.roles[0] = DimRole::Group;
  return node.shape.dims[1] != oneSize && !isRepeated();
}

bool StepMaker::makeGroupAll() {
  const FlatShape &shape = left().shape;
  if (code != 0 || shape.numChannels == 0 || shape.hasRole(DimRole::Group) ||
      shape.rank + 2 - shape.numChannels > KernelProblem::maxRank)
    return false;
  take(rules.groupAll(shape));
  node.shape.roles[0] = DimRole::Group;
  return node.shape.dims[0] != oneSize && !isRepeated();
}

bool StepMaker::makeShift() {
  const FlatShape &shape = left().shape;
  unsigned dim = code / (2 * limits.shift), rest = code % (2 * limits.shift);
  if (dim >= shape.rank || !isSpatial(shape.roles[dim]))
    return false;
  unsigned spatial = shape.roles[dim] - Spatial;
  int amount = static_cast<int>(rest / 2) + 1;
  if (amount >= space.extents[spatial])
    return false;
  // Shifts in a row are in the order of their dimensions, one for each.
  if (left().step == KernelStep::Shift && left().dims >= 1u << dim)
    return false;
  node.dims = static_cast<uint8_t>(1u << dim);
  node.amount = static_cast<int8_t>(rest % 2 ? -amount : amount);
  node.covers = static_cast<uint8_t>(1u << spatial);
  return !isRepeated();
}

bool StepMaker::makeUnfold() {
  const FlatShape &shape = left().shape;
  unsigned dilation = code % limits.dilation;
  unsigned window = code / limits.dilation % space.maxWindows;
  unsigned mask = code / limits.dilation / space.maxWindows;
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
    if (window >= space.windows[spatial].size() ||
        shape.hasRole(Window + spatial))
      return false;
    node.covers |= 1u << spatial;
    windows.push_back(space.windows[spatial][window]);
  }
  take(rules.unfold(shape, windows));
  unsigned at = shape.numChannels;
  for (unsigned rest = mask; rest; rest &= rest - 1)
    node.shape.roles[at++] = static_cast<uint8_t>(
        Window + shape.roles[llvm::countr_zero(rest)] - Spatial);
  node.dims = static_cast<uint8_t>(mask);
  node.amount = static_cast<int8_t>(dilation + 1);
  node.window = static_cast<uint8_t>(window);
  return !isRepeated();
}

bool StepMaker::makeTranspose() {
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

bool StepMaker::makeShuffle() {
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
  return node.implied[1] != oneSize && !isRepeated();
}

bool StepMaker::makeReorder() {
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
  if (isInverse ? depth == 0 : depth == 3)
    return false;
  node.reorders =
      static_cast<uint8_t>(isInverse ? left().reorders - (1u << place)
                                     : left().reorders + (1u << place));
  return !isRepeated();
}

bool StepMaker::makeScale() {
  const FlatShape &shape = left().shape;
  if (code > 1)
    return false;
  unsigned all = (1u << shape.rank) - 1;
  unsigned channels = (1u << shape.numChannels) - 1;
  node.dims = static_cast<uint8_t>(code == 0 ? channels : all & ~channels);
  if (node.dims == 0 || isTaken() || left().step == KernelStep::Scale)
    return false;
  take(rules.scale(shape, unsigned(node.dims)));
  return node.params != oneSize && node.params != noSize;
}

bool StepMaker::makeNorm() {
  const FlatShape &shape = left().shape;
  if (code != 0 || shape.numChannels == 0 || isTaken() ||
      left().step == KernelStep::Norm)
    return false;
  take(rules.norm(shape));
  return node.params != noSize;
}

// A learned map along one dimension, or along all spatial ones at once. A
// layer has all channels, and groups stay apart.
bool StepMaker::makeMix() {
  const FlatShape &shape = left().shape;
  unsigned dim = code / 3;
  if (dim > shape.rank)
    return false;
  unsigned mask = dim < shape.rank ? 1u << dim : getMask(shape, isSpatial);
  if (mask == 0 || (dim == shape.rank && llvm::has_single_bit(mask)))
    return false;
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

bool StepMaker::chooseMixedSizes(unsigned choice) {
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

bool StepMaker::makeUnary() {
  if (code != 0 || isRedundant(left().step, node.step) || isRepeated())
    return false;
  auto kind =
      static_cast<DagUnaryKind>(static_cast<unsigned>(node.step) -
                                static_cast<unsigned>(KernelStep::ReLU));
  take(rules.unary(left().shape, getFlopsPerElement(kind)));
  return true;
}

bool StepMaker::isReducedSet(unsigned mask) const {
  const FlatShape &shape = left().shape;
  if (mask == 0 || mask >> shape.rank)
    return false;
  for (unsigned dim = 0; dim < shape.rank; ++dim)
    if ((mask >> dim & 1) && shape.dims[dim] == oneSize)
      return false;
  return llvm::has_single_bit(mask) || mask == getMask(shape, isSpatial) ||
         mask == getMask(shape, isWindow) ||
         (node.step == KernelStep::Softmax &&
          (mask == (1u << shape.numChannels) - 1 ||
           mask == getPerGroupMask(shape)));
}

unsigned StepMaker::getPerGroupMask(const FlatShape &shape) {
  return getMask(shape, [](unsigned role) { return role != DimRole::Group; }) &
         ((1u << shape.numChannels) - 1);
}

void StepMaker::coverReduced(unsigned mask) {
  const FlatShape &shape = left().shape;
  for (unsigned dim = 0; dim < shape.rank; ++dim)
    if ((mask >> dim & 1) && shape.roles[dim] >= Window)
      node.covers |= 1u << (shape.roles[dim] & 15);
}

bool StepMaker::makeFold() {
  const FlatShape &shape = left().shape;
  if (!isReducedSet(code))
    return false;
  node.dims = static_cast<uint8_t>(code);
  // Two folds of one kind over dimensions that could go at once.
  unsigned role = shape.roles[llvm::countr_zero(code)] & ~15u;
  if (left().step == node.step && left().foldedRole == role && role != 0)
    return false;
  node.foldedRole = static_cast<uint8_t>(role);
  coverReduced(code);
  take(rules.fold(shape, unsigned(code)));
  for (unsigned dim = 0; dim < shape.rank; ++dim)
    if ((code >> dim & 1) && isSpatial(shape.roles[dim]))
      node.reorders &= ~(3u << 2 * (shape.roles[dim] - Spatial));
  return !isRepeated();
}

bool StepMaker::makeSoftmax() {
  if (!isReducedSet(code) || left().step == KernelStep::Softmax)
    return false;
  node.dims = static_cast<uint8_t>(code);
  coverReduced(code);
  take(rules.softmax(left().shape));
  return !isRepeated();
}
