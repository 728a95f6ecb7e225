//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/BufferPool.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace kas::execution;

namespace {

constexpr size_t large = BufferPool::minKept;

/// Bytes of the pool for a block of `size`: there is a head before each.
size_t withHead(size_t size) { return size + 64; }

TEST(BufferPoolTest, KeepsLargeBlocks) {
  BufferPool pool;
  void *first = pool.allocate(large);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  pool.release(first);
  EXPECT_EQ(pool.getNumKept(), withHead(large));
  EXPECT_EQ(pool.allocate(large), first);
  EXPECT_EQ(pool.getNumKept(), 0u);
  void *other = pool.allocate(2 * large);
  EXPECT_NE(other, first);
  pool.release(other);
  pool.release(first);
}

/// As a network does, layer after layer; returns where its buffers were.
std::vector<void *> alternate(BufferPool &pool,
                              const std::vector<size_t> &sizes) {
  std::vector<void *> places;
  for (size_t size : sizes) {
    places.push_back(pool.allocate(size));
    memset(places.back(), static_cast<int>(places.size()), size);
    if (places.size() > 1)
      pool.release(places[places.size() - 2]);
  }
  pool.release(places.back());
  return places;
}

TEST(BufferPoolTest, UsesTheSameMemoryForOtherSizes) {
  BufferPool pool;
  std::vector<size_t> sizes;
  for (size_t factor = 20; factor > 10; --factor)
    sizes.push_back(factor * large);
  alternate(pool, sizes);
  // From the second call on all blocks are in one region, each first or next to
  // the one before it.
  for (int call = 0; call < 3; ++call) {
    std::vector<void *> places = alternate(pool, sizes);
    auto [least, most] = std::minmax_element(places.begin(), places.end());
    EXPECT_LE(static_cast<char *>(*most) - static_cast<char *>(*least),
              static_cast<ptrdiff_t>(withHead(sizes[0])));
    EXPECT_EQ(pool.getNumKept(), withHead(sizes[0]) + withHead(sizes[1]));
  }
}

/// The last block fits neither between nor after the others in what was in use
/// at once.
TEST(BufferPoolTest, GrowsUntilAllBlocksFit) {
  BufferPool pool;
  std::vector<void *> places, before;
  for (int call = 0; call < 10; ++call) {
    before = places;
    void *first = pool.allocate(4 * large), *second = pool.allocate(4 * large);
    pool.release(first);
    void *third = pool.allocate(6 * large);
    pool.release(second);
    pool.release(third);
    places = {first, second, third};
  }
  EXPECT_EQ(places, before);
  EXPECT_GE(pool.getNumKept(), 14 * large);
  EXPECT_LE(pool.getNumKept(), 17 * large);
}

TEST(BufferPoolTest, JoinsWhatIsReleased) {
  BufferPool pool;
  // One region for all of it.
  void *first = pool.allocate(large), *second = pool.allocate(3 * large);
  pool.release(first);
  pool.release(second);
  // In each order of release three blocks leave one place.
  int order[] = {0, 1, 2};
  do {
    void *whole = pool.allocate(3 * large);
    pool.release(whole);
    void *blocks[3];
    for (void *&block : blocks)
      block = pool.allocate(large);
    EXPECT_EQ(blocks[0], whole);
    for (int number : order)
      pool.release(blocks[number]);
    EXPECT_EQ(pool.allocate(3 * large), whole);
    pool.release(whole);
  } while (std::next_permutation(std::begin(order), std::end(order)));
}

/// Random blocks, of which none overlaps another one.
TEST(BufferPoolTest, SeparatesBlocks) {
  BufferPool pool;
  std::mt19937 random(0);
  std::vector<std::pair<unsigned char *, size_t>> blocks;
  auto mark = [](size_t size) { return static_cast<unsigned char>(size / 64); };
  auto release = [&](size_t number) {
    auto [data, size] = blocks[number];
    for (size_t i : {size_t(0), size / 2, size - 1})
      ASSERT_EQ(data[i], mark(size));
    pool.release(data);
    blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(number));
  };
  for (int step = 0; step < 3000; ++step) {
    // All are released now and then, as at the end of a call.
    if (step % 100 == 99)
      while (!blocks.empty())
        release(0);
    if (blocks.size() < 12 && random() % 3 != 0) {
      size_t size = large / 2 + random() % (4 * large);
      auto *data = static_cast<unsigned char *>(pool.allocate(size));
      ASSERT_NE(data, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
      memset(data, mark(size), size);
      blocks.push_back({data, size});
    } else if (!blocks.empty()) {
      release(random() % blocks.size());
    }
    ASSERT_LE(pool.getNumKept(), 2 * 12 * withHead(5 * large));
  }
}

TEST(BufferPoolTest, KeepsNoSmallBlocks) {
  BufferPool pool;
  pool.release(pool.allocate(100));
  pool.release(pool.allocate(0));
  pool.release(nullptr);
  EXPECT_EQ(pool.getNumKept(), 0u);
}

/// A program that goes from size to size keeps no more than it has needed.
TEST(BufferPoolTest, KeepsNoMoreThanWasInUse) {
  BufferPool pool;
  for (size_t factor = 1; factor <= 20; ++factor) {
    pool.release(pool.allocate(factor * large));
    EXPECT_LE(pool.getNumKept(), withHead(factor * large));
  }
}

TEST(BufferPoolTest, RefusesWhatNoMemoryHolds) {
  BufferPool pool;
  EXPECT_EQ(pool.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(pool.allocate(SIZE_MAX / 2), nullptr);
  // What was not given is not in use.
  pool.release(pool.allocate(large));
  EXPECT_EQ(pool.getNumKept(), withHead(large));
  pool.release(pool.allocate(2 * large));
  EXPECT_LE(pool.getNumKept(), withHead(2 * large));
}

TEST(BufferPoolTest, ServesThreads) {
  BufferPool pool;
  auto work = [&pool](unsigned char mark) {
    for (int round = 0; round < 2000; ++round) {
      auto *data = static_cast<unsigned char *>(pool.allocate(large));
      data[0] = data[large - 1] = mark;
      ASSERT_EQ(data[0], mark);
      ASSERT_EQ(data[large - 1], mark);
      pool.release(data);
    }
  };
  std::thread one(work, 1), two(work, 2);
  one.join();
  two.join();
  EXPECT_LE(pool.getNumKept(), 2 * withHead(large));
}

} // namespace
