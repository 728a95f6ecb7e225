//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tests of the two back ends share: a stand-in for a driver, and one
// run through the whole API in which any call may fail.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_RUNTIME_DEVICERUNTIMETEST_H
#define TEST_UNITTESTS_RUNTIME_DEVICERUNTIMETEST_H

#include "StandIn.h"
#include "kas-rt/kas-rt.h"
#include "gtest/gtest.h"
#include <optional>
#include <string>
#include <vector>

/// A test in which the runtime loads `library` instead of the driver that
/// `variable` stands for.
class DeviceRuntimeTest : public testing::Test {
protected:
  /// `library` stays loaded until the process ends.
  static const StandInControls *load(const char *library);
  void useDriver(const char *variable, const char *library);
  void TearDown() override;

  /// Expects a call to fail with a text that has `text` in it.
  static void expectError(KasRtStatus status, KasRtStatus expected,
                          const std::string &text);

private:
  /// Those that were set, with what they were before.
  std::vector<std::pair<std::string, std::optional<std::string>>> variables;
};

/// The first error of a run, and what it found.
struct RunResult {
  KasRtStatus status = KAS_RT_SUCCESS;
  std::string text;
  /// Errors after the first one, when what was made is destroyed.
  std::vector<std::string> later;
  bool isCorrect = false;
};

/// Opens `device`, loads `module` with the kernel `add` of three buffers of 64
/// floats, runs it on two of them, times and checks it, destroys everything and
/// closes the device. Stops at the first error, but destroys what there is.
RunResult runThroughApi(const char *device, const std::string &module);

#define EXPECT_SUCCESS(call) EXPECT_EQ(call, KAS_RT_SUCCESS) << kasRtErrorText()
#define ASSERT_SUCCESS(call) ASSERT_EQ(call, KAS_RT_SUCCESS) << kasRtErrorText()

#endif // TEST_UNITTESTS_RUNTIME_DEVICERUNTIMETEST_H
