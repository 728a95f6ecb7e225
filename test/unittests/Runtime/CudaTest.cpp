//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTest.h"
#include <cstring>
#include <sstream>

using namespace kas::rt;

TEST_F(CudaTest, RunsThroughTheApi) {
  RunResult result = runThroughApi("cuda", ptx);
  EXPECT_EQ(result.status, KAS_RT_SUCCESS) << result.text;
  EXPECT_TRUE(result.isCorrect);
  EXPECT_STREQ(driver->getViolations(), "");
  EXPECT_EQ(driver->countLive(), 0);
}

TEST_F(CudaTest, RecordsTheCallsOfALaunch) {
  runThroughApi("cuda", ptx);
  std::string log = driver->getLog();
  size_t launch = log.find("cuLaunchKernel(");
  ASSERT_NE(launch, std::string::npos);
  EXPECT_NE(log.find(", 2, 1, 1, 32, 1, 1, 0, ", launch), std::string::npos)
      << log;
  // Everything on the device happens in the order of the calls.
  size_t position = 0;
  for (const char *call : {"cuInit",
                           "cuDevicePrimaryCtxRetain",
                           "cuStreamCreate",
                           "cuMemAlloc_v2",
                           "cuEventCreate",
                           "cuModuleLoadDataEx",
                           "cuModuleGetFunction",
                           "cuMemcpyHtoDAsync_v2",
                           "cuMemsetD32Async",
                           "cuEventRecord",
                           "cuLaunchKernel",
                           "cuEventRecord",
                           "cuStreamSynchronize",
                           "cuEventElapsedTime",
                           "cuMemcpyDtoHAsync_v2",
                           "cuMemFree_v2",
                           "cuEventDestroy_v2",
                           "cuModuleUnload",
                           "cuStreamDestroy_v2",
                           "cuDevicePrimaryCtxRelease_v2"}) {
    position =
        log.find(std::string("\n") + call + "(", position ? position : 0);
    if (std::strcmp(call, "cuInit") == 0) {
      EXPECT_EQ(log.find("cuInit("), 0u);
      position = 0;
      continue;
    }
    ASSERT_NE(position, std::string::npos) << call << " is missing in\n" << log;
    ++position;
  }
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// b = a + a, then b = b + a: three times a after both.
static KasRtSequence createTriple(KasRtDevice device, KasRtKernel kernel,
                                  KasRtBuffer buffer) {
  const KasRtArgument first[] = {
      {buffer, 0, 0}, {buffer, 0, 0}, {buffer, 256, 0}};
  const KasRtArgument second[] = {
      {buffer, 256, 0}, {buffer, 0, 0}, {buffer, 256, 0}};
  const KasRtLaunchSize size = {{1, 1, 1}, {32, 1, 1}, 0};
  const KasRtStep steps[] = {{kernel, size, first, 3},
                             {kernel, size, second, 3}};
  KasRtSequence sequence = nullptr;
  EXPECT_SUCCESS(kasRtSequenceCreate(device, steps, 2, &sequence));
  return sequence;
}

// Recorded once, started by one call as often as one likes: with what buffers
// have at that time.
TEST_F(CudaDeviceTest, StartsASequenceByOneCall) {
  KasRtSequence sequence = createTriple(device, kernel, buffer);
  EXPECT_EQ(driver->countCalls("cuLaunchKernel"), 2);
  EXPECT_EQ(driver->countCalls("cuGraphInstantiateWithFlags"), 1);
  for (float value : {1.0f, 5.0f}) {
    std::vector<float> values(64, value), results(32);
    ASSERT_SUCCESS(kasRtBufferWrite(buffer, 0, values.data(), 256));
    ASSERT_SUCCESS(kasRtSequenceLaunch(sequence));
    ASSERT_SUCCESS(kasRtBufferRead(buffer, 256, results.data(), 128));
    EXPECT_EQ(results, std::vector<float>(32, 3 * value));
  }
  EXPECT_EQ(driver->countCalls("cuGraphLaunch"), 2);
  EXPECT_EQ(driver->countCalls("cuLaunchKernel"), 2);
  expectError(kasRtDeviceClose(device), KAS_RT_ERROR_INVALID_ARGUMENT,
              "1 buffers, 1 modules, 0 events and 1 sequences left");
  EXPECT_SUCCESS(kasRtSequenceDestroy(sequence));
}

static void expectLaunches(const StandInControls &driver, KasRtDevice device,
                           KasRtKernel kernel, KasRtBuffer buffer) {
  KasRtSequence sequence = createTriple(device, kernel, buffer);
  EXPECT_EQ(driver.countCalls("cuLaunchKernel"), 0);
  std::vector<float> values(64, 2), results(32);
  EXPECT_SUCCESS(kasRtBufferWrite(buffer, 0, values.data(), 256));
  EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
  EXPECT_SUCCESS(kasRtBufferRead(buffer, 256, results.data(), 128));
  EXPECT_EQ(results, std::vector<float>(32, 6));
  EXPECT_EQ(driver.countCalls("cuLaunchKernel"), 2);
  EXPECT_EQ(driver.countCalls("cuGraphLaunch"), 0);
  EXPECT_SUCCESS(kasRtSequenceDestroy(sequence));
}

TEST_F(CudaDeviceTest, LaunchesOneByOneWhereGraphsAreOff) {
  useDriver("KAS_RT_GRAPHS", "0");
  expectLaunches(*driver, device, kernel, buffer);
}

TEST_F(OldCudaDeviceTest, LaunchesOneByOneWithoutGraphs) {
  expectLaunches(*driver, device, kernel, buffer);
}

// Work goes to the stream of the caller, the default one, too, but graphs are
// recorded in the device's own; the caller's memory is used as it is and stays.
TEST_F(CudaDeviceTest, RunsInTheCallersStreamOnTheCallersMemory) {
  int first = 0;
  for (void *stream :
       {static_cast<void *>(&first), static_cast<void *>(nullptr)}) {
    driver->addStream(stream);
    ASSERT_SUCCESS(kasRtDeviceSetStream(device, stream));
    KasRtSequence sequence = createTriple(device, kernel, buffer);
    std::string before = driver->getLog();
    ASSERT_SUCCESS(kasRtSequenceLaunch(sequence));
    ASSERT_SUCCESS(launch({{1, 1, 1}, {32, 1, 1}, 0}));
    std::string added = std::string(driver->getLog()).substr(before.size());
    std::ostringstream place;
    place << ", " << stream << ")";
    for (const char *call : {"cuGraphLaunch", "cuLaunchKernel"}) {
      size_t at = added.find(call);
      ASSERT_NE(at, std::string::npos) << added;
      EXPECT_NE(added.substr(at, added.find('\n', at) - at).find(place.str()),
                std::string::npos)
          << added;
    }
    ASSERT_SUCCESS(kasRtSequenceDestroy(sequence));
  }
  ASSERT_SUCCESS(kasRtDeviceSetStream(device, KAS_RT_OWN_STREAM));
  int frees = driver->countCalls("cuMemFree_v2");
  KasRtBuffer borrowed = nullptr;
  ASSERT_SUCCESS(kasRtBufferBorrow(device, 4096, 512, &borrowed));
  EXPECT_EQ(kasRtBufferGetSize(borrowed), 512u);
  EXPECT_SUCCESS(kasRtBufferDestroy(borrowed));
  EXPECT_EQ(driver->countCalls("cuMemFree_v2"), frees);
  expectError(kasRtBufferBorrow(device, 4100, 512, &borrowed),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected an address on the device that is a multiple of 16, got "
              "4100");
  expectError(kasRtBufferBorrow(device, 4096, 0, &borrowed),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected a buffer of 1 byte or more, got 0 bytes");
  expectError(kasRtDeviceSetStream(nullptr, nullptr),
              KAS_RT_ERROR_INVALID_ARGUMENT, "expected a device, got null");
}

TEST_F(CudaDeviceTest, RefusesSequences) {
  KasRtSequence sequence = nullptr;
  const KasRtArgument arguments[] = {
      {buffer, 0, 0}, {buffer, 256, 0}, {buffer, 512, 0}};
  KasRtStep step = {kernel, {{1, 1, 1}, {32, 1, 1}, 0}, arguments, 3};
  expectError(kasRtSequenceCreate(device, &step, 0, &sequence),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected 1 launch or more for a sequence, got 0");
  expectError(kasRtSequenceCreate(nullptr, &step, 1, &sequence),
              KAS_RT_ERROR_INVALID_ARGUMENT, "expected a device, got null");
  expectError(kasRtSequenceLaunch(nullptr), KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected a sequence, got null");
  step.count = 2;
  expectError(kasRtSequenceCreate(device, &step, 1, &sequence),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected 3 arguments for kernel 'add', got 2");
  step.count = 3;
  step.size.block[0] = 600;
  // More threads than the kernel's registers allow: the recording ends, and
  // launches run as before.
  expectError(kasRtSequenceCreate(device, &step, 1, &sequence),
              KAS_RT_ERROR_LIMIT, "expected at most 512 threads");
  EXPECT_EQ(sequence, nullptr);
  EXPECT_SUCCESS(launch({{1, 1, 1}, {32, 1, 1}, 0}));
}

//===----------------------------------------------------------------------===//
// Errors of the driver
//===----------------------------------------------------------------------===//

static KasRtStatus expectedStatus(CUresult error) {
  switch (error) {
  case CudaOutOfMemory:
    return KAS_RT_ERROR_OUT_OF_MEMORY;
  case CudaInvalidPtx:
    return KAS_RT_ERROR_INVALID_MODULE;
  case CudaNotFound:
    return KAS_RT_ERROR_NOT_FOUND;
  case CudaLaunchOutOfResources:
    return KAS_RT_ERROR_LIMIT;
  case CudaNoDevice:
    return KAS_RT_ERROR_NO_DEVICE;
  case CudaIllegalAddress:
  case CudaLaunchFailed:
  case CudaEccUncorrectable:
    return KAS_RT_ERROR_DEVICE_LOST;
  default:
    return KAS_RT_ERROR_DRIVER;
  }
}

TEST_F(CudaTest, ReportsEachErrorOfEachCall) {
  static const char *const functions[] = {
#define KAS_NAME(name, parameters) #name,
      KAS_CUDA_FUNCTIONS(KAS_NAME) KAS_CUDA_OPTIONAL_FUNCTIONS(KAS_NAME)
#undef KAS_NAME
  };
  static const CUresult errors[] = {
      CudaOutOfMemory,  CudaInvalidPtx,           CudaNotFound,
      CudaNoDevice,     CudaLaunchOutOfResources, CudaIllegalAddress,
      CudaLaunchFailed, CudaEccUncorrectable,     999};
  int failures = 0;
  for (const char *function : functions) {
    // These describe errors, and restore the caller's context: what they say
    // about themselves changes nothing.
    std::string name = function;
    bool isSilent = name == "cuGetErrorName" || name == "cuGetErrorString" ||
                    name == "cuCtxPopCurrent_v2";
    for (CUresult error : errors) {
      for (int nth = 1;; ++nth) {
        SCOPED_TRACE(name + " call " + std::to_string(nth) + " returns " +
                     std::to_string(error));
        restart();
        driver->fail(function, nth, error);
        RunResult result = runThroughApi("cuda", ptx);
        if (!driver->hasFailed()) {
          EXPECT_EQ(result.status, KAS_RT_SUCCESS) << result.text;
          EXPECT_STREQ(driver->getViolations(), "");
          break;
        }
        ++failures;
        EXPECT_EQ(driver->countLive(), 0);
        if (isSilent)
          continue;
        EXPECT_EQ(result.status, name == "cuInit" ? KAS_RT_ERROR_NO_DEVICE
                                                  : expectedStatus(error))
            << result.text;
        EXPECT_NE(result.text.find("failed: "), std::string::npos)
            << result.text;
        EXPECT_EQ(result.text.find('\n'), std::string::npos) << result.text;
        // What could not be given back is left, and nothing else is wrong.
        std::string violations = driver->getViolations();
        bool isRelease =
            name.find("Destroy") != std::string::npos ||
            name.find("Free") != std::string::npos ||
            name == "cuStreamEndCapture" || name == "cuModuleUnload" ||
            name == "cuCtxPushCurrent_v2" || name == "cuStreamSynchronize";
        if (!isRelease) {
          EXPECT_EQ(violations, "");
        }
      }
    }
  }
  // Each function of the driver is called at least once in a run.
  EXPECT_GT(failures, int(std::size(functions) * std::size(errors)) / 2);
}

TEST_F(CudaTest, ClassifiesEachError) {
  static const std::pair<CUresult, KasRtStatus> errors[] = {
      {CudaInvalidValue, KAS_RT_ERROR_DRIVER},
      {CudaDeviceUnavailable, KAS_RT_ERROR_DEVICE_LOST},
      {CudaInvalidDevice, KAS_RT_ERROR_NO_DEVICE},
      {CudaInvalidImage, KAS_RT_ERROR_INVALID_MODULE},
      {CudaInvalidContext, KAS_RT_ERROR_DEVICE_LOST},
      {CudaNoBinaryForGpu, KAS_RT_ERROR_INVALID_MODULE},
      {CudaUnsupportedPtxVersion, KAS_RT_ERROR_INVALID_MODULE},
      {CudaInvalidSource, KAS_RT_ERROR_INVALID_MODULE},
      {CudaLaunchTimeout, KAS_RT_ERROR_DEVICE_LOST},
      {CudaContextIsDestroyed, KAS_RT_ERROR_DEVICE_LOST},
      {CudaHardwareStackError, KAS_RT_ERROR_DEVICE_LOST},
      {CudaIllegalInstruction, KAS_RT_ERROR_DEVICE_LOST},
      {CudaMisalignedAddress, KAS_RT_ERROR_DEVICE_LOST},
      {CudaInvalidAddressSpace, KAS_RT_ERROR_DEVICE_LOST},
      {CudaInvalidPc, KAS_RT_ERROR_DEVICE_LOST}};
  for (auto [error, status] : errors) {
    restart();
    driver->fail("cuModuleLoadDataEx", 1, error);
    RunResult result = runThroughApi("cuda", ptx);
    EXPECT_EQ(result.status, status) << error << " " << result.text;
    EXPECT_EQ(driver->countLive(), 0);
  }
}

// A driver that is older than its error.
TEST_F(CudaDeviceTest, GivesTheNumberOfAnUnknownError) {
  KasRtBuffer other = nullptr;
  driver->hide("cuGetErrorString");
  driver->fail("cuMemAlloc_v2", 2, CudaOutOfMemory);
  expectError(kasRtBufferCreate(device, 16, &other), KAS_RT_ERROR_OUT_OF_MEMORY,
              "failed: CUDA_ERROR_OUT_OF_MEMORY");
  driver->hide("cuGetErrorName");
  driver->fail("cuMemAlloc_v2", 3, 998);
  expectError(kasRtBufferCreate(device, 16, &other), KAS_RT_ERROR_DRIVER,
              "failed: error 998");
}

TEST_F(CudaDeviceTest, StaysLost) {
  driver->fail("cuLaunchKernel", 1, CudaIllegalAddress);
  expectError(launch({{1, 1, 1}, {32, 1, 1}, 0}), KAS_RT_ERROR_DEVICE_LOST,
              "launching kernel 'add' on cuda:1 (Stand-in) failed: an illegal "
              "memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)");
  KasRtBuffer other = nullptr;
  expectError(kasRtBufferCreate(device, 16, &other), KAS_RT_ERROR_DEVICE_LOST,
              "cuda:1 (Stand-in) was lost before: close it and open it again");
  EXPECT_EQ(other, nullptr);
  uint32_t word = 0;
  expectError(kasRtBufferRead(buffer, 0, &word, 4), KAS_RT_ERROR_DEVICE_LOST,
              "was lost before");
  expectError(kasRtSynchronize(device), KAS_RT_ERROR_DEVICE_LOST,
              "was lost before");
}

TEST_F(CudaDeviceTest, SaysHowMuchMemoryItAskedFor) {
  KasRtBuffer other = nullptr;
  driver->fail("cuMemAlloc_v2", 2, CudaOutOfMemory);
  expectError(kasRtBufferCreate(device, 1 << 20, &other),
              KAS_RT_ERROR_OUT_OF_MEMORY,
              "cuMemAlloc of 1048576 bytes on cuda:1 (Stand-in) failed: out of "
              "memory (CUDA_ERROR_OUT_OF_MEMORY)");
  // The device is as good as before.
  EXPECT_SUCCESS(kasRtBufferCreate(device, 1 << 20, &other));
  EXPECT_SUCCESS(kasRtBufferDestroy(other));
}

TEST_F(CudaDeviceTest, RepeatsWhatTheAssemblerSays) {
  KasRtModule other = nullptr;
  std::string bad = ".version 8.0\n.target sm_90\nsyntax error\n";
  expectError(kasRtModuleLoad(device, bad.data(), bad.size(), &other),
              KAS_RT_ERROR_INVALID_MODULE,
              "ptxas application ptx input, line 3; error : Parsing error near "
              "'syntax'");
}

//===----------------------------------------------------------------------===//
// Drivers and devices that are not there
//===----------------------------------------------------------------------===//

TEST_F(DeviceRuntimeTest, SaysWhereItLookedForCuda) {
  useDriver("KAS_RT_LIBCUDA", "libkas-no-such-driver.so");
  KasRtDevice device = nullptr;
  expectError(kasRtDeviceOpen("cuda", &device), KAS_RT_ERROR_NO_DEVICE,
              "no CUDA driver: looked for the library libkas-no-such-driver.so "
              "(from KAS_RT_LIBCUDA), got: ");
  EXPECT_EQ(device, nullptr);
  int32_t count = 7;
  expectError(kasRtDeviceCount(KAS_RT_CUDA, &count), KAS_RT_ERROR_NO_DEVICE,
              "no CUDA driver");
  EXPECT_EQ(count, 0);
}

TEST_F(DeviceRuntimeTest, RefusesALibraryThatIsNoDriver) {
  useDriver("KAS_RT_LIBCUDA", "libm.so.6");
  KasRtDevice device = nullptr;
  expectError(kasRtDeviceOpen("cuda", &device), KAS_RT_ERROR_NO_DEVICE,
              "no CUDA driver: looked for the function cuInit in libm.so.6, "
              "which has none");
}

TEST_F(CudaTest, CountsDevices) {
  int32_t count = 0;
  EXPECT_SUCCESS(kasRtDeviceCount(KAS_RT_CUDA, &count));
  EXPECT_EQ(count, 2);
  KasRtDevice device = nullptr;
  expectError(kasRtDeviceOpen("cuda:2", &device), KAS_RT_ERROR_NO_DEVICE,
              "no device cuda:2: looked for it in ");
  expectError(kasRtDeviceOpen("cuda:2", &device), KAS_RT_ERROR_NO_DEVICE,
              ", which has 2 CUDA devices");
}

TEST_F(CudaTest, OpensADeviceTwice) {
  KasRtDevice first = nullptr, second = nullptr;
  ASSERT_SUCCESS(kasRtDeviceOpen("cuda:0", &first));
  ASSERT_SUCCESS(kasRtDeviceOpen("cuda:0", &second));
  EXPECT_SUCCESS(kasRtDeviceClose(first));
  EXPECT_SUCCESS(kasRtSynchronize(second));
  EXPECT_SUCCESS(kasRtDeviceClose(second));
  EXPECT_STREQ(driver->getViolations(), "");
}
