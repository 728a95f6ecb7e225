//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of sums over windows (convolutions, pooling) by their input, phase
// by phase of the stride, so that each phase is a plain sum.
// The input of a convolution is read at `x[s*i + d*k - p]`, i the position of
// the window, k the offset in it. For the element x[e] the pairs (i, k) with
// s*i + d*k = e + p contribute. For a fixed remainder of e by s (a phase) these
// are again a window with a constant stride, over the result's gradient:
//    gradient_x[e] = sum over k' of gradient[i(e) - step * k'] * w[k(k')]
// so each phase is a convolution without a stride, and every phase writes its
// own elements: no zeros between elements, no scatter
// (docs/internals/training.md).
//
//===----------------------------------------------------------------------===//

#include "WindowGradient.h"
#include "StructuredGradient.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kas;
using namespace kas::networks;

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {
/// A loop times a positive constant.
struct Term {
  unsigned loop;
  int64_t factor;
};
} // namespace

/// `factor * loop`.
static std::optional<Term> getTerm(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Term{dim.getPosition(), 1};
  auto product = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!product || product.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto dim = dyn_cast<AffineDimExpr>(product.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
  if (!dim || !factor || factor.getValue() < 1)
    return std::nullopt;
  return Term{dim.getPosition(), factor.getValue()};
}

/// The number of the window whose position or offset is the loop, or -1.
int WindowGradient::find(unsigned loop, unsigned Window::*member) const {
  for (auto [number, window] : llvm::enumerate(windows))
    if (window.*member == loop)
      return number;
  return -1;
}

/// The number of the window whose whole index, s*i + d*k, is `expr`; or -1.
int WindowGradient::findIndex(AffineExpr expr) const {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [number, window] : llvm::enumerate(windows))
    if (simplifyAffineExpr(expr - map.getResult(window.dim), map.getNumDims(),
                           0) == 0)
      return number;
  return -1;
}

/// Fills `windows`: the dimensions of the operand that are s*i + d*k. All
/// others must be single loops.
bool WindowGradient::matchWindows() {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  AffineMap result = op.getIndexingMapsArray().back();
  if (!result.isProjectedPermutation())
    return false;
  // Loops of windows, each of one alone, and loops that are a dimension alone.
  llvm::SmallDenseSet<unsigned> used, bare;
  for (AffineExpr expr : map.getResults())
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      if (!bare.insert(loop.getPosition()).second)
        return false;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (isa<AffineDimExpr>(expr))
      continue;
    // Exactly two terms; MLIR keeps constants elsewhere, so there is none.
    auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!sum || sum.getKind() != AffineExprKind::Add)
      return false;
    std::optional<Term> place = getTerm(sum.getLHS()),
                        offset = getTerm(sum.getRHS());
    if (!place || !offset)
      return false;
    if (!result.isFunctionOfDim(place->loop))
      // The position of the window indexes the result, the offset is summed
      // over.
      std::swap(place, offset);
    if (!result.isFunctionOfDim(place->loop) ||
        result.isFunctionOfDim(offset->loop) || bare.contains(place->loop) ||
        !used.insert(place->loop).second || !used.insert(offset->loop).second)
      return false;
    // All offsets reach an element with its own dimension for them.
    bool isKept = bare.contains(offset->loop);
    if (isKept && (place->factor != 1 || offset->factor != 1))
      return false;
    windows.push_back({unsigned(dim), place->loop, offset->loop, place->factor,
                       offset->factor, /*padding=*/0});
  }
  return !windows.empty();
}

/// Other inputs may have offsets and places, each as a dimension of its own,
/// and the index of a window itself.
/// Everything else that depends on a window's loops has no form as a sum over
/// phases.
bool WindowGradient::matchInputs() {
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (input == &operand)
      continue;
    for (AffineExpr expr : op.getMatchingIndexingMap(input).getResults())
      if (!isa<AffineDimExpr>(expr) && findIndex(expr) < 0 &&
          llvm::any_of(windows, [&](const Window &window) {
            return expr.isFunctionOfDim(window.offset) ||
                   expr.isFunctionOfDim(window.place);
          }))
        return false;
  }
  return true;
}

/// Elements of padding need no gradient.
/// The target becomes the tensor before the padding; the windows keep how much
/// was padded in front.
void WindowGradient::takePadding() {
  auto pad = target.getDefiningOp<tensor::PadOp>();
  Value value = pad ? pad.getConstantPaddingValue() : nullptr;
  if (!value || !pad.getSourceType().hasStaticShape())
    return;
  std::optional<SmallVector<int64_t>> low =
      getConstantIntValues(pad.getMixedLowPad());
  if (!low)
    return;
  // Dimensions without windows must not be padded: nothing would cut their
  // gradient.
  for (int64_t dim = 0; dim < pad.getSourceType().getRank(); ++dim) {
    bool isWindow = llvm::any_of(
        windows, [&](const Window &window) { return window.dim == dim; });
    if (!isWindow && pad.getSourceType().getDimSize(dim) !=
                         pad.getResultType().getDimSize(dim))
      return;
  }
  for (Window &window : windows)
    window.padding = (*low)[window.dim];
  target = pad.getSource();
}

/// Phases need numbers, so shapes have to be static.
std::optional<WindowGradient> WindowGradient::match(linalg::LinalgOp op,
                                                    OpOperand &operand) {
  WindowGradient windows(op, operand);
  bool isStatic = llvm::all_of(op->getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() > 0;
  });
  if (!isStatic || !windows.matchWindows() || !windows.matchInputs())
    return std::nullopt;
  windows.target = operand.get();
  windows.takePadding();
  return windows;
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

/// The elements e = first + stride * j, j < count. Offsets that meet them are
/// firstOffset, firstOffset + offsetStep, ..., numOffsets of them, perhaps
/// none.
WindowGradient::Phase WindowGradient::getPhase(const Window &window,
                                               int64_t first) const {
  int64_t size = getType(target).getDimSize(window.dim);
  int64_t numOffsets = op.getStaticLoopRanges()[window.offset];
  Phase phase{};
  phase.first = first;
  phase.count = llvm::divideCeilSigned(size - first, window.stride);
  // d * k mod s repeats after s / gcd(s, d) offsets.
  phase.offsetStep = window.stride / std::gcd(window.stride, window.dilation);
  // The position moves back by so much from one of these offsets to the next.
  phase.step = window.dilation * phase.offsetStep / window.stride;
  auto isMet = [&](int64_t offset) {
    return (first + window.padding - window.dilation * offset) %
               window.stride ==
           0;
  };
  int64_t bound = std::min(phase.offsetStep, numOffsets);
  while (phase.firstOffset < bound && !isMet(phase.firstOffset))
    ++phase.firstOffset;
  if (phase.firstOffset == bound)
    return phase;
  phase.numOffsets =
      llvm::divideCeilSigned(numOffsets - phase.firstOffset, phase.offsetStep);
  // Exact: `isMet` holds for the first offset.
  int64_t place =
      (first + window.padding - window.dilation * phase.firstOffset) /
      window.stride;
  // Of the last offset, which is the first in memory.
  phase.start = place - phase.step * (phase.numOffsets - 1);
  return phase;
}

/// The dimensions of another input: those that the gradient has, then those
/// that it sums over. In any other order, weights of many channels would be
/// read with steps of pages.
SmallVector<int64_t> WindowGradient::getOrder(AffineMap map) const {
  AffineMap elements = op.getMatchingIndexingMap(&operand);
  SmallVector<int64_t> order, sums;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    bool isKept = isa<AffineDimExpr>(expr) &&
                  llvm::is_contained(elements.getResults(), expr);
    (isKept ? order : sums).push_back(dim);
  }
  llvm::append_range(order, sums);
  return order;
}

/// A tensor of `shape` whose elements are those of `tensor` at `indices`.
Value WindowGradient::copy(OpBuilder &builder, Value tensor,
                           ArrayRef<int64_t> shape,
                           ArrayRef<AffineExpr> indices) const {
  RankedTensorType type = getType(tensor);
  SmallVector<utils::IteratorType> parallel(type.getRank(),
                                            utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, op.getLoc(), shape,
                                        type.getElementType());
  auto generic = linalg::GenericOp::create(
      builder, op.getLoc(), type.clone(shape), tensor, empty,
      ArrayRef{AffineMap::get(type.getRank(), 0, indices, builder.getContext()),
               builder.getMultiDimIdentityMap(type.getRank())},
      parallel, [](OpBuilder &builder, Location loc, ValueRange v) {
        linalg::YieldOp::create(builder, loc, v[0]);
      });
  return generic.getResult(0);
}

/// Another input at the offsets of the phases, the last one first, so that what
/// is multiplied with them is read in increasing order. `map` becomes that of
/// the result.
/// For example the weights of a convolution with stride 2: of 3 offsets one
/// phase has the two even ones, turned around.
Value WindowGradient::cutOffsets(OpBuilder &builder, Value input,
                                 AffineMap &map, ArrayRef<Phase> phases) const {
  RankedTensorType type = getType(input);
  SmallVector<AffineExpr> indices;
  SmallVector<int64_t> shape(type.getShape());
  bool isChanged = false;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    indices.push_back(builder.getAffineDimExpr(dim));
    auto loop = dyn_cast<AffineDimExpr>(expr);
    int number = loop ? find(loop.getPosition(), &Window::offset) : -1;
    // A size of 1 is read by every offset alike.
    if (number < 0 || shape[dim] == 1)
      continue;
    const Phase &phase = phases[number];
    shape[dim] = phase.numOffsets;
    indices.back() = phase.firstOffset +
                     phase.offsetStep * (phase.numOffsets - 1 - indices.back());
    isChanged = true;
  }
  if (!isChanged)
    return input;
  SmallVector<int64_t> order = getOrder(map);
  // Dimension `order[i]` of the input is dimension i of the copy.
  SmallVector<AffineExpr> places(order.size());
  for (auto [place, dim] : llvm::enumerate(order))
    places[dim] = builder.getAffineDimExpr(place);
  for (AffineExpr &index : indices)
    index = index.replaceDims(places);
  shape = applyPermutation(shape, order);
  map = AffineMap::get(map.getNumDims(), 0,
                       applyPermutation(map.getResults(), order),
                       builder.getContext());
  return copy(builder, input, shape, indices);
}

/// What `map` indexes, at the places of the phases and at the elements that
/// windows read: zeros where there are none. Padding with zeros stands for
/// positions before the first and after the last one.
Value WindowGradient::cutPositions(OpBuilder &builder, Value tensor,
                                   AffineMap map,
                                   ArrayRef<Phase> phases) const {
  Location loc = op.getLoc();
  RankedTensorType type = getType(tensor);
  SmallVector<OpFoldResult> starts, sizes, steps, low, high;
  SmallVector<int64_t> inside, padded;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    int place = loop ? find(loop.getPosition(), &Window::place) : -1;
    int index = loop ? -1 : findIndex(expr);
    int64_t size = type.getDimSize(dim), start = 0, count = size, step = 1;
    if (place >= 0) {
      const Phase &phase = phases[place];
      // Positions from that of the last offset at the first element on.
      start = phase.start;
      count = phase.count + phase.step * (phase.numOffsets - 1);
    } else if (index >= 0) {
      // Other inputs may be read at the element itself: those of the phase.
      start = phases[index].first + windows[index].padding;
      count = phases[index].count;
      step = windows[index].stride;
    }
    // The first and last of those that are there.
    int64_t before = std::clamp<int64_t>(-start, 0, count);
    int64_t last = llvm::divideCeilSigned(size - start, step);
    last = std::clamp<int64_t>(last, before, count);
    // Nothing may be inside: then the slice is empty and starts anywhere valid.
    starts.push_back(builder.getIndexAttr(before < last ? start + step * before
                                                        : int64_t(0)));
    steps.push_back(builder.getIndexAttr(step));
    inside.push_back(last - before);
    padded.push_back(count);
    sizes.push_back(builder.getIndexAttr(inside.back()));
    low.push_back(builder.getIndexAttr(before));
    high.push_back(builder.getIndexAttr(count - last));
  }
  Value cut = tensor;
  // No slice and no pad where nothing changes.
  if (ArrayRef(inside) != type.getShape())
    cut = tensor::ExtractSliceOp::create(builder, loc, type.clone(inside),
                                         tensor, starts, sizes, steps);
  if (inside == padded)
    return cut;
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(builder, loc, type.clone(padded), cut, low, high,
                               zero);
}

/// The tensor with its last offset first where the offsets are dimensions of
/// the operand.
/// The sum has these offsets in decreasing order, as `cutOffsets` has turned
/// them.
Value WindowGradient::turnKept(OpBuilder &builder, Value tensor) const {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  RankedTensorType type = getType(tensor);
  SmallVector<AffineExpr> indices;
  bool isChanged = false;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    indices.push_back(builder.getAffineDimExpr(dim));
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || find(loop.getPosition(), &Window::offset) < 0)
      continue;
    indices.back() = type.getDimSize(dim) - 1 - indices.back();
    isChanged = true;
  }
  return isChanged ? copy(builder, tensor, type.getShape(), indices) : tensor;
}

/// The sum of one combination of phases, one phase for each window.
Value WindowGradient::emitPhases(OpBuilder &builder, Value gradient,
                                 ArrayRef<Phase> phases,
                                 MakeSumFn makeSum) const {
  unsigned numLoops = op.getNumLoops();
  // Places become elements and windows of the gradient.
  SmallVector<AffineExpr> places;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    places.push_back(builder.getAffineDimExpr(loop));
  // Position of the forward loop = element of the phase + step * offset.
  for (auto [window, phase] : llvm::zip_equal(windows, phases))
    places[window.place] = places[window.place] +
                           builder.getAffineDimExpr(window.offset) * phase.step;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<AffineExpr> elements;
  for (auto [dim, expr] :
       llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
    elements.push_back(expr);
    for (const Window &window : windows)
      if (window.dim == dim)
        elements.back() = builder.getAffineDimExpr(window.place);
  }
  // The loops of positions run over the elements of the phase now.
  AffineMap output =
      AffineMap::get(numLoops, 0, elements, builder.getContext());
  RankedTensorType targetType = getType(target);
  SmallVector<int64_t> shape(targetType.getShape());
  for (auto [window, phase] : llvm::zip_equal(windows, phases))
    shape[window.dim] = phase.count;
  // In the order of the body's arguments, which `makeSum` relies on.
  for (OpOperand *input : op.getDpsInputOperands()) {
    // The operand itself is not read, since the operation is linear in it; any
    // tensor of the result's shape takes its place.
    if (input == &operand) {
      inputs.push_back(tensor::EmptyOp::create(builder, op.getLoc(), shape,
                                               targetType.getElementType()));
      maps.push_back(output);
      continue;
    }
    AffineMap map = op.getMatchingIndexingMap(input);
    Value cut = cutOffsets(builder, input->get(), map, phases);
    inputs.push_back(cutPositions(builder, cut, map, phases));
    SmallVector<AffineExpr> indices;
    for (AffineExpr expr : map.getResults()) {
      int index = isa<AffineDimExpr>(expr) ? -1 : findIndex(expr);
      indices.push_back(index < 0
                            ? expr.replaceDims(places)
                            : builder.getAffineDimExpr(windows[index].place));
    }
    maps.push_back(AffineMap::get(numLoops, 0, indices, builder.getContext()));
  }
  AffineMap result = op.getIndexingMapsArray().back();
  inputs.push_back(cutPositions(builder, gradient, result, phases));
  maps.push_back(result.replaceDimsAndSymbols(places, {}, numLoops, 0));
  maps.push_back(output);
  return turnKept(builder, makeSum(inputs, maps, targetType.clone(shape)));
}

/// All remainders of rows, columns, ... by the strides, like the digits of a
/// counter; the result is put together from the parts.
Value WindowGradient::emit(OpBuilder &builder, Value gradient,
                           MakeSumFn makeSum) const {
  Location loc = op.getLoc();
  RankedTensorType type = getType(target);
  SmallVector<Phase> phases;
  SmallVector<int64_t> firsts(windows.size(), 0), counts;
  for (const Window &window : windows)
    // A dimension that is smaller than the stride has fewer phases.
    counts.push_back(std::min(window.stride, type.getDimSize(window.dim)));
  // Stride 1: one phase is all, and its sum is the result.
  bool isWhole = llvm::all_of(counts, [](int64_t count) { return count == 1; });
  Value result;
  // Counts through all combinations of remainders.
  while (true) {
    phases.clear();
    for (auto [window, first] : llvm::zip_equal(windows, firsts))
      phases.push_back(getPhase(window, first));
    bool isReached = llvm::all_of(
        phases, [](const Phase &phase) { return phase.numOffsets > 0; });
    if (isWhole && isReached)
      return emitPhases(builder, gradient, phases, makeSum);
    // Elements that no window reaches stay zero.
    if (!result)
      result = makeZeros(builder, loc, type);
    if (isReached) {
      Value part = emitPhases(builder, gradient, phases, makeSum);
      SmallVector<OpFoldResult> starts(type.getRank(), builder.getIndexAttr(0)),
          sizes, steps(type.getRank(), builder.getIndexAttr(1));
      for (int64_t size : getType(part).getShape())
        sizes.push_back(builder.getIndexAttr(size));
      for (auto [window, phase] : llvm::zip_equal(windows, phases)) {
        starts[window.dim] = builder.getIndexAttr(phase.first);
        steps[window.dim] = builder.getIndexAttr(window.stride);
      }
      result = tensor::InsertSliceOp::create(builder, loc, part, result, starts,
                                             sizes, steps);
    }
    unsigned digit = 0;
    while (digit < firsts.size() && ++firsts[digit] == counts[digit])
      firsts[digit++] = 0;
    if (digit == firsts.size())
      return result;
  }
}
