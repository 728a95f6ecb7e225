//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds correspondences between the reductions of an operator and the loops of
// its lowered code, which may have split and reordered them.
//
// Reductions and loops of one run have the same number of points in all; both
// are taken as digits of one row-major position, and permutations of the loops
// are tried (docs/internals/proving-lowerings.md, "How it is decided", step 1).
//
//===----------------------------------------------------------------------===//

#include "Matching.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

using namespace kas;
using namespace kas::lowering;
using namespace mlir;

/// Orders of loops that are tried.
/// All orders of seven loops (7!).
static constexpr unsigned maxOrders = 5040;

namespace {
/// Reductions of one kind that are next to each other: their order is free.
/// `points` is the product of their extents.
struct LoopRun {
  SmallVector<unsigned> members;
  bool isMax = false;
  int64_t points = 1;
};

/// A piece of a reduction: `stride` times it is added.
/// The digit of a reduction that counts in units of `stride`; `isRead` is false
/// when no index and no guard depends on it.
struct Part {
  unsigned reduction;
  int64_t extent, stride;
  bool isRead = true;
};
} // namespace

/// Sums and maxima do not commute, so a run ends where the kind changes. Loops
/// of extent 1 do nothing.
static SmallVector<LoopRun> getBlocks(ArrayRef<Loop> loops) {
  SmallVector<LoopRun> blocks;
  for (auto [index, loop] : llvm::enumerate(loops)) {
    if (loop.extent == 1)
      continue;
    if (blocks.empty() || blocks.back().isMax != loop.isMax)
      blocks.emplace_back().isMax = loop.isMax;
    blocks.back().members.push_back(index);
    blocks.back().points *= loop.extent;
  }
  return blocks;
}

//===----------------------------------------------------------------------===//
// Parts of reductions
//===----------------------------------------------------------------------===//

/// The dimension that `expr` is a digit or a prefix of, and the unit in which
/// it counts it.
/// (d floordiv 4) mod 2 counts d in units of 4.
static std::optional<std::pair<unsigned, int64_t>> getUnit(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return std::pair(dim.getPosition(), int64_t(1));
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (expr.getKind() != AffineExprKind::Mod &&
                  expr.getKind() != AffineExprKind::FloorDiv))
    return std::nullopt;
  auto unit = getUnit(binary.getLHS());
  if (unit && expr.getKind() == AffineExprKind::FloorDiv)
    unit->second *= cast<AffineConstantExpr>(binary.getRHS()).getValue();
  return unit;
}

static void forEachExpr(Coordinates &coordinates,
                        llvm::function_ref<void(AffineExpr &)> visit) {
  llvm::for_each(coordinates.data, visit);
  for (auto &weight : coordinates.weights)
    llvm::for_each(weight, visit);
  for (Guard &guard : coordinates.guards)
    visit(guard.expr);
}

/// The strides at which expressions divide each axis.
/// The largest first, which is the order of digits.
static SmallVector<SmallVector<int64_t>> getDivisors(Coordinates &coordinates) {
  SmallVector<SmallVector<int64_t>> divisors(coordinates.axes.size());
  forEachExpr(coordinates, [&](AffineExpr &expr) {
    expr.walk([&](AffineExpr part) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(part);
      if (!binary || (part.getKind() != AffineExprKind::Mod &&
                      part.getKind() != AffineExprKind::FloorDiv))
        return;
      if (auto unit = getUnit(binary.getLHS()))
        divisors[unit->first].push_back(
            unit->second *
            cast<AffineConstantExpr>(binary.getRHS()).getValue());
    });
  });
  for (auto &strides : divisors)
    llvm::sort(strides, std::greater<>());
  return divisors;
}

/// Splits reductions where expressions divide them, and determines which parts
/// they mention.
/// Example: r : [12] of which indices have r floordiv 4 alone becomes parts of
/// 3 (stride 4) and 4 (stride 1); the second one is not read, so lowered code
/// may leave it out and multiply by 4.
static SmallVector<Part> splitReductions(OperatorOp op) {
  Coordinates coordinates = getCoordinates(op);
  MLIRContext *context = op.getContext();
  SmallVector<SmallVector<int64_t>> divisors = getDivisors(coordinates);
  SmallVector<Part> parts;
  SmallVector<AffineExpr> replacements;
  Dims dims;
  for (auto [index, axis] : llvm::enumerate(coordinates.axes)) {
    // Outputs are the same on both sides and are not split.
    if (index < coordinates.numOutputs) {
      replacements.push_back(getAffineDimExpr(dims.add(axis.extent), context));
      continue;
    }
    int64_t rest = axis.extent;
    AffineExpr sum = getAffineConstantExpr(0, context);
    auto addPart = [&](int64_t stride) {
      parts.push_back(
          {unsigned(index - coordinates.numOutputs), rest / stride, stride});
      sum = sum + getAffineDimExpr(dims.add(rest / stride), context) * stride;
      rest = stride;
    };
    // Strides that do not nest cannot be digits of one number.
    for (int64_t stride : divisors[index])
      if (stride < rest && rest % stride == 0)
        addPart(stride);
    addPart(1);
    replacements.push_back(sum);
  }
  for (Part &part : parts)
    part.isRead = false;
  forEachExpr(coordinates, [&](AffineExpr &expr) {
    AffineExpr split =
        simplifyInRanges(expr.replaceDims(replacements), dims.ranges);
    for (auto [index, part] : llvm::enumerate(parts))
      part.isRead |= split.isFunctionOfDim(coordinates.numOutputs + index);
  });
  return parts;
}

//===----------------------------------------------------------------------===//
// Matchings
//===----------------------------------------------------------------------===//

namespace {
/// Enumerates matchings for one way to split the reductions.
class Matcher {
public:
  Matcher(OperatorOp op, const Dims &operatorDims, ArrayRef<Loop> required,
          const Dims &codeDims, ArrayRef<Loop> got,
          llvm::function_ref<bool(const Matching &)> visit)
      : context(op.getContext()), numOutputs(op.getOutputs().size()),
        operatorDims(operatorDims), required(required), codeDims(codeDims),
        got(got), visit(visit) {}

  /// Matchings of these parts of the reductions.
  /// Whether `visit` accepted one.
  bool run(ArrayRef<Part> parts) {
    Matching matching;
    for (unsigned i = 0; i < numOutputs; ++i)
      matching.dims.ranges.push_back(operatorDims.ranges[i]);
    matching.operatorDims = getOutputs(operatorDims);
    for (const Loop &loop : required)
      matching.operatorDims[loop.dim] = getAffineConstantExpr(0, context);
    SmallVector<Loop> kept;
    for (const Part &part : parts) {
      const Loop &loop = required[part.reduction];
      unsigned dim = matching.dims.add(part.extent);
      AffineExpr &sum = matching.operatorDims[loop.dim];
      sum = sum + getAffineDimExpr(dim, context) * part.stride;
      if (part.isRead)
        kept.push_back({dim, part.extent, loop.isMax});
      // A sum over what nothing depends on is a factor; a maximum over it is
      // nothing.
      else if (!loop.isMax)
        matching.factor *= static_cast<double>(part.extent);
    }
    SmallVector<LoopRun> left = getBlocks(kept), right = getBlocks(got);
    bool fits = left.size() == right.size() &&
                llvm::all_of(llvm::zip(left, right), [](const auto &pair) {
                  auto &[a, b] = pair;
                  return a.isMax == b.isMax && a.points == b.points;
                });
    return fits && runOrders(matching, kept, left, right, 0);
  }

private:
  /// The outputs as they are, nothing for other dimensions.
  SmallVector<AffineExpr> getOutputs(const Dims &dims) const {
    SmallVector<AffineExpr> result(dims.ranges.size(),
                                   getAffineConstantExpr(0, context));
    for (unsigned i = 0; i < numOutputs; ++i)
      result[i] = getAffineDimExpr(i, context);
    return result;
  }

  /// All orders of the loops of the blocks from `block` on.
  bool runOrders(Matching &matching, ArrayRef<Loop> kept,
                 ArrayRef<LoopRun> left, MutableArrayRef<LoopRun> right,
                 unsigned block) {
    if (block == right.size()) {
      if (++numOrders > maxOrders)
        return false;
      matching.codeDims = getOutputs(codeDims);
      for (auto [from, to] : llvm::zip_equal(left, right))
        match(matching, kept, from, to);
      return visit(matching);
    }
    SmallVector<unsigned> &members = right[block].members;
    // next_permutation lists all orders from the sorted one on. Loops of
    // lowerings are nearly always in program order, which is the first.
    llvm::sort(members);
    do {
      if (runOrders(matching, kept, left, right, block + 1))
        return true;
    } while (std::next_permutation(members.begin(), members.end()));
    return false;
  }

  /// Loops and parts are one row-major position: in groups, as short as they
  /// can be, that have the same number of points.
  /// Example: reductions (c: 16, k: 3) and loops (6, 8). c * 3 + k is the
  /// position; the loops are position floordiv 8 and position mod 8. With loops
  /// (16, 3) there are two groups of one, and no division at all.
  void match(Matching &matching, ArrayRef<Loop> kept, const LoopRun &from,
             const LoopRun &to) {
    size_t i = 0, j = 0;
    while (i < from.members.size()) {
      SmallVector<AffineExpr> indices;
      SmallVector<int64_t> extents, loopExtents;
      SmallVector<unsigned> loops;
      int64_t points = 1, loopPoints = 1;
      do {
        // The side with fewer points takes the next one; both have equally many
        // in all.
        if (points <= loopPoints && i < from.members.size()) {
          const Loop &part = kept[from.members[i++]];
          indices.push_back(getAffineDimExpr(part.dim, context));
          extents.push_back(part.extent);
          points *= part.extent;
        } else {
          const Loop &loop = got[to.members[j++]];
          loops.push_back(loop.dim);
          loopExtents.push_back(loop.extent);
          loopPoints *= loop.extent;
        }
      } while (points != loopPoints);
      // Within a group: parts -> position -> loops, one to one by construction.
      AffineExpr position = linearize(indices, extents, context);
      for (auto [loop, value] :
           llvm::zip_equal(loops, delinearize(position, loopExtents)))
        matching.codeDims[loop] = value;
    }
  }

  MLIRContext *context;
  unsigned numOutputs;
  const Dims &operatorDims;
  ArrayRef<Loop> required;
  const Dims &codeDims;
  ArrayRef<Loop> got;
  llvm::function_ref<bool(const Matching &)> visit;
  unsigned numOrders = 0;
};
} // namespace

bool lowering::forEachMatching(
    OperatorOp op, const Dims &operatorDims, ArrayRef<Loop> required,
    const Dims &codeDims, ArrayRef<Loop> got,
    llvm::function_ref<bool(const Matching &)> visit) {
  Matcher matcher(op, operatorDims, required, codeDims, got, visit);
  // Whole reductions first: most lowerings do not split them.
  SmallVector<Part> whole;
  for (auto [index, loop] : llvm::enumerate(required))
    whole.push_back({unsigned(index), loop.extent, 1});
  if (matcher.run(whole))
    return true;
  return matcher.run(splitReductions(op));
}
