//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/WriteWatch.h"
#include "gtest/gtest.h"
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kas;

namespace {

/// Bytes that begin in the middle of a page.
class Memory {
public:
  explicit Memory(size_t size, int flags = MAP_PRIVATE)
      : size(size), bytes(static_cast<char *>(
                              mmap(nullptr, size + 100, PROT_READ | PROT_WRITE,
                                   flags | MAP_ANONYMOUS, -1, 0)) +
                          100) {
    std::memset(bytes, 1, size);
  }
  ~Memory() { munmap(bytes - 100, size + 100); }
  char &operator[](size_t place) { return bytes[place]; }
  WriteWatch::Range get() const { return {bytes, size}; }

  const size_t size;

private:
  char *const bytes;
};

class WriteWatchTest : public testing::TestWithParam<WriteWatch::Mode> {};

} // namespace

INSTANTIATE_TEST_SUITE_P(Modes, WriteWatchTest,
                         testing::Values(WriteWatch::Mode::Pages,
                                         WriteWatch::Mode::Content));

TEST_P(WriteWatchTest, EachByteIsWatched) {
  for (size_t size : {1, 100, 4096, 16384, 100'000}) {
    Memory memory(size);
    WriteWatch watch({memory.get()}, GetParam());
    EXPECT_FALSE(watch.hasChanged());
    for (size_t place = 0; place < size; place += size < 1000 ? 1 : 997) {
      memory[place] = 2;
      EXPECT_TRUE(watch.hasChanged()) << place << " of " << size;
      EXPECT_FALSE(watch.hasChanged()) << place << " of " << size;
    }
    memory[size - 1] = 3;
    EXPECT_TRUE(watch.hasChanged());
  }
}

TEST_P(WriteWatchTest, WhatIsBesideIsNotWatched) {
  Memory memory(100'000);
  WriteWatch watch({{&memory[50'000], 30'000}}, GetParam());
  memory[49'999] = memory[80'000] = 2;
  EXPECT_FALSE(watch.hasChanged());
}

TEST_P(WriteWatchTest, EachWatchHearsOfIt) {
  Memory memory(200'000), other(70'000);
  WriteWatch first({memory.get(), other.get()}, GetParam());
  auto second = std::make_unique<WriteWatch>(
      std::vector{WriteWatch::Range(&memory[30'000], 100'000)}, GetParam());
  memory[70'000] = 2;
  EXPECT_TRUE(first.hasChanged());
  EXPECT_TRUE(second->hasChanged());
  memory[150'000] = other[5] = 2;
  EXPECT_FALSE(second->hasChanged());
  EXPECT_TRUE(first.hasChanged());
  second.reset();
  EXPECT_FALSE(first.hasChanged());
  memory[70'000] = 3;
  EXPECT_TRUE(first.hasChanged());
}

TEST_P(WriteWatchTest, OtherThreadsAndSystemCallsAreSeen) {
  Memory memory(100'000);
  WriteWatch watch({memory.get()}, GetParam());
  std::thread([&] { memory[40'000] = 2; }).join();
  EXPECT_TRUE(watch.hasChanged());
  int file = open("/dev/zero", O_RDONLY);
  ASSERT_EQ(read(file, &memory[50'000], 8), 8);
  close(file);
  EXPECT_EQ(memory[50'007], 0);
  EXPECT_TRUE(watch.hasChanged());
  EXPECT_FALSE(watch.hasChanged());
}

TEST_P(WriteWatchTest, OtherProcessesAreSeenWhereMemoryIsShared) {
  Memory memory(100'000, MAP_SHARED);
  WriteWatch watch({memory.get()}, GetParam());
  pid_t child = fork();
  if (child == 0) {
    memory[40'000] = 2;
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(watch.hasChanged());
  EXPECT_FALSE(watch.hasChanged());
}

TEST_P(WriteWatchTest, ChildrenWatchTheirOwnMemory) {
  Memory memory(100'000);
  WriteWatch watch({memory.get()}, GetParam());
  pid_t child = fork();
  if (child == 0) {
    watch.hasChanged();
    bool isQuiet = !watch.hasChanged();
    memory[40'000] = 2;
    bool isSeen = watch.hasChanged();
    WriteWatch own({memory.get()}, GetParam());
    bool isOwnQuiet = !own.hasChanged();
    memory[40'000] = 3;
    _exit(isQuiet && isSeen && isOwnQuiet && own.hasChanged() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(watch.hasChanged());
  memory[40'000] = 2;
  EXPECT_TRUE(watch.hasChanged());
}

TEST(WriteWatch, PagesAreNotCompared) {
  Memory memory(10'000'000), shared(100'000, MAP_SHARED);
  WriteWatch watch({memory.get(), shared.get()});
  WriteWatch content({memory.get(), shared.get()}, WriteWatch::Mode::Content);
  EXPECT_EQ(content.getNumComparedBytes(), 10'100'000u);
  // Where the kernel cannot watch pages, all is compared.
  if (watch.getNumComparedBytes() != content.getNumComparedBytes()) {
    EXPECT_LT(watch.getNumComparedBytes(), 100'000u + 2 * 65536);
  }
}

TEST(WriteWatch, NothingNeverChanges) {
  WriteWatch watch({{nullptr, 0}});
  EXPECT_FALSE(watch.hasChanged());
  EXPECT_FALSE(WriteWatch({}).hasChanged());
}
