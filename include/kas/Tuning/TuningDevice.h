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

#include "kas/Tuning/KernelRunner.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace kas::tuning {

/// A schedule that suits a kernel, for code that treats those of all devices
/// alike.
struct SchedulePoint {
  mlir::Attribute schedule;
  /// Schedules of one strategy have the same numbers.
  unsigned strategy = 0;
  std::vector<int64_t> numbers;
  /// What the cost model says it takes; of equal ones the second decides.
  std::pair<double, double> time;
  /// What a learned model sees of the schedule and of the kernel: as many for
  /// all kernels of a device.
  std::vector<float> features;
};

/// How a schedule of another kernel got to suit.
enum class ScheduleFit {
  /// All its numbers divide the loops here, too.
  Exact,
  /// Some number became the largest that divides and is smaller.
  Divisors,
  /// Some number does not divide: the last tile is narrower or masked; or the
  /// nearest schedule differs.
  Masked,
  /// No schedule of this strategy suits.
  Invalid
};

struct AdaptedPoint {
  ScheduleFit fit = ScheduleFit::Invalid;
  /// A position in the space.
  size_t point = 0;
};

/// All schedules of one kernel. Never empty.
class KernelSpace {
public:
  virtual ~KernelSpace() = default;

  llvm::ArrayRef<SchedulePoint> getPoints() const { return points; }
  /// The position of `schedule`, if it is there.
  std::optional<size_t> find(mlir::Attribute schedule) const;
  /// The point that is nearest to a schedule of another kernel of the class.
  virtual AdaptedPoint adapt(mlir::Attribute recorded) const = 0;
  /// A point that stands for code without a cost model and without a tuner;
  /// none where nothing like that suits.
  virtual std::optional<size_t> getFixed() const { return std::nullopt; }
  /// How far the loops of this kernel are from those of another one, by the
  /// features of a schedule of each.
  virtual double getLoopDistance(llvm::ArrayRef<float> features) const {
    return 0;
  }
  /// The space as a search sees it that has no cost model: all points are alike
  /// to it.
  virtual std::unique_ptr<KernelSpace> forgetCostModel() const = 0;

protected:
  std::vector<SchedulePoint> points;
};

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
  virtual llvm::Expected<std::unique_ptr<KernelSpace>>
  getSpace(mlir::Operation *op) const = 0;
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

/// The device called `name`: `vulkan`, `cuda`, `cuda:1`, ... An error: it
/// cannot be opened.
llvm::Expected<std::unique_ptr<TuningDevice>>
makeGPUTuningDevice(llvm::StringRef name);

} // namespace kas::tuning

#endif // KAS_TUNING_TUNINGDEVICE_H
