//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes an operator that is linear in its data as one convolution with
// effective weights, where it is one
// (docs/internals/rationale/effective-weights.md).
//
// Method: outputs that move along the data with a stride are windows, all
// others channels. For each point of channels and reductions one product is
// listed, with the offset at which it reads each window. Offsets give window
// sizes and dilations, products that meet in one element of the effective
// weight are summed.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/EffectiveConvolution.h"
#include "Lowering/Terms.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kas;

int64_t EffectiveConvolution::getNumElements() const {
  int64_t count = numOutputs * (numInputs / groups);
  for (const EffectiveWindow &window : windows)
    count *= window.size;
  return count;
}

/// The a of `expr = a * dim + (what has no dim)`, if it has that form.
static std::optional<int64_t> getCoefficient(AffineExpr expr, unsigned dim) {
  if (!expr.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> left = getCoefficient(binary.getLHS(), dim);
  std::optional<int64_t> right = getCoefficient(binary.getRHS(), dim);
  if (!left || !right)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return *left + *right;
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (expr.getKind() == AffineExprKind::Mul && factor)
    return *left * factor.getValue();
  return std::nullopt;
}

namespace {
/// A product of the operator, at whatever places there are.
/// One per point of channels and reductions, whatever the positions of windows
/// are.
struct Term {
  /// Channels, linearized in row-major order of their dimensions.
  int64_t output;
  int64_t input;
  /// By window: where it reads at position 0.
  SmallVector<int64_t, 3> offsets;
  /// By weight: the row-major index of its element.
  SmallVector<int64_t, 3> elements;
};

/// A guard on the place of a window.
/// `guard` is `factor * position + (what has no position)`.
struct MovedGuard {
  const Guard *guard;
  unsigned window;
  int64_t factor;
};

/// Example: a product of two 1-D windows, out[h] = sum over i < 3, j < 3 of
/// in[h + i + j - 2] * a[i] * b[j] (clipped once), has the nine terms
///   offset i + j - 2, elements (i, j)
/// so a window of size 5 that begins at -2, whose element x is the sum of
/// a[i] * b[j] over i + j = x: at most three products.
class FormFinder {
public:
  FormFinder(OperatorOp op, int64_t limit, EmitErrorFn emitError)
      : coordinates(getCoordinates(op)), limit(limit), emitError(emitError) {
    for (SizeAttr size : op.getDataSizes())
      dataShape.push_back(*size.getConstantValue());
    for (ArrayRef<SizeAttr> sizes : op.getWeightSizes()) {
      SmallVector<int64_t> &shape = weightShapes.emplace_back();
      for (SizeAttr size : sizes)
        shape.push_back(*size.getConstantValue());
    }
  }

  /// The steps build on each other: windows need rolls off the indices,
  /// channels are what windows leave, and sizes of windows come from the terms.
  FailureOr<EffectiveConvolution> build() {
    if (coordinates.hasMax())
      return emitError() << "requires sums and means, got a maximum";
    rollData();
    findWindows();
    splitGuards();
    findChannels();
    if (failed(listTerms()))
      return failure();
    fitWindows();
    findGroups();
    if (failed(placeTerms()))
      return failure();
    result.divisor = coordinates.getMeanDivisor();
    return std::move(result);
  }

private:
  int64_t getExtent(unsigned axis) const {
    return coordinates.axes[axis].extent;
  }

  void rollData();
  /// `expr` is `coordinate + roll` for a coordinate from 0 to `extent - 1`, at
  /// all points that exist.
  std::optional<std::pair<AffineExpr, int64_t>> splitRoll(AffineExpr expr,
                                                          int64_t extent) const;
  /// The dimension of the data that output `dim` moves along, if it does that
  /// and nothing else.
  std::optional<EffectiveWindow> getWindow(unsigned dim) const;
  void findWindows();
  void splitGuards();
  void findChannels();
  LogicalResult listTerms();
  LogicalResult addTerm(ArrayRef<int64_t> point);
  LogicalResult checkGuards(ArrayRef<int64_t> point,
                            ArrayRef<std::pair<int64_t, int64_t>> places);
  void fitWindows();
  void findGroups();
  LogicalResult placeTerms();
  int64_t getPosition(const Term &term) const;

  Coordinates coordinates;
  int64_t limit;
  EmitErrorFn emitError;
  SmallVector<int64_t> dataShape;
  SmallVector<SmallVector<int64_t>> weightShapes;
  EffectiveConvolution result;
  /// Of terms: those that no place has a part in, and the others.
  SmallVector<const Guard *> fixedGuards;
  SmallVector<MovedGuard> movedGuards;
  std::vector<Term> terms;
};
} // namespace

std::optional<std::pair<AffineExpr, int64_t>>
FormFinder::splitRoll(AffineExpr expr, int64_t extent) const {
  // A guarded expression is in the range where it is read, so the guard is the
  // proof.
  for (const Guard &guard : coordinates.guards) {
    auto roll = dyn_cast<AffineConstantExpr>(
        simplifyAffineExpr(expr - guard.expr, coordinates.axes.size(), 0));
    if (roll && guard.extent == extent)
      return std::pair(guard.expr, roll.getValue());
  }
  // Else the constant of the expression is the roll, if what remains is in
  // range.
  SmallVector<int64_t> origin(coordinates.axes.size(), 0);
  int64_t roll = lowering::evaluateAt(expr, origin);
  AffineExpr coordinate = expr - roll;
  auto ranges = llvm::map_to_vector(coordinates.axes, [](const Axis &axis) {
    return Interval{0, axis.extent - 1};
  });
  Interval interval = getInterval(coordinate, ranges);
  if (interval.lower < 0 || interval.upper >= extent)
    return std::nullopt;
  return std::pair(coordinate, roll);
}

/// `(coordinate + roll) mod extent` becomes `coordinate`: a cyclic shift of the
/// whole dimension is done on the data.
void FormFinder::rollData() {
  for (auto [expr, extent] : llvm::zip_equal(coordinates.data, dataShape)) {
    int64_t &roll = result.rolls.emplace_back(0);
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary || expr.getKind() != AffineExprKind::Mod ||
        binary.getRHS() != extent)
      continue;
    if (auto split = splitRoll(binary.getLHS(), extent)) {
      expr = split->first;
      roll = llvm::mod(split->second, extent);
    }
  }
}

std::optional<EffectiveWindow> FormFinder::getWindow(unsigned dim) const {
  auto usesDim = [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); };
  // A weight that varies along it makes it a channel (a local layer).
  for (ArrayRef<AffineExpr> weight : coordinates.weights)
    if (llvm::any_of(weight, usesDim))
      return std::nullopt;
  // A diagonal read of the data is no window either.
  if (llvm::count_if(coordinates.data, usesDim) != 1)
    return std::nullopt;
  for (const Guard &guard : coordinates.guards)
    if (!getCoefficient(guard.expr, dim))
      return std::nullopt;
  EffectiveWindow window;
  window.output = dim;
  window.data =
      llvm::find_if(coordinates.data, usesDim) - coordinates.data.begin();
  std::optional<int64_t> stride =
      getCoefficient(coordinates.data[window.data], dim);
  // No affine form (a quotient of it), or one that runs backwards.
  if (!stride || *stride < 1)
    return std::nullopt;
  window.stride = *stride;
  return window;
}

void FormFinder::findWindows() {
  for (unsigned dim = 0; dim < coordinates.numOutputs; ++dim) {
    std::optional<EffectiveWindow> window = getWindow(dim);
    // Two outputs that move along one dimension, or that a guard has both of,
    // are no windows of a convolution: the second one is a channel.
    auto shares = [&](const EffectiveWindow &other) {
      return other.data == window->data ||
             llvm::any_of(coordinates.guards, [&](const Guard &guard) {
               return guard.expr.isFunctionOfDim(dim) &&
                      guard.expr.isFunctionOfDim(other.output);
             });
    };
    if (window && llvm::none_of(result.windows, shares))
      result.windows.push_back(*window);
  }
}

/// Guards without a window's position decide whether a term is there at all;
/// the others must agree with the ends of the data.
void FormFinder::splitGuards() {
  for (const Guard &guard : coordinates.guards) {
    auto *window = llvm::find_if(result.windows, [&](EffectiveWindow &window) {
      return guard.expr.isFunctionOfDim(window.output);
    });
    if (window == result.windows.end())
      fixedGuards.push_back(&guard);
    else
      movedGuards.push_back({&guard, unsigned(window - result.windows.begin()),
                             *getCoefficient(guard.expr, window->output)});
  }
}

/// Dimensions that no window has. In a dimension of the data that no output
/// moves along, each index is a channel of its own.
void FormFinder::findChannels() {
  auto isMoved = [&](unsigned dim, unsigned EffectiveWindow::*member) {
    return llvm::any_of(result.windows, [&](const EffectiveWindow &window) {
      return window.*member == dim;
    });
  };
  for (unsigned dim = 0; dim < coordinates.numOutputs; ++dim)
    if (!isMoved(dim, &EffectiveWindow::output)) {
      result.outputChannels.push_back(dim);
      result.numOutputs *= getExtent(dim);
    }
  for (unsigned dim = 0; dim < dataShape.size(); ++dim)
    if (!isMoved(dim, &EffectiveWindow::data)) {
      result.dataChannels.push_back(dim);
      result.numInputs *= dataShape[dim];
    }
}

/// All points of output channels and reductions: O(limit) terms.
LogicalResult FormFinder::listTerms() {
  SmallVector<unsigned> loops(result.outputChannels);
  for (unsigned axis = coordinates.numOutputs; axis < coordinates.axes.size();
       ++axis)
    loops.push_back(axis);
  int64_t count = 1;
  for (unsigned axis : loops)
    if (llvm::MulOverflow(count, getExtent(axis), count) || count > limit)
      return emitError() << "requires at most " << limit
                         << " points of channels and reductions, got more";
  SmallVector<int64_t> point(coordinates.axes.size(), 0);
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index;
    for (unsigned axis : llvm::reverse(loops)) {
      point[axis] = rest % getExtent(axis);
      rest /= getExtent(axis);
    }
    if (failed(addTerm(point)))
      return failure();
  }
  return success();
}

LogicalResult FormFinder::addTerm(ArrayRef<int64_t> point) {
  for (const Guard *guard : fixedGuards) {
    int64_t value = lowering::evaluateAt(guard->expr, point);
    if (value < 0 || value >= guard->extent)
      return success();
  }
  Term term;
  // The places of each window at which the data is there, both included.
  SmallVector<std::pair<int64_t, int64_t>> places;
  for (const EffectiveWindow &window : result.windows) {
    int64_t offset = lowering::evaluateAt(coordinates.data[window.data], point);
    int64_t last = dataShape[window.data] - 1 - offset;
    places.push_back(
        {std::max<int64_t>(0, llvm::divideCeilSigned(-offset, window.stride)),
         std::min(getExtent(window.output) - 1,
                  llvm::divideFloorSigned(last, window.stride))});
    // The window reads the data nowhere: the term is always zero.
    if (places.back().first > places.back().second)
      return success();
    term.offsets.push_back(offset);
  }
  if (failed(checkGuards(point, places)))
    return failure();
  term.output = term.input = 0;
  for (unsigned dim : result.outputChannels)
    term.output = term.output * getExtent(dim) + point[dim];
  for (unsigned dim : result.dataChannels)
    term.input = term.input * dataShape[dim] +
                 lowering::evaluateAt(coordinates.data[dim], point);
  for (auto [exprs, shape] :
       llvm::zip_equal(coordinates.weights, weightShapes)) {
    int64_t element = 0;
    for (auto [expr, extent] : llvm::zip_equal(exprs, shape))
      element = element * extent + lowering::evaluateAt(expr, point);
    term.elements.push_back(element);
  }
  terms.push_back(std::move(term));
  return success();
}

/// Guards hold wherever the data is there. (Where they hold it is there: that
/// is what they are for.)
LogicalResult
FormFinder::checkGuards(ArrayRef<int64_t> point,
                        ArrayRef<std::pair<int64_t, int64_t>> places) {
  for (const MovedGuard &moved : movedGuards) {
    int64_t rest = lowering::evaluateAt(moved.guard->expr, point);
    auto [first, last] = places[moved.window];
    // The guard is linear in the position, so the ends decide.
    for (int64_t place : {first, last}) {
      int64_t value = moved.factor * place + rest;
      if (value < 0 || value >= moved.guard->extent)
        return emitError() << "requires windows that only the ends of the data "
                              "clip, got one that is clipped at position "
                           << place << " of output dimension "
                           << result.windows[moved.window].output;
    }
  }
  return success();
}

/// The smallest window that has all offsets: from the least to the largest one,
/// with the greatest common divisor of their distances as dilation.
void FormFinder::fitWindows() {
  SmallVector<EffectiveWindow> windows;
  SmallVector<unsigned> kept;
  for (auto [index, window] : llvm::enumerate(result.windows)) {
    if (!terms.empty()) {
      int64_t first = terms.front().offsets[index], last = first, step = 0;
      for (const Term &term : terms) {
        first = std::min(first, term.offsets[index]);
        last = std::max(last, term.offsets[index]);
      }
      for (const Term &term : terms)
        step = std::gcd(step, term.offsets[index] - first);
      window.first = first;
      window.dilation = std::max<int64_t>(1, step);
      window.size = (last - first) / window.dilation + 1;
    }
    // A window of one element that does not move is a batch dimension.
    bool isSame = window.size == 1 && window.first == 0 && window.stride == 1 &&
                  getExtent(window.output) == dataShape[window.data];
    if (isSame) {
      result.batch.push_back({window.data, window.output});
      continue;
    }
    kept.push_back(index);
    windows.push_back(window);
  }
  for (Term &term : terms) {
    SmallVector<int64_t, 3> offsets;
    for (unsigned index : kept)
      offsets.push_back(term.offsets[index]);
    term.offsets = std::move(offsets);
  }
  result.windows = std::move(windows);
}

/// The largest number of groups for which the terms are block diagonal.
void FormFinder::findGroups() {
  int64_t most = std::gcd(result.numOutputs, result.numInputs);
  for (int64_t groups = most; groups > 1; --groups) {
    if (most % groups != 0)
      continue;
    int64_t outputs = result.numOutputs / groups;
    int64_t inputs = result.numInputs / groups;
    if (llvm::all_of(terms, [&](const Term &term) {
          return term.output / outputs == term.input / inputs;
        })) {
      result.groups = groups;
      return;
    }
  }
}

/// The element of the effective weight: [o, c of the group, windows...].
int64_t FormFinder::getPosition(const Term &term) const {
  int64_t inputs = result.numInputs / result.groups;
  int64_t position = term.output * inputs + term.input % inputs;
  for (auto [window, offset] : llvm::zip_equal(result.windows, term.offsets))
    position =
        position * window.size + (offset - window.first) / window.dilation;
  return position;
}

LogicalResult FormFinder::placeTerms() {
  int64_t size = result.numOutputs, total = 0;
  bool overflows =
      llvm::MulOverflow(size, result.numInputs / result.groups, size);
  for (const EffectiveWindow &window : result.windows)
    overflows |= llvm::MulOverflow(size, window.size, size);
  if (overflows || size > limit)
    return emitError() << "requires at most " << limit
                       << " elements of the effective weight, got more";
  std::vector<int64_t> counts(size, 0);
  // First pass: how many products meet at most. Second pass: places them.
  for (const Term &term : terms)
    result.numTerms = std::max(result.numTerms, ++counts[getPosition(term)]);
  if (llvm::MulOverflow(size, result.numTerms, total) || total > limit)
    return emitError() << "requires at most " << limit
                       << " products in the effective weight, got more";
  result.exists.assign(total, 0);
  result.elements.assign(weightShapes.size(), std::vector<int64_t>(total, 0));
  llvm::fill(counts, 0);
  for (const Term &term : terms) {
    int64_t position = getPosition(term);
    // [term, element], so that term t of all elements is one tensor.
    int64_t slot = counts[position]++ * size + position;
    result.exists[slot] = 1;
    for (auto [list, element] : llvm::zip_equal(result.elements, term.elements))
      list[slot] = element;
  }
  return success();
}

FailureOr<EffectiveConvolution>
kas::getEffectiveConvolution(OperatorOp op, int64_t limit,
                             EmitErrorFn emitError) {
  return FormFinder(op, limit, emitError).build();
}
