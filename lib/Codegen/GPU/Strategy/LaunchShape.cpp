//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many blocks of threads a schedule makes of a problem, and whether a
// device can launch them.
// Blocks are counted per strategy: batches times blocks of rows times blocks of
// columns for contractions, tiles over threads for direct kernels. Errors go to
// `emitError`, at the operation that has the schedule.
//
//===----------------------------------------------------------------------===//

#include "LoopProblem.h"
#include "MatrixView.h"
#include "WarpgroupView.h"
#include "kas/Codegen/GPU/Strategy/Device.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Tiles that cover the output, the last one along a dimension perhaps in part.
static int64_t getNumTiles(const GPUKernelProblem &problem,
                           ArrayRef<int64_t> tile) {
  int64_t tiles = 1;
  for (auto [size, points] : llvm::zip_equal(problem.output, tile))
    tiles *= llvm::divideCeil(size, points);
  return tiles;
}

/// Fails, with an error, where the strategy does not suit the operator: the
/// view that the emitter needs does not exist.
static FailureOr<int64_t>
getNumBlocks(const GPUKernelProblem &problem, Type inputType,
             GPUScheduleAttr schedule,
             function_ref<InFlightDiagnostic()> emitError) {
  if (schedule.getStrategy() == GPUStrategy::Warpgroup) {
    std::string reason;
    auto view = WarpgroupView::get(problem, inputType, &reason);
    if (!view)
      return emitError() << "expected a product of two matrices of 16-bit "
                            "numbers at constant distances for a warpgroup "
                            "kernel, got "
                         << reason;
    // `wgmma` reads factors as they are in memory, so it cannot round them.
    Type factorType = schedule.getPrecision() == GPUPrecision::F16
                          ? Type(Float16Type::get(inputType.getContext()))
                          : Type(BFloat16Type::get(inputType.getContext()));
    if (inputType != factorType)
      return emitError() << "expected a precision of " << inputType
                         << " for a warpgroup kernel, got " << factorType;
    return view->getNumBlocks(schedule);
  }
  if (schedule.getStrategy() != GPUStrategy::Direct) {
    std::optional<MatrixView> view = MatrixView::get(problem.coordinates);
    if (!view)
      return emitError() << "expected contractions of data and weights for "
                            "a "
                         << stringifyEnum(schedule.getStrategy())
                         << " kernel, got another operator";
    auto extent = [&](ArrayRef<unsigned> axes) {
      return MatrixView::getExtent(problem.coordinates, axes);
    };
    if (schedule.getStrategy() == GPUStrategy::TensorCore) {
      (void)view->keepLinesWhole(problem.coordinates, inputType,
                                 schedule.getBlock());
      // The tensor-core emitter exchanges its sides where rows are the
      // innermost dimension of the result (`orderSides`); `block` is in its
      // terms.
      if (view->areRowsInner(problem.coordinates))
        std::swap(view->rows, view->columns);
    }
    return extent(view->batches) *
           llvm::divideCeil(extent(view->rows), schedule.getBlock()[0]) *
           llvm::divideCeil(extent(view->columns), schedule.getBlock()[1]);
  }
  // A tile of an operator without dimensions is a null attribute.
  ArrayRef<int64_t> tile;
  if (schedule.getTile())
    tile = schedule.getTile();
  if (tile.size() != problem.output.size())
    return emitError() << "expected a tile of " << problem.output.size()
                       << " entries, one for each output coordinate, got "
                       << tile.size();
  int64_t depth = schedule.getDepth();
  if (depth != 0 && !getSharedAxis(problem.coordinates, depth))
    return emitError() << "expected a sum whose size " << depth
                       << " of depth divides for a direct kernel, got none";
  return llvm::divideCeil(getNumTiles(problem, tile) *
                              std::max<int64_t>(depth, 1),
                          schedule.getThreads());
}

static FailureOr<LaunchShape>
// Limits of the device first: a schedule from a database of another device is
// the usual reason, and its message says more than a view that is missing.
getLaunchShape(GPUScheduleAttr schedule, GPUDeviceAttr device,
               function_ref<FailureOr<int64_t>()> countBlocks,
               function_ref<InFlightDiagnostic()> emitError) {
  if (schedule.getThreads() > device.getMaxThreads())
    return emitError() << "expected at most " << device.getMaxThreads()
                       << " threads of a block for the device '"
                       << device.getName() << "', got "
                       << schedule.getThreads();
  int64_t maxBytes = getMaxSharedBytes(device, schedule.getStrategy());
  if (schedule.getSharedBytes() > maxBytes)
    return emitError() << "expected at most " << maxBytes
                       << " bytes of workgroup memory for the device '"
                       << device.getName() << "', got "
                       << schedule.getSharedBytes();
  if (schedule.getStrategy() == GPUStrategy::TensorCore &&
      !hasMatrixInstructions(device))
    return emitError() << "expected a device with matrix instructions (sm_80 "
                          "or later) for tensor-core kernels, got '"
                       << device.getName() << "'";
  if (schedule.getStrategy() == GPUStrategy::Warpgroup &&
      !hasWarpgroupInstructions(device))
    return emitError() << "expected the device sm_90a for warpgroup kernels, "
                          "got '"
                       << device.getName() << "'";
  FailureOr<int64_t> blocks = countBlocks();
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

FailureOr<LaunchShape>
kas::codegen::getLaunchShape(const GPUKernelProblem &problem, Type inputType,
                             GPUScheduleAttr schedule, GPUDeviceAttr device,
                             function_ref<InFlightDiagnostic()> emitError) {
  return ::getLaunchShape(
      schedule, device,
      [&] { return getNumBlocks(problem, inputType, schedule, emitError); },
      emitError);
}

FailureOr<LaunchShape>
kas::codegen::getLaunchShape(const LoopProblem &problem,
                             GPUScheduleAttr schedule, GPUDeviceAttr device,
                             function_ref<InFlightDiagnostic()> emitError) {
  return ::getLaunchShape(
      schedule, device,
      // One element per thread: the body of the operation may be anything, so
      // no value is known to be shared by neighbours. Or several that follow
      // each other, as the last entry says, to store them as a vector.
      [&]() -> FailureOr<int64_t> {
        ArrayRef<int64_t> tile;
        if (schedule.getTile())
          tile = schedule.getTile();
        int64_t width = tile.empty() ? 1 : tile.back();
        if (schedule.getStrategy() != GPUStrategy::Direct ||
            schedule.getDepth() != 0 || tile.size() != problem.loops.size() ||
            problem.getWidth() % width != 0 ||
            llvm::any_of(tile.drop_back(tile.empty() ? 0 : 1),
                         [](int64_t points) { return points != 1; }))
          return emitError()
                 << "expected a direct kernel with a tile of "
                 << problem.loops.size()
                 << " entries of 1, the last one at most " << problem.getWidth()
                 << ", for an operation that is no contraction, "
                    "got "
                 << schedule;
        return llvm::divideCeil(problem.numIterations / width,
                                schedule.getThreads());
      },
      emitError);
}
