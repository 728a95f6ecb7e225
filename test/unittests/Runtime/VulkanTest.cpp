//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanTest.h"
#include "SpirvText.h"
#include <cstdlib>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

TEST_F(VulkanTest, RunsThroughTheApi) {
  RunResult result = runThroughApi("vulkan", kernels);
  EXPECT_EQ(result.status, KAS_RT_SUCCESS) << result.text;
  EXPECT_TRUE(result.isCorrect);
  EXPECT_TRUE(result.later.empty());
}

TEST_F(VulkanTest, RunsOnMemoryOutOfTheHostsSight) {
  driver->setDiscrete(true);
  RunResult result = runThroughApi("vulkan", kernels);
  EXPECT_EQ(result.status, KAS_RT_SUCCESS) << result.text;
  EXPECT_TRUE(result.isCorrect);
}

TEST_F(VulkanTest, CopiesLargeBuffersInParts) {
  driver->setDiscrete(true);
  KasRtDevice device = nullptr;
  KasRtBuffer buffer = nullptr;
  ASSERT_SUCCESS(kasRtDeviceOpen("vulkan", &device));
  std::vector<uint32_t> values(3 << 20), read(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<uint32_t>(i * 2654435761u);
  uint64_t bytes = values.size() * 4;
  ASSERT_SUCCESS(kasRtBufferCreate(device, bytes + 8, &buffer));
  EXPECT_SUCCESS(kasRtBufferWrite(buffer, 8, values.data(), bytes));
  EXPECT_SUCCESS(kasRtBufferRead(buffer, 8, read.data(), bytes));
  EXPECT_EQ(read, values);
  EXPECT_SUCCESS(kasRtBufferDestroy(buffer));
  EXPECT_SUCCESS(kasRtDeviceClose(device));
}

/// Commands run in their order: 3000 dependent launches, more than are recorded
/// at once and more than a pool has descriptors for.
TEST_F(VulkanDeviceTest, RunsInOrder) {
  ASSERT_SUCCESS(kasRtBufferFill(buffer, 0));
  std::vector<float> ones(64, 1);
  ASSERT_SUCCESS(kasRtBufferWrite(buffer, 0, ones.data(), bytes));
  const KasRtArgument arguments[] = {get(0), get(1), get(1)};
  for (int i = 0; i < 3000; ++i)
    ASSERT_SUCCESS(kasRtLaunch(add, &size, arguments, 3));
  const KasRtArgument last[] = {get(1), get(2)};
  ASSERT_SUCCESS(kasRtLaunch(twice, &size, last, 2));
  std::vector<float> result(64);
  ASSERT_SUCCESS(kasRtBufferRead(buffer, 2 * bytes, result.data(), bytes));
  EXPECT_EQ(result, std::vector<float>(64, 6000));
}

TEST_F(VulkanDeviceTest, DescribesTheDevice) {
  KasRtDeviceInfo info;
  ASSERT_SUCCESS(kasRtDeviceGetInfo(device, &info));
  EXPECT_EQ(info.backend, KAS_RT_VULKAN);
  EXPECT_NE(std::string(info.name).find("llvmpipe"), std::string::npos);
  EXPECT_STREQ(info.architecture, "1.3");
  // The least that Vulkan allows.
  EXPECT_GE(info.maxThreadsPerBlock, 128u);
  EXPECT_GE(info.maxBlock[0], 128u);
  EXPECT_GE(info.maxGrid[2], 65535u);
  EXPECT_GE(info.maxSharedBytes, 16384u);
  EXPECT_GE(info.maxBuffers, 4u);
  EXPECT_GE(info.maxBufferBytes, 1u << 27);
  EXPECT_GT(info.memoryBytes, 0u);
  EXPECT_GE(info.warpSize, 1u);
  EXPECT_EQ(info.isHost, 1);
  int32_t count = 0;
  EXPECT_SUCCESS(kasRtDeviceCount(KAS_RT_VULKAN, &count));
  EXPECT_EQ(count, 1);
}

TEST_F(VulkanDeviceTest, RefusesStreamsAndMemoryOfTheCaller) {
  expectError(kasRtDeviceSetStream(device, nullptr),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected a CUDA device for a stream of the caller, got vulkan");
  KasRtBuffer borrowed = nullptr;
  expectError(kasRtBufferBorrow(device, 4096, 16, &borrowed),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected a CUDA device for memory of the caller, got vulkan");
  EXPECT_EQ(borrowed, nullptr);
}

TEST_F(VulkanDeviceTest, TimesKernels) {
  KasRtEvent start = nullptr, stop = nullptr;
  ASSERT_SUCCESS(kasRtEventCreate(device, &start));
  ASSERT_SUCCESS(kasRtEventCreate(device, &stop));
  ASSERT_SUCCESS(kasRtBufferFill(buffer, 0));
  const KasRtArgument arguments[] = {get(0), get(1), get(2)};
  ASSERT_SUCCESS(kasRtEventRecord(start));
  for (int i = 0; i < 100; ++i)
    ASSERT_SUCCESS(kasRtLaunch(add, &size, arguments, 3));
  ASSERT_SUCCESS(kasRtEventRecord(stop));
  double forward = 0, backward = 0;
  EXPECT_SUCCESS(kasRtEventElapsed(start, stop, &forward));
  EXPECT_GT(forward, 0);
  EXPECT_SUCCESS(kasRtEventElapsed(stop, start, &backward));
  EXPECT_EQ(backward, -forward);
  EXPECT_SUCCESS(kasRtEventDestroy(start));
  EXPECT_SUCCESS(kasRtEventDestroy(stop));
}

//===----------------------------------------------------------------------===//
// The validation layer
//===----------------------------------------------------------------------===//

/// The layer is there and what it says becomes an error: a kernel that reads
/// 64 floats gets a buffer of 16.
TEST_F(VulkanDeviceTest, ReportsWhatTheLayerSays) {
  std::string wrong = assembleSpirv(R"(
spirv.module Logical GLSL450
    requires #spirv.vce<v1.0, [Shader, Float64], []> {
  spirv.GlobalVariable @id built_in("GlobalInvocationId")
      : !spirv.ptr<vector<3xi32>, Input>
  spirv.func @wrong() "None" {
    spirv.Return
  }
  spirv.EntryPoint "GLCompute" @wrong, @id
  spirv.ExecutionMode @wrong "LocalSize", 1, 1, 1
})");
  ASSERT_FALSE(wrong.empty());
  // Not a version of SPIR-V that this version of Vulkan has.
  wrong[4] = 0, wrong[5] = 6, wrong[6] = 1;
  KasRtModule other = nullptr;
  expectError(kasRtModuleLoad(device, wrong.data(), wrong.size(), &other),
              KAS_RT_ERROR_VALIDATION, "the validation layer reports: ");
  EXPECT_EQ(other, nullptr);
}

TEST_F(VulkanTest, NamesALayerThatIsMissing) {
  setenv("VK_LAYER_PATH", "/nowhere", 1);
  KasRtDevice device = nullptr;
  expectError(kasRtDeviceOpen("vulkan", &device), KAS_RT_ERROR_VALIDATION,
              "KAS_RT_VALIDATION is 1: looked for the layer "
              "VK_LAYER_KHRONOS_validation among ");
  unsetenv("VK_LAYER_PATH");
}

//===----------------------------------------------------------------------===//
// Errors of the driver
//===----------------------------------------------------------------------===//

static KasRtStatus expectedStatus(VkResult error) {
  switch (error) {
  case VK_ERROR_OUT_OF_HOST_MEMORY:
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    return KAS_RT_ERROR_OUT_OF_MEMORY;
  case VK_ERROR_DEVICE_LOST:
    return KAS_RT_ERROR_DEVICE_LOST;
  case VK_ERROR_INITIALIZATION_FAILED:
    return KAS_RT_ERROR_NO_DEVICE;
  default:
    return KAS_RT_ERROR_DRIVER;
  }
}

/// Lets every call of every function fail in turn; the layer sees to it that
/// all objects are destroyed nevertheless.
TEST_F(VulkanTest, ReportsEachErrorOfEachCall) {
  static const char *const functions[] = {
      "vkCreateInstance",
      "vkEnumerateInstanceLayerProperties",
      "vkCreateDebugUtilsMessengerEXT",
      "vkEnumeratePhysicalDevices",
      "vkEnumerateDeviceExtensionProperties",
      "vkCreateDevice",
      "vkDeviceWaitIdle",
      "vkCreateCommandPool",
      "vkResetCommandPool",
      "vkAllocateCommandBuffers",
      "vkBeginCommandBuffer",
      "vkEndCommandBuffer",
      "vkQueueSubmit",
      "vkCreateFence",
      "vkWaitForFences",
      "vkResetFences",
      "vkCreateBuffer",
      "vkAllocateMemory",
      "vkBindBufferMemory",
      "vkMapMemory",
      "vkCreateShaderModule",
      "vkCreateDescriptorSetLayout",
      "vkCreatePipelineLayout",
      "vkCreateComputePipelines",
      "vkCreateDescriptorPool",
      "vkResetDescriptorPool",
      "vkAllocateDescriptorSets",
      "vkCreateQueryPool",
      "vkGetQueryPoolResults"};
  std::vector<VkResult> errors = {VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                  VK_ERROR_DEVICE_LOST};
  if (std::getenv("KAS_SLOW_TESTS"))
    errors.insert(errors.end(),
                  {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_INITIALIZATION_FAILED,
                   VK_ERROR_UNKNOWN, VK_NOT_READY, VkResult(-12345)});
  for (const char *function : functions) {
    std::string name = function;
    // Copies take another way where the host does not see the memory.
    for (VkResult error : errors) {
      int failures = 0;
      for (int nth = 1;; ++nth) {
        SCOPED_TRACE(name + " call " + std::to_string(nth) + " returns " +
                     std::to_string(error));
        driver->reset();
        driver->setDiscrete(true);
        driver->fail(function, nth, error);
        RunResult result = runThroughApi("vulkan", kernels);
        if (!driver->hasFailed()) {
          EXPECT_EQ(result.status, KAS_RT_SUCCESS) << result.text;
          break;
        }
        ++failures;
        KasRtStatus expected = name == "vkCreateInstance" &&
                                       error != VK_ERROR_OUT_OF_HOST_MEMORY &&
                                       error != VK_ERROR_OUT_OF_DEVICE_MEMORY
                                   ? KAS_RT_ERROR_NO_DEVICE
                                   : expectedStatus(error);
        EXPECT_EQ(result.status, expected) << result.text;
        EXPECT_NE(result.text.find("failed: "), std::string::npos)
            << result.text;
        EXPECT_EQ(result.text.find('\n'), std::string::npos) << result.text;
        for (const std::string &text : result.later)
          EXPECT_EQ(text.find("the validation layer"), std::string::npos)
              << text;
      }
      EXPECT_GT(failures, 0) << name;
    }
  }
}

TEST_F(VulkanDeviceTest, ClassifiesEachError) {
  struct Error {
    VkResult result;
    const char *text;
    KasRtStatus status = KAS_RT_ERROR_DRIVER;
  };
  constexpr KasRtStatus outOfMemory = KAS_RT_ERROR_OUT_OF_MEMORY;
  constexpr KasRtStatus noDevice = KAS_RT_ERROR_NO_DEVICE;
  static constexpr Error errors[] = {
      {VK_NOT_READY, "VK_NOT_READY"},
      {VK_TIMEOUT, "VK_TIMEOUT"},
      {VK_INCOMPLETE, "VK_INCOMPLETE"},
      {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY", outOfMemory},
      {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY", outOfMemory},
      {VK_ERROR_FRAGMENTED_POOL, "VK_ERROR_FRAGMENTED_POOL", outOfMemory},
      {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS", outOfMemory},
      {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED",
       noDevice},
      {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER", noDevice},
      {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT", noDevice},
      {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
      {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
      {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
      {VK_ERROR_INVALID_EXTERNAL_HANDLE, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
      {VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS,
       "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS"},
      {VK_ERROR_INVALID_SHADER_NV, "VK_ERROR_INVALID_SHADER_NV",
       KAS_RT_ERROR_INVALID_MODULE},
      {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
      {VkResult(-12345), "-12345"}};
  for (const Error &error : errors) {
    KasRtBuffer other = nullptr;
    driver->fail("vkAllocateMemory", driver->countCalls("vkAllocateMemory") + 1,
                 error.result);
    expectError(kasRtBufferCreate(device, 16, &other), error.status,
                error.text);
    EXPECT_EQ(other, nullptr);
  }
  // The device is as good as before.
  driver->setMemory(false);
  KasRtBuffer other = nullptr;
  expectError(kasRtBufferCreate(device, 16, &other), KAS_RT_ERROR_DRIVER,
              "has no memory for buffers");
  driver->setMemory(true);
  EXPECT_SUCCESS(kasRtBufferCreate(device, 16, &other));
  EXPECT_SUCCESS(kasRtBufferDestroy(other));
}

TEST_F(VulkanDeviceTest, StaysLost) {
  ASSERT_SUCCESS(kasRtBufferFill(buffer, 0));
  driver->fail("vkQueueSubmit", driver->countCalls("vkQueueSubmit") + 1,
               VK_ERROR_DEVICE_LOST);
  expectError(kasRtSynchronize(device), KAS_RT_ERROR_DEVICE_LOST,
              "vkQueueSubmit on vulkan:0 (llvmpipe");
  const KasRtArgument arguments[] = {get(0), get(1), get(2)};
  expectError(kasRtLaunch(add, &size, arguments, 3), KAS_RT_ERROR_DEVICE_LOST,
              "was lost before: close it and open it again");
}

/// What was recorded before a submission that failed is not there afterwards,
/// and says so.
TEST_F(VulkanDeviceTest, ForgetsWhatCouldNotBeSubmitted) {
  KasRtEvent start = nullptr, stop = nullptr;
  ASSERT_SUCCESS(kasRtEventCreate(device, &start));
  ASSERT_SUCCESS(kasRtEventCreate(device, &stop));
  ASSERT_SUCCESS(kasRtEventRecord(start));
  ASSERT_SUCCESS(kasRtEventRecord(stop));
  driver->fail("vkQueueSubmit", driver->countCalls("vkQueueSubmit") + 1,
               VK_ERROR_OUT_OF_HOST_MEMORY);
  expectError(kasRtSynchronize(device), KAS_RT_ERROR_OUT_OF_MEMORY,
              "failed: out of memory (VK_ERROR_OUT_OF_HOST_MEMORY)");
  EXPECT_SUCCESS(kasRtEventDestroy(start));
  EXPECT_SUCCESS(kasRtEventDestroy(stop));
  EXPECT_SUCCESS(kasRtBufferFill(buffer, 7));
  uint32_t word = 0;
  EXPECT_SUCCESS(kasRtBufferRead(buffer, 0, &word, 4));
  EXPECT_EQ(word, 7u);
}

//===----------------------------------------------------------------------===//
// Drivers and devices that are not there
//===----------------------------------------------------------------------===//

TEST_F(DeviceRuntimeTest, SaysWhereItLookedForVulkan) {
  useDriver("KAS_RT_LIBVULKAN", "libkas-no-such-loader.so");
  KasRtDevice device = nullptr;
  expectError(kasRtDeviceOpen("vulkan", &device), KAS_RT_ERROR_NO_DEVICE,
              "no Vulkan loader: looked for the library "
              "libkas-no-such-loader.so (from KAS_RT_LIBVULKAN), got: ");
  useDriver("KAS_RT_LIBVULKAN", "libm.so.6");
  expectError(kasRtDeviceOpen("vulkan", &device), KAS_RT_ERROR_NO_DEVICE,
              "no Vulkan loader: looked for the function "
              "vkGetInstanceProcAddr in libm.so.6, which has none");
}

TEST_F(DeviceRuntimeTest, SaysThatNoVulkanDriverIsThere) {
  useDriver("VK_ICD_FILENAMES", "/nowhere/icd.json");
  KasRtDevice device = nullptr;
  expectError(
      kasRtDeviceOpen("vulkan", &device), KAS_RT_ERROR_NO_DEVICE,
      "no Vulkan device: libvulkan.so.1 was found, but vkCreateInstance "
      "failed: VK_ERROR_INCOMPATIBLE_DRIVER");
}

TEST_F(VulkanTest, SaysThatNoDeviceIsThere) {
  KasRtDevice device = nullptr;
  expectError(kasRtDeviceOpen("vulkan:9", &device), KAS_RT_ERROR_NO_DEVICE,
              "no device vulkan:9: looked for devices with compute queues and "
              "Vulkan 1.1 through ");
  driver->setDevices(false);
  expectError(kasRtDeviceOpen("vulkan", &device), KAS_RT_ERROR_NO_DEVICE,
              ", got 0");
  int32_t count = 1;
  EXPECT_SUCCESS(kasRtDeviceCount(KAS_RT_VULKAN, &count));
  EXPECT_EQ(count, 0);
}

TEST_F(VulkanTest, NamesFunctionsThatAreMissing) {
  for (const char *name :
       {"vkCreateInstance", "vkCreateDevice", "vkCmdWriteTimestamp"}) {
    driver->reset();
    driver->hide(name);
    KasRtDevice device = nullptr;
    expectError(kasRtDeviceOpen("vulkan", &device), KAS_RT_ERROR_NO_DEVICE,
                std::string("looked for the function ") + name);
  }
  driver->reset();
  driver->hide("vkCreateDebugUtilsMessengerEXT");
  KasRtDevice device = nullptr;
  expectError(kasRtDeviceOpen("vulkan", &device), KAS_RT_ERROR_VALIDATION,
              "looked for the function vkCreateDebugUtilsMessengerEXT");
}

TEST_F(VulkanTest, NeedsAClockForEvents) {
  driver->setClock(false);
  KasRtDevice device = nullptr;
  KasRtEvent event = nullptr;
  ASSERT_SUCCESS(kasRtDeviceOpen("vulkan", &device));
  expectError(kasRtEventCreate(device, &event), KAS_RT_ERROR_LIMIT,
              "expected a device with a clock to time kernels, got vulkan:0");
  EXPECT_SUCCESS(kasRtDeviceClose(device));
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

TEST_F(VulkanDeviceTest, ChecksModulesAndKernels) {
  KasRtModule other = nullptr;
  expectError(kasRtModuleLoad(device, "12345678", 8, &other),
              KAS_RT_ERROR_INVALID_MODULE,
              "expected a SPIR-V module, got bytes of another format");
  KasRtKernel kernel = nullptr;
  expectError(
      kasRtModuleGetKernel(module, "sub", 3, &kernel), KAS_RT_ERROR_NOT_FOUND,
      "expected a kernel of the module, which has 'add' and 1 more, got "
      "'sub'");
  expectError(kasRtModuleGetKernel(module, "add", 2, &kernel),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected at least 3 buffers for kernel 'add', got 2");
  expectError(kasRtModuleGetKernel(module, "add", 100000, &kernel),
              KAS_RT_ERROR_LIMIT, "expected a kernel with at most ");
  KasRtTensorMap map = {};
  map.rank = 1;
  map.sizes[0] = map.box[0] = 64;
  expectError(
      kasRtModuleGetKernelWithTensorMaps(module, "add", 3, &map, 1, &kernel),
      KAS_RT_ERROR_INVALID_ARGUMENT,
      "expected no tensor maps for kernel 'add' on vulkan:0");
}

TEST_F(VulkanDeviceTest, ChecksTheLimitsOfKernels) {
  auto expectLimit = [&](const std::string &block, const std::string &extent,
                         const std::string &text) {
    std::string bytes = assembleSpirv(R"(
!shared = !spirv.ptr<!spirv.array<)" + extent +
                                      R"( x f32>, Workgroup>
spirv.module Logical GLSL450 requires #spirv.vce<v1.0, [Shader], []> {
  spirv.GlobalVariable @tile : !shared
  spirv.func @large() "None" {
    %zero = spirv.Constant 0 : i32
    %value = spirv.Constant 0.0 : f32
    %tile = spirv.mlir.addressof @tile : !shared
    %p = spirv.AccessChain %tile[%zero] : !shared, i32
        -> !spirv.ptr<f32, Workgroup>
    spirv.Store "Workgroup" %p, %value : f32
    spirv.Return
  }
  spirv.EntryPoint "GLCompute" @large
  spirv.ExecutionMode @large "LocalSize", )" +
                                      block + R"(
})");
    ASSERT_FALSE(bytes.empty());
    KasRtModule large = nullptr;
    KasRtKernel kernel = nullptr;
    ASSERT_SUCCESS(kasRtModuleLoad(device, bytes.data(), bytes.size(), &large));
    expectError(kasRtModuleGetKernel(large, "large", 0, &kernel),
                KAS_RT_ERROR_LIMIT, text);
    EXPECT_SUCCESS(kasRtModuleUnload(large));
  };
  expectLimit("64, 64, 1", "4", "got 4096 in kernel 'large'");
  expectLimit("4, 4, 1", "100000", "got 400000 in kernel 'large'");
}

TEST_F(VulkanDeviceTest, ChecksLaunches) {
  const KasRtArgument arguments[] = {get(0), get(1), get(2)};
  KasRtLaunchSize other = {{2, 1, 1}, {16, 2, 1}, 0};
  expectError(kasRtLaunch(add, &other, arguments, 3),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected the 32 threads along x that kernel 'add' is compiled "
              "for, got 16");
  other = {{2, 1, 1}, {32, 1, 1}, 16};
  expectError(kasRtLaunch(add, &other, arguments, 3),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected 0 dynamic bytes of workgroup memory on Vulkan, got 16");
}
