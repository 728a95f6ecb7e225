//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Pages.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "gtest/gtest.h"
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace kas::execution;

namespace {

constexpr size_t hugePage = size_t(2) << 20;

bool isAligned(const void *pointer, size_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

TEST(PagesTest, BlocksAreAlignedAndWritable) {
  for (size_t size : {size_t(1), size_t(100), hugePage - 1, hugePage,
                      hugePage + 1, 3 * hugePage + 12345}) {
    void *block = allocatePages(size);
    ASSERT_NE(block, nullptr) << size;
    EXPECT_TRUE(isAligned(block, size < hugePage ? 64 : hugePage)) << size;
    std::memset(block, 1, size);
    EXPECT_EQ(static_cast<const char *>(block)[size - 1], 1) << size;
    std::free(block);
  }
}

TEST(PagesTest, TooLargeIsNull) {
  EXPECT_EQ(allocatePages(std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_EQ(allocatePages(std::numeric_limits<size_t>::max() - hugePage),
            nullptr);
}

TEST(PagesTest, LargeTensorsBeginAtAHugePage) {
  int64_t size = hugePage / sizeof(float);
  EXPECT_TRUE(isAligned(Tensor({size}).data(), hugePage));
  EXPECT_TRUE(isAligned(Tensor({size - 1}).data(), Tensor::alignment));
}

} // namespace
