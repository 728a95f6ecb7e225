//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses the schedule of a kernel by the cost model, and lists those that suit
// it.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Strategy/ScheduleSpace.h"
#include "CostModel.h"
#include "LoopProblem.h"
#include "ScheduleChoice.h"
#include "kas/Codegen/GPU/Strategy/Device.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Considers the tensor cores' strategies, with a `view` of the problem if it
/// has one and what is rounded loses nothing.
static void considerMatrixStrategies(CostModel &model,
                                     const WarpgroupView *view,
                                     GPUDeviceAttr device,
                                     std::optional<GPUStrategy> strategy,
                                     GPUPrecision precision) {
  if (view && (!strategy || strategy == GPUStrategy::Warpgroup))
    model.considerWarpgroup(*view, precision);
  // Requested by name and possible: `mma.sync` is not considered.
  if (strategy == GPUStrategy::Warpgroup && model.getBest())
    return;
  // Nothing is rounded unless a precision was given.
  bool hasTensorCore =
      precision != GPUPrecision::F32 && hasMatrixInstructions(device);
  if (hasTensorCore && strategy != GPUStrategy::Staged &&
      strategy != GPUStrategy::Direct)
    model.considerTensorCore(precision);
}

/// Of `strategy`, or of the next simpler one that suits.
static ScheduleChoice
chooseGPUSchedule(const Coordinates &coordinates, Type inputType,
                  const WarpgroupView *view, GPUDeviceAttr device,
                  std::optional<GPUStrategy> strategy, GPUPrecision precision) {
  CostModel model(coordinates, inputType, device);
  considerMatrixStrategies(model, view, device, strategy, precision);
  bool needsMatrixStrategy =
      strategy == GPUStrategy::TensorCore || strategy == GPUStrategy::Warpgroup;
  if (needsMatrixStrategy && model.getBest())
    return {model.getBest(), model.getLeastCycles()};
  // Copies to workgroup memory gain nothing where that is like any other.
  if (strategy == GPUStrategy::Staged || (!strategy && !isHostDevice(device)) ||
      needsMatrixStrategy)
    model.considerStaged();
  // A direct kernel computes every operator, so there is always a choice.
  if (strategy != GPUStrategy::Staged || !model.getBest()) {
    model.considerDirect();
    if (!isHostDevice(device))
      model.considerShared();
  }
  return {model.getBest(), model.getLeastCycles()};
}

GPUScheduleAttr kas::codegen::chooseGPUSchedule(
    const Coordinates &coordinates, GPUDeviceAttr device,
    std::optional<GPUStrategy> strategy, GPUPrecision precision) {
  return ::chooseGPUSchedule(coordinates, /*inputType=*/nullptr, nullptr,
                             device, strategy, precision)
      .schedule;
}

/// What warpgroups see of a kernel on inputs of `inputType`, where they can
/// compute it without a loss.
static std::optional<WarpgroupView> getView(const GPUKernelProblem &problem,
                                            Type inputType,
                                            GPUDeviceAttr device,
                                            GPUPrecision precision) {
  bool isExact = (precision == GPUPrecision::F16 && inputType.isF16()) ||
                 (precision == GPUPrecision::BF16 && inputType.isBF16());
  if (!isExact || !hasWarpgroupInstructions(device))
    return std::nullopt;
  return WarpgroupView::get(problem, inputType);
}

ScheduleChoice kas::codegen::chooseSchedule(const GPUKernelProblem &problem,
                                            Type inputType,
                                            GPUDeviceAttr device,
                                            std::optional<GPUStrategy> strategy,
                                            GPUPrecision precision) {
  std::optional<WarpgroupView> view =
      getView(problem, inputType, device, precision);
  return ::chooseGPUSchedule(problem.coordinates, inputType,
                             view ? &*view : nullptr, device, strategy,
                             precision);
}

ScheduleChoice kas::codegen::chooseSchedule(linalg::GenericOp op,
                                            GPUDeviceAttr device,
                                            std::optional<GPUStrategy> strategy,
                                            GPUPrecision precision) {
  if (auto contraction = ContractionProblem::get(op))
    return chooseSchedule(contraction->problem,
                          getInputType(contraction->inputs), device, strategy,
                          precision);
  LoopProblem problem = LoopProblem::get(op);
  // One element per thread, or a vector where enough threads are left; a null
  // attribute stands for no loops.
  SmallVector<int64_t> tile(problem.loops.size(), 1);
  int64_t width = 1;
  if (!tile.empty() && isNVIDIADevice(device)) {
    width = problem.getWidth();
    while (width > 2 && problem.numIterations / width <
                            device.getProcessors() * device.getSubgroup() * 4)
      width /= 2;
    tile.back() = width;
  }
  DenseI64ArrayAttr points;
  if (!tile.empty())
    points = DenseI64ArrayAttr::get(op.getContext(), tile);
  return {GPUScheduleAttr::get(
              op.getContext(), GPUStrategy::Direct,
              getDirectThreads(device, problem.numIterations / width), points,
              DenseI64ArrayAttr(), 0, 0, 1),
          0};
}

bool kas::codegen::hasTensorsOfStaticShape(linalg::GenericOp op) {
  return op.hasPureTensorSemantics() &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           auto shaped = dyn_cast<ShapedType>(type);
           return !shaped || shaped.hasStaticShape();
         });
}

llvm::Expected<ScheduleSpace>
kas::codegen::getGPUScheduleSpace(Operation *op, GPUDeviceAttr device,
                                  GPUPrecision precision) {
  // Elementwise operations have one schedule, and nothing to tune.
  std::optional<GPUKernelProblem> problem;
  Type inputType;
  if (auto apply = dyn_cast<ApplyOp>(op)) {
    OperatorOp callee = apply.getOperator();
    if (callee && callee.isConcrete())
      problem = GPUKernelProblem::get(callee);
    inputType = getInputType(apply->getOperands());
  } else if (auto generic = dyn_cast<linalg::GenericOp>(op);
             generic && hasTensorsOfStaticShape(generic)) {
    if (auto contraction = ContractionProblem::get(generic)) {
      problem = std::move(contraction->problem);
      inputType = getInputType(contraction->inputs);
    }
  }
  if (!problem)
    return llvm::createStringError(
        "expected a concrete operator or a contraction on tensors, got '" +
        op->getName().getStringRef() + "'");
  CostModel model(problem->coordinates, inputType, device);
  std::optional<WarpgroupView> view =
      getView(*problem, inputType, device, precision);
  considerMatrixStrategies(model, view ? &*view : nullptr, device, std::nullopt,
                           precision);
  model.considerStaged();
  model.considerDirect();
  if (!isHostDevice(device))
    model.considerShared();
  if (model.getPoints().empty())
    return llvm::createStringError(
        "expected a tile that fits in the registers, got none");
  ScheduleSpace space;
  for (auto [cycles, schedule] : model.getPoints())
    space.add(schedule, {cycles, 0});
  space.computeFeatures();
  return space;
}
