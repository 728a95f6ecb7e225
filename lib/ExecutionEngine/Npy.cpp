//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes .npy files, versions 1 to 3 of NumPy's format
// (numpy.lib.format, "Format Version 1.0" and later), and archives of them.
//
//    "\x93NUMPY" major minor | length, 2 or 4 bytes | header text | elements
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Zip.h"
#include "kas/Support/OutputFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace kas;
using namespace kas::execution;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;

static_assert(llvm::endianness::native == llvm::endianness::little,
              "arrays are read and written as they lie in memory");

//===----------------------------------------------------------------------===//
// The header: a Python dictionary
//===----------------------------------------------------------------------===//

namespace {

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, with
/// the keys in any order, each exactly once.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  Expected<NpyView> parse() {
    NpyView header;
    bool seenDtype = false, seenOrder = false, seenShape = false;
    if (!consume("{"))
      return malformed();
    while (!consume("}")) {
      std::string key;
      if (!parseString(key) || !consume(":"))
        return malformed();
      // A key that occurs twice is malformed, like an unknown one.
      bool good = false;
      if (key == "descr" && !seenDtype)
        good = seenDtype = parseDtype(header.dtype);
      else if (key == "fortran_order" && !seenOrder)
        good = seenOrder = parseBool(header.fortranOrder);
      else if (key == "shape" && !seenShape)
        good = seenShape = parseShape(header.shape);
      if (!good)
        return malformed();
      if (!consume(",") && !rest.starts_with("}"))
        return malformed();
    }
    // Padding follows the dictionary; each key must have occurred.
    if (!rest.trim().empty() || !seenDtype || !seenOrder || !seenShape)
      return malformed();
    return header;
  }

private:
  /// Which part is wrong would not help: headers are written by programs.
  static Error malformed() {
    return createStringError("malformed .npy header");
  }

  /// Drops `token` and the blanks around it, if it is next.
  bool consume(StringRef token) {
    rest = rest.ltrim();
    bool found = rest.consume_front(token);
    rest = rest.ltrim();
    return found;
  }
  /// A Python string in either kind of quotes.
  bool parseString(std::string &value) {
    StringRef quote = rest.take_front(1);
    if ((quote != "'" && quote != "\"") || !consume(quote))
      return false;
    // No escapes: NumPy writes none in keys and types.
    size_t end = rest.find(quote);
    if (end == StringRef::npos)
      return false;
    value = rest.take_front(end).str();
    rest = rest.drop_front(end);
    return consume(quote);
  }
  /// A string, or for structured types a list, which is kept as text.
  bool parseDtype(std::string &value) {
    if (!rest.starts_with("["))
      return parseString(value);
    size_t end = rest.find(']');
    if (end == StringRef::npos)
      return false;
    value = rest.take_front(end + 1).str();
    rest = rest.drop_front(end + 1).ltrim();
    return true;
  }
  /// `True` or `False`.
  bool parseBool(bool &value) {
    value = rest.starts_with("True");
    return consume(value ? "True" : "False");
  }
  /// A tuple of integers: `()`, `(3,)`, `(2, 3)`.
  bool parseShape(llvm::SmallVector<int64_t> &shape) {
    if (!consume("("))
      return false;
    while (!consume(")")) {
      int64_t dimension;
      if (rest.consumeInteger(10, dimension))
        return false;
      shape.push_back(dimension);
      // A tuple of one element needs its comma, others may end without.
      if (!consume(",") && (shape.size() == 1 || !rest.starts_with(")")))
        return false;
    }
    return true;
  }

  StringRef rest;
};

} // namespace

Expected<NpyView> kas::execution::viewNpy(StringRef bytes) {
  constexpr StringRef magic("\x93NUMPY", 6);
  // A shorter file that begins like the magic is truncated, not of another
  // format.
  if (!bytes.starts_with(magic.take_front(bytes.size())) || bytes.empty())
    return createStringError("not an .npy file");
  // Magic, version and the shorter length.
  if (bytes.size() < 10)
    return createStringError("truncated .npy header");
  unsigned major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3)
    return createStringError("expected .npy format version 1, 2 or 3, got " +
                             Twine(major));
  // The length has two bytes in version 1, four in versions 2 and 3.
  size_t prefix = major == 1 ? 10 : 12;
  if (bytes.size() < prefix)
    return createStringError("truncated .npy header");
  size_t length = major == 1 ? read16le(bytes.data() + 8)
                             : size_t(read32le(bytes.data() + 8));
  if (bytes.size() - prefix < length)
    return createStringError("truncated .npy header");
  auto header = HeaderParser(bytes.substr(prefix, length)).parse();
  if (!header)
    return header.takeError();
  // A view: the bytes must outlive it.
  header->data = bytes.drop_front(prefix + length);
  return header;
}

namespace {

/// An error unless elements are f32 as this machine has them.
Error checkDtype(StringRef dtype) {
  if (dtype == "<f4")
    return Error::success();
  if (dtype == ">f4")
    return createStringError(
        "expected little-endian f32 ('<f4'), got big-endian ('>f4')");
  return createStringError("expected dtype f32 ('<f4'), got '" + dtype + "'");
}

/// Copies `from`, whose first dimension is the contiguous one, into C order.
void copyFromFortranOrder(Tensor &to, const float *from) {
  ArrayRef<int64_t> shape = to.getShape();
  llvm::SmallVector<int64_t> strides(shape.size(), 1), index(shape.size(), 0);
  for (size_t d = 1; d < shape.size(); ++d)
    strides[d] = strides[d - 1] * shape[d - 1];
  // In C order, with the last index fastest; `index` is carried like an
  // odometer.
  for (float &value : to.getValues()) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      offset += index[d] * strides[d];
    value = from[offset];
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
}

} // namespace

Expected<Tensor> kas::execution::parseNpy(StringRef bytes) {
  auto header = viewNpy(bytes);
  if (!header)
    return header.takeError();
  StringRef data = header->data;
  if (Error error = checkDtype(header->dtype))
    return error;
  // Negative or overflowing shapes are errors here.
  auto count = numElements(header->shape);
  if (!count)
    return count.takeError();
  // Before memory is allocated: the shape comes from the file.
  uint64_t expected = static_cast<uint64_t>(*count) * sizeof(float);
  if (data.size() != expected)
    return createStringError(
        Twine(data.size() < expected ? "truncated" : "trailing data") +
        ": shape " + shapeToString(header->shape) + " has " + Twine(expected) +
        " bytes, got " + Twine(data.size()));
  auto tensor = Tensor::create(header->shape);
  if (!tensor || expected == 0)
    return tensor;
  if (header->fortranOrder && header->shape.size() > 1) {
    // The data of a file may be at any address, floats are at multiples of 4.
    Tensor aligned(ArrayRef<int64_t>{*count});
    std::memcpy(aligned.data(), data.data(), expected);
    copyFromFortranOrder(*tensor, aligned.data());
  } else {
    std::memcpy(tensor->data(), data.data(), expected);
  }
  return tensor;
}

std::string kas::execution::formatNpyHeader(ArrayRef<int64_t> dimensions) {
  std::string shape;
  for (int64_t dimension : dimensions)
    shape += std::to_string(dimension) + ", ";
  // "(3, )" and "(2, 3)" are what NumPy writes and reads.
  StringRef tuple(shape);
  if (dimensions.size() > 1)
    tuple = tuple.drop_back(2);
  else
    tuple = tuple.rtrim();
  std::string header =
      ("{'descr': '<f4', 'fortran_order': False, 'shape': (" + tuple + "), }")
          .str();
  // The data starts at a multiple of 64 bytes, after a newline.
  size_t length = llvm::alignTo(10 + header.size() + 1, 64) - 10;
  // As NumPy pads its headers, so that files can be mapped.
  header.resize(length - 1, ' ');
  header += '\n';

  std::string bytes("\x93NUMPY\x01\x00", 8);
  // Version 1: the header of at most 32 dimensions is far below 64 KiB.
  bytes += static_cast<char>(length & 0xff);
  bytes += static_cast<char>(length >> 8);
  return bytes + header;
}

std::string kas::execution::formatNpy(const Tensor &tensor) {
  std::string bytes = formatNpyHeader(tensor.getShape());
  bytes.append(reinterpret_cast<const char *>(tensor.data()),
               tensor.getNumElements() * sizeof(float));
  return bytes;
}

//===----------------------------------------------------------------------===//
// Archives
//===----------------------------------------------------------------------===//

namespace {

/// Large files are mapped, small ones are read.
Expected<std::unique_ptr<llvm::MemoryBuffer>> openFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(buffer.getError(),
                             "cannot read '" + path +
                                 "': " + buffer.getError().message());
  return std::move(*buffer);
}

/// `error` with the file that it is about.
Error inFile(StringRef path, Error error) {
  return createStringError("'" + path +
                           "': " + llvm::toString(std::move(error)));
}

} // namespace

Expected<Tensor> kas::execution::readNpy(StringRef path) {
  auto buffer = openFile(path);
  if (!buffer)
    return buffer.takeError();
  auto tensor = parseNpy((*buffer)->getBuffer());
  if (!tensor)
    return inFile(path, tensor.takeError());
  return tensor;
}

Expected<NamedTensors> kas::execution::readNpz(StringRef path) {
  auto buffer = openFile(path);
  if (!buffer)
    return buffer.takeError();
  auto archive = ZipArchive::open((*buffer)->getBuffer());
  if (!archive)
    return inFile(path, archive.takeError());
  NamedTensors tensors;
  for (const ZipMember &member : archive->getMembers()) {
    StringRef name(member.name);
    // As `numpy.savez` names members.
    name.consume_back(".npy");
    auto fail = [&](Error error) {
      return inFile(path, createStringError("member '" + name + "': " +
                                            llvm::toString(std::move(error))));
    };
    auto content = archive->read(member);
    if (!content)
      return fail(content.takeError());
    auto tensor = parseNpy(content->bytes);
    if (!tensor)
      return fail(tensor.takeError());
    if (!tensors.insert({name.str(), std::move(*tensor)}).second)
      return fail(createStringError("is twice in the archive"));
  }
  return tensors;
}

Error kas::execution::writeNpy(StringRef path, const Tensor &tensor) {
  return writeFile(path, [&](llvm::raw_ostream &stream) {
    stream << formatNpy(tensor);
    return Error::success();
  });
}

Error kas::execution::writeNpz(StringRef path, const NamedTensors &tensors) {
  return writeFile(path, [&](llvm::raw_ostream &stream) -> Error {
    ZipWriter writer(stream);
    for (const auto &[name, tensor] : tensors)
      if (Error error = writer.add(name + ".npy", formatNpy(tensor)))
        return createStringError("cannot write '" + path +
                                 "': " + llvm::toString(std::move(error)));
    writer.finish();
    return Error::success();
  });
}
