//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The view of an operator that warpgroup instructions (wgmma) and tensor maps
// need: tiles of two matrices whose rows, columns and steps have constant
// strides.
// Example: a linear layer `out[n, o] = sum_c x[n, c] * w[o, c]` has the sides x
// (rows n, steps c) and w (columns o, steps c), each with the dimensions {Step,
// stride 1}, {Line, stride C}. `tiled` copies of up to five dimensions: PTX
// ISA, "Tensor copies", and `cuTensorMapEncodeTiled` of the CUDA driver API.
//
//===----------------------------------------------------------------------===//

#include "WarpgroupView.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Builds the view one part after another; each part returns false, with the
/// reason, where the operator has no such form.
class ViewFinder {
public:
  ViewFinder(const GPUKernelProblem &problem, std::string &reason)
      : coordinates(problem.coordinates), problem(problem), reason(reason) {}

  std::optional<WarpgroupView> find();

private:
  /// Sets which tensor has the rows and which the columns, and their strides.
  bool setSides(const MatrixView &matrices);
  /// Takes the innermost axes of `axes` that lie at one distance in all of
  /// `sides`, and returns them; the others are left.
  SmallVector<unsigned> takeInner(SmallVectorImpl<unsigned> &axes,
                                  ArrayRef<unsigned> sides) const;
  /// Sets the dimensions of side `number`, as a descriptor of its tensor lists
  /// them: sorted by stride, each a line (row or column), a step or one axis.
  bool setDimensions(unsigned number);
  int64_t getExtent(ArrayRef<unsigned> axes) const {
    return MatrixView::getExtent(coordinates, axes);
  }
  bool fail(const Twine &text) {
    reason = text.str();
    return false;
  }

  const Coordinates &coordinates;
  const GPUKernelProblem &problem;
  std::string &reason;
  WarpgroupView view;
  /// Of each side, by axis.
  std::array<SmallVector<int64_t>, 2> strides;
};

} // namespace

bool ViewFinder::setSides(const MatrixView &matrices) {
  if (matrices.left.size() != 1 || matrices.right.size() != 1)
    return fail("several weights");
  view.sides[0].tensor = matrices.left.front();
  view.sides[0].axes = matrices.rows;
  view.sides[1].tensor = matrices.right.front();
  view.sides[1].axes = matrices.columns;
  // Neighbours in a fragment of sums should be neighbours in the result.
  if (matrices.areRowsInner(coordinates))
    std::swap(view.sides[0], view.sides[1]);
  view.batches = matrices.batches;
  view.blocks = matrices.steps;
  for (unsigned i = 0; i < 2; ++i) {
    auto found = getStrides(problem, view.sides[i].tensor);
    if (!found)
      return fail("a tensor that is not read at constant distances");
    strides[i] = *found;
  }
  return true;
}

SmallVector<unsigned> ViewFinder::takeInner(SmallVectorImpl<unsigned> &axes,
                                            ArrayRef<unsigned> sides) const {
  // Unit axes have no stride and would end the run.
  llvm::erase_if(
      axes, [&](unsigned axis) { return coordinates.axes[axis].extent == 1; });
  SmallVector<unsigned> inner;
  while (!axes.empty()) {
    unsigned axis = axes.back();
    // The next outer axis continues the inner ones if its stride is the extent
    // times the stride of the last one taken: both are then one dimension.
    bool isNext = llvm::all_of(sides, [&](unsigned side) {
      return inner.empty() ? strides[side][axis] > 0
                           : strides[side][axis] ==
                                 strides[side][inner.front()] *
                                     coordinates.axes[inner.front()].extent;
    });
    if (!isNext)
      break;
    inner.insert(inner.begin(), axis);
    axes.pop_back();
  }
  return inner;
}

bool ViewFinder::setDimensions(unsigned number) {
  using Kind = WarpgroupView::Dimension::Kind;
  WarpgroupView::Side &side = view.sides[number];
  ArrayRef<int64_t> distances = strides[number];
  side.dimensions = {
      {Kind::Line, 0, side.numLines, distances[side.axes.back()]},
      {Kind::Step, 0, view.numSteps, distances[view.steps.back()]}};
  for (ArrayRef<unsigned> axes :
       {ArrayRef(view.batches), ArrayRef(view.blocks)})
    for (unsigned axis : axes)
      // A tensor that does not depend on an axis is read again at the same
      // address: no dimension.
      if (distances[axis] != 0)
        side.dimensions.push_back(
            {Kind::Axis, axis, coordinates.axes[axis].extent, distances[axis]});
  // Kind and axis break ties, so that the order is deterministic.
  llvm::sort(side.dimensions, [](const WarpgroupView::Dimension &a,
                                 const WarpgroupView::Dimension &b) {
    return std::tuple(a.stride, a.kind, a.axis) <
           std::tuple(b.stride, b.kind, b.axis);
  });
  side.stepsFirst = side.dimensions.front().kind == Kind::Step;
  // The copy engine has at most five dimensions.
  if (side.dimensions.size() > 5)
    return fail("a tensor of more than five dimensions");
  // The innermost dimension has no stride in a descriptor: it is contiguous.
  if (side.dimensions.front().stride != 1 ||
      side.dimensions.front().kind == Kind::Axis)
    return fail("a tensor whose neighbours are neither rows, columns nor "
                "steps");
  for (auto [inner, outer] :
       llvm::zip(side.dimensions, ArrayRef(side.dimensions).drop_front())) {
    // 8 elements of 16 bits are 16 bytes.
    if (outer.stride % 8 != 0)
      return fail("distances that are not multiples of 16 bytes");
    // A descriptor's strides are multiples of each other, and each spans the
    // whole dimension within it.
    if (outer.stride < inner.stride * inner.size ||
        outer.stride % inner.stride != 0)
      return fail("dimensions that overlap");
  }
  return true;
}

std::optional<WarpgroupView> ViewFinder::find() {
  std::optional<MatrixView> matrices = MatrixView::get(coordinates);
  if (!matrices) {
    fail("no contractions of data and weights");
    return std::nullopt;
  }
  // The copy engine fills with zeros beyond a tensor only, not where a guard
  // within it fails.
  if (!coordinates.guards.empty()) {
    fail("guards");
    return std::nullopt;
  }
  // The axis that has the most values last, as blocks of steps are along it.
  matrices->orderSteps(coordinates, 64);
  if (!setSides(*matrices))
    return std::nullopt;
  for (unsigned i = 0; i < 2; ++i) {
    WarpgroupView::Side &side = view.sides[i];
    // Axes that do not continue the innermost ones become batches: a block then
    // has rows of one such batch only.
    SmallVector<unsigned> outer(side.axes);
    side.axes = takeInner(outer, {i});
    if (side.axes.empty()) {
      fail("one row or column");
      return std::nullopt;
    }
    view.batches.append(outer);
    side.numLines = getExtent(side.axes);
  }
  llvm::erase_if(view.batches, [&](unsigned axis) {
    return coordinates.axes[axis].extent == 1;
  });
  // Steps must be contiguous runs in both tensors at once; the other reductions
  // are outer loops, `blocks`.
  view.steps = takeInner(view.blocks, {0, 1});
  if (view.steps.empty()) {
    fail("no steps that both matrices have");
    return std::nullopt;
  }
  view.numBatches = getExtent(view.batches);
  view.numBlocks = getExtent(view.blocks);
  view.numSteps = getExtent(view.steps);
  if (!setDimensions(0) || !setDimensions(1))
    return std::nullopt;
  return view;
}

std::optional<WarpgroupView> WarpgroupView::get(const GPUKernelProblem &problem,
                                                Type inputType,
                                                std::string *reason) {
  std::string ignored;
  if (!reason)
    reason = &ignored;
  if (!inputType.isF16() && !inputType.isBF16()) {
    llvm::raw_string_ostream(*reason) << "tensors of " << inputType;
    return std::nullopt;
  }
  return ViewFinder(problem, *reason).find();
}

// `schedule.getBlock()` lists rows and columns in the order of `sides`, which
// `find` has exchanged where rows are innermost in the result.
int64_t WarpgroupView::getNumBlocks(GPUScheduleAttr schedule) const {
  int64_t blocks = numBatches;
  for (auto [side, lines] :
       llvm::zip_equal(sides, schedule.getBlock().asArrayRef()))
    blocks *= llvm::divideCeil(side.numLines, lines);
  return blocks;
}
