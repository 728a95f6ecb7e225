//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of data sets: decompression, numbers of any type and order, arrays as
// examples.
// idx and npy files become a `DataArray` (type, shape, byte order, bytes), and
// arrays become `Examples`: pointers into the file where the bytes can be used
// as they are, else a copy in C order. CIFAR files make examples themselves.
//
//===----------------------------------------------------------------------===//
#include "DataFiles.h"
#include "kas/ExecutionEngine/Inflate.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace kas;
using namespace kas::training;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

char NoTestPart::ID;

Error kas::training::inFile(StringRef path, Error error) {
  bool isMissing = error.isA<NoTestPart>();
  std::string message =
      ("'" + path + "': " + llvm::toString(std::move(error))).str();
  if (isMissing)
    return llvm::make_error<NoTestPart>(message);
  return createStringError(message);
}

/// Files are mapped, not read, unless they are compressed; the returned storage
/// keeps the bytes alive.
Expected<DataFile> kas::training::openDataFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(buffer.getError(),
                             "cannot read '" + path +
                                 "': " + buffer.getError().message());
  // By content and not by name: downloads lose their suffix.
  if (!execution::isGzip((*buffer)->getBuffer())) {
    std::shared_ptr<llvm::MemoryBuffer> shared(std::move(*buffer));
    return DataFile{shared->getBuffer(), shared};
  }
  auto content = execution::gunzip((*buffer)->getBuffer());
  if (!content)
    return inFile(path, content.takeError());
  auto shared = std::make_shared<std::string>(std::move(*content));
  return DataFile{*shared, shared};
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Calls `function` with a value of the C++ type of `type`.
/// The value only carries the type: a `switch` once, templates after it.
template <typename Function>
static decltype(auto) withType(NumberType type, Function &&function) {
  switch (type) {
  case NumberType::I8:
    return function(int8_t());
  case NumberType::U8:
    return function(uint8_t());
  case NumberType::I16:
    return function(int16_t());
  case NumberType::U16:
    return function(uint16_t());
  case NumberType::I32:
    return function(int32_t());
  case NumberType::U32:
    return function(uint32_t());
  case NumberType::I64:
    return function(int64_t());
  case NumberType::U64:
    return function(uint64_t());
  case NumberType::F32:
    return function(float());
  case NumberType::F64:
    return function(double());
  }
  llvm_unreachable("unknown type of numbers");
}

StringRef kas::training::getName(NumberType type) {
  // In the order of the enumeration.
  constexpr StringRef names[] = {"i8",  "u8",  "i16", "u16", "i32",
                                 "u32", "i64", "u64", "f32", "f64"};
  return names[static_cast<size_t>(type)];
}

/// In bytes.
size_t kas::training::getSize(NumberType type) {
  return withType(type, [](auto value) { return sizeof(value); });
}

/// Number `index` of an array, at any alignment and in any byte order.
/// Mapped files give no alignment, and MNIST is big-endian.
template <typename Number>
static Number readNumber(const DataArray &array, int64_t index) {
  const char *from = array.data.bytes.data() + index * sizeof(Number);
  return llvm::support::endian::read<Number>(
      from, array.bigEndian ? llvm::endianness::big : llvm::endianness::little);
}

/// The bytes of the file must be those of shape and type, no more and no fewer.
Error kas::training::checkSize(const DataArray &array) {
  auto count = execution::numElements(array.shape);
  if (!count)
    return count.takeError();
  uint64_t expected = static_cast<uint64_t>(*count) * getSize(array.type);
  uint64_t size = array.data.bytes.size();
  if (size == expected)
    return Error::success();
  return createStringError(
      Twine(size < expected ? "truncated" : "trailing data") + ": shape " +
      execution::shapeToString(array.shape) + " of " + getName(array.type) +
      " has " + Twine(expected) + " bytes, got " + Twine(size));
}

//===----------------------------------------------------------------------===//
// Examples
//===----------------------------------------------------------------------===//

/// The distance between neighbours along each dimension, in elements.
static llvm::SmallVector<int64_t> getStrides(const DataArray &array) {
  llvm::SmallVector<int64_t> strides(array.shape.size());
  int64_t stride = 1;
  for (size_t i : llvm::seq(strides.size())) {
    // The stride 1 belongs to the last dimension, in Fortran order to the
    // first.
    size_t d = array.fortranOrder ? i : strides.size() - 1 - i;
    strides[d] = stride;
    stride *= array.shape[d];
  }
  return strides;
}

/// Copies an array into C order. `shape` and `strides` are its dimensions,
/// permuted into the order of the result.
template <typename From, typename To>
static void copyInOrder(const DataArray &array, ArrayRef<int64_t> shape,
                        ArrayRef<int64_t> strides, To *to) {
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  int64_t count = llvm::cantFail(execution::numElements(shape));
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<To>(readNumber<From>(array, offset));
    // Like an odometer: the last dimension counts, and wraps into the one
    // before.
    for (size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < shape[d])
        break;
      offset -= shape[d] * strides[d];
      index[d] = 0;
    }
  }
}

/// Whether the elements can be read where they are.
static bool isUsableInPlace(const DataArray &array, bool permuted) {
  bool bytes = array.type == NumberType::U8;
  bool floats =
      // f64 and other types are converted, which is a copy anyway.
      array.type == NumberType::F32 && !array.bigEndian &&
      reinterpret_cast<uintptr_t>(array.data.bytes.data()) % alignof(float) ==
          0;
  return (bytes || floats) && !array.fortranOrder && !permuted;
}

/// Examples of an array [N, ...]. With `NHWC` images of rank 3 become [C, H,
/// W].
Expected<Examples> kas::training::makeExamples(const DataArray &array,
                                               Layout layout) {
  if (array.type != NumberType::U8 && array.type != NumberType::F32 &&
      array.type != NumberType::F64)
    return createStringError("requires examples of u8, f32 or f64, got " +
                             getName(array.type));
  if (array.shape.size() < 2)
    return createStringError("requires examples of rank 2 or more, got shape " +
                             execution::shapeToString(array.shape));
  if (llvm::is_contained(array.shape, 0))
    return createStringError("requires at least one example and element, got "
                             "shape " +
                             execution::shapeToString(array.shape));
  if (Error error = checkSize(array))
    return error;

  llvm::SmallVector<int64_t> shape(array.shape), strides = getStrides(array);
  // [N, H, W, C] -> [N, C, H, W]; other ranks have no channels to move.
  bool permuted = layout == Layout::NHWC && shape.size() == 4;
  if (permuted)
    for (auto *dimensions : {&shape, &strides})
      dimensions->insert(dimensions->begin() + 1, dimensions->pop_back_val());

  Examples examples;
  examples.type =
      array.type == NumberType::U8 ? ElementType::U8 : ElementType::F32;
  const char *start = array.data.bytes.data();
  examples.storage = array.data.storage;
  int64_t count = llvm::cantFail(execution::numElements(shape));
  int64_t elementSize = examples.type == ElementType::U8 ? 1 : sizeof(float);
  if (!isUsableInPlace(array, permuted)) {
    // Floats for u8 as well, so that the storage has one type; rounded up.
    auto copy = std::make_shared<std::vector<float>>(
        llvm::divideCeil(count * elementSize, sizeof(float)));
    start = reinterpret_cast<const char *>(copy->data());
    if (array.type == NumberType::U8)
      copyInOrder<uint8_t>(array, shape, strides,
                           reinterpret_cast<uint8_t *>(copy->data()));
    else if (array.type == NumberType::F32)
      copyInOrder<float>(array, shape, strides, copy->data());
    else
      copyInOrder<double>(array, shape, strides, copy->data());
    examples.storage = std::move(copy);
  }

  // Bytes of one example.
  int64_t stride = count / shape.front() * elementSize;
  examples.starts.reserve(shape.front());
  for (int64_t i : llvm::seq(shape.front()))
    examples.starts.push_back(start + i * stride);
  examples.shape.assign(shape.begin() + 1, shape.end());
  // Images HxW have one channel.
  if (examples.shape.size() == 2)
    examples.shape.insert(examples.shape.begin(), 1);
  return examples;
}

Expected<std::vector<int64_t>>
kas::training::makeLabels(const DataArray &array) {
  if (array.type == NumberType::F32 || array.type == NumberType::F64)
    return createStringError("requires labels of an integer type, got " +
                             getName(array.type));
  // NumPy often keeps labels as a column.
  bool column = array.shape.size() == 2 && array.shape[1] == 1;
  if (array.shape.size() != 1 && !column)
    return createStringError("requires labels of shape N or Nx1, got " +
                             execution::shapeToString(array.shape));
  if (Error error = checkSize(array))
    return error;
  return withType(array.type, [&](auto zero) {
    std::vector<int64_t> labels(array.shape[0]);
    // A u64 beyond i64 becomes negative, which no label may be.
    for (auto [i, label] : llvm::enumerate(labels))
      label = static_cast<int64_t>(readNumber<decltype(zero)>(array, i));
    return labels;
  });
}
