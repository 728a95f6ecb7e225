//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tests of the back end on Vulkan share.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_RUNTIME_VULKANTEST_H
#define TEST_UNITTESTS_RUNTIME_VULKANTEST_H

#include "DeviceRuntimeTest.h"
#include "SpirvText.h"

/// On lavapipe with the validation layer: whatever the layer reports, and any
/// object that is left when the device closes, is an error of a call.
class VulkanTest : public DeviceRuntimeTest {
protected:
  void SetUp() override {
    useDriver("VK_ICD_FILENAMES", KAS_LAVAPIPE_ICD);
    useDriver("KAS_RT_VALIDATION", "1");
    useDriver("KAS_RT_LIBVULKAN", KAS_VULKAN_STAND_IN);
    useDriver("KAS_CACHE_MB", "0");
    driver = load(KAS_VULKAN_STAND_IN);
    ASSERT_TRUE(driver);
    driver->reset();
    ASSERT_FALSE(kernels.empty());
  }

  const StandInControls *driver = nullptr;
  std::string kernels = getSpirvKernels();
};

class VulkanDeviceTest : public VulkanTest {
protected:
  void SetUp() override {
    VulkanTest::SetUp();
    ASSERT_SUCCESS(kasRtDeviceOpen("vulkan", &device));
    ASSERT_SUCCESS(
        kasRtModuleLoad(device, kernels.data(), kernels.size(), &module));
    ASSERT_SUCCESS(kasRtModuleGetKernel(module, "add", 3, &add));
    ASSERT_SUCCESS(kasRtModuleGetKernel(module, "twice", 2, &twice));
    ASSERT_SUCCESS(kasRtBufferCreate(device, bytes * 3, &buffer));
  }
  void TearDown() override {
    EXPECT_SUCCESS(kasRtBufferDestroy(buffer));
    EXPECT_SUCCESS(kasRtModuleUnload(module));
    EXPECT_SUCCESS(kasRtDeviceClose(device));
    VulkanTest::TearDown();
  }
  /// Three arrays in one buffer.
  KasRtArgument get(uint64_t i) { return {buffer, i * bytes, bytes}; }

  static constexpr uint64_t bytes = 256;
  static constexpr KasRtLaunchSize size = {{2, 1, 1}, {32, 1, 1}, 0};
  KasRtDevice device = nullptr;
  KasRtModule module = nullptr;
  KasRtKernel add = nullptr, twice = nullptr;
  KasRtBuffer buffer = nullptr;
};

#endif // TEST_UNITTESTS_RUNTIME_VULKANTEST_H
