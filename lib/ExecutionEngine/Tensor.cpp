//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dense f32 tensors in C order, aligned to a cache line.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Tensor.h"
#include "kas/ExecutionEngine/Pages.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <unistd.h>

using namespace kas;
using namespace kas::execution;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::StringRef;

Expected<int64_t> kas::execution::numElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dimension : shape)
    if (dimension < 0)
      return llvm::createStringError("shape " + shapeToString(shape) +
                                     " has a negative dimension");
  // A zero anywhere makes an empty tensor, however large the rest.
  if (llvm::is_contained(shape, 0))
    return 0;
  // So that bytes of f64 do not overflow either.
  for (int64_t dimension : shape)
    if (llvm::MulOverflow(count, dimension, count) ||
        count > std::numeric_limits<int64_t>::max() / 8)
      return llvm::createStringError("shape " + shapeToString(shape) +
                                     " is too large");
  return count;
}

std::string kas::execution::shapeToString(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(
      llvm::map_range(shape, [](int64_t d) { return std::to_string(d); }), "x");
}

/// Null if there cannot be enough memory: systems promise more than they have
/// and then end the program that uses it.
static float *allocate(int64_t size) {
  // Of the machine, asked once.
  static const int64_t physicalBytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (size > physicalBytes / static_cast<int64_t>(sizeof(float)))
    return nullptr;
  // Some pointer for no elements.
  size_t bytes = std::max<size_t>(size, 1) * sizeof(float);
  void *pointer = allocatePages(bytes);
  if (pointer)
    // Also touches the pages: later measurements do not pay for that.
    std::memset(pointer, 0, bytes);
  return static_cast<float *>(pointer);
}

void Tensor::Free::operator()(float *pointer) const { std::free(pointer); }

// For shapes of the program itself; `create` is for those that a user gives.
Tensor::Tensor(ArrayRef<int64_t> shape)
    : shape(shape), size(llvm::cantFail(numElements(shape))),
      buffer(allocate(size)) {
  if (!buffer)
    llvm::report_bad_alloc_error("no memory for a tensor");
}

Expected<Tensor> Tensor::create(ArrayRef<int64_t> shape) {
  Expected<int64_t> size = numElements(shape);
  if (!size)
    return size.takeError();
  // A shape from a file may be valid and yet too large for this machine.
  float *buffer = allocate(*size);
  if (!buffer)
    return llvm::createStringError("no memory for a tensor of shape " +
                                   shapeToString(shape));
  return Tensor(shape, *size, buffer);
}

Tensor Tensor::clone() const {
  Tensor copy(shape);
  std::copy_n(data(), size, copy.data());
  return copy;
}

// Relative to the largest expected magnitude, not to each element: a sum that
// cancels has the rounding errors of its terms. NaN and infinities must agree.
double kas::execution::maxRelativeError(const Tensor &actual,
                                        const Tensor &expected) {
  assert(actual.getShape() == expected.getShape() && "shapes must agree");
  double error = 0, magnitude = 0;
  for (auto [a, e] :
       llvm::zip_equal(actual.getValues(), expected.getValues())) {
    // An expected infinity says nothing about the scale.
    if (std::isfinite(e))
      magnitude = std::max(magnitude, std::abs(static_cast<double>(e)));
    if (a == e || (std::isnan(a) && std::isnan(e)))
      continue;
    if (!std::isfinite(a) || !std::isfinite(e))
      return std::numeric_limits<double>::infinity();
    error = std::max(error, std::abs(static_cast<double>(a) - e));
  }
  // Where all that was expected is zero, the error is absolute.
  return magnitude > 0 ? error / magnitude : error;
}
