//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Inflate.h"
#include "kas/Support/OutputFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"
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

struct NpyHeader {
  std::string dtype;
  bool fortranOrder = false;
  llvm::SmallVector<int64_t> shape;
};

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, with
/// the keys in any order, each exactly once.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  Expected<NpyHeader> parse() {
    NpyHeader header;
    bool seenDtype = false, seenOrder = false, seenShape = false;
    if (!consume("{"))
      return malformed();
    while (!consume("}")) {
      std::string key;
      if (!parseString(key) || !consume(":"))
        return malformed();
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
    if (!rest.trim().empty() || !seenDtype || !seenOrder || !seenShape)
      return malformed();
    return header;
  }

private:
  static Error malformed() {
    return createStringError("malformed .npy header");
  }

  bool consume(StringRef token) {
    rest = rest.ltrim();
    bool found = rest.consume_front(token);
    rest = rest.ltrim();
    return found;
  }
  bool parseString(std::string &value) {
    StringRef quote = rest.take_front(1);
    if ((quote != "'" && quote != "\"") || !consume(quote))
      return false;
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
  bool parseBool(bool &value) {
    value = rest.starts_with("True");
    return consume(value ? "True" : "False");
  }
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

/// Splits the bytes of a file into header and data.
Expected<std::pair<NpyHeader, StringRef>> splitNpy(StringRef bytes) {
  constexpr StringRef magic("\x93NUMPY", 6);
  if (!bytes.starts_with(magic.take_front(bytes.size())) || bytes.empty())
    return createStringError("not an .npy file");
  if (bytes.size() < 10)
    return createStringError("truncated .npy header");
  unsigned major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3)
    return createStringError("expected .npy format version 1, 2 or 3, got " +
                             Twine(major));
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
  return std::make_pair(std::move(*header), bytes.drop_front(prefix + length));
}

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
  auto split = splitNpy(bytes);
  if (!split)
    return split.takeError();
  auto &[header, data] = *split;
  if (Error error = checkDtype(header.dtype))
    return error;
  auto count = numElements(header.shape);
  if (!count)
    return count.takeError();
  // Before memory is allocated: the shape comes from the file.
  uint64_t expected = static_cast<uint64_t>(*count) * sizeof(float);
  if (data.size() != expected)
    return createStringError(
        Twine(data.size() < expected ? "truncated" : "trailing data") +
        ": shape " + shapeToString(header.shape) + " has " + Twine(expected) +
        " bytes, got " + Twine(data.size()));
  auto tensor = Tensor::create(header.shape);
  if (!tensor || expected == 0)
    return tensor;
  if (header.fortranOrder && header.shape.size() > 1) {
    // The data of a file may be at an odd address.
    Tensor aligned(ArrayRef<int64_t>{*count});
    std::memcpy(aligned.data(), data.data(), expected);
    copyFromFortranOrder(*tensor, aligned.data());
  } else {
    std::memcpy(tensor->data(), data.data(), expected);
  }
  return tensor;
}

std::string kas::execution::formatNpy(const Tensor &tensor) {
  std::string shape;
  for (int64_t dimension : tensor.getShape())
    shape += std::to_string(dimension) + ", ";
  // "(3, )" and "(2, 3)" are what NumPy writes and reads.
  StringRef tuple(shape);
  if (tensor.getShape().size() > 1)
    tuple = tuple.drop_back(2);
  else
    tuple = tuple.rtrim();
  std::string header =
      ("{'descr': '<f4', 'fortran_order': False, 'shape': (" + tuple + "), }")
          .str();
  // The data starts at a multiple of 64 bytes, after a newline.
  size_t length = llvm::alignTo(10 + header.size() + 1, 64) - 10;
  header.resize(length - 1, ' ');
  header += '\n';

  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(length & 0xff);
  bytes += static_cast<char>(length >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char *>(tensor.data()),
               tensor.getNumElements() * sizeof(float));
  return bytes;
}

//===----------------------------------------------------------------------===//
// Archives
//===----------------------------------------------------------------------===//

namespace {

/// One entry of the central directory of a zip archive.
struct ZipMember {
  std::string name;
  unsigned method = 0;
  uint32_t checkSum = 0;
  uint64_t compressedSize = 0, size = 0, offset = 0;
};

/// Reads the structures of a zip archive (PKWARE's APPNOTE 6.3, sections 4.3
/// and 4.4), zip64 included, because numpy.savez writes its extra fields.
class ZipReader {
public:
  explicit ZipReader(StringRef bytes) : bytes(bytes) {}

  Expected<llvm::SmallVector<ZipMember>> readDirectory() {
    constexpr size_t endSize = 22;
    size_t end = bytes.rfind(StringRef("PK\5\6", 4));
    if (end == StringRef::npos || bytes.size() - end < endSize)
      return corrupt("no end of the central directory");
    uint64_t count = read16le(at(end + 10));
    uint64_t position = read32le(at(end + 16));
    if (count == 0xffff || position == 0xffffffff)
      if (!readZip64End(end, count, position))
        return corrupt("bad zip64 directory");

    llvm::SmallVector<ZipMember> members;
    for (uint64_t i = 0; i < count; ++i) {
      ZipMember member;
      if (!readEntry(position, member))
        return corrupt("bad central directory");
      members.push_back(std::move(member));
    }
    return members;
  }

  /// The decompressed bytes of `member`, its check sum verified.
  Expected<std::string> read(const ZipMember &member) {
    constexpr size_t headerSize = 30;
    if (!has(member.offset, headerSize) ||
        !bytes.substr(member.offset).starts_with(StringRef("PK\3\4", 4)))
      return corrupt("bad member header");
    if (read16le(at(member.offset + 6)) & 1)
      return createStringError("encrypted member");
    uint64_t start = member.offset + headerSize +
                     read16le(at(member.offset + 26)) +
                     read16le(at(member.offset + 28));
    if (!has(start, member.compressedSize))
      return corrupt("truncated member");
    StringRef data = bytes.substr(start, member.compressedSize);

    std::string content;
    if (member.method == 0) {
      content = data.str();
    } else if (member.method == 8) {
      auto inflated = inflate(data, member.size);
      if (!inflated)
        return inflated.takeError();
      content = std::move(*inflated);
    } else {
      return createStringError(
          "expected a stored or deflated member, got compression method " +
          Twine(member.method));
    }
    if (content.size() != member.size ||
        llvm::crc32(llvm::arrayRefFromStringRef(content)) != member.checkSum)
      return corrupt("wrong check sum");
    return content;
  }

private:
  static Error corrupt(const Twine &what) {
    return createStringError("corrupt or truncated archive: " + what);
  }
  bool has(uint64_t position, uint64_t count) const {
    return position <= bytes.size() && bytes.size() - position >= count;
  }
  const char *at(uint64_t position) const { return bytes.data() + position; }

  bool readZip64End(size_t end, uint64_t &count, uint64_t &position) {
    if (end < 20)
      return false;
    uint64_t record = llvm::support::endian::read64le(at(end - 20 + 8));
    if (!has(record, 56) ||
        !bytes.substr(record).starts_with(StringRef("PK\6\6", 4)))
      return false;
    count = llvm::support::endian::read64le(at(record + 32));
    position = llvm::support::endian::read64le(at(record + 48));
    return count <= bytes.size();
  }

  bool readEntry(uint64_t &position, ZipMember &member) {
    constexpr size_t entrySize = 46;
    if (!has(position, entrySize) ||
        !bytes.substr(position).starts_with(StringRef("PK\1\2", 4)))
      return false;
    const char *entry = at(position);
    unsigned nameSize = read16le(entry + 28), extraSize = read16le(entry + 30),
             commentSize = read16le(entry + 32);
    if (!has(position + entrySize, nameSize + extraSize + commentSize))
      return false;
    member.name = bytes.substr(position + entrySize, nameSize).str();
    member.method = read16le(entry + 10);
    member.checkSum = read32le(entry + 16);
    member.compressedSize = read32le(entry + 20);
    member.size = read32le(entry + 24);
    member.offset = read32le(entry + 42);
    if (!readZip64Extra(
            bytes.substr(position + entrySize + nameSize, extraSize), member))
      return false;
    position += entrySize + nameSize + extraSize + commentSize;
    return true;
  }

  /// Replaces the sizes that are all ones by the 64-bit ones of the extra
  /// field.
  bool readZip64Extra(StringRef extra, ZipMember &member) {
    while (extra.size() >= 4) {
      unsigned kind = read16le(extra.data()), size = read16le(extra.data() + 2);
      if (extra.size() < 4 + size)
        return false;
      StringRef field = extra.substr(4, size);
      extra = extra.drop_front(4 + size);
      if (kind != 1)
        continue;
      for (uint64_t *value :
           {&member.size, &member.compressedSize, &member.offset}) {
        if (*value != 0xffffffff)
          continue;
        if (field.size() < 8)
          return false;
        *value = llvm::support::endian::read64le(field.data());
        field = field.drop_front(8);
      }
    }
    return true;
  }

  StringRef bytes;
};

Expected<std::unique_ptr<llvm::MemoryBuffer>> openFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(buffer.getError(),
                             "cannot read '" + path +
                                 "': " + buffer.getError().message());
  return std::move(*buffer);
}

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
  ZipReader reader((*buffer)->getBuffer());
  auto members = reader.readDirectory();
  if (!members)
    return inFile(path, members.takeError());
  NamedTensors tensors;
  for (const ZipMember &member : *members) {
    StringRef name(member.name);
    name.consume_back(".npy");
    auto fail = [&](Error error) {
      return inFile(path, createStringError("member '" + name + "': " +
                                            llvm::toString(std::move(error))));
    };
    auto content = reader.read(member);
    if (!content)
      return fail(content.takeError());
    auto tensor = parseNpy(*content);
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

/// Appends `value` as `size` bytes, least significant first.
static void appendLittleEndian(std::string &bytes, uint64_t value,
                               unsigned size) {
  for (unsigned i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

Error kas::execution::writeNpz(StringRef path, const NamedTensors &tensors) {
  std::string bytes, directory;
  for (const auto &[name, tensor] : tensors) {
    std::string content = formatNpy(tensor), member = name + ".npy";
    uint64_t offset = bytes.size();
    if (offset + content.size() >= 0xffffffff || tensors.size() >= 0xffff)
      return createStringError("cannot write '" + path +
                               "': more than 4 GiB need zip64");
    // Version, flags, method, time and date (1980-01-01: the same bytes for
    // the same arrays), check sum, sizes, lengths of name and extra field.
    std::string common;
    appendLittleEndian(common, 20, 2);
    appendLittleEndian(common, 0, 2);
    appendLittleEndian(common, 0, 2);
    appendLittleEndian(common, 0x00210000, 4);
    appendLittleEndian(common,
                       llvm::crc32(llvm::arrayRefFromStringRef(content)), 4);
    appendLittleEndian(common, content.size(), 4);
    appendLittleEndian(common, content.size(), 4);
    appendLittleEndian(common, member.size(), 2);
    appendLittleEndian(common, 0, 2);

    bytes += "PK\3\4" + common + member + content;
    directory += "PK\1\2";
    appendLittleEndian(directory, 20, 2);
    directory += common;
    // Comment length, disk, internal and external attributes.
    directory.append(2 + 2 + 2 + 4, '\0');
    appendLittleEndian(directory, offset, 4);
    directory += member;
  }
  std::string end("PK\5\6\0\0\0\0", 8);
  appendLittleEndian(end, tensors.size(), 2);
  appendLittleEndian(end, tensors.size(), 2);
  appendLittleEndian(end, directory.size(), 4);
  appendLittleEndian(end, bytes.size(), 4);
  appendLittleEndian(end, 0, 2);
  return writeFile(path, [&](llvm::raw_ostream &stream) {
    stream << bytes << directory << end;
    return Error::success();
  });
}
