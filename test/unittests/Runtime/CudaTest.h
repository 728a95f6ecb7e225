//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests on a driver's stand-in: with it alone, with an open device, with an old
// driver.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_RUNTIME_CUDATEST_H
#define TEST_UNITTESTS_RUNTIME_CUDATEST_H

#include "../../../lib/Runtime/CudaDriver.h"
#include "DeviceRuntimeTest.h"

namespace kas::rt {

/// What the stand-in takes for a compiled kernel.
inline const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry add(
  .param .u64 add_param_0,
  .param .u64 add_param_1,
  .param .u64 add_param_2
)
{
  ret;
}
.visible .entry scalar(.param .u32 scalar_param_0)
{
  ret;
}
.visible .entry tiles(
  .param .u64 .ptr .align 16 tiles_param_0,
  .param .u64 .ptr .align 16 tiles_param_1,
  .param .align 64 .b8 tiles_param_2[128]
)
{
  ret;
}
)";

/// add(a, b, out): out = a + b, one element per thread.
inline void add(void *const *parameters, const uint32_t *grid,
                const uint32_t *block) {
  auto get = [&](int i) {
    return reinterpret_cast<float *>(
        *static_cast<const CUdeviceptr *>(parameters[i]));
  };
  for (uint32_t i = 0; i < grid[0] * block[0]; ++i)
    get(2)[i] = get(0)[i] + get(1)[i];
}

class CudaTest : public DeviceRuntimeTest {
protected:
  void SetUp() override {
    useDriver("KAS_RT_LIBCUDA", getDriverName());
    driver = load(getDriverName());
    ASSERT_TRUE(driver);
    restart();
  }
  void TearDown() override {
    driver->reset();
    DeviceRuntimeTest::TearDown();
  }
  virtual const char *getDriverName() const { return KAS_CUDA_STAND_IN; }
  void restart() {
    driver->reset();
    driver->setKernel("add", add);
  }

  const StandInControls *driver = nullptr;
};

/// A test with an open device and a loaded module.
class CudaDeviceTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    ASSERT_SUCCESS(kasRtDeviceOpen("cuda:1", &device));
    ASSERT_SUCCESS(kasRtModuleLoad(device, ptx.data(), ptx.size(), &module));
    ASSERT_SUCCESS(kasRtModuleGetKernel(module, "add", 3, &kernel));
    ASSERT_SUCCESS(kasRtBufferCreate(device, 1024, &buffer));
  }
  void TearDown() override {
    EXPECT_SUCCESS(kasRtBufferDestroy(buffer));
    EXPECT_SUCCESS(kasRtModuleUnload(module));
    EXPECT_SUCCESS(kasRtDeviceClose(device));
    EXPECT_STREQ(driver->getViolations(), "");
    EXPECT_EQ(driver->countLive(), 0);
    CudaTest::TearDown();
  }
  KasRtStatus launch(const KasRtLaunchSize &size, uint32_t count = 3) {
    const KasRtArgument arguments[] = {
        {buffer, 0, 0}, {buffer, 256, 0}, {buffer, 512, 256}};
    return kasRtLaunch(kernel, &size, arguments, count);
  }

  KasRtDevice device = nullptr;
  KasRtModule module = nullptr;
  KasRtKernel kernel = nullptr;
  KasRtBuffer buffer = nullptr;
};

/// The same with a driver that lacks what is new in CUDA 12.
class OldCudaDeviceTest : public CudaDeviceTest {
protected:
  const char *getDriverName() const override { return KAS_OLD_CUDA_STAND_IN; }
};

} // namespace kas::rt

#endif // TEST_UNITTESTS_RUNTIME_CUDATEST_H
