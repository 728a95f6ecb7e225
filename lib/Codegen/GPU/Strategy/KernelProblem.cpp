//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel computes, as plain sizes, the addresses of its elements, and
// the grid of its blocks.
//
//===----------------------------------------------------------------------===//

#include "KernelProblem.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The operator must be concrete: sizes that are not constant do not occur
/// here.
static SmallVector<int64_t> getSizes(ArrayRef<SizeAttr> sizes) {
  return llvm::map_to_vector(
      sizes, [](SizeAttr size) { return *size.getConstantValue(); });
}

GPUKernelProblem GPUKernelProblem::get(OperatorOp op) {
  GPUKernelProblem problem;
  problem.coordinates = getCoordinates(op);
  problem.output = getSizes(op.getOutputSizes());
  problem.data = getSizes(op.getDataSizes());
  for (ArrayRef<SizeAttr> sizes : op.getWeightSizes())
    problem.weights.push_back(getSizes(sizes));
  return problem;
}

// Fills x first, then y and z. Example: 100 000 blocks with 65 535 at most per
// dimension become 65535 x 2, of which the last 31 070 have nothing to do.
FailureOr<LaunchShape> LaunchShape::get(int64_t blocks, int64_t threads,
                                        GPUDeviceAttr device) {
  LaunchShape shape;
  shape.block[0] = threads;
  for (int64_t &size : shape.grid) {
    size = std::min(blocks, device.getMaxBlocks());
    blocks = llvm::divideCeil(blocks, size);
  }
  if (blocks > 1)
    return failure();
  return shape;
}

AffineExpr kas::codegen::linearize(ArrayRef<AffineExpr> indices,
                                   ArrayRef<int64_t> shape,
                                   MLIRContext *context) {
  AffineExpr address = getAffineConstantExpr(0, context);
  for (auto [expr, size] : llvm::zip_equal(indices, shape))
    address = address * size + expr;
  return address;
}

// Factors are read off at the origin, then the rest must vanish over the whole
// range: a division that happens to be linear at the origin is found there.
std::optional<LinearIndex>
kas::codegen::getLinearIndex(AffineExpr index, const Coordinates &coordinates) {
  MLIRContext *context = index.getContext();
  SmallVector<Interval> ranges;
  SmallVector<AffineExpr> origin(coordinates.axes.size(),
                                 getAffineConstantExpr(0, context));
  for (const Axis &axis : coordinates.axes)
    ranges.push_back({0, axis.extent - 1});
  AffineExpr rest = simplifyInRanges(index, ranges);
  auto first = dyn_cast<AffineConstantExpr>(rest.replaceDims(origin));
  if (!first)
    return std::nullopt;
  LinearIndex result;
  result.constant = first.getValue();
  for (auto [number, axis] : llvm::enumerate(coordinates.axes)) {
    SmallVector<AffineExpr> next(origin);
    // An axis of one value has the factor 0: its other values do not exist.
    next[number] = getAffineConstantExpr(axis.extent > 1, context);
    auto factor = dyn_cast<AffineConstantExpr>(rest.replaceDims(next) - first);
    if (!factor)
      return std::nullopt;
    result.factors.push_back(factor.getValue());
  }
  rest = rest - result.constant;
  for (auto [number, factor] : llvm::enumerate(result.factors))
    rest = rest - getAffineDimExpr(number, context) * factor;
  if (simplifyInRanges(rest, ranges) != 0)
    return std::nullopt;
  return result;
}

std::optional<SmallVector<int64_t>>
kas::codegen::getStrides(const GPUKernelProblem &problem, unsigned tensor) {
  const Coordinates &coordinates = problem.coordinates;
  ArrayRef<AffineExpr> indices =
      tensor == 0 ? coordinates.data : coordinates.weights[tensor - 1];
  ArrayRef<int64_t> shape =
      tensor == 0 ? problem.data : problem.weights[tensor - 1];
  if (indices.empty())
    return std::nullopt;
  auto index = getLinearIndex(
      linearize(indices, shape, indices.front().getContext()), coordinates);
  if (!index || index->constant != 0)
    return std::nullopt;
  return std::move(index->factors);
}

std::optional<unsigned>
kas::codegen::getSharedAxis(const Coordinates &coordinates, int64_t depth) {
  if (coordinates.hasMax())
    return std::nullopt;
  for (unsigned axis = coordinates.axes.size();
       axis-- > coordinates.numOutputs;)
    if (coordinates.axes[axis].extent % depth == 0)
      return axis;
  return std::nullopt;
}

// Example: `delinearize(d0, [4, 3])` is `[d0 floordiv 3 mod 4, d0 mod 3]`. The
// mod of the first digit disappears when ranges are known.
SmallVector<AffineExpr> kas::codegen::delinearize(AffineExpr expr,
                                                  ArrayRef<int64_t> extents) {
  SmallVector<AffineExpr> digits(extents.size());
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    digits[i] = expr.floorDiv(stride) % extents[i];
    stride *= extents[i];
  }
  return digits;
}

Type kas::codegen::getInputType(ValueRange inputs) {
  Type type = getElementTypeOrSelf(inputs.front());
  if (llvm::all_of(inputs, [&](Value input) {
        return getElementTypeOrSelf(input) == type;
      }))
    return type;
  return Float32Type::get(type.getContext());
}
