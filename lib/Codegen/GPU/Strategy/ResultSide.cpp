//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where results lie along some axes.
//
//===----------------------------------------------------------------------===//

#include "ResultSide.h"
#include "KernelProblem.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

ResultSide ResultSide::get(const Coordinates &coordinates,
                           ArrayRef<unsigned> axes) {
  ResultSide side;
  for (unsigned axis : axes) {
    int64_t stride = 1;
    for (unsigned inner = axis + 1; inner < coordinates.numOutputs; ++inner)
      stride *= coordinates.axes[inner].extent;
    side.add(coordinates.axes[axis].extent, stride);
  }
  return side;
}

void ResultSide::add(int64_t extent, int64_t stride) {
  if (extent == 1)
    return;
  if (!extents.empty() && strides.back() == extent * stride) {
    extents.back() *= extent;
    strides.back() = stride;
    return;
  }
  extents.push_back(extent);
  strides.push_back(stride);
}

AffineExpr ResultSide::getOffset(AffineExpr number) const {
  AffineExpr offset = getAffineConstantExpr(0, number.getContext());
  for (auto [digit, stride] :
       llvm::zip_equal(delinearize(number, extents), strides))
    offset = offset + digit * stride;
  return offset;
}

int64_t ResultSide::getAlignment(int64_t most) const {
  int64_t alignment = most;
  for (int64_t stride : strides)
    while (stride % alignment != 0)
      alignment /= 2;
  return alignment;
}

int64_t ResultSide::getWidth(int64_t most) const {
  if (!isContiguous())
    return 1;
  int64_t width = most;
  while (extents.back() % width != 0)
    width /= 2;
  ResultSide outer(*this);
  outer.strides.pop_back();
  return outer.getAlignment(width);
}
