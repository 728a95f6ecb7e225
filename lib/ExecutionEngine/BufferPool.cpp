//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `malloc` and `free` of compiled code: keeps the memory of large blocks for
// the next call, since new pages from the system cost up to two fifths of a
// training step.
//
// A block takes the lowest place that is free. A pool for each size would need
// memory for the largest buffers of all sizes, more than the second-level cache
// holds: MobileNetV3 in int8 took 1.14 times as long. Memory comes from the
// system in regions. While nothing is in use, as between two calls, several of
// them become one, in which the next call finds all of its places.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/BufferPool.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <functional>
#include <iterator>

using namespace kas::execution;

/// Before the data of each block; as large as the alignment.
struct alignas(64) BufferPool::Block {
  /// Bytes, with this.
  size_t size;
};

/// Memory from the system, and what of it is in no block.
struct BufferPool::Region {
  char *begin;
  size_t size;
  /// Sizes by offset. No two are next to one another.
  std::map<size_t, size_t> free;

  Region(char *begin, size_t size)
      : begin(begin), size(size), free({{0, size}}) {}
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;
  ~Region() { std::free(begin); }

  bool contains(const void *place) const {
    return std::less_equal<>()(begin, place) &&
           std::less<>()(place, begin + size);
  }
  bool isFree() const { return !free.empty() && free.begin()->second == size; }
  char *take(size_t bytes);
  void release(char *place, size_t bytes);
};

/// The lowest place that has so many bytes, or null.
char *BufferPool::Region::take(size_t bytes) {
  auto found = llvm::find_if(
      free, [&](const auto &range) { return range.second >= bytes; });
  if (found == free.end())
    return nullptr;
  auto [offset, length] = *found;
  free.erase(found);
  if (length > bytes)
    free.emplace(offset + bytes, length - bytes);
  return begin + offset;
}

/// Joins the place with what is free before and after it.
void BufferPool::Region::release(char *place, size_t bytes) {
  auto [range, isNew] = free.emplace(place - begin, bytes);
  assert(isNew && "a block is released once");
  auto next = std::next(range);
  if (next != free.end() && next->first == range->first + range->second) {
    range->second += next->second;
    free.erase(next);
  }
  if (range == free.begin())
    return;
  auto before = std::prev(range);
  if (before->first + before->second == range->first) {
    before->second += range->second;
    free.erase(range);
  }
}

BufferPool::BufferPool() = default;
BufferPool::~BufferPool() = default;

BufferPool &BufferPool::get() {
  // Never destroyed: code may run while the process ends.
  static auto *pool = new BufferPool();
  return *pool;
}

/// Whether the system has memory for a region. Not in huge pages, in which
/// EfficientNet-B0 takes 1.1 times as long, as measured on a Zen 5.
bool BufferPool::addRegion(size_t size) {
  auto *begin = static_cast<char *>(std::aligned_alloc(alignof(Block), size));
  if (!begin)
    return false;
  regions.push_back(std::make_unique<Region>(begin, size));
  numBytes += size;
  return true;
}

/// A place for a block of `size` bytes, its head among them.
void *BufferPool::take(size_t size) {
  for (const auto &region : regions)
    if (char *place = region->take(size))
      return place;
  if (!addRegion(regions.empty() ? std::max(size, nextRegion) : size) &&
      !addRegion(size))
    return nullptr;
  return regions.back()->take(size);
}

void *BufferPool::allocate(size_t size) {
  constexpr size_t unit = alignof(Block);
  // The sum below must not overflow.
  if (size > size_t(-1) - sizeof(Block) - unit)
    return nullptr;
  size = (size + unit - 1) / unit * unit + sizeof(Block);
  bool isKept = size >= minKept + sizeof(Block);
  std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
  if (isKept)
    lock.lock();
  void *place = isKept ? take(size) : std::aligned_alloc(unit, size);
  if (!place)
    return nullptr;
  if (isKept) {
    numUsed += size;
    mostUsed = std::max(mostUsed, numUsed);
  }
  return new (place) Block{size} + 1;
}

/// Returns regions in which nothing is in use: all where there are several and
/// none is in use, else as many as it takes to keep no more than was in use at
/// once.
void BufferPool::drop() {
  if (numUsed == 0 && regions.size() > 1) {
    // What is free between blocks may have been too small: an eighth more then.
    size_t tried = regions.front()->size;
    nextRegion = mostUsed > tried ? mostUsed : tried + tried / 8;
    nextRegion = nextRegion / alignof(Block) * alignof(Block);
    regions.clear();
    numBytes = 0;
  }
  for (size_t i = regions.size(); i-- > 1 && numBytes - numUsed > mostUsed;)
    if (regions[i]->isFree()) {
      numBytes -= regions[i]->size;
      regions.erase(regions.begin() + static_cast<ptrdiff_t>(i));
    }
}

void BufferPool::release(void *data) {
  if (!data)
    return;
  Block *block = static_cast<Block *>(data) - 1;
  // `free` of small blocks is cheap, and the allocator keeps them itself.
  if (block->size < minKept + sizeof(Block)) {
    std::free(block);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex);
  auto region = llvm::find_if(
      regions, [&](const auto &one) { return one->contains(block); });
  assert(region != regions.end() && "a block of this pool");
  numUsed -= block->size;
  (*region)->release(reinterpret_cast<char *>(block), block->size);
  drop();
}

size_t BufferPool::getNumKept() const {
  std::lock_guard<std::mutex> lock(mutex);
  return numBytes - numUsed;
}
