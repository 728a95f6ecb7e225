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

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <cstddef>
#include <list>
#include <mutex>

namespace kas::execution {

/// `malloc` and `free` of code that was compiled in this process. A function
/// allocates the same large buffers at each call; taken from the system each
/// time, their pages cost up to two fifths of a training step. Large blocks
/// that are freed are therefore kept, for buffers of the same size, but never
/// more than were in use at once; the oldest go first. May be used by any
/// number of threads.
class BufferPool {
public:
  /// Blocks from this size on are kept.
  static constexpr size_t minKept = 1 << 16;

  /// That of the process.
  static BufferPool &get();

  /// Null where there is no memory. Aligned to 64 bytes.
  void *allocate(size_t size);
  /// A block of `allocate`, or null.
  void release(void *data);

  /// How many bytes are kept for later.
  size_t getNumKept() const;

  BufferPool() = default;
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;
  ~BufferPool();

private:
  struct Block;
  using Blocks = std::list<Block *>;

  Block *take(size_t size);
  void drop(size_t limit);

  mutable std::mutex mutex;
  /// What is kept: the oldest first, and of each size.
  Blocks kept;
  llvm::DenseMap<size_t, llvm::SmallVector<Blocks::iterator>> keptOfSize;
  size_t numKept = 0, numUsed = 0, mostUsed = 0;
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_BUFFERPOOL_H
