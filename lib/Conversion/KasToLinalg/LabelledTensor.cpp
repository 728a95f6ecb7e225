//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor whose dimensions carry the coordinates that index them, and the
// views, pads and copies that change these labels.
//
// Labels say by which sum of coordinates each dimension is read. A view changes
// shape and labels together and costs nothing; a copy is made only where a
// coordinate must be alone on a dimension, and is limited in size
// (`LinalgOptions::maxElements`), since windows may multiply a tensor.
//
//===----------------------------------------------------------------------===//

#include "LabelledTensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace kas;

ArrayRef<int64_t> LabelledTensor::getShape() const {
  return cast<RankedTensorType>(value.getType()).getShape();
}

//===----------------------------------------------------------------------===//
// Relabelling and reshaping
//===----------------------------------------------------------------------===//

/// Alone, [H] becomes [H/B, B] by an expand_shape. In a sum, as in [H + k], no
/// reshape fits, and the label becomes B * outer + inner + k.
void TensorRewriter::substitute(LabelledTensor &tensor, Value coordinate,
                                Value outer, Value inner) {
  Label sum;
  sum[outer] = getConcreteSize(inner);
  sum[inner] = 1;
  SmallVector<Label> dims;
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> groups;
  for (auto [label, size] : llvm::zip_equal(tensor.dims, tensor.getShape())) {
    ReassociationIndices &group = groups.emplace_back();
    auto add = [&](Label part, int64_t extent) {
      group.push_back(dims.size());
      dims.push_back(std::move(part));
      shape.push_back(extent);
    };
    if (isSole(label, coordinate)) {
      add(getSoleLabel(outer), getConcreteSize(outer));
      add(getSoleLabel(inner), getConcreteSize(inner));
    } else {
      add(replaceInLabel(label, coordinate, sum), size);
    }
  }
  if (dims.size() != tensor.dims.size()) {
    auto type = cast<RankedTensorType>(tensor.value.getType());
    tensor.value = tensor::ExpandShapeOp::create(b, type.clone(shape),
                                                 tensor.value, groups);
  }
  tensor.dims = std::move(dims);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// In doubles: the product may exceed 64 bits.
LogicalResult TensorRewriter::checkCopy(ArrayRef<int64_t> shape) {
  double elements = 1;
  for (int64_t size : shape)
    elements *= static_cast<double>(size);
  if (elements <= static_cast<double>(maxElements))
    return success();
  llvm::raw_string_ostream(reason)
      << "it needs a copy of shape "
      << llvm::join(
             llvm::map_range(shape,
                             [](int64_t size) { return std::to_string(size); }),
             "x")
      << ", of more than " << maxElements << " elements";
  return failure();
}

Value TensorRewriter::createEmpty(ArrayRef<int64_t> shape, Value like) {
  return tensor::EmptyOp::create(b, shape, getElementTypeOrSelf(like));
}

LogicalResult TensorRewriter::isolate(LabelledTensor &tensor,
                                      Value coordinate) {
  if (tensor.findSole(coordinate))
    return success();
  // The dimensions that share coordinates with those of `coordinate` are read
  // through one map; the others are kept.
  llvm::SmallSetVector<Value, 4> coordinates;
  coordinates.insert(coordinate);
  SmallVector<bool> isRead(tensor.dims.size(), false);
  // The connected component of `coordinate`: dimensions linked by shared
  // coordinates, to a fixed point.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [position, label] : llvm::enumerate(tensor.dims)) {
      if (isRead[position] || llvm::none_of(label, [&](const auto &entry) {
            return coordinates.contains(entry.first);
          }))
        continue;
      isRead[position] = changed = true;
      for (auto [other, coefficient] : label)
        coordinates.insert(other);
    }
  }

  MLIRContext *context = b.getContext();
  SmallVector<Label> dims;
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> sources(tensor.dims.size());
  llvm::SmallDenseMap<Value, AffineExpr> positions;
  auto addDimension = [&](Label label, int64_t size) {
    dims.push_back(std::move(label));
    shape.push_back(size);
    return getAffineDimExpr(dims.size() - 1, context);
  };
  for (auto [position, label] : llvm::enumerate(tensor.dims)) {
    // New shape: kept dimensions as they are, and one dimension for each
    // coordinate of the component, in the order in which they are first
    // mentioned.
    if (!isRead[position]) {
      sources[position] = addDimension(label, tensor.getShape()[position]);
      continue;
    }
    for (auto [part, coefficient] : label)
      if (!positions.contains(part))
        positions[part] =
            addDimension(getSoleLabel(part), getConcreteSize(part));
  }
  for (auto [position, label] : llvm::enumerate(tensor.dims)) {
    if (!isRead[position])
      continue;
    // The old dimension is read at its label: [H + k] -> [H, k] reads h + k,
    // which is im2col for this dimension.
    AffineExpr sum = getAffineConstantExpr(0, context);
    for (auto [part, coefficient] : label)
      sum = sum + positions.lookup(part) * coefficient;
    sources[position] = sum;
  }
  if (failed(checkCopy(shape)))
    return failure();

  Value empty = createEmpty(shape, tensor.value);
  SmallVector<AffineMap> maps{AffineMap::get(shape.size(), 0, sources, context),
                              b.getMultiDimIdentityMap(shape.size())};
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  tensor.value = linalg::GenericOp::create(
                     b, empty.getType(), tensor.value, empty, maps, iterators,
                     [](OpBuilder &nested, Location loc, ValueRange arguments) {
                       linalg::YieldOp::create(nested, loc, arguments[0]);
                     })
                     .getResult(0);
  tensor.dims = std::move(dims);
  return success();
}

/// The caller gives the dimension its new label.
LogicalResult TensorRewriter::pad(LabelledTensor &tensor, unsigned dim,
                                  int64_t low, int64_t high, double fill) {
  if (low == 0 && high == 0)
    return success();
  auto type = cast<RankedTensorType>(tensor.value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] += low + high;
  if (failed(checkCopy(shape)))
    return failure();
  SmallVector<int64_t> lows(shape.size(), 0), highs(shape.size(), 0);
  Value source = tensor.value;
  // Paddings of several dimensions are one copy.
  auto previous = source.getDefiningOp<tensor::PadOp>();
  // Only a pad of this rewrite that nothing else reads may be replaced.
  bool isOurs = previous && paddings.contains(previous);
  if (isOurs) {
    source = previous.getSource();
    lows.assign(previous.getStaticLow().begin(), previous.getStaticLow().end());
    highs.assign(previous.getStaticHigh().begin(),
                 previous.getStaticHigh().end());
  }
  lows[dim] += low;
  highs[dim] += high;
  auto getAttributes = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(b.getContext(), values);
  };
  Value value =
      arith::ConstantOp::create(b, b.getFloatAttr(type.getElementType(), fill));
  auto padding =
      tensor::PadOp::create(b, type.clone(shape), source, getAttributes(lows),
                            getAttributes(highs), value);
  tensor.value = padding;
  paddings.insert(padding);
  if (isOurs) {
    paddings.erase(previous);
    previous.erase();
  }
  return success();
}

LogicalResult TensorRewriter::rotate(LabelledTensor &tensor, unsigned dim,
                                     int64_t amount) {
  ArrayRef<int64_t> shape = tensor.getShape();
  if (failed(checkCopy(shape)))
    return failure();
  int64_t size = shape[dim];
  // The amount may be negative: `%` rounds to zero.
  int64_t start = ((amount % size) + size) % size;
  Value rotated = createEmpty(shape, tensor.value);
  SmallVector<OpFoldResult> strides(shape.size(), b.getIndexAttr(1));
  auto copy = [&](int64_t from, int64_t to, int64_t count) {
    SmallVector<OpFoldResult> sources(shape.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> targets(sources), sizes;
    for (int64_t extent : shape)
      sizes.push_back(b.getIndexAttr(extent));
    sources[dim] = b.getIndexAttr(from);
    targets[dim] = b.getIndexAttr(to);
    sizes[dim] = b.getIndexAttr(count);
    Value slice = tensor::ExtractSliceOp::create(b, tensor.value, sources,
                                                 sizes, strides);
    rotated = tensor::InsertSliceOp::create(b, slice, rotated, targets, sizes,
                                            strides);
  };
  // [start, size) to the front, [0, start) after it.
  copy(start, 0, size - start);
  if (start > 0)
    copy(0, size - start, start);
  tensor.value = rotated;
  return success();
}

/// Inserts a dimension at `position` along which all elements are equal.
LogicalResult TensorRewriter::repeat(LabelledTensor &tensor, unsigned position,
                                     Value coordinate) {
  SmallVector<int64_t> shape(tensor.getShape());
  shape.insert(shape.begin() + position, getConcreteSize(coordinate));
  if (failed(checkCopy(shape)))
    return failure();
  Value empty = createEmpty(shape, tensor.value);
  tensor.value = linalg::BroadcastOp::create(b, tensor.value, empty,
                                             ArrayRef<int64_t>{position})
                     ->getResult(0);
  tensor.dims.insert(tensor.dims.begin() + position, getSoleLabel(coordinate));
  return success();
}

/// Dimension `from` becomes dimension `to` of the others: `to` counts without
/// it.
LogicalResult TensorRewriter::moveDimension(LabelledTensor &tensor,
                                            unsigned from, unsigned to) {
  SmallVector<int64_t> permutation;
  for (unsigned dim = 0; dim < tensor.dims.size(); ++dim)
    if (dim != from)
      permutation.push_back(dim);
  permutation.insert(permutation.begin() + to, from);
  SmallVector<int64_t> shape;
  SmallVector<Label> dims;
  for (int64_t source : permutation) {
    shape.push_back(tensor.getShape()[source]);
    dims.push_back(tensor.dims[source]);
  }
  if (failed(checkCopy(shape)))
    return failure();
  Value empty = createEmpty(shape, tensor.value);
  tensor.value =
      linalg::TransposeOp::create(b, tensor.value, empty, permutation)
          ->getResult(0);
  tensor.dims = std::move(dims);
  return success();
}

/// Undoes a merge from the data's side: [.., q, r, ..] collapses to [.., i,
/// ..], where q and r must be neighbours in this order. A half that the tensor
/// lacks is repeated: it does not depend on it.
LogicalResult TensorRewriter::join(LabelledTensor &tensor, Value outer,
                                   Value inner, Value coordinate) {
  for (Value half : {outer, inner})
    if (tensor.mentions(half) && failed(isolate(tensor, half)))
      return failure();
  std::optional<unsigned> outerDim = tensor.findSole(outer);
  std::optional<unsigned> innerDim = tensor.findSole(inner);
  assert((outerDim || innerDim) && "one half must index the tensor");
  if (!outerDim) {
    outerDim = *innerDim;
    if (failed(repeat(tensor, *outerDim, outer)))
      return failure();
  } else if (!innerDim) {
    if (failed(repeat(tensor, *outerDim + 1, inner)))
      return failure();
  } else if (*innerDim != *outerDim + 1) {
    bool isBefore = *innerDim < *outerDim;
    if (failed(moveDimension(tensor, *innerDim,
                             isBefore ? *outerDim : *outerDim + 1)))
      return failure();
    // Taking `inner` from the front moves `outer` down by one.
    if (isBefore)
      outerDim = *outerDim - 1;
  }
  SmallVector<ReassociationIndices> groups;
  for (unsigned dim = 0; dim < tensor.dims.size(); ++dim) {
    if (dim == *outerDim + 1)
      groups.back().push_back(dim);
    else
      groups.push_back({dim});
  }
  tensor.value = tensor::CollapseShapeOp::create(b, tensor.value, groups);
  tensor.dims.erase(tensor.dims.begin() + *outerDim + 1);
  tensor.dims[*outerDim] = getSoleLabel(coordinate);
  return success();
}

/// A factor of 1 that a pad may turn into 0: it carries the clipping of a
/// window that no other operand reads.
LabelledTensor TensorRewriter::createOnes(Value coordinate,
                                          const LabelledTensor &like) {
  Type elementType = getElementTypeOrSelf(like.value);
  auto type = RankedTensorType::get({getConcreteSize(coordinate)}, elementType);
  Value ones = arith::ConstantOp::create(
      b, DenseElementsAttr::get(
             type, ArrayRef<Attribute>{b.getFloatAttr(elementType, 1.0)}));
  LabelledTensor tensor(ones);
  tensor.dims.push_back(getSoleLabel(coordinate));
  return tensor;
}
