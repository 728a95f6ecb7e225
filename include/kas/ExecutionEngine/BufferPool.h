//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory of compiled code between calls.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_BUFFERPOOL_H
#define KAS_EXECUTIONENGINE_BUFFERPOOL_H

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace kas::execution {

/// `malloc` and `free` of code that was compiled in this process. A function
/// allocates the same large buffers at each call; taken from the system each
/// time, their pages cost up to two fifths of a training step. The memory of
/// large blocks is therefore kept: as much as was in use at once, and eighths
/// more where blocks do not fit otherwise. A block lies as low as there is
/// space, so that buffers of different sizes use the same memory, which the
/// processor's caches hold. May be used by any number of threads.
class BufferPool {
public:
  /// Blocks from this size on, in bytes, are kept.
  static constexpr size_t minKept = 1 << 16;

  /// That of the process.
  static BufferPool &get();

  /// Null where there is no memory. Aligned to 64 bytes.
  void *allocate(size_t size);
  /// A block of `allocate`, or null.
  void release(void *data);

  /// How many bytes are kept for later.
  size_t getNumKept() const;

  BufferPool();
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;
  ~BufferPool();

private:
  struct Block;
  struct Region;

  void *take(size_t size);
  bool addRegion(size_t size);
  void drop();

  mutable std::mutex mutex;
  /// What the system has given, in the order of blocks that are looked for.
  std::vector<std::unique_ptr<Region>> regions;
  /// Bytes of all regions, of the blocks in use, and the most that were.
  size_t numBytes = 0, numUsed = 0, mostUsed = 0;
  /// Bytes of the next region, where there is none.
  size_t nextRegion = 0;
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_BUFFERPOOL_H
