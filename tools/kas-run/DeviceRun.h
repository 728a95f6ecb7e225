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

/// How the settings want code for the CPU to be made.
CPUPipelineOptions getCPUOptions(const RunSettings &settings);

/// A function of a module, ready to run where it was compiled for.
class LoadedFunction {
public:
  virtual ~LoadedFunction() = default;
  /// Error: what an assertion says, or a device.
  virtual llvm::Error run(llvm::ArrayRef<execution::Tensor> arguments,
                          llvm::MutableArrayRef<execution::Tensor> results) = 0;
  /// Times runs on what the last run took; on devices of kas-rt without copies
  /// of arguments and results.
  virtual llvm::Expected<execution::Timing>
  measure(llvm::ArrayRef<execution::Tensor> arguments,
          llvm::MutableArrayRef<execution::Tensor> results,
          const execution::TimingOptions &options) = 0;
  /// Must be called at the end. Error: what a validation layer says.
  virtual llvm::Error close() { return llvm::Error::success(); }
};

/// Compiles `function` of `module` for `settings.device`, the CPU or one of
/// those; times of the compiler are in `report`.
llvm::Expected<std::unique_ptr<LoadedFunction>>
loadOnDevice(mlir::ModuleOp module, llvm::StringRef function,
             const RunSettings &settings, RunReport &report);

/// The same for a GPU alone: a device of kas-rt or the emulator. An error in
/// builds without GPUs.
llvm::Expected<std::unique_ptr<LoadedFunction>>
loadOnGPU(mlir::ModuleOp module, llvm::StringRef function,
          const RunSettings &settings, RunReport &report);

/// Opens a device of kas-rt and closes it; an error if that cannot be done.
llvm::Error probeRuntimeDevice(llvm::StringRef name);

/// Compiles as `loadOnDevice` does, then runs it once and times it when that is
/// requested.
llvm::Error runOnDevice(mlir::ModuleOp module, llvm::StringRef function,
                        const RunSettings &settings,
                        llvm::ArrayRef<execution::Tensor> arguments,
                        llvm::MutableArrayRef<execution::Tensor> results,
                        RunReport &report);

/// Errors of options that --check=exact does not go with.
llvm::Error checkExactSettings(const RunSettings &settings);

/// --check=exact: runs `function` of `module` on random integers for which
/// nothing rounds, on the device or on the reference, and compares all results
/// with the reference. Error: there are no such integers, and why.
llvm::Error checkExactly(mlir::ModuleOp module, llvm::StringRef function,
                         const RunSettings &settings, RunReport &report);

} // namespace kas

#endif // KAS_TOOLS_DEVICERUN_H
