//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tuning on CPUs: prepares modules, lists schedules of kernels, names the
// environment of times.
// Equal kernels of other networks must get the same text, so `prepare` brings a
// network to the form in which the pipeline `-kas-cpu-pipeline` will find the
// kernels: operators bound and cut into stages, elementwise chains fused.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/CPU/Strategy/ScheduleSpace.h"
#include "kas/Codegen/Common/Passes.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Support/RunPasses.h"
#include "kas/Tuning/ForkedRunner.h"
#include "kas/Tuning/TuningDevice.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;

namespace {

/// Schedules are the attribute `kas_cpu.schedule`, measured in forked processes
/// of this program.
class CPUTuningDevice : public TuningDevice {
public:
  explicit CPUTuningDevice(unsigned threads) : threads(threads) {}

  llvm::StringRef getAttributeName() const override {
    return KasCPUDialect::scheduleName;
  }
  /// Plain loops, and one schedule for all kernels, can be measured as the
  /// untuned code.
  bool hasBaselines() const override { return true; }
  Error prepare(mlir::ModuleOp module) const override;
  Expected<ScheduleSpace> getSpace(mlir::Operation *op) const override {
    return getScheduleSpace(op, {.threads = threads});
  }
  Expected<std::unique_ptr<KernelRunner>>
  createRunner(mlir::ModuleOp module, llvm::StringRef function,
               const MeasureOptions &options) const override {
    return ForkedRunner::create(module, function, options);
  }
  Expected<TuningEnvironment>
  getEnvironment(const MeasureOptions &options) const override;

private:
  /// Schedules for one thread and for several are different spaces.
  unsigned threads;
};

} // namespace

Error CPUTuningDevice::prepare(mlir::ModuleOp module) const {
  return runPasses(module, "the module cannot be tuned",
                   [](mlir::OpPassManager &manager) {
                     // Strategies ask the module for its target.
                     manager.addPass(createKasAttachCPUTargetPass());
                     manager.addPass(createKasSpecializePass());
                     // As the pipeline does by default: stages that are cut
                     // otherwise are other kernels.
                     KasRFactorPassOptions stages;
                     stages.traffic = schedule::usualTraffic;
                     manager.addPass(createKasRFactorPass(stages));
                     // So that an epilogue is one operation, as `KernelCut`
                     // expects.
                     manager.addNestedPass<mlir::func::FuncOp>(
                         createKasFuseElementwisePass());
                   });
}

/// Times of another CPU or protocol are kept in the database, but not mixed
/// with these.
Expected<TuningEnvironment>
CPUTuningDevice::getEnvironment(const MeasureOptions &options) const {
  Expected<Target> target = getTarget();
  if (!target)
    return target.takeError();
  return TuningEnvironment::get(*target, options.getProtocol());
}

std::unique_ptr<TuningDevice>
kas::tuning::makeCPUTuningDevice(unsigned threads) {
  return std::make_unique<CPUTuningDevice>(threads);
}
