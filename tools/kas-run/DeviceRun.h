//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Running compiled functions on the CPU and on devices with CUDA or Vulkan.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_DEVICERUN_H
#define KAS_TOOLS_DEVICERUN_H

#include "KasRun.h"

namespace kas {

/// Whether `name` is one of kas-rt's devices: `cuda`, `vulkan:1`, ...
bool isRuntimeDevice(llvm::StringRef name);

/// Whether `name` asks for the kernels of a GPU, run on the CPU with blocks and
/// threads as loops: `emulator`, or `emulator:sm_80` with the GPU that
/// schedules are chosen for.
bool isEmulator(llvm::StringRef name);

/// Compiles `function` of `module` for `settings.device`, the CPU or one of
/// those, runs it there once and times it when that is requested. Buffers stay
/// on the device.
llvm::Error runOnDevice(mlir::ModuleOp module, llvm::StringRef function,
                        const RunSettings &settings,
                        llvm::ArrayRef<execution::Tensor> arguments,
                        llvm::MutableArrayRef<execution::Tensor> results,
                        RunReport &report);

} // namespace kas

#endif // KAS_TOOLS_DEVICERUN_H
