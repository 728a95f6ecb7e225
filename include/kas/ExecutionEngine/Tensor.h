//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors of f32 on the host: what goes into a compiled function, what comes
// out, and how two of them are compared.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_TENSOR_H
#define KAS_EXECUTIONENGINE_TENSOR_H

#include "kas/Support/Initializer.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>

namespace kas::execution {

/// The number of elements of a shape, or an error if a dimension is negative or
/// the bytes of such a tensor do not fit 63 bits.
llvm::Expected<int64_t> numElements(llvm::ArrayRef<int64_t> shape);

/// `2x3x4`, or `scalar` for rank 0.
std::string shapeToString(llvm::ArrayRef<int64_t> shape);

/// A dense f32 tensor in C order (the last dimension is contiguous), aligned to
/// a cache line. Movable, copied only by `clone`.
class Tensor {
public:
  /// Alignment of the data in bytes.
  static constexpr size_t alignment = 64;

  /// A tensor of rank 0 with the value 0.
  Tensor() : Tensor(llvm::ArrayRef<int64_t>{}) {}

  /// Zeros. The shape must be valid, see `numElements`; aborts when memory runs
  /// out. `create` is for shapes that come from outside.
  explicit Tensor(llvm::ArrayRef<int64_t> shape);

  /// Zeros, or an error for an invalid shape or one that memory cannot hold.
  static llvm::Expected<Tensor> create(llvm::ArrayRef<int64_t> shape);

  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getNumElements() const { return size; }
  float *data() { return buffer.get(); }
  const float *data() const { return buffer.get(); }
  llvm::MutableArrayRef<float> getValues() {
    return {buffer.get(), static_cast<size_t>(size)};
  }
  llvm::ArrayRef<float> getValues() const {
    return {buffer.get(), static_cast<size_t>(size)};
  }
  Tensor clone() const;

private:
  struct Free {
    void operator()(float *pointer) const;
  };
  Tensor(llvm::ArrayRef<int64_t> shape, int64_t size, float *buffer)
      : shape(shape), size(size), buffer(buffer) {}

  llvm::SmallVector<int64_t> shape;
  int64_t size;
  std::unique_ptr<float, Free> buffer;
};

/// The largest absolute difference divided by the largest magnitude of
/// `expected` (by 1 if that is 0). A NaN is equal to a NaN, an infinity to the
/// same infinity; where only one side is such a value, the result is infinite.
/// Infinities do not count for the largest magnitude. The shapes must agree.
double maxRelativeError(const Tensor &actual, const Tensor &expected);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_TENSOR_H
