//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs kernels that a library may compute.
//
//===----------------------------------------------------------------------===//

#include "LibraryTest.h"
#include <algorithm>

using namespace kas::rt;

static const std::string productPtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry product(
  .param .u64 a, .param .u64 b, .param .u64 bias, .param .u64 residual, .param .u64 out
)
{
  ret;
}
.visible .entry other(
  .param .u64 a, .param .u64 b, .param .u64 bias, .param .u64 residual, .param .u64 out
)
{
  ret;
}
)";

/// Elements of the result of a test; the kernel needs them.
static uint64_t numWritten;

static void writeMinusOne(void *const *parameters, const uint32_t *,
                          const uint32_t *) {
  auto *results = reinterpret_cast<float *>(
      *static_cast<const CUdeviceptr *>(parameters[4]));
  std::fill_n(results, numWritten, -1.0f);
}

void LibraryTest::restartDriver() {
  restart();
  driver->setKernel("product", writeMinusOne);
  driver->setKernel("other", writeMinusOne);
}

void LibraryTest::SetUp() {
  CudaTest::SetUp();
  useDriver(variable, file);
  library = load(file);
  ASSERT_TRUE(library);
  library->reset();
  restartDriver();
}

void LibraryTest::TearDown() {
  EXPECT_STREQ(library->getViolations(), "");
  EXPECT_EQ(library->countLive(), 0);
  EXPECT_STREQ(driver->getViolations(), "");
  EXPECT_EQ(driver->countLive(), 0);
  library->reset();
  CudaTest::TearDown();
}

std::vector<float> LibraryTest::getValues(uint64_t count, int seed) {
  std::vector<float> values;
  for (uint64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 7 + seed) % 11) - 5);
  return values;
}

void LibraryTest::withKernel(
    const std::function<void(KasRtDevice, KasRtKernel)> &body) {
  KasRtDevice device = nullptr;
  KasRtModule module = nullptr;
  KasRtKernel kernel = nullptr;
  ASSERT_SUCCESS(kasRtDeviceOpen("cuda", &device));
  ASSERT_SUCCESS(
      kasRtModuleLoad(device, productPtx.data(), productPtx.size(), &module));
  ASSERT_SUCCESS(kasRtModuleGetKernel(module, "product", 5, &kernel));
  body(device, kernel);
  EXPECT_SUCCESS(kasRtModuleUnload(module));
  EXPECT_SUCCESS(kasRtDeviceClose(device));
}

std::vector<float>
LibraryTest::run(const Use &use, const std::vector<std::vector<float>> &inputs,
                 uint64_t numResults) {
  std::vector<float> results(numResults);
  numWritten = numResults;
  withKernel([&](KasRtDevice device, KasRtKernel kernel) {
    EXPECT_SUCCESS(use(kernel));
    std::vector<std::vector<float>> values = inputs;
    // What nothing writes stays.
    values.emplace_back(numResults, 99.0f);
    std::vector<KasRtArgument> arguments;
    for (const std::vector<float> &data : values) {
      KasRtArgument &argument = arguments.emplace_back();
      argument = {};
      EXPECT_SUCCESS(kasRtBufferCreate(device, data.size() * sizeof(float),
                                       &argument.buffer));
      EXPECT_SUCCESS(kasRtBufferWrite(argument.buffer, 0, data.data(),
                                      data.size() * sizeof(float)));
    }
    KasRtLaunchSize size = {{1, 1, 1}, {32, 1, 1}, 0};
    KasRtStep step = {kernel, size, arguments.data(), 5};
    KasRtSequence sequence = nullptr;
    if (isSequence) {
      EXPECT_SUCCESS(kasRtSequenceCreate(device, &step, 1, &sequence));
      EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
    } else {
      EXPECT_SUCCESS(kasRtLaunch(kernel, &size, arguments.data(), 5));
    }
    EXPECT_SUCCESS(kasRtBufferRead(arguments[4].buffer, 0, results.data(),
                                   numResults * sizeof(float)));
    computedBy = kasRtKernelGetLibrary(kernel);
    EXPECT_SUCCESS(kasRtSequenceDestroy(sequence));
    for (const KasRtArgument &argument : arguments)
      EXPECT_SUCCESS(kasRtBufferDestroy(argument.buffer));
  });
  return results;
}

/// Elements that the kernel has not written.
static int64_t countOthers(const std::vector<float> &results) {
  EXPECT_FALSE(results.empty());
  return static_cast<int64_t>(results.size()) -
         std::count(results.begin(), results.end(), -1.0f);
}

void LibraryTest::expectKernel(
    const std::function<std::vector<float>()> &compute,
    const std::string &text) {
  for (bool inSequence : {false, true}) {
    SCOPED_TRACE(text + (inSequence ? " in a sequence" : ""));
    isSequence = inSequence;
    EXPECT_EQ(countOthers(compute()), 0);
    EXPECT_EQ(computedBy.substr(0, 8), "kernel: ");
    EXPECT_NE(computedBy.find(text), std::string::npos) << computedBy;
  }
}

void LibraryTest::expectKernelWhereDriverFails(
    const std::function<std::vector<float>()> &compute) {
  driver->fail("cuMemAlloc_v2", 1, CudaOutOfMemory);
  isSequence = false;
  EXPECT_EQ(countOthers(compute()), 0);
  EXPECT_NE(computedBy.find("kernel: cuMemAlloc of 33554432 bytes"),
            std::string::npos)
      << computedBy;
  restartDriver();
  driver->fail("cuStreamEndCapture", 1, 901);
  isSequence = true;
  EXPECT_EQ(countOthers(compute()), 0);
  EXPECT_NE(computedBy.find("kernel: cuStreamEndCapture"), std::string::npos)
      << computedBy;
}
