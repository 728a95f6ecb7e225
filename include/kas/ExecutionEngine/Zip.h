//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Zip archives (PKWARE's APPNOTE 6.3, sections 4.3 and 4.4), as NumPy's .npz.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_ZIP_H
#define KAS_EXECUTIONENGINE_ZIP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace kas::execution {

/// One entry of the central directory of an archive.
struct ZipMember {
  std::string name;
  unsigned method = 0;
  uint32_t checkSum = 0;
  uint64_t compressedSize = 0, size = 0, offset = 0;
};

/// What a member holds: a part of the archive, or decompressed bytes.
struct ZipContent {
  llvm::StringRef bytes;
  /// Null for a part of the archive.
  std::shared_ptr<const std::string> decompressed;
};

/// Reads an archive in memory, zip64 included: numpy.savez writes its fields.
class ZipArchive {
public:
  /// Reads the directory. `bytes` must live as long as the archive.
  static llvm::Expected<ZipArchive> open(llvm::StringRef bytes);

  /// In the order of the directory.
  llvm::ArrayRef<ZipMember> getMembers() const { return members; }

  /// The content of a member, stored or deflated, its check sum verified.
  /// Encryption, several disks and sizes beyond the archive are errors.
  llvm::Expected<ZipContent> read(const ZipMember &member) const;

private:
  explicit ZipArchive(llvm::StringRef bytes) : bytes(bytes) {}

  llvm::StringRef bytes;
  llvm::SmallVector<ZipMember, 0> members;
};

/// Writes an archive of stored members: the same bytes for the same members.
class ZipWriter {
public:
  explicit ZipWriter(llvm::raw_ostream &stream) : stream(stream) {}

  /// An error where the archive gets larger than 4 GiB, the name longer than
  /// 65535 bytes or the members more than 65534.
  llvm::Error add(llvm::StringRef name, llvm::StringRef content);
  /// Writes the directory; to be called once, at the end.
  void finish();

private:
  llvm::raw_ostream &stream;
  uint64_t size = 0, count = 0;
  std::string directory;
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_ZIP_H
