//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kernels are tuned for: the schedules that they may have there, and how
// those are measured.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_TUNINGDEVICE_H
#define KAS_TUNING_TUNINGDEVICE_H

#include "kas/Dialect/Kas/IR/ScheduleInterface.h"
#include "kas/Tuning/KernelRunner.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::tuning {

class TuningDevice {
public:
  virtual ~TuningDevice() = default;

  /// What a schedule is called on an operation.
  virtual llvm::StringRef getAttributeName() const = 0;
  /// Sets a schedule on `op`, or takes it away if there is none.
  void set(mlir::Operation *op, mlir::Attribute schedule) const {
    if (schedule)
      op->setAttr(getAttributeName(), schedule);
    else
      op->removeAttr(getAttributeName());
  }
  /// Whether there are loops without schedules to compare with
  /// (`Baseline::Loops`, `Baseline::Fixed`).
  virtual bool hasBaselines() const { return false; }
  /// Makes `module` ready for schedules. The device's pipeline makes the same
  /// of the result as of the module before.
  virtual llvm::Error prepare(mlir::ModuleOp module) const = 0;
  /// The schedules of `op`, in a prepared module. An error says why it has
  /// none.
  virtual llvm::Expected<ScheduleSpace> getSpace(mlir::Operation *op) const = 0;
  /// Compiles a function of a prepared module, which must outlive the result.
  virtual llvm::Expected<std::unique_ptr<KernelRunner>>
  createRunner(mlir::ModuleOp module, llvm::StringRef function,
               const MeasureOptions &options) const = 0;
  /// What times depend on, besides kernels and schedules.
  virtual llvm::Expected<TuningEnvironment>
  getEnvironment(const MeasureOptions &options) const = 0;
};

/// This machine's processors.
std::unique_ptr<TuningDevice> makeCPUTuningDevice(unsigned threads = 1);

} // namespace kas::tuning

#endif // KAS_TUNING_TUNINGDEVICE_H
