//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closes the Vulkan device of a test program at its end.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_VULKANENVIRONMENT_H
#define KAS_TEST_LIB_VULKANENVIRONMENT_H

#include "GPUPrograms.h"
#include "gtest/gtest.h"

namespace kas::test {

/// For `testing::AddGlobalTestEnvironment`: what the validation layer reports
/// at the end fails the program.
class VulkanEnvironment : public testing::Environment {
public:
  void TearDown() override {
    if (llvm::Error error = closeVulkanDevice())
      ADD_FAILURE() << llvm::toString(std::move(error));
  }
};

} // namespace kas::test

#endif // KAS_TEST_LIB_VULKANENVIRONMENT_H
