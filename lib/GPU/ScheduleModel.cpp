//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a schedule needs of a device, and the model that chooses one.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "kas/GPU/GPU.h"
#include "kas/GPU/Passes.h"

namespace kas {
#define GEN_PASS_DEF_GPUSCHEDULE
#include "kas/GPU/Passes.h.inc"
} // namespace kas

using namespace kas;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static int64_t getNumTiles(const KernelProblem &problem,
                           ArrayRef<int64_t> tile) {
  int64_t tiles = 1;
  for (auto [size, points] : llvm::zip_equal(problem.output, tile))
    tiles *= llvm::divideCeil(size, points);
  return tiles;
}

static FailureOr<int64_t>
getNumBlocks(const KernelProblem &problem, GPUScheduleAttr schedule,
             function_ref<InFlightDiagnostic()> emitError) {
  ArrayRef<int64_t> tile;
  if (schedule.getTile())
    tile = schedule.getTile();
  if (tile.size() != problem.output.size())
    return emitError() << "expected a tile of " << problem.output.size()
                       << " entries, one for each output coordinate, got "
                       << tile.size();
  return llvm::divideCeil(getNumTiles(problem, tile), schedule.getThreads());
}

FailureOr<LaunchShape>
kas::getLaunchShape(const KernelProblem &problem, GPUScheduleAttr schedule,
                    GPUDeviceAttr device,
                    function_ref<InFlightDiagnostic()> emitError) {
  if (schedule.getThreads() > device.getMaxThreads())
    return emitError() << "expected at most " << device.getMaxThreads()
                       << " threads of a block for the device '"
                       << device.getName() << "', got "
                       << schedule.getThreads();
  if (schedule.getSharedBytes() > device.getSharedBytes())
    return emitError() << "expected at most " << device.getSharedBytes()
                       << " bytes of workgroup memory for the device '"
                       << device.getName() << "', got "
                       << schedule.getSharedBytes();
  FailureOr<int64_t> blocks = getNumBlocks(problem, schedule, emitError);
  if (failed(blocks))
    return failure();
  FailureOr<LaunchShape> launch =
      LaunchShape::get(*blocks, schedule.getThreads(), device);
  if (failed(launch))
    return emitError() << "expected a grid of at most " << device.getMaxBlocks()
                       << " blocks along each dimension for the device '"
                       << device.getName() << "', got " << *blocks << " blocks";
  return launch;
}

//===----------------------------------------------------------------------===//
// The cost model
//===----------------------------------------------------------------------===//

namespace {

/// Estimates cycles of a kernel. A processor is taken to begin 128 products and
/// 32 loads from its first-level memory per cycle, and to need a quarter of the
/// threads it can hold to hide latencies.
class CostModel {
public:
  CostModel(const Coordinates &coordinates, GPUDeviceAttr device)
      : coordinates(coordinates), device(device) {
    for (const Axis &axis : coordinates.axes)
      points *= static_cast<double>(axis.extent);
  }

  GPUScheduleAttr choose() {
    unsigned numOutputs = coordinates.numOutputs;
    consider(SmallVector<int64_t>(numOutputs, 1));
    // One or two coordinates along which data or weights are used again.
    for (unsigned first = 0; first < numOutputs; ++first)
      for (unsigned second = first; second < numOutputs; ++second)
        for (int64_t a : {2, 4, 8})
          for (int64_t b : {1, 2, 4, 8}) {
            if ((first == second) != (b == 1) || a * b > 32)
              continue;
            SmallVector<int64_t> tile(numOutputs, 1);
            tile[first] *= a;
            tile[second] *= b;
            consider(tile);
          }
    return best;
  }

private:
  bool dependsOn(ArrayRef<AffineExpr> exprs, unsigned axis) const {
    return llvm::any_of(
        exprs, [&](AffineExpr expr) { return expr.isFunctionOfDim(axis); });
  }

  /// Elements that a thread loads for one step of a tile.
  int64_t getLoads(ArrayRef<AffineExpr> exprs, ArrayRef<int64_t> tile) const {
    int64_t loads = 1;
    for (auto [axis, size] : llvm::enumerate(tile))
      if (dependsOn(exprs, axis))
        loads *= size;
    return loads;
  }

  void consider(ArrayRef<int64_t> tile) {
    int64_t tilePoints = 1, tiles = 1;
    for (auto [axis, size] : llvm::enumerate(tile)) {
      int64_t extent = coordinates.axes[axis].extent;
      // No tile without points, and none that computes many in vain.
      if (size > 1 && extent % size != 0)
        return;
      tilePoints *= size;
      tiles *= llvm::divideCeil(extent, size);
    }
    int64_t loads = getLoads(coordinates.data, tile);
    for (ArrayRef<AffineExpr> weight : coordinates.weights)
      loads += getLoads(weight, tile);
    // Values, what is loaded, addresses.
    int64_t registers = tilePoints + 2 * loads + 24;
    if (registers > std::min<int64_t>(device.getThreadRegisters(), 128))
      return;
    double products =
        static_cast<double>(tilePoints) *
        std::max<double>(1, static_cast<double>(coordinates.weights.size()));
    double guards =
        2.0 * static_cast<double>(coordinates.guards.size() * loads);
    double step = products + guards + 4.0 * static_cast<double>(loads) + 4;
    double perTile = step * points / getOutputPoints() +
                     2.0 * static_cast<double>(tilePoints) + 8;
    double parallel = static_cast<double>(device.getProcessors()) *
                      static_cast<double>(device.getProcessorThreads()) / 4;
    double cycles = perTile * std::max(static_cast<double>(tiles), parallel);
    // Threads read neighbouring elements; with a tile along the last coordinate
    // they do not.
    if (!tile.empty() && tile.back() > 1)
      cycles *= 1.5;
    if (best && cycles >= bestCycles)
      return;
    bestCycles = cycles;
    MLIRContext *context = device.getContext();
    best = GPUScheduleAttr::get(context, GPURoad::Direct, getThreads(tiles),
                                tile.empty()
                                    ? DenseI64ArrayAttr()
                                    : DenseI64ArrayAttr::get(context, tile),
                                DenseI64ArrayAttr(), 0, 0, 1);
  }

  double getOutputPoints() const {
    double outputs = 1;
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis)
      outputs *= static_cast<double>(coordinates.axes[axis].extent);
    return outputs;
  }

  /// Small problems in small blocks, so that all processors get some.
  int64_t getThreads(int64_t tiles) const {
    int64_t threads = std::min<int64_t>(256, device.getMaxThreads());
    while (threads > device.getSubgroup() &&
           tiles < threads * device.getProcessors())
      threads /= 2;
    return threads;
  }

  const Coordinates &coordinates;
  GPUDeviceAttr device;
  double points = 1;
  GPUScheduleAttr best;
  double bestCycles = 0;
};

} // namespace

GPUScheduleAttr kas::chooseGPUSchedule(const Coordinates &coordinates,
                                       GPUDeviceAttr device) {
  return CostModel(coordinates, device).choose();
}

LogicalResult kas::scheduleForGPU(ModuleOp module, GPUDeviceAttr device) {
  module->setAttr(KasGPUDialect::deviceName, device);
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
    apply->setAttr(KasGPUDialect::scheduleName,
                   chooseGPUSchedule(getCoordinates(op), device));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct GPUSchedule : kas::impl::GPUScheduleBase<GPUSchedule> {
  using GPUScheduleBase::GPUScheduleBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    GPUDeviceAttr chosen = device.empty() ? getGPUDevice(module) : nullptr;
    if (!chosen) {
      auto named = getGPUDevice(&getContext(),
                                device.empty() ? "sm_90" : device.getValue());
      if (!named) {
        mlir::emitError(module.getLoc(), llvm::toString(named.takeError()));
        return signalPassFailure();
      }
      chosen = *named;
    }
    chosen = GPUDeviceAttr::getChecked(
        [&] { return mlir::emitError(module.getLoc()); }, &getContext(),
        chosen.getName(), chosen.getProcessors(),
        maxThreads ? maxThreads : chosen.getMaxThreads(),
        sharedBytes ? sharedBytes : chosen.getSharedBytes(),
        chosen.getMaxBlocks(), chosen.getMaxBytes(),
        chosen.getProcessorThreads(), chosen.getProcessorSharedBytes(),
        chosen.getRegisters(), chosen.getThreadRegisters(),
        chosen.getSubgroup());
    if (!chosen || failed(scheduleForGPU(module, chosen)))
      return signalPassFailure();
  }
};
} // namespace
