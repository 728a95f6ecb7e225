//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shapes of the results of tensor-level ops, and what the ops cost.
//
// The rules themselves are `solver::TensorRules`, a template over the kind of
// size: here it is a `SizeAttr`, in the search a number. Each
// `inferReturnTypes` checks what the rule assumes (D1 to D13), then applies it;
// a null size is one that does not fit. Types are inferred while text is
// parsed, so nothing may be assumed of attributes, not even that they are
// there.
//
//===----------------------------------------------------------------------===//

#include "KasDagShapes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include <numeric>

using namespace mlir;
using namespace kas;
using namespace kas::solver;

LogicalResult kas::verifyDim(SymbolicTensorType type, int64_t dim,
                             std::optional<Location> location) {
  if (dim < 0 || dim >= type.getRank())
    return emitOptionalError(location, "requires a dimension from 0 to ",
                             int64_t(type.getRank()) - 1, " (D3), got ", dim);
  return success();
}

/// `what` and `constraint` name the dimensions and the rule in the diagnostic.
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

/// Null as soon as one factor is null or a product does not fit.
SizeAttr kas::getProduct(MLIRContext *context, ArrayRef<SizeAttr> sizes) {
  DagDomain domain{context};
  return std::accumulate(
      sizes.begin(), sizes.end(), domain.one(),
      [&](SizeAttr a, SizeAttr b) { return domain.multiply(a, b); });
}

/// Adds the type of a result. A null dimension is one that does not fit.
static LogicalResult addTensor(MLIRContext *context, const DagRules::Step &step,
                               std::optional<Location> location,
                               SmallVectorImpl<Type> &types) {
  const DagShape &shape = step.shape;
  if (llvm::is_contained(shape.dims, SizeAttr()))
    return emitOptionalError(
        location, "requires a size whose exponents and constant fit (K3)");
  types.push_back(
      SymbolicTensorType::get(context, shape.dims, shape.numChannels));
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

/// [C, ... | H] -> [G, C/G, ... | H] for dim 0 by G.
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
  DagRules rules({context});
  return addTensor(context,
                   rules.group(DagShape(type), dim, adaptor.getFactor()),
                   location, types);
}

/// All channels become groups of one channel: [C, K | H] -> [C*K, 1 | H].
LogicalResult DagGroupAllOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> location,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D2
  if (failed(verifyHasChannels(type, location)))
    return failure();
  DagRules rules({context});
  return addTensor(context, rules.groupAll(DagShape(type)), location, types);
}

/// [C | H, W] -> [C, K, L | H, W].
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
  SmallVector<SizeAttr> windows;
  if (failed(addWindows(adaptor, location, windows)))
    return failure();
  DagRules rules({context});
  return addTensor(context, rules.unfold(DagShape(type), windows), location,
                   types);
}

/// [C | H] -> [C | H/K]; K3 demands that H/K is an integer.
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
  DagShape shape(type);
  for (auto [dim, window] : llvm::zip_equal(adaptor.getDims(), windows))
    shape.dims[dim] = shape.dims[dim].divide(window);
  return addTensor(context, {shape}, location, types);
}

/// Two dimensions change places.
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
  DagShape shape(type);
  std::swap(shape.dims[swapped[0]], shape.dims[swapped[1]]);
  return addTensor(context, {shape}, location, types);
}

/// Of a fully-connected layer or a convolution.
template <typename Adaptor>
static DagRules::Step getLayerStep(MLIRContext *context, Adaptor adaptor,
                                   ArrayRef<SizeAttr> windows = {}) {
  return DagRules({context}).fc(DagShape(adaptor.getInput()),
                                getOrDefault(adaptor.getGroupsAttr(), 0),
                                adaptor.getChannels(), windows);
}

/// [G, C, K | H] -> [Y | H]: all channels become Y.
LogicalResult DagFCOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D8
  if (failed(verifyGroups(adaptor, type, location)))
    return failure();
  return addTensor(context, getLayerStep(context, adaptor), location, types);
}

DagRules::Step DagFCOp::getStep() { return getLayerStep(getContext(), *this); }

/// As a dense layer over the channels and windows, none of which is left.
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
  return addTensor(context, getLayerStep(context, adaptor, windows), location,
                   types);
}

DagRules::Step DagConvOp::getStep() {
  return getLayerStep(getContext(), *this,
                      llvm::to_vector(getWindows().getAsRange<SizeAttr>()));
}

/// The named dimensions get new sizes and stay where they are.
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
  DagShape shape(type);
  for (auto [dim, size] : llvm::zip_equal(adaptor.getDims(), sizes))
    shape.dims[dim] = size;
  return addTensor(context, {shape}, location, types);
}

/// [C... | H] -> [copies, channels | H].
LogicalResult DagAmplifyOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D2
  if (failed(verifyHasChannels(type, location)))
    return failure();
  DagRules rules({context});
  return addTensor(
      context,
      rules.replaceChannels(DagShape(type), 0,
                            {adaptor.getCopies(), adaptor.getChannels()}),
      location, types);
}

/// The named dimensions disappear.
LogicalResult DagFoldOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  SymbolicTensorType type = getTensorType(adaptor.getInput());
  // D9
  if (failed(verifyDims(adaptor.getDims(), 0, type.getRank(), "dimension", "D9",
                        location)))
    return failure();
  DagRules rules({context});
  return addTensor(context, rules.fold(DagShape(type), adaptor.getDims()),
                   location, types);
}

/// The right operand's shape; that the left block divides the right one needs
/// numbers or facts (K3, by way of the implied sizes).
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

/// The dimensions that are rows and those that are columns of one operand,
/// after its transposition: channels beyond the batch, and spatial ones.
std::pair<ArrayRef<SizeAttr>, ArrayRef<SizeAttr>>
DagMatMulOp::getMatrix(bool isRight) {
  SymbolicTensorType type = getTensorType(isRight ? getRight() : getLeft());
  auto [rows, columns] =
      DagRules::getMatrix(DagShape(type), getBatch(),
                          isRight ? getTransposeRight() : getTransposeLeft());
  auto slice = [&](DimRange range) {
    return type.getDims().slice(range.first, range.second - range.first);
  };
  return {slice(rows), slice(columns)};
}

/// Sizes of rows and columns are compared as products, since several dimensions
/// may be one side of a matrix.
LogicalResult DagMatMulOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  DagShape left(adaptor.getLeft()), right(adaptor.getRight());
  int64_t batch = getOrDefault(adaptor.getBatchAttr(), 0);
  int64_t most = std::min(left.numChannels, right.numChannels);
  // D11
  if (batch < 0 || batch > most)
    return emitOptionalError(location, "requires from 0 to ", most,
                             " channel dimensions as batch (D11), got ", batch);
  if (ArrayRef(left.dims).take_front(batch) !=
      ArrayRef(right.dims).take_front(batch))
    return emitOptionalError(location, "requires equal batch dimensions (D11)");
  DagRules rules({context});
  bool transposesLeft(adaptor.getTransposeLeftAttr()),
      transposesRight(adaptor.getTransposeRightAttr());
  // D12
  SizeAttr contracted = rules.getProduct(
      left, DagRules::getMatrix(left, batch, transposesLeft).second);
  SizeAttr other = rules.getProduct(
      right, DagRules::getMatrix(right, batch, transposesRight).first);
  if (!contracted || contracted != other)
    return emitOptionalError(location,
                             "requires as many columns on the left as rows on "
                             "the right (D12), got ",
                             contracted, " and ", other);
  return addTensor(
      context,
      rules.matMul(left, right, batch, transposesLeft, transposesRight),
      location, types);
}

//===----------------------------------------------------------------------===//
// Costs and implied sizes
//===----------------------------------------------------------------------===//

// A step is a shape, its implied sizes and its costs. `getStep` is what the
// interface's `getFlops`, `getParams` and `getImpliedSizes` are made from.
DagRules::Step DagShuffleOp::getStep() {
  return DagRules({getContext()})
      .shuffle(DagShape(getInput()), getDim(), getFactor());
}

/// Implied: the number of blocks, all channels over those of one block.
DagRules::Step DagAmplifyOp::getStep() {
  DagDomain domain{getContext()};
  DagShape input(getInput());
  SizeAttr channels =
      DagRules(domain).getProduct(input, {0, input.numChannels});
  return {DagShape(getResult()), {domain.divide(channels, getChannels())}};
}

DagRules::Step DagMixOp::getStep() {
  return DagRules({getContext()})
      .mix(DagShape(getInput()), DagShape(getResult()), getDims());
}

DagRules::Step DagScaleOp::getStep() {
  return DagRules({getContext()}).scale(DagShape(getInput()), getDims());
}

DagRules::Step DagNormOp::getStep() {
  return DagRules({getContext()}).norm(DagShape(getInput()));
}

DagRules::Step DagUnaryOp::getStep() {
  return DagRules({getContext()})
      .unary(DagShape(getInput()), getFlopsPerElement(getKind()));
}

DagRules::Step DagFoldOp::getStep() {
  return DagRules({getContext()}).fold(DagShape(getInput()), getDims());
}

/// One operation per element of the input, but the result's shape.
DagRules::Step DagPoolOp::getStep() {
  DagRules::Step step = DagRules({getContext()}).unary(DagShape(getInput()), 1);
  step.shape = DagShape(getResult());
  return step;
}

DagRules::Step DagCumSumOp::getStep() {
  return DagRules({getContext()}).unary(DagShape(getInput()), 1);
}

/// A multiplication and an addition per element.
DagRules::Step DagScanOp::getStep() {
  return DagRules({getContext()}).unary(DagShape(getInput()), 2);
}

DagRules::Step DagSoftmaxOp::getStep() {
  return DagRules({getContext()}).softmax(DagShape(getInput()));
}

DagRules::Step DagBroadcastOp::getStep() {
  return DagRules({getContext()})
      .broadcast(DagShape(getLeft()), DagShape(getRight()), getCommon()[0],
                 getCommon()[1]);
}

DagRules::Step DagMatMulOp::getStep() {
  return DagRules({getContext()})
      .matMul(DagShape(getLeft()), DagShape(getRight()), getBatch(),
              getTransposeLeft(), getTransposeRight());
}
