//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cache of compiled objects: in memory, and on disk with a check sum in
// each entry.
//
// The key of an entry is a hash of all that its code depends on (`computeKey`),
// so an entry never becomes stale. Several threads and processes may share one.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/JIT.h"
#include "kas/Support/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::execution;
using llvm::MemoryBuffer;
using llvm::StringRef;

/// First in every file: what it is, so that foreign files are not linked.
static constexpr StringRef magic("kasobj1\n", 8);

/// What is kept in memory: a search compiles new kernels for as long as it
/// runs.
static constexpr size_t maxBytes = size_t(256) << 20;

static std::string checkSum(StringRef bytes) {
  auto digest = llvm::BLAKE3::hash<16>(llvm::arrayRefFromStringRef(bytes));
  return llvm::toHex(digest, /*LowerCase=*/true);
}

/// Keeps a copy of `content` in memory. Forgets all others where they would
/// take too much; with a directory they are read again.
static void keep(llvm::StringMap<std::unique_ptr<MemoryBuffer>> &entries,
                 StringRef key, StringRef content) {
  size_t bytes = content.size();
  for (auto &entry : entries)
    bytes += entry.second->getBufferSize();
  if (bytes > maxBytes)
    entries.clear();
  entries[key] = MemoryBuffer::getMemBufferCopy(content, key);
}

ObjectCache::ObjectCache(StringRef directory) : directory(directory) {}
ObjectCache::~ObjectCache() = default;

std::string ObjectCache::getPath(StringRef key) const {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, key + ".kaso");
  return std::string(path);
}

std::unique_ptr<MemoryBuffer> ObjectCache::load(StringRef key) {
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = entries.find(key); found != entries.end()) {
    ++numHits;
    // A copy, as linking takes the buffer.
    return MemoryBuffer::getMemBufferCopy(found->second->getBuffer(), key);
  }
  if (directory.empty())
    return nullptr;
  auto file = MemoryBuffer::getFile(getPath(key), /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return nullptr;
  // File: magic, 32 hexadecimal digits of the check sum, object.
  StringRef content = (*file)->getBuffer();
  std::string sum = content.consume_front(magic) ? content.take_front(32).str()
                                                 : std::string();
  content = content.drop_front(std::min<size_t>(32, content.size()));
  // A damaged entry counts as missing and is written again.
  if (sum.empty() || sum != checkSum(content))
    return nullptr;
  ++numHits;
  keep(entries, key, content);
  return MemoryBuffer::getMemBufferCopy(content, key);
}

void ObjectCache::store(StringRef key, const MemoryBuffer &object) {
  std::lock_guard<std::mutex> lock(mutex);
  keep(entries, key, object.getBuffer());
  if (directory.empty() || llvm::sys::fs::create_directories(directory))
    return;
  // A cache that cannot be written only costs time.
  // `writeFile` writes to another name and renames, so that no reader sees half
  // of an entry.
  llvm::consumeError(writeFile(getPath(key), [&](llvm::raw_ostream &stream) {
    stream << magic << checkSum(object.getBuffer()) << object.getBuffer();
    return llvm::Error::success();
  }));
}
