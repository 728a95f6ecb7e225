//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random operators through the first half of the roads to GPUs, which both back
// ends share: their kernels, run on the CPU, agree with the reference.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "kas/GPU/GPU.h"
#include "kas/GPU/Passes.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

void checkKernels(const GPUFrontOptions &front, unsigned count,
                  const RandomOperatorOptions &operators = {}) {
  CPUPipelineOptions serial;
  serial.threads = 1;
  forEachBatch(count, operators, [&](Batch &batch) {
    batch.check(
        [&](OpPassManager &manager) {
          buildGPUFrontHalf(manager, front);
          manager.addPass(createGPUToCPULoops());
        },
        {.pipeline = serial});
  });
}

} // namespace

TEST(GPURoads, KernelsForNVIDIAAgreeWithTheReference) {
  checkKernels({.device = "sm_90"}, getNumOperators(200, 1000));
}

TEST(GPURoads, KernelsForVulkanAgreeWithTheReference) {
  checkKernels({.device = "vulkan"}, getNumOperators(200, 1000));
}

// Enough points for tiles in registers and in workgroup memory.
TEST(GPURoads, KernelsOfLargerOperatorsAgreeWithTheReference) {
  RandomOperatorOptions larger;
  larger.maxPoints = 300000;
  larger.maxExtent = 60;
  checkKernels({.device = "sm_90"}, getNumOperators(100, 500), larger);
}
