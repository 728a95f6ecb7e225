//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads zip archives in memory, zip64 included, and writes stored members: the
// container of .npz files.
//
// Offsets of fields and their names are those of "APPNOTE.TXT - .ZIP File
// Format Specification" (PKWARE): 4.3.7 local file header, 4.3.12 central
// directory header, 4.3.14 to 4.3.16 end records, 4.5.3 zip64 extra field. A
// reader starts at the end, which names the central directory, which names the
// members.
//
//===----------------------------------------------------------------------===//
#include "kas/ExecutionEngine/Zip.h"
#include "kas/ExecutionEngine/Inflate.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;

static Error corrupt(const Twine &what) {
  return createStringError("corrupt or truncated archive: " + what);
}

namespace {

/// Reads the structures of an archive; false or an error where they end early.
class ZipReader {
public:
  explicit ZipReader(StringRef bytes) : bytes(bytes) {}

  /// All members, in the order of the directory.
  Expected<llvm::SmallVector<ZipMember, 0>> readDirectory() {
    constexpr size_t endSize = 22;
    // The end record is followed by a comment of any length: searched from
    // the end.
    size_t end = bytes.rfind(StringRef("PK\5\6", 4));
    if (end == StringRef::npos || bytes.size() - end < endSize)
      return corrupt("no end of the central directory");
    uint64_t count = read16le(at(end + 10));
    uint64_t position = read32le(at(end + 16));
    // All ones: the number is in the zip64 record.
    if (count == 0xffff || position == 0xffffffff)
      if (!readZip64End(end, count, position))
        return corrupt("bad zip64 directory");

    llvm::SmallVector<ZipMember, 0> members;
    for (uint64_t i = 0; i < count; ++i) {
      ZipMember member;
      if (!readEntry(position, member))
        return corrupt("bad central directory");
      members.push_back(std::move(member));
    }
    return members;
  }

  /// The bytes of `member` as they are in the archive.
  Expected<StringRef> find(const ZipMember &member) {
    constexpr size_t headerSize = 30;
    if (!has(member.offset, headerSize) ||
        !bytes.substr(member.offset).starts_with(StringRef("PK\3\4", 4)))
      return corrupt("bad member header");
    if (read16le(at(member.offset + 6)) & 1)
      return createStringError("encrypted member");
    // The lengths in the local header count: its extra field may differ from
    // that of the directory.
    uint64_t start = member.offset + headerSize +
                     read16le(at(member.offset + 26)) +
                     read16le(at(member.offset + 28));
    if (!has(start, member.compressedSize))
      return corrupt("truncated member");
    return bytes.substr(start, member.compressedSize);
  }

private:
  /// Whether `count` bytes from `position` on are in the archive; does not
  /// overflow.
  bool has(uint64_t position, uint64_t count) const {
    return position <= bytes.size() && bytes.size() - position >= count;
  }
  const char *at(uint64_t position) const { return bytes.data() + position; }

  /// Reads the zip64 end record, whose locator (20 bytes) is right before the
  /// end record.
  bool readZip64End(size_t end, uint64_t &count, uint64_t &position) {
    if (end < 20)
      return false;
    uint64_t record = llvm::support::endian::read64le(at(end - 20 + 8));
    if (!has(record, 56) ||
        !bytes.substr(record).starts_with(StringRef("PK\6\6", 4)))
      return false;
    count = llvm::support::endian::read64le(at(record + 32));
    position = llvm::support::endian::read64le(at(record + 48));
    // An entry has more than one byte: bounds the loop over entries.
    return count <= bytes.size();
  }

  /// Reads the directory's entry at `position`, which moves to the next one.
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
      // Other extra fields, such as times.
      if (kind != 1)
        continue;
      // Only values that are all ones have a field, in this order.
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

} // namespace

Expected<ZipArchive> ZipArchive::open(StringRef bytes) {
  auto members = ZipReader(bytes).readDirectory();
  if (!members)
    return members.takeError();
  ZipArchive archive(bytes);
  archive.members = std::move(*members);
  return archive;
}

Expected<ZipContent> ZipArchive::read(const ZipMember &member) const {
  auto data = ZipReader(bytes).find(member);
  if (!data)
    return data.takeError();
  ZipContent content{*data, nullptr};
  if (member.method == 8) {
    auto inflated = inflate(*data, member.size);
    if (!inflated)
      return inflated.takeError();
    // Shared: views of the bytes may outlive this call.
    content.decompressed =
        std::make_shared<const std::string>(std::move(*inflated));
    content.bytes = *content.decompressed;
  } else if (member.method != 0) {
    return createStringError(
        "expected a stored or deflated member, got compression method " +
        Twine(member.method));
  }
  // Stored members have their size twice, which must agree.
  if (content.bytes.size() != member.size ||
      llvm::crc32(llvm::arrayRefFromStringRef(content.bytes)) !=
          member.checkSum)
    return corrupt("wrong check sum");
  return content;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Appends `value` as `size` bytes, least significant first.
static void appendLittleEndian(std::string &bytes, uint64_t value,
                               unsigned size) {
  for (unsigned i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

Error ZipWriter::add(StringRef name, StringRef content) {
  constexpr size_t headerSize = 30, largestName = 0xffff;
  if (name.size() > largestName)
    return createStringError("requires names of at most " + Twine(largestName) +
                             " bytes, got " + Twine(name.size()));
  uint64_t end = size + headerSize + name.size() + content.size();
  if (end >= 0xffffffff || count + 1 >= 0xffff)
    return createStringError(end >= 0xffffffff
                                 ? "more than 4 GiB need zip64"
                                 : "more than 65534 members need zip64");
  // Version, flags, method, time and date (1980-01-01: the same bytes for the
  // same members), check sum, sizes, lengths of name and extra field.
  std::string common;
  appendLittleEndian(common, 20, 2);
  appendLittleEndian(common, 0, 2);
  appendLittleEndian(common, 0, 2);
  appendLittleEndian(common, 0x00210000, 4);
  appendLittleEndian(common, llvm::crc32(llvm::arrayRefFromStringRef(content)),
                     4);
  appendLittleEndian(common, content.size(), 4);
  appendLittleEndian(common, content.size(), 4);
  appendLittleEndian(common, name.size(), 2);
  appendLittleEndian(common, 0, 2);
  stream << "PK\3\4" << common << name << content;

  directory += "PK\1\2";
  appendLittleEndian(directory, 20, 2);
  directory += common;
  // Comment length, disk, internal and external attributes.
  directory.append(2 + 2 + 2 + 4, '\0');
  appendLittleEndian(directory, size, 4);
  directory += name;
  size = end;
  ++count;
  return Error::success();
}

// Number of this disk and of that of the directory, entries here and in all,
// size and offset of the directory, length of the comment.
void ZipWriter::finish() {
  std::string end("PK\5\6\0\0\0\0", 8);
  appendLittleEndian(end, count, 2);
  appendLittleEndian(end, count, 2);
  appendLittleEndian(end, directory.size(), 4);
  appendLittleEndian(end, size, 4);
  appendLittleEndian(end, 0, 2);
  stream << directory << end;
}
