//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceRuntimeTest.h"
#include <cstdlib>
#include <dlfcn.h>

const StandInControls *DeviceRuntimeTest::load(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(handle) << dlerror();
  void *controls = handle ? dlsym(handle, "standInControls") : nullptr;
  EXPECT_TRUE(controls);
  return controls ? *static_cast<const StandInControls **>(controls) : nullptr;
}

void DeviceRuntimeTest::useDriver(const char *variable, const char *library) {
  const char *before = std::getenv(variable);
  variables.emplace_back(variable, before ? std::optional<std::string>(before)
                                          : std::nullopt);
  setenv(variable, library, 1);
}

void DeviceRuntimeTest::TearDown() {
  for (; !variables.empty(); variables.pop_back()) {
    const auto &[variable, before] = variables.back();
    if (before)
      setenv(variable.c_str(), before->c_str(), 1);
    else
      unsetenv(variable.c_str());
  }
}

void DeviceRuntimeTest::expectError(KasRtStatus status, KasRtStatus expected,
                                    const std::string &text) {
  EXPECT_EQ(status, expected) << kasRtErrorText();
  std::string got = kasRtErrorText();
  EXPECT_NE(got.find(text), std::string::npos) << got;
  EXPECT_EQ(got.find('\n'), std::string::npos) << got;
}

namespace {

/// One run; `ok` is false from the first error on.
class Run {
public:
  explicit Run(RunResult &result) : result(result) {}

  bool step(KasRtStatus status) {
    if (status == KAS_RT_SUCCESS)
      return true;
    if (result.status == KAS_RT_SUCCESS) {
      result.status = status;
      result.text = kasRtErrorText();
    } else {
      result.later.push_back(kasRtErrorText());
    }
    return false;
  }

  bool use(const char *name, const std::string &bytes) {
    constexpr uint32_t count = 64;
    if (!step(kasRtDeviceOpen(name, &device)))
      return false;
    for (KasRtBuffer &buffer : buffers)
      if (!step(kasRtBufferCreate(device, count * sizeof(float), &buffer)))
        return false;
    for (KasRtEvent &event : events)
      if (!step(kasRtEventCreate(device, &event)))
        return false;
    KasRtKernel kernel = nullptr;
    if (!step(kasRtModuleLoad(device, bytes.data(), bytes.size(), &module)) ||
        !step(kasRtModuleGetKernel(module, "add", 3, &kernel)))
      return false;

    std::vector<float> values(count), sums(count);
    for (uint32_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(i);
    const KasRtLaunchSize size = {{2, 1, 1}, {32, 1, 1}, 0};
    const KasRtArgument arguments[] = {
        {buffers[0], 0, 0}, {buffers[1], 0, 0}, {buffers[2], 0, 0}};
    const KasRtStep all = {kernel, size, arguments, 3};
    constexpr uint64_t bytesOfAll = count * sizeof(float);
    double milliseconds = -1;
    if (!step(kasRtBufferWrite(buffers[0], 0, values.data(), bytesOfAll)) ||
        !step(kasRtBufferFill(buffers[1], 0x3f800000)) ||
        !step(kasRtEventRecord(events[0])) ||
        !step(kasRtLaunch(kernel, &size, arguments, 3)) ||
        !step(kasRtSequenceCreate(device, &all, 1, &sequence)) ||
        !step(kasRtSequenceLaunch(sequence)) ||
        !step(kasRtEventRecord(events[1])) || !step(kasRtSynchronize(device)) ||
        !step(kasRtEventElapsed(events[0], events[1], &milliseconds)) ||
        !step(kasRtBufferRead(buffers[2], 0, sums.data(), bytesOfAll)))
      return false;
    result.isCorrect = milliseconds >= 0;
    for (uint32_t i = 0; i < count; ++i)
      result.isCorrect &= sums[i] == static_cast<float>(i + 1);
    return true;
  }

  void destroy() {
    step(kasRtSequenceDestroy(sequence));
    for (KasRtBuffer buffer : buffers)
      step(kasRtBufferDestroy(buffer));
    for (KasRtEvent event : events)
      step(kasRtEventDestroy(event));
    step(kasRtModuleUnload(module));
    step(kasRtDeviceClose(device));
  }

private:
  RunResult &result;
  KasRtDevice device = nullptr;
  KasRtBuffer buffers[3] = {};
  KasRtEvent events[2] = {};
  KasRtModule module = nullptr;
  KasRtSequence sequence = nullptr;
};

} // namespace

RunResult runThroughApi(const char *device, const std::string &module) {
  RunResult result;
  Run run(result);
  run.use(device, module);
  run.destroy();
  return result;
}
