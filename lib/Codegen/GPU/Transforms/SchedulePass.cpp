//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses schedules: -kas-gpu-schedule.
// The cost model enumerates schedules per strategy (Strategy/CostModel.h). This
// file says which strategies an operation, a device and a precision admit: for
// the pass the cheapest schedule, for the tuner all of them.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/LibraryChoice.h"
#include "../Strategy/Prologue.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-gpu-schedule"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUSCHEDULEPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Lets the kernel of `op` compute the reduction that it reads, where that is
/// expected to take less time than a kernel of its own before the kernel or the
/// library that `op` is computed by otherwise.
static void choosePrologue(linalg::GenericOp op, GPUDeviceAttr device,
                           GPUPrecision precision, GPULibraries libraries) {
  // Tuned kernels, and those that are left to a library, are kept.
  if (op->hasAttr(KasGPUDialect::scheduleName) ||
      op->hasAttr(KasGPUDialect::libraryName) || !hasTensorsOfStaticShape(op))
    return;
  std::optional<ContractionProblem> contraction = ContractionProblem::get(op);
  if (!contraction)
    return;
  auto prologue = Prologue::find(op, *contraction, /*isMarked=*/false);
  if (!prologue)
    return;
  ScheduleChoice apart = chooseSchedule(op, device, std::nullopt, precision);
  chooseLibrary(op, libraries, precision, device, apart.cycles);
  std::optional<ScheduleChoice> both =
      chooseSchedule(*prologue, op, *contraction, device);
  double separate = apart.cycles + getKernelCycles(*prologue, device);
  LDBG() << op->getLoc() << ": with a prologue " << (both ? both->cycles : 0)
         << " cycles, with two kernels " << separate;
  if (!both || both->cycles >= separate)
    return;
  op->setAttr(KasGPUDialect::scheduleName, both->schedule);
  prologue->problem.op->setAttr(KasGPUDialect::prologueName,
                                UnitAttr::get(op.getContext()));
}

LogicalResult kas::codegen::scheduleForGPU(ModuleOp module,
                                           GPUDeviceAttr device,
                                           std::optional<GPUStrategy> strategy,
                                           GPUPrecision precision,
                                           GPULibraries libraries) {
  auto set = [&](Operation *op, ScheduleChoice choice) {
    LDBG() << op->getLoc() << ": " << choice.schedule;
    op->setAttr(KasGPUDialect::scheduleName, choice.schedule);
    // `-kas-gpu-transpose-weights` knows of a faster kernel.
    if (op->hasAttr(KasGPUDialect::libraryName))
      return;
    if (Attribute library =
            chooseLibrary(op, libraries, precision, device, choice.cycles))
      op->setAttr(KasGPUDialect::libraryName, library);
  };
  // Later passes check against the device that was chosen for.
  module->setAttr(KasGPUDialect::deviceName, device);
  if (!strategy && !isHostDevice(device))
    module->walk([&](linalg::GenericOp op) {
      choosePrologue(op, device, precision, libraries);
    });
  // Their kernels are those of what they read.
  llvm::SmallPtrSet<Operation *, 16> epilogues;
  module->walk([&](Operation *op) {
    if (std::optional<Epilogue> epilogue = Epilogue::get(op))
      epilogues.insert(epilogue->op);
  });
  module->walk([&](linalg::GenericOp op) {
    // A schedule that is there, from a tuner or by hand, is kept.
    if (op->hasAttr(KasGPUDialect::scheduleName) ||
        op->hasAttr(KasGPUDialect::prologueName) || epilogues.contains(op) ||
        !hasTensorsOfStaticShape(op))
      return;
    set(op, chooseSchedule(op, device, strategy, precision));
  });
  WalkResult result = module->walk([&](ApplyOp apply) {
    if (apply->hasAttr(KasGPUDialect::scheduleName))
      return WalkResult::advance();
    OperatorOp op = apply.getOperator();
    if (!op || !op.isConcrete()) {
      apply.emitOpError() << "requires a concrete operator (see "
                             "-kas-specialize), got '@"
                          << apply.getCallee() << "'";
      return WalkResult::interrupt();
    }
    set(apply, chooseSchedule(GPUKernelProblem::get(op),
                              getInputType(apply->getOperands()), device,
                              strategy, precision));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct GPUSchedule : kas::codegen::impl::KasGPUSchedulePassBase<GPUSchedule> {
  using KasGPUSchedulePassBase::KasGPUSchedulePassBase;

  /// Reads the former names of options, too.
  LogicalResult initializeOptions(
      StringRef options,
      function_ref<LogicalResult(const Twine &)> errorHandler) override {
    std::string current = renameFormerOptions(options);
    return Pass::initializeOptions(current, [&](const Twine &message) {
      return errorHandler(current == options ? message
                                             : message + formerOptionNote);
    });
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    GPUDeviceAttr chosen = getGPUDevice(module, device);
    if (!chosen)
      return signalPassFailure();
    chosen = setLimits(chosen, maxThreads, sharedBytes, [&] {
      return mlir::emitError(getFileLocation(module));
    });
    if (!chosen || failed(scheduleForGPU(module, chosen, getStrategy(strategy),
                                         precision, libraries)))
      return signalPassFailure();
  }
};
} // namespace
