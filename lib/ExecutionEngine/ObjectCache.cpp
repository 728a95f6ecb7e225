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
// A file's time of modification is that of its last use, which says what goes
// first where not all may be kept.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/ObjectCache.h"
#include "kas/Support/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>

using namespace kas;
using namespace kas::execution;
using llvm::MemoryBuffer;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// The user's
//===----------------------------------------------------------------------===//

/// An environment variable; empty where it is not set.
static StringRef getVariable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

llvm::Expected<CacheSettings> CacheSettings::getOfUser() {
  StringRef megabytes = getVariable("KAS_CACHE_MB");
  uint64_t limit = 512;
  // Ten digits at most: more bytes than 64 bits count are no limit.
  if (!megabytes.empty() &&
      (megabytes.size() > 10 || megabytes.getAsInteger(10, limit)))
    return llvm::createStringError(
        "KAS_CACHE_MB requires a number of megabytes, got '" + megabytes + "'");
  if (limit == 0)
    return CacheSettings();
  llvm::SmallString<128> directory(getVariable("KAS_CACHE_DIR"));
  if (directory.empty()) {
    directory = getVariable("XDG_CACHE_HOME");
    if (directory.empty()) {
      // A user without a home keeps nothing.
      if (!llvm::sys::path::home_directory(directory))
        return CacheSettings();
      llvm::sys::path::append(directory, ".cache");
    }
    llvm::sys::path::append(directory, "kas", "compiled");
  }
  return CacheSettings{std::string(directory), limit << 20};
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

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

/// In the names of files, those that were left unfinished, too; nothing else in
/// a directory is ours.
static constexpr StringRef extension = ".kaso";

/// Removes what was not used for the longest time, down to `maxBytes`.
static void removeBeyond(StringRef directory, uint64_t maxBytes) {
  namespace fs = llvm::sys::fs;
  std::vector<std::tuple<llvm::sys::TimePoint<>, std::string, uint64_t>> files;
  uint64_t total = 0;
  std::error_code code;
  for (fs::directory_iterator file(directory, code), end; file != end && !code;
       file.increment(code)) {
    // Another process may have removed it.
    auto status = file->status();
    if (!status || !llvm::sys::path::filename(file->path()).contains(extension))
      continue;
    files.emplace_back(status->getLastModificationTime(), file->path(),
                       status->getSize());
    total += status->getSize();
  }
  llvm::sort(files);
  for (const auto &[time, path, size] : files) {
    if (total <= maxBytes)
      return;
    (void)fs::remove(path);
    total -= size;
  }
}

/// Whether a directory is to be looked through after `size` more bytes: at the
/// first ones of a process, and then after each 64th of what may be kept.
static bool isDue(uint64_t size, uint64_t maxBytes) {
  static std::mutex mutex;
  static uint64_t since = 0;
  static bool isFirst = true;
  std::lock_guard<std::mutex> lock(mutex);
  since += size;
  if (!isFirst && since <= maxBytes / 64)
    return false;
  isFirst = false;
  since = 0;
  return true;
}

ObjectCache::ObjectCache(StringRef directory)
    : ObjectCache(CacheSettings{directory.str(), 0}) {}
ObjectCache::ObjectCache(CacheSettings settings)
    : settings(std::move(settings)) {}
ObjectCache::~ObjectCache() = default;

llvm::Expected<std::unique_ptr<ObjectCache>> ObjectCache::openOfUser() {
  auto settings = CacheSettings::getOfUser();
  if (!settings)
    return settings.takeError();
  return std::make_unique<ObjectCache>(std::move(*settings));
}

std::string ObjectCache::getPath(StringRef key) const {
  llvm::SmallString<128> path(settings.directory);
  llvm::sys::path::append(path, key + extension);
  return std::string(path);
}

std::unique_ptr<MemoryBuffer> ObjectCache::load(StringRef key) {
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = entries.find(key); found != entries.end()) {
    ++numHits;
    // A copy, as linking takes the buffer.
    return MemoryBuffer::getMemBufferCopy(found->second->getBuffer(), key);
  }
  if (settings.directory.empty())
    return nullptr;
  std::string path = getPath(key);
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false,
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
  // Where that is not allowed, it seems less used than it is.
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return MemoryBuffer::getMemBufferCopy(content, key);
}

void ObjectCache::store(StringRef key, StringRef content) {
  std::lock_guard<std::mutex> lock(mutex);
  keep(entries, key, content);
  bool isLimited = settings.maxBytes > 0;
  if (settings.directory.empty() ||
      (isLimited && content.size() > settings.maxBytes))
    return;
  // What is run from there must not be written by others.
  namespace fs = llvm::sys::fs;
  if (fs::create_directories(settings.directory, /*IgnoreExisting=*/true,
                             fs::owner_all))
    return;
  // A cache that cannot be written only costs time.
  // `writeFile` writes to another name and renames, so that no reader sees half
  // of an entry.
  llvm::consumeError(writeFile(getPath(key), [&](llvm::raw_ostream &stream) {
    stream << magic << checkSum(content) << content;
    return llvm::Error::success();
  }));
  if (isLimited && isDue(content.size(), settings.maxBytes))
    removeBeyond(settings.directory, settings.maxBytes);
}
