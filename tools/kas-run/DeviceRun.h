//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Running functions on devices with CUDA or Vulkan.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_DEVICERUN_H
#define KAS_TOOLS_DEVICERUN_H

#include "KasRun.h"

namespace kas {

/// Whether `name` is one of kas-rt's devices: `cuda`, `vulkan:1`, ...
bool isRuntimeDevice(llvm::StringRef name);

/// Compiles `function` of `module` for `settings.device`, runs it there once
/// and times it when that is asked for. All buffers stay on the device.
llvm::Error runOnRuntimeDevice(mlir::ModuleOp module, llvm::StringRef function,
                               const RunSettings &settings,
                               llvm::ArrayRef<Tensor> arguments,
                               llvm::MutableArrayRef<Tensor> results,
                               RunReport &report);

} // namespace kas

#endif // KAS_TOOLS_DEVICERUN_H
