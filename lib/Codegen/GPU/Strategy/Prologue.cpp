//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds prologues, and compares them with kernels of their own. The model is
// that of a direct kernel of a pooling (CostModel.cpp): a thread computes an
// element, by loads that follow each other.
//
//===----------------------------------------------------------------------===//

#include "Prologue.h"
#include "CostModel.h"
#include "PrepackedValues.h"
#include "kas/Codegen/GPU/Strategy/Device.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

SmallVector<Value> Prologue::getInputs() const {
  SmallVector<Value> inputs(problem.inputs);
  if (problem.epilogue)
    llvm::append_range(inputs, problem.epilogue->inputs);
  return inputs;
}

int64_t Prologue::getBytes() const {
  auto type = cast<ShapedType>(getLast()->getResult(0).getType());
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// The reduction whose last operation is `last`; null: there is none.
static linalg::GenericOp getReduction(linalg::GenericOp last) {
  auto isReduction = [](linalg::GenericOp op) {
    return op && op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
           op.getNumReductionLoops() != 0 &&
           !op->hasAttr(KasGPUDialect::scheduleName) && !isContraction(op);
  };
  if (last.getNumReductionLoops() != 0)
    return isReduction(last) ? last : nullptr;
  for (OpOperand &operand : last->getOpOperands()) {
    Value source = TensorAccess::get(operand).source;
    auto op = source ? source.getDefiningOp<linalg::GenericOp>() : nullptr;
    if (!isReduction(op))
      continue;
    std::optional<Epilogue> epilogue = Epilogue::get(op);
    if (epilogue && epilogue->op == last)
      return op;
  }
  return nullptr;
}

std::optional<Prologue> Prologue::find(linalg::GenericOp reader,
                                       const ContractionProblem &contraction,
                                       bool isMarked) {
  PrepackedValues prepacked;
  for (auto [number, input] : llvm::enumerate(contraction.inputs)) {
    auto last = input.getDefiningOp<linalg::GenericOp>();
    linalg::GenericOp op = last ? getReduction(last) : nullptr;
    // What depends on weights alone is computed once for all calls.
    if (!op || op->getBlock() != reader->getBlock() ||
        getOnlyReader(input) != reader ||
        llvm::count(contraction.inputs, input) != 1 ||
        prepacked.contains(input) ||
        (isMarked && !op->hasAttr(KasGPUDialect::prologueName)))
      continue;
    Prologue prologue = {LoopProblem::get(op), static_cast<unsigned>(number)};
    prologue.problem.epilogue = Epilogue::get(op);
    return prologue;
  }
  return std::nullopt;
}

/// How many elements one of the result is made of.
static double getSteps(const Prologue &prologue) {
  auto op = prologue.problem.op;
  double steps = 1;
  for (auto [extent, kind] :
       llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      steps *= static_cast<double>(extent);
  return steps;
}

double kas::codegen::getKernelCycles(const Prologue &prologue,
                                     GPUDeviceAttr device) {
  auto points = static_cast<double>(prologue.problem.numIterations);
  double perProcessor = points / static_cast<double>(device.getProcessors());
  return CostModel::launchCycles +
         CostModel::getPoolingCycles(getSteps(prologue), perProcessor,
                                     std::max(1.0, perProcessor / 1024));
}

std::optional<ScheduleChoice>
kas::codegen::chooseSchedule(const Prologue &prologue, linalg::GenericOp reader,
                             const ContractionProblem &contraction,
                             GPUDeviceAttr device) {
  CostModel model(contraction.problem.coordinates,
                  getInputType(contraction.inputs), device);
  model.considerShared();
  double steps = getSteps(prologue);
  int64_t points = prologue.problem.numIterations;
  std::optional<ScheduleChoice> best;
  for (auto [cycles, schedule] : model.getPoints()) {
    if (schedule.getSharedBytes() + prologue.getBytes() >
        getMaxSharedBytes(device, GPUStrategy::Direct))
      continue;
    FailureOr<LaunchShape> launch =
        getLaunchShape(contraction.problem, getInputType(contraction.inputs),
                       schedule, device, [&] { return reader->emitError(); });
    if (failed(launch))
      continue;
    // The threads of a block share its points, those of a processor its issue
    // slots.
    int64_t threads = schedule.getThreads();
    int64_t blocks =
        llvm::divideCeil(launch->getNumBlocks(), device.getProcessors());
    double waves = std::max(1.0, static_cast<double>(blocks * threads) / 1024);
    double both =
        cycles +
        CostModel::getPoolingCycles(
            steps, static_cast<double>(points * blocks),
            waves * static_cast<double>(llvm::divideCeil(points, threads)));
    if (!best || both < best->cycles)
      best = {schedule, both};
  }
  return best;
}
