//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shapes of the results of tensor-level ops.
//
//===----------------------------------------------------------------------===//

#include "KasDagShapes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace kas;

LogicalResult kas::verifyDim(SymbolicTensorType type, int64_t dim,
                             std::optional<Location> location) {
  if (dim < 0 || dim >= type.getRank())
    return emitOptionalError(location, "requires a dimension from 0 to ",
                             int64_t(type.getRank()) - 1, " (D3), got ", dim);
  return success();
}

LogicalResult kas::verifyDims(ArrayRef<int64_t> dims, int64_t first,
                              int64_t last, StringRef what,
                              StringRef constraint,
                              std::optional<Location> location) {
  if (dims.empty())
    return emitOptionalError(location, "requires at least one ", what, " (",
                             constraint, "), got none");
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t dim : dims) {
    if (dim < first || dim >= last)
      return emitOptionalError(location, "requires ", what, "s from ", first,
                               " to ", last - 1, " (", constraint, "), got ",
                               dim);
    if (!seen.insert(dim).second)
      return emitOptionalError(location, "requires different ", what, "s (",
                               constraint, "), got ", dim, " twice");
  }
  return success();
}

LogicalResult kas::verifyHasChannels(SymbolicTensorType type,
                                     std::optional<Location> location) {
  if (type.getNumChannelDims() == 0)
    return emitOptionalError(
        location, "requires at least one channel dimension (D2), got none");
  return success();
}

SizeAttr kas::getProduct(MLIRContext *context, ArrayRef<SizeAttr> sizes) {
  SizeAttr product = SizeAttr::getConstant(context, 1);
  for (SizeAttr size : sizes) {
    product = product && size ? product.multiply(size) : SizeAttr();
    if (!product)
      break;
  }
  return product;
}

/// Adds the type of a result. A null dimension is one that does not fit.
static LogicalResult addTensor(MLIRContext *context, ArrayRef<SizeAttr> dims,
                               unsigned numChannelDims,
                               std::optional<Location> location,
                               SmallVectorImpl<Type> &types) {
  if (llvm::is_contained(dims, SizeAttr()))
    return emitOptionalError(
        location, "requires a size whose exponents and constant fit (K3)");
  types.push_back(SymbolicTensorType::get(context, dims, numChannelDims));
  return success();
}

/// The parser infers types before it fills in what was not written.
static int64_t getOrDefault(IntegerAttr attr, int64_t otherwise) {
  return attr ? attr.getInt() : otherwise;
}

/// Appends the entries of a list. The attribute of generic text may hold
/// anything.
static LogicalResult addSizes(ArrayAttr list, int64_t count, StringRef what,
                              StringRef constraint,
                              std::optional<Location> location,
                              SmallVectorImpl<SizeAttr> &sizes) {
  if (int64_t(list.size()) != count)
    return emitOptionalError(location, "requires ", count, " ", what, "s (",
                             constraint, "), got ", list.size());
  for (Attribute entry : list) {
    auto size = dyn_cast<SizeAttr>(entry);
    if (!size)
      return emitOptionalError(location, "requires sizes as ", what, "s (",
                               constraint, "), got ", entry);
    sizes.push_back(size);
  }
  return success();
}

/// D5: a window for each of `dims`.
template <typename Adaptor>
static LogicalResult addWindows(Adaptor adaptor,
                                std::optional<Location> location,
                                SmallVectorImpl<SizeAttr> &sizes) {
  return addSizes(adaptor.getWindows(), adaptor.getDims().size(), "window",
                  "D5", location, sizes);
}

/// D6
template <typename Adaptor>
static LogicalResult verifyDilation(Adaptor adaptor,
                                    std::optional<Location> location) {
  int64_t dilation = getOrDefault(adaptor.getDilationAttr(), 1);
  if (dilation < 1)
    return emitOptionalError(
        location, "requires a dilation of at least 1 (D6), got ", dilation);
  return success();
}

/// D8
template <typename Adaptor>
static LogicalResult verifyGroups(Adaptor adaptor, SymbolicTensorType type,
                                  std::optional<Location> location) {
  int64_t groups = getOrDefault(adaptor.getGroupsAttr(), 0);
  if (groups < 0 || groups > type.getNumChannelDims())
    return emitOptionalError(
        location, "requires from 0 to ", type.getNumChannelDims(),
        " channel dimensions that are groups (D8), got ", groups);
  return success();
}

LogicalResult DagGroupOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> location,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  int64_t dim = adaptor.getDim();
  // D1
  if (dim < 0 || dim >= type.getNumChannelDims())
    return emitOptionalError(location, "requires one of the ",
                             type.getNumChannelDims(),
                             " channel dimensions (D1), got ", dim);
  SmallVector<SizeAttr> dims(type.getDims());
  dims[dim] = dims[dim].divide(adaptor.getFactor());
  dims.insert(dims.begin() + dim, adaptor.getFactor());
  return addTensor(context, dims, type.getNumChannelDims() + 1, location,
                   types);
}

LogicalResult DagGroupAllOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> location,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D2
  if (failed(verifyHasChannels(type, location)))
    return failure();
  SmallVector<SizeAttr> dims = {getProduct(context, type.getChannelDims()),
                                SizeAttr::getConstant(context, 1)};
  llvm::append_range(dims, type.getSpatialDims());
  return addTensor(context, dims, 2, location, types);
}

LogicalResult DagUnfoldOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D5
  if (failed(verifyDims(adaptor.getDims(), type.getNumChannelDims(),
                        type.getRank(), "spatial dimension", "D5", location)))
    return failure();
  // D6
  if (failed(verifyDilation(adaptor, location)))
    return failure();
  SmallVector<SizeAttr> dims(type.getChannelDims());
  if (failed(addWindows(adaptor, location, dims)))
    return failure();
  unsigned numChannelDims = dims.size();
  llvm::append_range(dims, type.getSpatialDims());
  return addTensor(context, dims, numChannelDims, location, types);
}

LogicalResult DagPoolOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  SmallVector<SizeAttr> windows;
  // D5
  if (failed(verifyDims(adaptor.getDims(), type.getNumChannelDims(),
                        type.getRank(), "spatial dimension", "D5", location)) ||
      failed(addWindows(adaptor, location, windows)))
    return failure();
  SmallVector<SizeAttr> dims(type.getDims());
  for (auto [dim, window] : llvm::zip_equal(adaptor.getDims(), windows))
    dims[dim] = dims[dim].divide(window);
  return addTensor(context, dims, type.getNumChannelDims(), location, types);
}

LogicalResult DagTransposeOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> location,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  ArrayRef<int64_t> swapped = adaptor.getDims();
  // D7
  if (failed(
          verifyDims(swapped, 0, type.getRank(), "dimension", "D7", location)))
    return failure();
  if (swapped.size() != 2)
    return emitOptionalError(location, "requires two dimensions (D7), got ",
                             swapped.size());
  if (type.isChannelDim(swapped[0]) != type.isChannelDim(swapped[1]))
    return emitOptionalError(location,
                             "requires two channel or two spatial dimensions "
                             "(D7), got one of each");
  SmallVector<SizeAttr> dims(type.getDims());
  std::swap(dims[swapped[0]], dims[swapped[1]]);
  return addTensor(context, dims, type.getNumChannelDims(), location, types);
}

LogicalResult DagFCOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D8
  if (failed(verifyGroups(adaptor, type, location)))
    return failure();
  SmallVector<SizeAttr> dims = {adaptor.getChannels()};
  llvm::append_range(dims, type.getSpatialDims());
  return addTensor(context, dims, 1, location, types);
}

LogicalResult DagConvOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  SmallVector<SizeAttr> windows;
  // D5, D6, D8
  if (failed(verifyDims(adaptor.getDims(), type.getNumChannelDims(),
                        type.getRank(), "spatial dimension", "D5", location)) ||
      failed(addWindows(adaptor, location, windows)) ||
      failed(verifyDilation(adaptor, location)) ||
      failed(verifyGroups(adaptor, type, location)))
    return failure();
  SmallVector<SizeAttr> dims = {adaptor.getChannels()};
  llvm::append_range(dims, type.getSpatialDims());
  return addTensor(context, dims, 1, location, types);
}

LogicalResult DagMixOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  SmallVector<SizeAttr> sizes;
  // D9, D13
  if (failed(verifyDims(adaptor.getDims(), 0, type.getRank(), "dimension", "D9",
                        location)) ||
      failed(addSizes(adaptor.getSizes(), adaptor.getDims().size(), "new size",
                      "D13", location, sizes)))
    return failure();
  SmallVector<SizeAttr> dims(type.getDims());
  for (auto [dim, size] : llvm::zip_equal(adaptor.getDims(), sizes))
    dims[dim] = size;
  return addTensor(context, dims, type.getNumChannelDims(), location, types);
}

LogicalResult DagAmplifyOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D2
  if (failed(verifyHasChannels(type, location)))
    return failure();
  SmallVector<SizeAttr> dims = {adaptor.getCopies(), adaptor.getChannels()};
  llvm::append_range(dims, type.getSpatialDims());
  return addTensor(context, dims, 2, location, types);
}

LogicalResult DagFoldOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D9
  if (failed(verifyDims(adaptor.getDims(), 0, type.getRank(), "dimension", "D9",
                        location)))
    return failure();
  SmallVector<SizeAttr> dims;
  unsigned numChannelDims = 0;
  for (auto [dim, size] : llvm::enumerate(type.getDims())) {
    if (llvm::is_contained(adaptor.getDims(), int64_t(dim)))
      continue;
    dims.push_back(size);
    numChannelDims += type.isChannelDim(dim);
  }
  return addTensor(context, dims, numChannelDims, location, types);
}

LogicalResult DagBroadcastOp::inferReturnTypes(MLIRContext *,
                                               std::optional<Location> location,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  ArrayRef<SizeAttr> left = getTensorType(adaptor.getLeft()).getDims();
  ArrayRef<SizeAttr> right = getTensorType(adaptor.getRight()).getDims();
  ArrayRef<int64_t> common = adaptor.getCommon();
  int64_t rank = std::min(left.size(), right.size());
  // D10
  if (common.size() != 2)
    return emitOptionalError(
        location, "requires two numbers of common dimensions (D10), got ",
        common.size());
  if (common[0] < 0 || common[1] < 0 || common[0] > rank ||
      common[1] > rank - common[0])
    return emitOptionalError(location, "requires at most ", rank,
                             " common dimensions (D10), got ", common[0],
                             " and ", common[1]);
  if (left.take_front(common[0]) != right.take_front(common[0]) ||
      left.take_back(common[1]) != right.take_back(common[1]))
    return emitOptionalError(location,
                             "requires equal common dimensions (D10)");
  types.push_back(adaptor.getRight().getType());
  return success();
}

/// The rows and columns of a tensor as a matrix, its batch left out.
static std::pair<ArrayRef<SizeAttr>, ArrayRef<SizeAttr>>
getMatrix(SymbolicTensorType type, int64_t batch, bool isTransposed) {
  std::pair<ArrayRef<SizeAttr>, ArrayRef<SizeAttr>> matrix = {
      type.getChannelDims().drop_front(batch), type.getSpatialDims()};
  if (isTransposed)
    std::swap(matrix.first, matrix.second);
  return matrix;
}

std::pair<ArrayRef<SizeAttr>, ArrayRef<SizeAttr>>
DagMatMulOp::getMatrix(bool isRight) {
  return ::getMatrix(getTensorType(isRight ? getRight() : getLeft()),
                     getBatch(),
                     isRight ? getTransposeRight() : getTransposeLeft());
}

LogicalResult DagMatMulOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  SymbolicTensorType left = getTensorType(adaptor.getLeft());
  SymbolicTensorType right = getTensorType(adaptor.getRight());
  int64_t batch = getOrDefault(adaptor.getBatchAttr(), 0);
  int64_t most = std::min(left.getNumChannelDims(), right.getNumChannelDims());
  // D11
  if (batch < 0 || batch > most)
    return emitOptionalError(location, "requires from 0 to ", most,
                             " channel dimensions as batch (D11), got ", batch);
  ArrayRef<SizeAttr> common = left.getDims().take_front(batch);
  if (common != right.getDims().take_front(batch))
    return emitOptionalError(location, "requires equal batch dimensions (D11)");
  auto [rows, inner] =
      ::getMatrix(left, batch, bool(adaptor.getTransposeLeftAttr()));
  auto [otherInner, columns] =
      ::getMatrix(right, batch, bool(adaptor.getTransposeRightAttr()));
  // D12
  SizeAttr contracted = getProduct(context, inner);
  SizeAttr other = getProduct(context, otherInner);
  if (!contracted || contracted != other)
    return emitOptionalError(location,
                             "requires as many columns on the left as rows on "
                             "the right (D12), got ",
                             contracted, " and ", other);
  SmallVector<SizeAttr> dims(common);
  llvm::append_range(dims, rows);
  unsigned numChannelDims = dims.size();
  llvm::append_range(dims, columns);
  return addTensor(context, dims, numChannelDims, location, types);
}
