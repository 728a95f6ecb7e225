//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sizes that tensor-level ops imply beside those of their tensors, and what
// the ops cost.
//
//===----------------------------------------------------------------------===//

#include "KasDagShapes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Implied sizes
//===----------------------------------------------------------------------===//

SmallVector<SizeAttr> DagShuffleOp::getImpliedSizes() {
  return {getFactor(),
          getTensorType(getInput()).getDims()[getDim()].divide(getFactor())};
}

/// The outputs of each group.
template <typename LayerOp>
static SmallVector<SizeAttr> getGroupSizes(LayerOp op) {
  SizeAttr groups = getProduct(
      op.getContext(),
      getTensorType(op.getInput()).getDims().take_front(op.getGroups()));
  return {groups ? op.getChannels().divide(groups) : SizeAttr()};
}

SmallVector<SizeAttr> DagFCOp::getImpliedSizes() {
  return getGroupSizes(*this);
}

SmallVector<SizeAttr> DagConvOp::getImpliedSizes() {
  return getGroupSizes(*this);
}

SmallVector<SizeAttr> DagAmplifyOp::getImpliedSizes() {
  SizeAttr channels =
      getProduct(getContext(), getTensorType(getInput()).getChannelDims());
  return {channels ? channels.divide(getChannels()) : SizeAttr()};
}

SmallVector<SizeAttr> DagBroadcastOp::getImpliedSizes() {
  auto getBlock = [&](Value value) {
    ArrayRef<SizeAttr> dims = getTensorType(value).getDims();
    return getProduct(
        getContext(),
        dims.drop_front(getCommon()[0]).drop_back(getCommon()[1]));
  };
  SizeAttr left = getBlock(getLeft()), right = getBlock(getRight());
  return {left, left && right ? right.divide(left) : SizeAttr()};
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// So many operations for each element of `value`.
static SmallVector<SizeProduct> perElement(Value value, int64_t factor = 1) {
  return {{factor, SmallVector<SizeAttr>(getTensorType(value).getDims())}};
}

/// The sizes of the weight of a fully-connected layer or a convolution.
template <typename LayerOp>
static SmallVector<SizeAttr> getWeightSizes(LayerOp op) {
  SmallVector<SizeAttr> sizes = {op.getChannels()};
  llvm::append_range(
      sizes,
      getTensorType(op.getInput()).getChannelDims().drop_front(op.getGroups()));
  if constexpr (std::is_same_v<LayerOp, DagConvOp>)
    llvm::append_range(sizes, op.getWindows().template getAsRange<SizeAttr>());
  return sizes;
}

SmallVector<SizeProduct> DagFCOp::getFlops() {
  SmallVector<SizeAttr> sizes = getWeightSizes(*this);
  llvm::append_range(sizes, getTensorType(getInput()).getSpatialDims());
  return {{2, sizes}};
}

SmallVector<SizeProduct> DagFCOp::getParams() {
  return {{1, getWeightSizes(*this)}};
}

SmallVector<SizeProduct> DagConvOp::getFlops() {
  SmallVector<SizeAttr> sizes = getWeightSizes(*this);
  llvm::append_range(sizes, getTensorType(getInput()).getSpatialDims());
  return {{2, sizes}};
}

SmallVector<SizeProduct> DagConvOp::getParams() {
  return {{1, getWeightSizes(*this)}};
}

SmallVector<SizeProduct> DagMixOp::getFlops() {
  SmallVector<SizeProduct> products = perElement(getResult(), 2);
  for (int64_t dim : getDims())
    products[0].sizes.push_back(getTensorType(getInput()).getDims()[dim]);
  return products;
}

SmallVector<SizeProduct> DagMixOp::getParams() {
  SizeProduct product;
  llvm::append_range(product.sizes, getSizes().getAsRange<SizeAttr>());
  for (int64_t dim : getDims())
    product.sizes.push_back(getTensorType(getInput()).getDims()[dim]);
  return {product};
}

SmallVector<SizeProduct> DagNormOp::getFlops() {
  return perElement(getResult(), 2);
}

SmallVector<SizeProduct> DagNormOp::getParams() {
  // Factor, offset, mean, variance.
  SmallVector<SizeAttr> channels(getTensorType(getInput()).getChannelDims());
  return SmallVector<SizeProduct>(4, {1, channels});
}

SmallVector<SizeProduct> DagPoolOp::getFlops() {
  return perElement(getInput());
}

SmallVector<SizeProduct> DagScaleOp::getFlops() {
  return perElement(getResult());
}

SmallVector<SizeProduct> DagScaleOp::getParams() {
  SizeProduct product;
  for (int64_t dim : getDims())
    product.sizes.push_back(getTensorType(getInput()).getDims()[dim]);
  return {product};
}

SmallVector<SizeProduct> DagUnaryOp::getFlops() {
  switch (getKind()) {
  case DagUnaryKind::GELU:
    return perElement(getResult(), 4);
  case DagUnaryKind::Sigmoid:
    return perElement(getResult(), 3);
  case DagUnaryKind::TanH:
    return perElement(getResult(), 5);
  default:
    return perElement(getResult());
  }
}

SmallVector<SizeProduct> DagFoldOp::getFlops() {
  return perElement(getInput());
}

SmallVector<SizeProduct> DagSoftmaxOp::getFlops() {
  return perElement(getResult(), 3);
}

SmallVector<SizeProduct> DagBroadcastOp::getFlops() {
  return perElement(getResult());
}

SmallVector<SizeProduct> DagMatMulOp::getFlops() {
  SmallVector<SizeProduct> products = perElement(getResult(), 2);
  llvm::append_range(products[0].sizes, getMatrix(/*isRight=*/false).second);
  return products;
}
