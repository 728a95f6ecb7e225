//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What callers get wrong.
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"
#include <cstring>

using namespace kas::rt;

TEST_F(CudaDeviceTest, DescribesTheDevice) {
  KasRtDeviceInfo info;
  ASSERT_SUCCESS(kasRtDeviceGetInfo(device, &info));
  EXPECT_EQ(info.backend, KAS_RT_CUDA);
  EXPECT_STREQ(info.name, "Stand-in");
  EXPECT_STREQ(info.architecture, "sm_90");
  EXPECT_EQ(info.maxThreadsPerBlock, 1024u);
  EXPECT_EQ(info.maxBlock[2], 64u);
  EXPECT_EQ(info.maxGrid[1], 65535u);
  EXPECT_EQ(info.maxSharedBytes, 232448u);
  EXPECT_EQ(info.warpSize, 32u);
  EXPECT_EQ(info.isHost, 0);
  EXPECT_EQ(info.memoryBytes, 64u << 20);
}

TEST_F(CudaDeviceTest, ChecksModules) {
  KasRtModule other = nullptr;
  auto expectInvalid = [&](const std::string &bytes, const char *got) {
    expectError(kasRtModuleLoad(device, bytes.data(), bytes.size(), &other),
                KAS_RT_ERROR_INVALID_MODULE,
                std::string("expected a cubin, a fatbin or PTX, got ") + got);
    EXPECT_EQ(other, nullptr);
  };
  expectInvalid("", "0 bytes");
  expectInvalid("hello", "a text without .version");
  expectInvalid(std::string("a\0b", 3), "bytes of another format");
  expectInvalid("\x7f"
                "ELF",
                "an ELF file of 4 bytes");
  std::string elf(64, '\0');
  std::memcpy(elf.data(),
              "\x7f"
              "ELF\2",
              5);
  expectInvalid(elf, "an ELF file for machine 0");
  elf[18] = static_cast<char>(190);
  elf[40] = 100;             // where the section headers start
  elf[58] = 64, elf[60] = 3; // their size and number
  expectInvalid(elf, "a cubin that is cut off");
  elf[40] = 0, elf[58] = 8;
  expectInvalid(elf, "a cubin with section headers of 8 bytes");
  // Two sections: one without bytes in the file, one beyond its end.
  elf[40] = 64, elf[58] = 64, elf[60] = 2;
  elf.resize(64 + 2 * 64);
  elf[64 + 4] = 8, elf[128 + 4] = 1;
  elf[64 + 33] = elf[128 + 33] = 1; // 256 bytes each
  expectInvalid(elf, "a cubin that is cut off");
  std::string fatbin("\x50\xed\x55\xba\1\0\x10\0\xff\0\0\0\0\0\0\0", 16);
  expectInvalid(fatbin.substr(0, 8), "a fatbin of 8 bytes");
  expectInvalid(fatbin, "a fatbin that is cut off");
  // With and without the null that closes the text of PTX.
  for (size_t nulls : {0, 1}) {
    std::string text = ptx + std::string(nulls, '\0');
    EXPECT_SUCCESS(kasRtModuleLoad(device, text.data(), text.size(), &other));
    EXPECT_SUCCESS(kasRtModuleUnload(other));
    other = nullptr;
  }
}

TEST_F(CudaDeviceTest, ChecksKernels) {
  KasRtKernel other = nullptr;
  expectError(kasRtModuleGetKernel(module, "sub", 3, &other),
              KAS_RT_ERROR_NOT_FOUND, "looking for kernel 'sub' in a module");
  expectError(kasRtModuleGetKernel(module, "add", 2, &other),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected the number of parameters of kernel 'add', more than 2, "
              "got 2 buffers");
  expectError(kasRtModuleGetKernel(module, "add", 4, &other),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "parameters of kernel 'add', 3, got 4 buffers");
  expectError(kasRtModuleGetKernel(module, "scalar", 1, &other),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected kernel 'scalar' to take pointers, got a parameter 0 of "
              "4 bytes");
  expectError(kasRtModuleGetKernel(module, "add", 257, &other),
              KAS_RT_ERROR_LIMIT, "expected a kernel with at most 256 buffers");
  EXPECT_EQ(other, nullptr);
  // The same kernel is there once.
  EXPECT_SUCCESS(kasRtModuleGetKernel(module, "add", 3, &other));
  EXPECT_EQ(other, kernel);
}

TEST_F(CudaDeviceTest, ChecksLaunches) {
  EXPECT_SUCCESS(launch({{1, 1, 1}, {16, 2, 1}, 0}));
  expectError(launch({{1, 0, 1}, {32, 1, 1}, 0}), KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected 1 block and 1 thread or more along y, got 0");
  expectError(launch({{1, 1, 1}, {32, 1, 0}, 0}), KAS_RT_ERROR_INVALID_ARGUMENT,
              "along z, got 0");
  expectError(launch({{1, 65536, 1}, {32, 1, 1}, 0}), KAS_RT_ERROR_LIMIT,
              "expected at most 65535 blocks along y, the limit of cuda:1 "
              "(Stand-in), got 65536");
  expectError(launch({{1, 1, 1}, {1, 1, 65}, 0}), KAS_RT_ERROR_LIMIT,
              "expected at most 64 threads of a block along z");
  expectError(launch({{1, 1, 1}, {64, 32, 1}, 0}), KAS_RT_ERROR_LIMIT,
              "expected at most 1024 threads of a block, the limit of");
  expectError(launch({{1, 1, 1}, {1024, 1, 1}, 0}), KAS_RT_ERROR_LIMIT,
              "expected at most 512 threads in a block of kernel 'add', got "
              "1024");
  expectError(launch({{1, 1, 1}, {32, 1, 1}, 232449}), KAS_RT_ERROR_LIMIT,
              "expected at most 232448 bytes of workgroup memory, the limit");
  expectError(launch({{1, 1, 1}, {32, 1, 1}, 232448}), KAS_RT_ERROR_LIMIT,
              "in kernel 'add', got 1024 static and 232448 dynamic bytes");
  expectError(launch({{1, 1, 1}, {32, 1, 1}, 0}, 2),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected 3 arguments for kernel 'add', got 2");
}

TEST_F(CudaDeviceTest, AsksForMuchWorkgroupMemoryOnce) {
  for (int i = 0; i < 3; ++i)
    EXPECT_SUCCESS(launch({{1, 1, 1}, {32, 1, 1}, 100000}));
  EXPECT_EQ(driver->countCalls("cuFuncSetAttribute"), 1);
  driver->fail("cuFuncSetAttribute", 2, 1);
  expectError(launch({{1, 1, 1}, {32, 1, 1}, 200000}), KAS_RT_ERROR_DRIVER,
              "cuFuncSetAttribute on cuda:1 (Stand-in) failed: ");
}

// 48 KiB are for all that a kernel has, and it declares 1 KiB itself.
TEST_F(CudaDeviceTest, CountsDeclaredWorkgroupMemory) {
  EXPECT_SUCCESS(launch({{1, 1, 1}, {32, 1, 1}, 47 * 1024}));
  EXPECT_EQ(driver->countCalls("cuFuncSetAttribute"), 0);
  EXPECT_SUCCESS(launch({{1, 1, 1}, {32, 1, 1}, 48 * 1024}));
  EXPECT_EQ(driver->countCalls("cuFuncSetAttribute"), 1);
}

/// 4 lines of 64 elements, 128 bytes apart, of buffer 1.
static KasRtTensorMap getMap() {
  KasRtTensorMap map = {};
  map.argument = 1;
  map.rank = 2;
  map.sizes[0] = 64;
  map.sizes[1] = 4;
  map.strides[0] = 128;
  map.box[0] = 64;
  map.box[1] = 8;
  return map;
}

TEST_F(CudaDeviceTest, MakesDescriptorsOfTensors) {
  KasRtTensorMap map = getMap();
  KasRtKernel tiles = nullptr, same = nullptr;
  ASSERT_SUCCESS(
      kasRtModuleGetKernelWithTensorMaps(module, "tiles", 2, &map, 1, &tiles));
  ASSERT_SUCCESS(
      kasRtModuleGetKernelWithTensorMaps(module, "tiles", 2, &map, 1, &same));
  EXPECT_EQ(tiles, same);
  map.box[1] = 4;
  ASSERT_SUCCESS(
      kasRtModuleGetKernelWithTensorMaps(module, "tiles", 2, &map, 1, &same));
  EXPECT_NE(tiles, same);
  const KasRtLaunchSize size = {{1, 1, 1}, {128, 1, 1}, 0};
  KasRtArgument arguments[] = {{buffer, 0, 0}, {buffer, 256, 0}};
  ASSERT_SUCCESS(kasRtLaunch(tiles, &size, arguments, 2));
  std::string log = driver->getLog();
  // f16, two dimensions; lines of 128 bytes, 256 of them requested at once.
  EXPECT_NE(log.find("cuTensorMapEncodeTiled(6, 2, "), std::string::npos);
  EXPECT_NE(log.find(", 64:64@2 4:8@128, 0, 3, 3, 0)"), std::string::npos)
      << log;
  // Once for the same address.
  ASSERT_SUCCESS(kasRtLaunch(tiles, &size, arguments, 2));
  EXPECT_EQ(driver->countCalls("cuTensorMapEncodeTiled"), 1);
  arguments[1].offset = 512;
  ASSERT_SUCCESS(kasRtLaunch(tiles, &size, arguments, 2));
  EXPECT_EQ(driver->countCalls("cuTensorMapEncodeTiled"), 2);
  arguments[1].offset = 256;
  driver->fail("cuTensorMapEncodeTiled", 3, CudaInvalidValue);
  expectError(kasRtLaunch(tiles, &size, arguments, 2), KAS_RT_ERROR_DRIVER,
              "cuTensorMapEncodeTiled of argument 1 of kernel 'tiles' on "
              "cuda:1 (Stand-in) failed: ");
  // What failed is made again.
  ASSERT_SUCCESS(kasRtLaunch(tiles, &size, arguments, 2));
  EXPECT_EQ(driver->countCalls("cuTensorMapEncodeTiled"), 4);
}

// Kernels without descriptors run, and for others one line says what is
// missing.
TEST_F(OldCudaDeviceTest, NeedsNoDescriptorsOfTensors) {
  EXPECT_SUCCESS(launch({{1, 1, 1}, {32, 1, 1}, 0}));
  EXPECT_EQ(driver->countCalls("cuLaunchKernel"), 1);
  EXPECT_EQ(driver->countCalls("cuFuncGetParamInfo"), 0);
  KasRtTensorMap map = getMap();
  KasRtKernel tiles = nullptr;
  expectError(
      kasRtModuleGetKernelWithTensorMaps(module, "tiles", 2, &map, 1, &tiles),
      KAS_RT_ERROR_DRIVER,
      "expected a driver with the function cuTensorMapEncodeTiled (CUDA 12.0) "
      "for kernel 'tiles', got one without it");
  EXPECT_EQ(tiles, nullptr);
  EXPECT_EQ(driver->countCalls("cuTensorMapEncodeTiled"), 0);
}

TEST_F(CudaDeviceTest, ChecksTensorMaps) {
  KasRtKernel tiles = nullptr;
  auto get = [&](const KasRtTensorMap &map, const char *name = "tiles",
                 uint32_t bufferCount = 2) {
    return kasRtModuleGetKernelWithTensorMaps(module, name, bufferCount, &map,
                                              1, &tiles);
  };
  auto expectInvalid = [&](auto change, const std::string &text) {
    KasRtTensorMap map = getMap();
    change(map);
    expectError(get(map), KAS_RT_ERROR_INVALID_ARGUMENT,
                text + " for kernel 'tiles', got ");
  };
  expectInvalid([](KasRtTensorMap &map) { map.argument = 2; },
                "expected a map of one of 2 buffers");
  expectInvalid([](KasRtTensorMap &map) { map.rank = 6; },
                "expected a map of 1 to 5 dimensions");
  expectInvalid([](KasRtTensorMap &map) { map.sizes[1] = 0; },
                "expected sizes of a map of 1 to 2^32");
  expectInvalid([](KasRtTensorMap &map) { map.strides[0] = 120; },
                "expected strides of a map that are multiples of 16 bytes and "
                "less than 2^40");
  expectInvalid([](KasRtTensorMap &map) { map.box[0] = 257; },
                "expected a box of 1 to 256 elements along each dimension of "
                "a map");
  expectError(kasRtModuleGetKernelWithTensorMaps(module, "tiles", 2, nullptr, 1,
                                                 &tiles),
              KAS_RT_ERROR_INVALID_ARGUMENT, "tensor maps");
  // The driver knows what the kernel takes.
  expectError(get(getMap(), "add"), KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected kernel 'add' to take descriptors of tensors, got a "
              "parameter 2 of 8 bytes");
  expectError(get(getMap(), "tiles", 3), KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected kernel 'tiles' to take pointers, got a parameter 2 of "
              "128 bytes");
  expectError(kasRtModuleGetKernel(module, "tiles", 2, &tiles),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected kernel 'tiles' to take pointers, got a parameter 2 of "
              "128 bytes");
}

TEST_F(CudaDeviceTest, ChecksArguments) {
  KasRtDevice otherDevice = nullptr;
  KasRtBuffer otherBuffer = nullptr;
  ASSERT_SUCCESS(kasRtDeviceOpen("cuda:0", &otherDevice));
  ASSERT_SUCCESS(kasRtBufferCreate(otherDevice, 256, &otherBuffer));
  const KasRtLaunchSize size = {{1, 1, 1}, {32, 1, 1}, 0};
  auto expectInvalid = [&](KasRtArgument argument, const std::string &text) {
    const KasRtArgument arguments[] = {
        {buffer, 0, 0}, argument, {buffer, 0, 0}};
    expectError(kasRtLaunch(kernel, &size, arguments, 3),
                KAS_RT_ERROR_INVALID_ARGUMENT, text);
  };
  expectInvalid({nullptr, 0, 0},
                "expected a buffer as argument 1 of kernel 'add', got null");
  expectInvalid({otherBuffer, 0, 0},
                "expected a buffer of cuda:1 (Stand-in) as argument 1 of "
                "kernel 'add', got one of cuda:0 (Stand-in)");
  expectInvalid({buffer, 128, 0}, "expected an offset that is a multiple of "
                                  "256 as argument 1 of kernel 'add', got 128");
  expectInvalid({buffer, 1024, 0}, "expected bytes within a buffer of 1024 as "
                                   "argument 1 of kernel 'add', got 0 from "
                                   "1024 on");
  expectInvalid({buffer, 768, 257}, "got 257 from 768 on");
  EXPECT_SUCCESS(kasRtBufferDestroy(otherBuffer));
  EXPECT_SUCCESS(kasRtDeviceClose(otherDevice));
}

TEST_F(CudaDeviceTest, ChecksBuffers) {
  KasRtBuffer other = nullptr;
  expectError(kasRtBufferCreate(device, 0, &other),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected a buffer of 1 byte or more, got 0 bytes");
  expectError(kasRtBufferCreate(device, (64u << 20) + 1, &other),
              KAS_RT_ERROR_LIMIT,
              "expected a buffer of at most 67108864 bytes");
  EXPECT_EQ(kasRtBufferGetSize(buffer), 1024u);
  EXPECT_EQ(kasRtBufferGetSize(nullptr), 0u);
  char bytes[8] = {};
  expectError(
      kasRtBufferWrite(buffer, 1020, bytes, 8), KAS_RT_ERROR_INVALID_ARGUMENT,
      "expected a copy within the buffer's 1024 bytes, got 8 bytes from "
      "1020 on");
  expectError(kasRtBufferRead(buffer, UINT64_MAX, bytes, 8),
              KAS_RT_ERROR_INVALID_ARGUMENT, "expected a copy within");
  EXPECT_SUCCESS(kasRtBufferRead(buffer, 1024, nullptr, 0));
  EXPECT_SUCCESS(kasRtBufferWrite(buffer, 0, nullptr, 0));
  ASSERT_SUCCESS(kasRtBufferCreate(device, 6, &other));
  expectError(kasRtBufferFill(other, 0), KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected a buffer of a multiple of 4 bytes to fill, got 6");
  EXPECT_SUCCESS(kasRtBufferDestroy(other));
}

TEST_F(CudaDeviceTest, ChecksEvents) {
  KasRtEvent start = nullptr, stop = nullptr, foreign = nullptr;
  KasRtDevice otherDevice = nullptr;
  double milliseconds = 0;
  ASSERT_SUCCESS(kasRtDeviceOpen("cuda:0", &otherDevice));
  ASSERT_SUCCESS(kasRtEventCreate(device, &start));
  ASSERT_SUCCESS(kasRtEventCreate(device, &stop));
  ASSERT_SUCCESS(kasRtEventCreate(otherDevice, &foreign));
  EXPECT_SUCCESS(kasRtEventRecord(start));
  expectError(kasRtEventElapsed(start, stop, &milliseconds),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected two recorded events, got one that is not");
  expectError(kasRtEventElapsed(start, foreign, &milliseconds),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected two events of one device, got cuda:1 (Stand-in) and "
              "cuda:0 (Stand-in)");
  EXPECT_SUCCESS(launch({{1, 1, 1}, {32, 1, 1}, 0}));
  EXPECT_SUCCESS(kasRtEventRecord(stop));
  EXPECT_SUCCESS(kasRtEventElapsed(start, stop, &milliseconds));
  EXPECT_EQ(milliseconds, 0.5);
  expectError(kasRtDeviceClose(device), KAS_RT_ERROR_INVALID_ARGUMENT,
              "to be destroyed before it is closed, got 1 buffers, 1 modules, "
              "2 events and 0 sequences left");
  EXPECT_SUCCESS(kasRtEventDestroy(start));
  EXPECT_SUCCESS(kasRtEventDestroy(stop));
  EXPECT_SUCCESS(kasRtEventDestroy(foreign));
  EXPECT_SUCCESS(kasRtDeviceClose(otherDevice));
}

TEST_F(CudaDeviceTest, RefusesNull) {
  KasRtBuffer noBuffer = nullptr;
  KasRtModule noModule = nullptr;
  KasRtKernel noKernel = nullptr;
  KasRtEvent noEvent = nullptr;
  KasRtDevice noDevice = nullptr;
  KasRtDeviceInfo info;
  int32_t count = 0;
  double milliseconds = 0;
  const KasRtLaunchSize size = {{1, 1, 1}, {32, 1, 1}, 0};
  auto expectNull = [](KasRtStatus status) {
    expectError(status, KAS_RT_ERROR_INVALID_ARGUMENT, ", got null");
  };
  expectNull(kasRtDeviceCount(KAS_RT_CUDA, nullptr));
  expectNull(kasRtDeviceOpen(nullptr, &noDevice));
  expectNull(kasRtDeviceOpen("cuda", nullptr));
  expectNull(kasRtDeviceGetInfo(nullptr, &info));
  expectNull(kasRtDeviceGetInfo(device, nullptr));
  expectNull(kasRtSynchronize(nullptr));
  expectNull(kasRtBufferCreate(nullptr, 4, &noBuffer));
  expectNull(kasRtBufferCreate(device, 4, nullptr));
  expectNull(kasRtBufferWrite(nullptr, 0, &count, 4));
  expectNull(kasRtBufferWrite(buffer, 0, nullptr, 4));
  expectNull(kasRtBufferRead(nullptr, 0, &count, 4));
  expectNull(kasRtBufferRead(buffer, 0, nullptr, 4));
  expectNull(kasRtBufferFill(nullptr, 0));
  expectNull(kasRtModuleLoad(nullptr, "", 0, &noModule));
  expectNull(kasRtModuleLoad(device, nullptr, 0, &noModule));
  expectNull(kasRtModuleLoad(device, "", 0, nullptr));
  expectNull(kasRtModuleGetKernel(nullptr, "add", 3, &noKernel));
  expectNull(kasRtModuleGetKernel(module, nullptr, 3, &noKernel));
  expectNull(kasRtModuleGetKernel(module, "add", 3, nullptr));
  expectNull(kasRtLaunch(nullptr, &size, nullptr, 0));
  expectNull(kasRtLaunch(kernel, nullptr, nullptr, 0));
  expectNull(kasRtLaunch(kernel, &size, nullptr, 3));
  expectNull(kasRtEventCreate(nullptr, &noEvent));
  expectNull(kasRtEventCreate(device, nullptr));
  expectNull(kasRtEventRecord(nullptr));
  expectNull(kasRtEventElapsed(nullptr, nullptr, &milliseconds));
  expectNull(kasRtEventElapsed(nullptr, nullptr, nullptr));
  EXPECT_SUCCESS(kasRtBufferDestroy(nullptr));
  EXPECT_SUCCESS(kasRtModuleUnload(nullptr));
  EXPECT_SUCCESS(kasRtEventDestroy(nullptr));
  EXPECT_SUCCESS(kasRtDeviceClose(nullptr));
}

TEST_F(DeviceRuntimeTest, ChecksTheNamesOfDevices) {
  KasRtDevice device = nullptr;
  for (const char *name : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "vulkan:-1",
                           "cuda:99999999999", "cuda:0:0"})
    expectError(kasRtDeviceOpen(name, &device), KAS_RT_ERROR_INVALID_ARGUMENT,
                std::string("expected a device cuda, cuda:INDEX, vulkan or "
                            "vulkan:INDEX, got '") +
                    name + "'");
  int32_t count = 0;
  expectError(kasRtDeviceCount(static_cast<KasRtBackend>(2), &count),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected KAS_RT_CUDA or KAS_RT_VULKAN, got 2");
}

TEST(DeviceRuntimeStatus, HaveNames) {
  EXPECT_STREQ(kasRtStatusName(KAS_RT_SUCCESS), "success");
  for (int status = KAS_RT_ERROR_NO_DEVICE; status <= KAS_RT_ERROR_DRIVER;
       ++status)
    EXPECT_STRNE(kasRtStatusName(static_cast<KasRtStatus>(status)),
                 "unknown status");
  EXPECT_STREQ(kasRtStatusName(static_cast<KasRtStatus>(99)), "unknown status");
}
