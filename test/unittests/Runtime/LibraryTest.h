//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests of kernels that a library may compute, on stand-ins for it and for
// CUDA's driver.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_RUNTIME_LIBRARYTEST_H
#define TEST_UNITTESTS_RUNTIME_LIBRARYTEST_H

#include "CudaTest.h"

namespace kas::rt {

/// The kernels `product` and `other` take four inputs and the result, and write
/// -1 to all of it.
class LibraryTest : public CudaTest {
protected:
  LibraryTest(const char *variable, const char *file)
      : variable(variable), file(file) {}

  void SetUp() override;
  void TearDown() override;
  /// As the driver's: with its kernels.
  void restartDriver();

  /// Describes a kernel, whose handle it gets.
  using Use = std::function<KasRtStatus(KasRtKernel)>;
  /// Runs a kernel on `inputs`, by a launch or a sequence, and gives its result
  /// of `numResults` elements that are 99 before. What computes the kernel then
  /// is in `computedBy`.
  std::vector<float> run(const Use &use,
                         const std::vector<std::vector<float>> &inputs,
                         uint64_t numResults);
  /// Runs `body` with a kernel of its own of a device.
  static void
  withKernel(const std::function<void(KasRtDevice, KasRtKernel)> &body);
  /// Expects that the kernel computes what `compute` runs, and `text` as the
  /// reason.
  void expectKernel(const std::function<std::vector<float>()> &compute,
                    const std::string &text);
  /// Expects the kernel without memory for the library's workspace, and where
  /// the driver cannot record what the library does.
  void expectKernelWhereDriverFails(
      const std::function<std::vector<float>()> &compute);

  /// Small integers of both signs, exact in all types.
  static std::vector<float> getValues(uint64_t count, int seed);

  const StandInControls *library = nullptr;
  std::string computedBy;
  bool isSequence = true;

private:
  const char *variable, *file;
};

} // namespace kas::rt

#endif // TEST_UNITTESTS_RUNTIME_LIBRARYTEST_H
