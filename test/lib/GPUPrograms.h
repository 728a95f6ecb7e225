//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs programs for GPUs: on Vulkan devices, through kas-rt, and past the tools
// that check binaries.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_GPUPROGRAMS_H
#define KAS_TEST_LIB_GPUPROGRAMS_H

#include "kas/ExecutionEngine/GPU/GPUProgram.h"

namespace kas::test {

/// Runs function number `function` of a program in SPIR-V on the first Vulkan
/// device, with the validation layer on. `arguments` are those of the manifest,
/// in order.
llvm::Expected<std::vector<std::vector<float>>>
runOnVulkan(const execution::GPUProgram &program, unsigned function,
            llvm::ArrayRef<llvm::ArrayRef<float>> arguments);

/// Closes the device of `runOnVulkan` and says what the validation layer has to
/// say, of objects that are left, say. Drivers are no longer whole when static
/// variables go.
llvm::Error closeVulkanDevice();

/// What `spirv-val` reports about the binary; empty: nothing.
std::string validateSPIRV(const execution::GPUProgram &program);

/// What `ptxas` needs for the kernels of a program in PTX.
struct Assembly {
  /// Of all kernels together.
  int64_t spilledBytes = 0, stackBytes = 0;
  /// The first kernel that spills; empty: none.
  std::string firstSpilling;
  /// Of the kernel that needs most.
  int64_t registers = 0;
  /// Whether products of warpgroups wait for each other.
  bool isSerialized = false;
};

/// Assembles the binary for `chip`; nothing where there is no `ptxas`.
llvm::Expected<std::optional<Assembly>>
assemblePTX(const execution::GPUProgram &program, llvm::StringRef chip);

} // namespace kas::test

#endif // KAS_TEST_LIB_GPUPROGRAMS_H
