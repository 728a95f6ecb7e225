//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which primitives may follow a partial kernel: shapes, costs and what is left
// out because a shorter kernel computes the same.
//
//===----------------------------------------------------------------------===//

#include "KernelStateImpl.h"
#include "llvm/ADT/bit.h"

using namespace kas;

namespace {

bool isActivation(KernelStep step) {
  return step >= KernelStep::ReLU && step <= KernelStep::TanH;
}
bool isMerge(KernelStep step) {
  return step >= KernelStep::Add && step <= KernelStep::Max;
}

/// `after` of `before` is the identity, or has a shorter form, or is one that
/// Canvas leaves out (facts: an activation of the input or of an activation).
bool isRedundant(KernelStep before, KernelStep after) {
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

/// Makes one step of a kernel.
class StepMaker {
public:
  StepMaker(KernelSpace &space, const KernelStateData &data, KernelStep step,
            uint32_t code)
      : space(space), sizes(space.sizes), data(data),
        limits(space.problem->limits), code(code & 0xffff) {
    node.step = step;
    node.left = static_cast<int8_t>(code >> 20);
    bool isBinary = isMerge(step) || step == KernelStep::MatMul;
    node.right = isBinary ? static_cast<int8_t>(code >> 16 & 15) : -1;
  }

  std::optional<PendingStep> make() {
    if (!makeByKind() || !finish())
      return std::nullopt;
    return pending;
  }

private:
  const FlatNode &left() const { return data.nodes[node.left]; }
  const FlatNode &right() const { return data.nodes[node.right]; }

  bool makeByKind() {
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

  /// What holds for every step: the result fits, and so do its sizes.
  bool finish() {
    if (node.shape.rank == 0 || node.shape.rank > limits.rank)
      return false;
    node.elements = oneSize;
    for (unsigned dim = 0; dim < node.shape.rank; ++dim)
      node.elements = sizes.multiply(node.elements, node.shape.dims[dim]);
    if (node.elements == noSize)
      return false;
    if (node.flopsFactor && node.flops == noSize)
      return false;
    if (pending.variable >= 0)
      return canSubstitute(space, data.getNodes(), &node, pending.variable,
                           pending.value);
    return isLegalShape(space, node.shape) &&
           llvm::all_of(node.implied,
                        [&](SizeId size) {
                          // As the budget solver takes them.
                          return sizes.isLegal(size) &&
                                 sizes.getDegree(size) <= 1;
                        }) &&
           isSmallEnough(space, node.elements);
  }

  /// Only one like it may read the operand.
  bool isTaken() const {
    if (limits.repeats)
      return false;
    return llvm::any_of(data.getNodes(), [&](const FlatNode &other) {
      return other.step == node.step && other.left == node.left &&
             (node.step != KernelStep::Scale || other.dims == node.dims);
    });
  }
  bool isRepeated() const {
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

  bool makeFC() {
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
      unsigned variable = llvm::countr_one(data.variables);
      if (variable >= space.problem->limits.variables)
        return false;
      unsigned first =
          space.problem->symbols.size() - space.problem->rules.variables.size();
      node.size = sizes.intern(Size::symbol(first + variable));
    } else {
      node.size = space.outputChannels;
    }
    unsigned groups = shape.roles[0] == DimRole::Group && !ignoresGroups;
    SizeId perGroup = getProduct(shape, groups, shape.numChannels);
    SizeId spatial = getProduct(shape, shape.numChannels, shape.rank);
    node.amount = static_cast<int8_t>(groups);
    node.params = sizes.multiply(perGroup, node.size);
    setFlops(2, sizes.multiply(node.params, spatial));
    node.implied[0] =
        groups ? sizes.divide(node.size, shape.dims[0]) : node.size;
    FlatShape result;
    result.append(node.size, DimRole::Channel);
    for (unsigned dim = shape.numChannels; dim < shape.rank; ++dim)
      result.append(shape.dims[dim], shape.roles[dim]);
    result.numChannels = 1;
    node.shape = result;
    return node.params != noSize;
  }

  bool makeGroup() {
    const FlatShape &shape = left().shape;
    if (code >= space.divisors.size() || shape.numChannels == 0 ||
        shape.roles[0] != DimRole::Channel || shape.hasRole(DimRole::Group) ||
        shape.rank == KernelProblem::maxRank)
      return false;
    node.size = space.divisors[code];
    SizeId rest = sizes.divide(shape.dims[0], node.size);
    FlatShape result;
    result.append(node.size, DimRole::Group);
    result.append(rest, DimRole::Channel);
    for (unsigned dim = 1; dim < shape.rank; ++dim)
      result.append(shape.dims[dim], shape.roles[dim]);
    result.numChannels = shape.numChannels + 1;
    node.shape = result;
    return rest != oneSize && !isRepeated();
  }

  bool makeGroupAll() {
    const FlatShape &shape = left().shape;
    if (code != 0 || shape.numChannels == 0 || shape.hasRole(DimRole::Group))
      return false;
    FlatShape result;
    result.append(getProduct(shape, 0, shape.numChannels), DimRole::Group);
    result.append(oneSize, DimRole::Channel);
    for (unsigned dim = shape.numChannels; dim < shape.rank; ++dim) {
      if (result.rank == KernelProblem::maxRank)
        return false;
      result.append(shape.dims[dim], shape.roles[dim]);
    }
    result.numChannels = 2;
    node.shape = result;
    return result.dims[0] != oneSize && !isRepeated();
  }

  bool makeShift() {
    const FlatShape &shape = left().shape;
    unsigned dim = code / (2 * limits.shift), rest = code % (2 * limits.shift);
    if (dim >= shape.rank || !isSpatial(shape.roles[dim]))
      return false;
    unsigned spatial = shape.roles[dim] - Spatial;
    int amount = static_cast<int>(rest / 2) + 1;
    if (amount >= space.extents[spatial])
      return false;
    // Shifts in a row stand in the order of their dimensions, one for each.
    if (left().step == KernelStep::Shift && left().dims >= 1u << dim)
      return false;
    node.dims = static_cast<uint8_t>(1u << dim);
    node.amount = static_cast<int8_t>(rest % 2 ? -amount : amount);
    node.covers = static_cast<uint8_t>(1u << spatial);
    return !isRepeated();
  }

  bool makeUnfold() {
    const FlatShape &shape = left().shape;
    unsigned dilation = code % limits.dilation;
    unsigned window = code / limits.dilation % space.maxWindows;
    unsigned mask = code / limits.dilation / space.maxWindows;
    if (mask == 0 || mask >> shape.rank || left().step == KernelStep::Unfold)
      return false;
    FlatShape result;
    for (unsigned dim = 0; dim < shape.numChannels; ++dim)
      result.append(shape.dims[dim], shape.roles[dim]);
    for (unsigned dim = 0; dim < shape.rank; ++dim) {
      if (!(mask >> dim & 1))
        continue;
      if (!isSpatial(shape.roles[dim]))
        return false;
      unsigned spatial = shape.roles[dim] - Spatial;
      if (window >= space.windows[spatial].size() ||
          shape.hasRole(Window + spatial) ||
          result.rank == KernelProblem::maxRank)
        return false;
      node.covers |= 1u << spatial;
      result.append(space.windows[spatial][window],
                    static_cast<uint8_t>(Window + spatial));
    }
    result.numChannels = result.rank;
    for (unsigned dim = shape.numChannels; dim < shape.rank; ++dim) {
      if (result.rank == KernelProblem::maxRank)
        return false;
      result.append(shape.dims[dim], shape.roles[dim]);
    }
    node.shape = result;
    node.dims = static_cast<uint8_t>(mask);
    node.amount = static_cast<int8_t>(dilation + 1);
    node.window = static_cast<uint8_t>(window);
    return !isRepeated();
  }

  bool makeTranspose() {
    FlatShape &shape = node.shape;
    unsigned first = shape.numChannels;
    if (code != 0 || shape.rank != first + 2 ||
        !isSpatial(shape.roles[first]) || !isSpatial(shape.roles[first + 1]) ||
        left().step == KernelStep::Transpose)
      return false;
    node.dims = static_cast<uint8_t>(3u << first);
    std::swap(shape.dims[first], shape.dims[first + 1]);
    std::swap(shape.roles[first], shape.roles[first + 1]);
    return !isRepeated();
  }

  bool makeShuffle() {
    const FlatShape &shape = left().shape;
    if (space.divisors.empty())
      return false;
    unsigned dim = code / space.divisors.size();
    if (dim >= shape.numChannels || shape.roles[dim] != DimRole::Channel ||
        left().step == KernelStep::Shuffle)
      return false;
    node.size = space.divisors[code % space.divisors.size()];
    node.dims = static_cast<uint8_t>(1u << dim);
    node.implied = {node.size, sizes.divide(shape.dims[dim], node.size)};
    return node.implied[1] != oneSize && !isRepeated();
  }

  bool makeReorder() {
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

  bool makeScale() {
    const FlatShape &shape = left().shape;
    if (code > 1)
      return false;
    unsigned all = (1u << shape.rank) - 1;
    unsigned channels = (1u << shape.numChannels) - 1;
    node.dims = static_cast<uint8_t>(code == 0 ? channels : all & ~channels);
    if (node.dims == 0 || isTaken() || left().step == KernelStep::Scale)
      return false;
    node.params = code == 0 ? getProduct(shape, 0, shape.numChannels)
                            : getProduct(shape, shape.numChannels, shape.rank);
    setFlops(1, getElements(shape));
    return node.params != oneSize && node.params != noSize;
  }

  bool makeNorm() {
    const FlatShape &shape = left().shape;
    if (code != 0 || shape.numChannels == 0 || isTaken() ||
        left().step == KernelStep::Norm)
      return false;
    // Factor, offset, mean, variance.
    node.params = sizes.multiply(sizes.intern(*Size::constant(4)),
                                 getProduct(shape, 0, shape.numChannels));
    setFlops(2, getElements(shape));
    return node.params != noSize;
  }

  bool makeUnary() {
    if (code != 0 || isRedundant(left().step, node.step) || isRepeated())
      return false;
    unsigned factor = node.step == KernelStep::GELU      ? 4
                      : node.step == KernelStep::Sigmoid ? 3
                      : node.step == KernelStep::TanH    ? 5
                                                         : 1;
    setFlops(factor, getElements(left().shape));
    return true;
  }

  /// Dimensions that are reduced together: a single one, all windows, all
  /// spatial ones; for a softmax all channels, too.
  bool isReducedSet(unsigned mask) const {
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
  /// All channel dimensions but groups.
  static unsigned getPerGroupMask(const FlatShape &shape) {
    return getMask(shape,
                   [](unsigned role) { return role != DimRole::Group; }) &
           ((1u << shape.numChannels) - 1);
  }
  /// What is reduced reads neighbours.
  void coverReduced(unsigned mask) {
    const FlatShape &shape = left().shape;
    for (unsigned dim = 0; dim < shape.rank; ++dim)
      if ((mask >> dim & 1) && shape.roles[dim] >= Window)
        node.covers |= 1u << (shape.roles[dim] & 15);
  }

  bool makeFold() {
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
    FlatShape result;
    for (unsigned dim = 0; dim < shape.rank; ++dim) {
      if (!(code >> dim & 1)) {
        result.append(shape.dims[dim], shape.roles[dim]);
        result.numChannels += dim < shape.numChannels;
      } else if (isSpatial(shape.roles[dim])) {
        node.reorders &= ~(3u << 2 * (shape.roles[dim] - Spatial));
      }
    }
    node.shape = result;
    setFlops(1, getElements(shape));
    return !isRepeated();
  }

  bool makeSoftmax() {
    if (!isReducedSet(code) || left().step == KernelStep::Softmax)
      return false;
    node.dims = static_cast<uint8_t>(code);
    coverReduced(code);
    setFlops(3, getElements(left().shape));
    return !isRepeated();
  }

  //===--------------------------------------------------------------------===//
  // Two operands
  //===--------------------------------------------------------------------===//

  /// Dimensions that both have wait for the same inverses.
  bool haveSameReorders() const {
    for (unsigned dim = 0; dim < left().shape.rank; ++dim) {
      unsigned role = left().shape.roles[dim];
      if (!isSpatial(role) || !right().shape.hasRole(role))
        continue;
      unsigned place = 2 * (role - Spatial);
      if ((left().reorders >> place & 3) != (right().reorders >> place & 3))
        return false;
    }
    return true;
  }

  /// A merge of the same two, possibly swapped, was made.
  bool isMerged() const {
    bool commutes = node.step != KernelStep::Sub;
    return llvm::any_of(data.getNodes(), [&](const FlatNode &other) {
      return other.step == node.step &&
             ((other.left == node.left && other.right == node.right) ||
              (commutes && other.left == node.right &&
               other.right == node.left && other.isAligned));
    });
  }

  bool makeMerge() {
    const FlatShape &l = left().shape, &r = right().shape;
    bool commutes = node.step != KernelStep::Sub;
    if (node.left == node.right || !haveSameReorders() || isMerged())
      return false;
    bool isSame = l.hasSameDims(r);
    if (isSame && commutes && node.left > node.right)
      return false;
    while (node.suffix < std::min(l.rank, r.rank) &&
           l.dims[l.rank - 1 - node.suffix] == r.dims[r.rank - 1 - node.suffix])
      ++node.suffix;
    while (node.prefix + node.suffix < std::min(l.rank, r.rank) &&
           l.dims[node.prefix] == r.dims[node.prefix])
      ++node.prefix;
    SizeId leftBlock = getProduct(l, node.prefix, l.rank - node.suffix);
    SizeId rightBlock = getProduct(r, node.prefix, r.rank - node.suffix);
    SizeId ratio = sizes.divide(rightBlock, leftBlock);
    node.shape = r;
    node.reorders = right().reorders;
    node.prefixSize = getProduct(l, 0, node.prefix);
    node.implied = {leftBlock, ratio};
    node.isAligned = isSame;
    setFlops(1, getElements(r));
    return ratio != noSize && chooseFactor(ratio);
  }

  /// The variables in the denominator of `size`.
  unsigned getVariablesBelow(SizeId size) const {
    unsigned mask = 0, first = space.problem->symbols.size() -
                               space.problem->rules.variables.size();
    if (sizes.getVariables(size) == 0)
      return 0;
    for (unsigned number = 0; number < space.problem->rules.variables.size();
         ++number)
      if (sizes[size].getExponent(first + number) < 0)
        mask |= 1u << number;
    return mask;
  }

  /// A variable below takes the factor number `code` of what is above.
  bool chooseFactor(SizeId ratio) {
    unsigned below = getVariablesBelow(ratio);
    if (below == 0)
      return code == 0 && sizes.isLegal(ratio);
    if (!llvm::has_single_bit(below))
      return false;
    llvm::ArrayRef<SizeId> factors = sizes.getFactors(ratio);
    if (code >= factors.size())
      return false;
    pending.variable = llvm::countr_zero(below);
    pending.value = factors[code];
    return true;
  }

  bool makeMatMul() {
    struct Variant {
      bool left, right, scaled;
    };
    static constexpr Variant variants[] = {{true, false, true},
                                           {true, false, false},
                                           {false, false, false},
                                           {false, true, true},
                                           {false, true, false}};
    if (code >= std::size(variants) || left().reorders || right().reorders)
      return false;
    const FlatShape &l = left().shape, &r = right().shape;
    bool hasBatch = l.hasRole(DimRole::Group) && r.hasRole(DimRole::Group) &&
                    l.dims[0] == r.dims[0];
    node.amount = hasBatch;
    node.transposesLeft = variants[code].left;
    node.transposesRight = variants[code].right;
    node.isScaled = variants[code].scaled;
    using Range = std::pair<unsigned, unsigned>;
    Range rows(hasBatch, l.numChannels), inner(l.numChannels, l.rank);
    Range other(hasBatch, r.numChannels), columns(r.numChannels, r.rank);
    if (node.transposesLeft)
      std::swap(rows, inner);
    if (node.transposesRight)
      std::swap(other, columns);
    SizeId contracted = getProduct(l, inner.first, inner.second);
    SizeId contractedToo = getProduct(r, other.first, other.second);
    if (inner.first == inner.second || !equalize(contracted, contractedToo))
      return false;
    FlatShape result;
    if (hasBatch)
      result.append(l.dims[0], DimRole::Group);
    auto append = [&](const FlatShape &shape, Range range, bool keepsRoles) {
      for (unsigned dim = range.first; dim < range.second; ++dim) {
        if (result.rank == KernelProblem::maxRank)
          return false;
        result.append(shape.dims[dim], keepsRoles
                                           ? shape.roles[dim]
                                           : static_cast<uint8_t>(Channel));
      }
      return true;
    };
    if (!append(l, rows, false))
      return false;
    result.numChannels = result.rank;
    if (!append(r, columns, !node.transposesRight))
      return false;
    for (unsigned dim = 0; dim < l.rank; ++dim)
      if (isSpatial(l.roles[dim]))
        node.covers |= 1u << (l.roles[dim] - Spatial);
    node.shape = result;
    node.reorders = 0;
    setFlops(2, sizes.multiply(getElements(result), contracted));
    return !isRepeated();
  }

  /// A variable makes both the same where they are not.
  bool equalize(SizeId a, SizeId b) {
    SizeId ratio = sizes.divide(b, a);
    if (ratio == oneSize)
      return true;
    if (ratio == noSize)
      return false;
    unsigned below = getVariablesBelow(ratio);
    unsigned above = sizes.getVariables(ratio) & ~below;
    unsigned first =
        space.problem->symbols.size() - space.problem->rules.variables.size();
    auto solve = [&](unsigned mask, SizeId fraction) {
      unsigned variable = llvm::countr_zero(mask);
      if (!llvm::has_single_bit(mask) || fraction == noSize ||
          sizes[fraction].getExponent(first + variable) != -1)
        return false;
      pending.variable = static_cast<int>(variable);
      pending.value = sizes.multiply(
          fraction, sizes.intern(Size::symbol(first + variable)));
      return sizes.isLegal(pending.value);
    };
    return below ? solve(below, ratio) : solve(above, sizes.divide(a, b));
  }

  KernelSpace &space;
  KernelSizes &sizes;
  const KernelStateData &data;
  const KernelLimits &limits;
  uint32_t code;
  PendingStep pending;
  FlatNode &node = pending.node;
};

} // namespace

std::optional<PendingStep> kas::makeStep(KernelSpace &space,
                                         const KernelStateData &data,
                                         KernelStep step, uint32_t code) {
  return StepMaker(space, data, step, code).make();
}

/// How many codes there are for the last operand of `step`, at most.
static unsigned getNumParameters(const KernelSpace &space, KernelStep step,
                                 const FlatNode &left) {
  using enum KernelStep;
  const KernelLimits &limits = space.problem->limits;
  unsigned rank = left.shape.rank;
  switch (step) {
  case FC:
    return 4;
  case Scale:
    return 2;
  case Group:
    return space.divisors.size();
  case Shift:
    return rank * 2 * limits.shift;
  case Unfold:
    return (1u << rank) * space.maxWindows * limits.dilation;
  case Shuffle:
    return left.shape.numChannels * space.divisors.size();
  case Reorder:
  case InverseReorder:
    return rank;
  case FoldSum:
  case FoldMean:
  case FoldMax:
  case Softmax:
    return 1u << rank;
  case MatMul:
    return 5;
  default:
    return 1;
  }
}

/// The same where it depends on both operands.
static unsigned getNumMatches(KernelSpace &space, const KernelStateData &data,
                              const FlatNode &left, const FlatNode &right) {
  // The factors of a ratio: no more than those of both sizes together.
  bool mayChoose = llvm::any_of(
      llvm::ArrayRef(left.shape.dims).take_front(left.shape.rank),
      [&](SizeId size) { return space.sizes.getVariables(size) != 0; });
  if (!mayChoose)
    return 1;
  SizeId ratio = space.sizes.divide(right.elements, left.elements);
  return ratio == noSize
             ? 1
             : std::max<size_t>(space.sizes.getFactors(ratio).size(), 1);
}

/// The result has the shape of its (right) operand.
static bool keepsShape(KernelStep step) {
  using enum KernelStep;
  return step == Shift || step == Shuffle || step == Reorder ||
         step == InverseReorder || step == Softmax || step == Norm ||
         isMerge(step) || (step >= Scale && step <= Sqr);
}

/// Reads neighbours, for some operands.
static bool mayCover(KernelStep step) {
  using enum KernelStep;
  return step == Shift || step == Unfold || step == Softmax || step == MatMul ||
         (step >= FoldSum && step <= FoldMax);
}

/// Enough steps are left after one of this kind for all that a kernel must
/// have: a part of `isFeasible` that does not need the step.
static bool canAfford(KernelSpace &space, const KernelStateData &data,
                      unsigned numLeaves, KernelStep step, unsigned left,
                      std::optional<unsigned> right) {
  const KernelLimits &limits = space.problem->limits;
  unsigned leaves = numLeaves + 1;
  leaves -= data.nodes[left].users == 0;
  if (right && *right != left)
    leaves -= data.nodes[*right].users == 0;
  unsigned needed = leaves - 1;
  unsigned weights = data.numWeights + (step == KernelStep::FC);
  needed += weights < limits.minWeights ? limits.minWeights - weights : 0;
  needed += (space.toCover & ~data.covered) != 0 && !mayCover(step);
  needed += data.hasShuffle && !data.hasGroup && step != KernelStep::Group &&
            step != KernelStep::GroupAll;
  if (leaves > limits.width || needed > data.getNumLeft() - 1)
    return false;
  return data.getNumLeft() > 1 || !keepsShape(step) ||
         matchOutput(space, data.nodes[right.value_or(left)].shape);
}

/// How many codes there are for these operands, at most.
static unsigned getNumCodes(KernelSpace &space, const KernelStateData &data,
                            unsigned numLeaves, KernelStep step, unsigned left,
                            std::optional<unsigned> right) {
  if (!canAfford(space, data, numLeaves, step, left, right))
    return 0;
  return isMerge(step)
             ? getNumMatches(space, data, data.nodes[left], data.nodes[*right])
             : getNumParameters(space, step, data.nodes[left]);
}

static bool isPossible(KernelSpace &space, const KernelStateData &data,
                       KernelStep step, uint32_t code) {
  std::optional<PendingStep> pending = makeStep(space, data, step, code);
  return pending && isFeasible(space, data, *pending);
}

static bool isBinary(KernelStep step) {
  return isMerge(step) || step == KernelStep::MatMul;
}

void kas::forEachMove(KernelSpace &space, const KernelStateData &data,
                      unsigned kind, uint32_t first,
                      llvm::function_ref<bool(uint32_t)> found) {
  auto step = static_cast<KernelStep>(kind);
  if (!space.problem->limits.steps[kind] || data.getNumLeft() == 0)
    return;
  unsigned rights = isBinary(step) ? data.numNodes : 1;
  unsigned numLeaves = data.getNumLeaves();
  for (unsigned left = first >> 20; left < data.numNodes; ++left)
    for (unsigned right = left == first >> 20 ? first >> 16 & 15 : 0;
         right < rights; ++right) {
      uint32_t base = left << 20 | right << 16;
      unsigned numCodes =
          getNumCodes(space, data, numLeaves, step, left,
                      isBinary(step) ? std::optional(right) : std::nullopt);
      for (uint32_t code = std::max(base, first); code < base + numCodes;
           ++code)
        if (isPossible(space, data, step, code) && found(code))
          return;
    }
}

std::optional<uint32_t> kas::drawStep(KernelSpace &space,
                                      const KernelStateData &data,
                                      KernelStep step, Random &random) {
  // Operands that can be afforded, with room for the most codes of any.
  struct Operands {
    uint32_t base;
    unsigned numCodes;
  };
  llvm::SmallVector<Operands, 64> all;
  unsigned most = 0, numLeaves = data.getNumLeaves();
  for (unsigned left = 0; left < data.numNodes; ++left)
    for (unsigned right = 0; right < (isBinary(step) ? data.numNodes : 1u);
         ++right) {
      unsigned numCodes =
          getNumCodes(space, data, numLeaves, step, left,
                      isBinary(step) ? std::optional(right) : std::nullopt);
      if (numCodes == 0)
        continue;
      all.push_back({left << 20 | right << 16, numCodes});
      most = std::max(most, numCodes);
    }
  if (all.empty())
    return std::nullopt;
  // Draw and reject; what is not found so is listed.
  for (unsigned attempt = 0; attempt < 24; ++attempt) {
    const Operands &operands = all[random.below(all.size())];
    auto parameter = static_cast<unsigned>(random.below(most));
    if (parameter < operands.numCodes &&
        isPossible(space, data, step, operands.base + parameter))
      return operands.base + parameter;
  }
  llvm::SmallVector<uint32_t, 64> codes;
  forEachMove(space, data, static_cast<unsigned>(step), 0, [&](uint32_t code) {
    codes.push_back(code);
    return false;
  });
  if (codes.empty())
    return std::nullopt;
  return codes[random.below(codes.size())];
}
