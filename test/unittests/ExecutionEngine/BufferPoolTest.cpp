//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/BufferPool.h"
#include "gtest/gtest.h"
#include <cstdint>
#include <thread>

using namespace kas::execution;

namespace {

constexpr size_t large = BufferPool::minKept;

TEST(BufferPoolTest, KeepsLargeBlocksForTheSameSize) {
  BufferPool pool;
  void *first = pool.allocate(large);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  pool.release(first);
  EXPECT_EQ(pool.getNumKept(), large);
  EXPECT_EQ(pool.allocate(large), first);
  EXPECT_EQ(pool.getNumKept(), 0u);
  void *other = pool.allocate(2 * large);
  EXPECT_NE(other, first);
  pool.release(other);
  pool.release(first);
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
    EXPECT_LE(pool.getNumKept(), factor * large);
  }
  EXPECT_EQ(pool.getNumKept(), 20 * large);
}

TEST(BufferPoolTest, RefusesWhatNoMemoryHolds) {
  BufferPool pool;
  EXPECT_EQ(pool.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(pool.allocate(SIZE_MAX / 2), nullptr);
  // What was not given is not in use.
  pool.release(pool.allocate(large));
  EXPECT_EQ(pool.getNumKept(), large);
  pool.release(pool.allocate(2 * large));
  EXPECT_EQ(pool.getNumKept(), 2 * large);
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
  EXPECT_LE(pool.getNumKept(), 2 * large);
}

} // namespace
