//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The readers of files on any bytes, for libFuzzer: the first byte says which
// one. Each must end in a value or in an error.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CompiledFile.h"
#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Zip.h"
#include "kas/Search/Core/SearchStore.h"
#include "kas/Support/DeviceManifest.h"
#include "kas/Training/Checkpoint.h"
#include "kas/Training/Dataset.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

using namespace kas;
using llvm::StringRef;

namespace {

/// A file of `bytes`, which nobody else writes; the next one of the same name
/// takes its place.
class ScratchFile {
public:
  ScratchFile(StringRef name, StringRef bytes)
      : path(getFolder() + "/" + name.str()) {
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    stream << bytes;
    stream.close();
    if (error || stream.has_error())
      abort();
  }

  const std::string &getPath() const { return path; }

private:
  static const std::string &getFolder() {
    static std::string folder;
    if (folder.empty()) {
      llvm::SmallString<128> made;
      if (llvm::sys::fs::createUniqueDirectory("kas-fuzz-readers", made))
        abort();
      folder = made.str().str();
      static struct Remove {
        ~Remove() { llvm::sys::fs::remove_directories(folder); }
      } atExit;
    }
    return folder;
  }

  std::string path;
};

} // namespace

/// Lets go of a value or of an error, of which somebody reads the text.
template <typename T>
static bool drop(llvm::Expected<T> value) {
  if (value)
    return true;
  if (llvm::toString(value.takeError()).empty())
    abort();
  return false;
}

static void readZip(StringRef bytes) {
  auto archive = execution::ZipArchive::open(bytes);
  if (!archive)
    return (void)drop(std::move(archive));
  for (const execution::ZipMember &member : archive->getMembers())
    drop(archive->read(member));
}

/// Two arrays, one after the other: images and labels.
static void readPair(const std::string &kind, StringRef bytes) {
  if (bytes.empty())
    return;
  size_t middle = bytes.size() * static_cast<uint8_t>(bytes[0]) / 256;
  ScratchFile examples("examples",
                       bytes.take_front(middle).drop_front(middle ? 1 : 0));
  ScratchFile labels("labels", bytes.drop_front(middle));
  drop(training::loadDataset(kind + ":" + examples.getPath() + "," +
                             labels.getPath()));
}

static void readCheckpoint(StringRef bytes) {
  ScratchFile file("checkpoint.npz", bytes);
  float values[4] = {};
  training::NamedBuffer buffer{"w", {4}, values};
  drop(training::readCheckpoint(file.getPath(), "network", buffer));
}

static void readStore(StringRef bytes) {
  ScratchFile file("search.sqlite", bytes);
  auto store = search::SearchStore::openToRead(file.getPath());
  if (!store)
    return (void)drop(std::move(store));
  drop((*store)->readCandidates());
  drop((*store)->readStatistics());
  drop((*store)->readTraining());
}

static void readCompiled(StringRef bytes) {
  drop(execution::CompiledFile::read(
      llvm::MemoryBuffer::getMemBufferCopy(bytes)));
}

/// A header, of a size that its two first bytes say, and what follows it. No
/// fuzzer finds a check sum, so that the header gets its own.
static void readCompiledHeader(StringRef bytes) {
  using namespace llvm::support::endian;
  if (bytes.size() < 2)
    return;
  StringRef header = bytes.drop_front(2).take_front(read16le(bytes.data()));
  auto hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(header));
  std::string file("kas compiled 1\n\0", 16);
  for (uint64_t number : {hash.low64, hash.high64, uint64_t(header.size())}) {
    char written[8];
    write64le(written, number);
    file.append(written, sizeof(written));
  }
  readCompiled(file + bytes.drop_front(2).str());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  StringRef bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  switch (data[0] % 11) {
  case 0:
    drop(execution::parseNpy(bytes));
    break;
  case 1:
    readZip(bytes);
    break;
  case 2:
    drop(execution::readNpz(ScratchFile("file.npz", bytes).getPath()));
    break;
  case 3:
    readPair("idx", bytes);
    break;
  case 4:
    readPair("npy", bytes);
    break;
  case 5:
    drop(training::loadDataset("npz:" +
                               ScratchFile("file.npz", bytes).getPath()));
    break;
  case 6:
    readCheckpoint(bytes);
    break;
  case 7:
    readStore(bytes);
    break;
  case 8:
    readCompiled(bytes);
    break;
  case 9:
    readCompiledHeader(bytes);
    break;
  default:
    drop(DeviceManifest::fromJSON(bytes));
    break;
  }
  return 0;
}
