//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model that chooses schedules.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_GPU_STRATEGY_COSTMODEL_H
#define LIB_CODEGEN_GPU_STRATEGY_COSTMODEL_H

#include "MatrixView.h"
#include "WarpgroupView.h"
#include "kas/Codegen/GPU/Strategy/ScheduleSpace.h"
#include <map>

namespace kas::codegen {

/// Threads in a block of a direct kernel of so many tiles. Small problems in
/// small blocks, so that all processors get some.
int64_t getDirectThreads(GPUDeviceAttr device, int64_t tiles);

/// Estimates cycles of a kernel: what all threads of a processor issue, or what
/// one waits for where there are too few to hide it. Factors were fitted to the
/// times of many schedules of 19 operators on an H200, and compared with those
/// of 14 others (research/reports/gpu.md).
class CostModel {
public:
  /// Of an operator on inputs of `inputType`; null: f32.
  CostModel(const Coordinates &coordinates, mlir::Type inputType,
            GPUDeviceAttr device)
      : coordinates(coordinates), inputType(inputType), device(device),
        context(device.getContext()) {}

  void considerDirect();
  /// Direct kernels whose threads share the steps of a tile, of products of a
  /// matrix and a vector.
  void considerShared();
  void considerStaged();
  void considerTensorCore(GPUPrecision precision);
  void considerWarpgroup(const WarpgroupView &view, GPUPrecision precision);
  /// The first one of the least cycles of those that were considered, or null.
  GPUScheduleAttr getBest() const {
    auto best = llvm::min_element(points, llvm::less_first());
    return best == points.end() ? nullptr : best->second;
  }
  /// Of the best one.
  double getLeastCycles() const {
    auto best = llvm::min_element(points, llvm::less_first());
    return best == points.end() ? 0 : best->first;
  }
  /// Cycles and schedules, each once.
  llvm::ArrayRef<std::pair<double, GPUScheduleAttr>> getPoints() const {
    return points;
  }

  /// Between two kernels, whatever they compute.
  static constexpr double launchCycles = 5000;

  /// Of a pooling whose windows have `steps` elements, as the direct kernel of
  /// one estimates it, without its launch: a processor computes `points` of
  /// them, and a thread one after another in `rounds`.
  static double getPoolingCycles(double steps, double points, double rounds);

private:
  /// What copies of elements to workgroup memory depend on.
  struct Copies {
    double numGuards;
    /// Neighbouring rows or steps are neighbours in all tensors of the left.
    bool isLeftContiguous;
  };
  /// Blocks of a kernel, and what one takes of a processor.
  struct Blocks {
    int64_t count, threads, shared, registers;
  };

  static bool dependsOn(llvm::ArrayRef<mlir::AffineExpr> exprs, unsigned axis) {
    return llvm::any_of(exprs, [&](mlir::AffineExpr expr) {
      return expr.isFunctionOfDim(axis);
    });
  }
  double getSteps() const {
    double steps = 1;
    for (const Axis &axis :
         llvm::ArrayRef(coordinates.axes).drop_front(coordinates.numOutputs))
      steps *= static_cast<double>(axis.extent);
    return steps;
  }
  int64_t getMaxRegisters() const {
    return std::min<int64_t>(device.getThreadRegisters(), 168);
  }

  bool differs(llvm::ArrayRef<mlir::AffineExpr> exprs, unsigned axis,
               int64_t size);
  int64_t getLoads(llvm::ArrayRef<mlir::AffineExpr> exprs,
                   llvm::ArrayRef<int64_t> tile);
  /// Whether neighbours along the last of `axes` with more than one value are
  /// neighbours in all `tensors`.
  bool isContiguous(llvm::ArrayRef<unsigned> tensors,
                    llvm::ArrayRef<unsigned> axes);
  Copies getCopies(const MatrixView &view, int64_t depth);
  /// Of `work` cycles of a processor for a block, which takes as many as
  /// `alone` by itself.
  double getBlockCycles(const Blocks &blocks, double work, double alone,
                        double together);
  double getDirectCycles(llvm::ArrayRef<int64_t> tile, int64_t points,
                         int64_t tiles, int64_t loads, int64_t guards);
  double getSharedCycles(llvm::ArrayRef<int64_t> tile, int64_t tiles,
                         GPUScheduleAttr schedule);
  void considerDirect(llvm::ArrayRef<int64_t> tile);
  void takeOnHost(llvm::ArrayRef<int64_t> tile, int64_t points, int64_t tiles,
                  int64_t loads, int64_t guards);
  void considerStaged(const MatrixView &view, const Copies &copies,
                      std::array<int64_t, 2> tile, std::array<int64_t, 2> block,
                      int64_t depth);
  void considerTensorCore(MatrixView view, const Copies &copies,
                          std::array<int64_t, 2> tile,
                          std::array<int64_t, 2> block, int64_t depth,
                          int64_t stages, GPUPrecision precision);
  void considerWarpgroup(const WarpgroupView &view, GPUScheduleAttr schedule);
  void take(double cycles, GPUScheduleAttr schedule) {
    points.emplace_back(cycles, schedule);
  }
  mlir::DenseI64ArrayAttr getArray(llvm::ArrayRef<int64_t> entries) const {
    return entries.empty() ? mlir::DenseI64ArrayAttr()
                           : mlir::DenseI64ArrayAttr::get(context, entries);
  }

  const Coordinates &coordinates;
  mlir::Type inputType;
  GPUDeviceAttr device;
  mlir::MLIRContext *context;
  std::vector<std::pair<double, GPUScheduleAttr>> points;
  /// What `differs` found, by the place of the expressions in `coordinates`.
  std::map<std::tuple<const mlir::AffineExpr *, unsigned, int64_t>, bool> known;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_GPU_STRATEGY_COSTMODEL_H
