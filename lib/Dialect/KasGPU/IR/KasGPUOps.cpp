//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The requirements of the operations of warpgroups.
//
// Limits come from the PTX ISA ("cp.async.bulk.tensor", "Matrix descriptor
// format", "wgmma") and from `cuTensorMapEncodeTiled` of the CUDA Driver API;
// the descriptions of the ops cite them one by one.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include <limits>

using namespace kas;
using namespace mlir;

#define GET_OP_CLASSES
#include "kas/Dialect/KasGPU/IR/KasGPUOps.cpp.inc"

void KasGPUDialect::addKasGPUOps() {
  addOperations<
#define GET_OP_LIST
#include "kas/Dialect/KasGPU/IR/KasGPUOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Strides in bytes have fewer bits (K3); elements have at least one byte.
static constexpr int64_t strideLimit = int64_t(1) << 40;

/// The strides in order, from the innermost one.
static LogicalResult verifyStrides(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> sizes,
                                   ArrayRef<int64_t> outer) {
  // The extent of everything inside: a row-major tensor has the products of
  // sizes.
  int64_t before = 1;
  // One past the offset of the last element, a sum that may be too large.
  __int128 end = sizes.front();
  for (auto [index, stride] : llvm::enumerate(outer)) {
    if (stride >= strideLimit) // T5
      return emitError() << "expected strides of a tensor map of less than "
                            "2^40, got "
                         << stride;
    // A dimension may have gaps, but must not overlap the one inside it.
    // Clamped, so that the product cannot overflow.
    int64_t least = sizes[index] <= strideLimit / before ? before * sizes[index]
                                                         : strideLimit;
    if (stride < least || stride % before != 0) // T3
      return emitError() << "expected strides of a tensor map of at least "
                         << least << " that are multiples of " << before
                         << ", got " << stride;
    before = stride;
    end += __int128(sizes[index + 1] - 1) * stride;
  }
  if (end > std::numeric_limits<int64_t>::max()) // T6
    return emitError() << "expected offsets of a tensor map of less than 2^63, "
                          "got sizes "
                       << sizes << " with strides " << outer;
  return success();
}

/// Sizes and box are innermost first; strides, in elements, leave out the
/// innermost one, which is 1.
LogicalResult
TensorMapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      DenseI64ArrayAttr sizes, DenseI64ArrayAttr strides,
                      DenseI64ArrayAttr box) {
  ArrayRef<int64_t> outer;
  if (strides)
    outer = strides;
  if (sizes.empty() || sizes.size() > 5) // T1
    return emitError() << "expected 1 to 5 sizes of a tensor map, got "
                       << sizes.size();
  if (outer.size() + 1 != static_cast<size_t>(sizes.size())) // T1
    return emitError() << "expected " << sizes.size() - 1
                       << " strides of a tensor map, got " << outer.size();
  if (box.size() != sizes.size()) // T1
    return emitError() << "expected " << sizes.size()
                       << " entries of box of a tensor map, got " << box.size();
  for (int64_t size : sizes.asArrayRef())
    if (size < 1 || size > (int64_t(1) << 32)) // T2
      return emitError() << "expected sizes of a tensor map of 1 to 2^32, got "
                         << size;
  if (failed(verifyStrides(emitError, sizes, outer)))
    return failure();
  for (int64_t entry : box.asArrayRef())
    if (entry < 1 || entry > 256) // T4
      return emitError()
             << "expected entries of box of a tensor map of 1 to 256, got "
             << entry;
  return success();
}

ArrayRef<int64_t> TensorMapAttr::getOuterStrides() const {
  return getStrides() ? getStrides().asArrayRef() : ArrayRef<int64_t>();
}

/// Elements that one copy moves.
int64_t TensorMapAttr::getBoxElements() const {
  int64_t elements = 1;
  for (int64_t entry : getBox().asArrayRef())
    elements *= entry;
  return elements;
}

/// One past the offset of the last element, which fits (T6).
int64_t TensorMapAttr::getEnd() const {
  int64_t end = getSizes()[0];
  for (auto [size, stride] :
       llvm::zip_equal(getSizes().asArrayRef().drop_front(), getOuterStrides()))
    end += (size - 1) * stride;
  return end;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The transaction count of an mbarrier is below 2^20.
LogicalResult ExpectBytesOp::verify() {
  auto bytes = static_cast<int64_t>(getBytes());
  if (bytes < 1 || bytes >= (1 << 20)) // E1
    return emitOpError() << "expected 1 to " << (1 << 20) - 1 << " bytes, got "
                         << bytes;
  return success();
}

/// The innermost dimension of the box is one row of the 128-byte swizzle, which
/// the descriptors of matrices assume.
LogicalResult TensorCopyOp::verify() {
  TensorMapAttr map = getMap();
  if (getCoordinates().size() !=
      static_cast<size_t>(map.getSizes().size())) // K1
    return emitOpError() << "expected " << map.getSizes().size()
                         << " coordinates, got " << getCoordinates().size();
  auto type = cast<MemRefType>(getBuffer().getType());
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  if (int64_t bytes = map.getBox()[0] * elementBytes; bytes != 128) // K2
    return emitOpError()
           << "expected 128 bytes of the innermost dimension in the box, got "
           << bytes;
  for (int64_t stride : map.getOuterStrides())
    if (int64_t bytes = stride * elementBytes;
        bytes % 16 != 0 || bytes >= (int64_t(1) << 40)) // K3
      return emitOpError() << "expected strides that are multiples of 16 bytes "
                              "and less than 2^40, got "
                           << bytes;
  if (type.hasStaticShape() && map.getEnd() > type.getNumElements()) // K4
    return emitOpError() << "expected a tensor inside of the buffer of "
                         << type.getNumElements() << " elements, got one of "
                         << map.getEnd();
  Type target = cast<MemRefType>(getMemory().getType()).getElementType();
  if (type.getElementType() != target) // K5
    return emitOpError() << "expected memory of " << type.getElementType()
                         << ", got " << target;
  return success();
}

LogicalResult MatrixDescriptorOp::verify() {
  // Fields of 14 bits, in units of 16 bytes.
  for (uint64_t bytes : {getLeading(), getStride()})
    if (bytes % 16 != 0 || bytes >= (1 << 18)) // M1
      return emitOpError() << "expected distances that are multiples of 16 "
                              "bytes and less than 2^18, got "
                           << static_cast<int64_t>(bytes);
  return success();
}

LogicalResult StoreMatrixOp::verify() {
  auto type = cast<VectorType>(getFragments().getType());
  Type elementType = cast<MemRefType>(getMemory().getType()).getElementType();
  if (!llvm::is_contained({1, 2, 4}, type.getDimSize(0)) ||
      type.getDimSize(1) != 2 || type.getElementType() != elementType) // F1
    return emitOpError() << "expected fragments of 1, 2 or 4 by 2 numbers of "
                         << elementType << ", got " << type;
  return success();
}

/// All bits but the address: leading distance at bit 16, stride at bit 32, and
/// the 128-byte swizzle at bit 62.
int64_t MatrixDescriptorOp::getFixedBits() {
  uint64_t bits =
      (getLeading() / 16) << 16 | (getStride() / 16) << 32 | uint64_t(1) << 62;
  return static_cast<int64_t>(bits);
}

/// Sums of one thread: N / 8 by 2 by 2 for N of at most 256 columns.
LogicalResult WarpgroupMmaOp::verify() {
  auto type = cast<VectorType>(getSums().getType());
  if (type.getDimSize(0) > 32 || type.getDimSize(1) != 2 ||
      type.getDimSize(2) != 2) // W1
    return emitOpError()
           << "expected sums of at most 32 by 2 by 2 numbers, got " << type;
  Type rows = cast<MemRefType>(getRowMemory().getType()).getElementType();
  Type columns = cast<MemRefType>(getColumnMemory().getType()).getElementType();
  if (rows != columns) // W2
    return emitOpError() << "expected columns of " << rows << ", got "
                         << columns;
  return success();
}

LogicalResult WarpgroupWaitOp::verify() {
  if (getGroups() > 7) // G1
    return emitOpError() << "expected 0 to 7 groups, got "
                         << static_cast<int64_t>(getGroups());
  return success();
}
