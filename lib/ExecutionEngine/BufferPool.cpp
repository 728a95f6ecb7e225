//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `malloc` and `free` of compiled code: keeps large blocks for the next call,
// since new pages from the system cost up to two fifths of a training step.
//
// Blocks of one size are reused last-in first-out. No more is kept than the
// most that was in use at once, so that the memory of a process at most
// doubles.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/BufferPool.h"
#include <algorithm>
#include <cstdlib>

using namespace kas::execution;

/// Before the data of each block; as large as the alignment.
struct alignas(64) BufferPool::Block {
  size_t size;
};

BufferPool &BufferPool::get() {
  // Never destroyed: code may run while the process ends.
  static auto *pool = new BufferPool();
  return *pool;
}

BufferPool::~BufferPool() { drop(0); }

BufferPool::Block *BufferPool::take(size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = keptOfSize.find(size);
  if (found == keptOfSize.end())
    return nullptr;
  // The one that was freed last is the most likely to be in a cache.
  Blocks::iterator position = found->second.pop_back_val();
  if (found->second.empty())
    keptOfSize.erase(found);
  Block *block = *position;
  kept.erase(position);
  numKept -= size;
  return block;
}

void *BufferPool::allocate(size_t size) {
  constexpr size_t unit = alignof(Block);
  // The sum below must not overflow.
  if (size > size_t(-1) - sizeof(Block) - unit)
    return nullptr;
  size = (size + unit - 1) / unit * unit;
  Block *block = size >= minKept ? take(size) : nullptr;
  if (!block) {
    block =
        static_cast<Block *>(std::aligned_alloc(unit, sizeof(Block) + size));
    if (!block)
      return nullptr;
    block->size = size;
  }
  if (size >= minKept) {
    std::lock_guard<std::mutex> lock(mutex);
    numUsed += size;
    mostUsed = std::max(mostUsed, numUsed);
  }
  return block + 1;
}

// Frees the blocks that were released longest ago until at most `limit` bytes
// are kept.
void BufferPool::drop(size_t limit) {
  while (numKept > limit) {
    Block *oldest = kept.front();
    auto found = keptOfSize.find(oldest->size);
    // Lists of one size are in the order of release, as `kept` is: its first
    // element is the oldest one of its size.
    found->second.erase(found->second.begin());
    if (found->second.empty())
      keptOfSize.erase(found);
    kept.pop_front();
    numKept -= oldest->size;
    std::free(oldest);
  }
}

void BufferPool::release(void *data) {
  if (!data)
    return;
  Block *block = static_cast<Block *>(data) - 1;
  // `free` of small blocks is cheap, and the allocator keeps them itself.
  if (block->size < minKept) {
    std::free(block);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex);
  numUsed -= block->size;
  numKept += block->size;
  keptOfSize[block->size].push_back(kept.insert(kept.end(), block));
  drop(mostUsed);
}

size_t BufferPool::getNumKept() const {
  std::lock_guard<std::mutex> lock(mutex);
  return numKept;
}
