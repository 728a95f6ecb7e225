//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles, checks and times variants of a function on a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_GPU_DEVICERUNNER_H
#define KAS_TUNING_GPU_DEVICERUNNER_H

#include "kas/ExecutionEngine/GPU/GPUProgram.h"
#include "kas/ExecutionEngine/Signature.h"
#include "kas/Tuning/KernelRunner.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::tuning {

/// What the device called `name` (`vulkan`, `cuda:1`, ...) offers. It is opened
/// by a process that ends, because a driver does not survive a fork.
llvm::Expected<KasRtDeviceInfo> readDeviceInfo(llvm::StringRef name);

/// Measures a function on a device by the device's clock, in turn with what the
/// cost model makes of it. Results are compared with those of plain loops on
/// the CPU. The device is open in workers only.
class DeviceRunner : public KernelRunner {
public:
  /// Compiles the function as it is for the device of that name, and by plain
  /// loops. The module must outlive this object.
  static llvm::Expected<std::unique_ptr<DeviceRunner>>
  create(mlir::ModuleOp module, llvm::StringRef function,
         llvm::StringRef device, const KasRtDeviceInfo &info,
         const MeasureOptions &options);

private:
  using KernelRunner::KernelRunner;
  llvm::Error computeExpected();
  llvm::Expected<StoredMeasurement> compileAndTime(int64_t scale) override;
  llvm::Expected<execution::GPUProgram> compile() const;

  mlir::ModuleOp module;
  std::string name, deviceName;
  KasRtDeviceInfo info = {};
  execution::FunctionSignature signature;
  execution::GPUProgram unchanged;
};

} // namespace kas::tuning

#endif // KAS_TUNING_GPU_DEVICERUNNER_H
