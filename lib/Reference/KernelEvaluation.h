//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluation of one kernel on one sample, in double precision.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_REFERENCE_KERNELEVALUATION_H
#define KAS_LIB_REFERENCE_KERNELEVALUATION_H

#include "KernelSizes.h"
#include "kas/Reference/KernelEvaluator.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <vector>

namespace kas::reference {
/// The value of a tensor of one sample, row-major.
struct Dense {
  KernelShape shape;
  std::vector<double> values;

  explicit Dense(KernelShape shape) : shape(std::move(shape)) {
    values.resize(*getNumElements(this->shape));
  }

  int64_t getOffset(llvm::ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (auto [i, extent] : llvm::zip_equal(index, shape))
      offset = offset * extent + i;
    return offset;
  }
  double at(llvm::ArrayRef<int64_t> index) const {
    return values[getOffset(index)];
  }
};

/// Calls `visit(index, offset)` for every element of `shape` in order.
template <typename Visit>
void forEachIndex(llvm::ArrayRef<int64_t> shape, Visit visit) {
  KernelShape index(shape.size(), 0);
  for (int64_t offset = 0, e = *getNumElements(shape); offset < e; ++offset) {
    visit(index, offset);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

/// How many elements before its position a window begins, of `size` elements.
inline int64_t getLow(int64_t size, bool isCausal) {
  return isCausal ? size - 1 : size / 2;
}

/// Evaluates the steps of one kernel, in program order.
class KernelEvaluation {
public:
  KernelEvaluation(KernelOp kernel, const Binding &binding,
                   EmitErrorFn emitError, StepPrecision precision)
      : kernel(kernel), sizes{kernel.getSymbolSet(), binding, emitError},
        isSingle(precision == StepPrecision::Single) {}

  llvm::LogicalResult run(llvm::ArrayRef<ReferenceTensor> inputs,
                          llvm::ArrayRef<ReferenceTensor> weights,
                          llvm::MutableArrayRef<float> output);

private:
  const Dense &get(mlir::Value value) const {
    return tensors.find(value)->second;
  }

  /// The value of each element of `value` is `compute(index)`.
  template <typename Compute>
  llvm::LogicalResult fill(mlir::Value value, Compute compute) {
    llvm::FailureOr<KernelShape> shape = sizes.get(value.getType());
    if (mlir::failed(shape))
      return mlir::failure();
    Dense dense(*shape);
    forEachIndex(*shape, [&](llvm::ArrayRef<int64_t> index, int64_t offset) {
      double result = compute(index, offset);
      dense.values[offset] = isSingle ? static_cast<float>(result) : result;
    });
    tensors.try_emplace(value, std::move(dense));
    return mlir::success();
  }

  /// The same with the position along `dim` replaced by `move(position)`.
  template <typename Move>
  llvm::LogicalResult moveAlong(mlir::Value input, mlir::Value result,
                                int64_t dim, Move move) {
    return fill(result, [&](llvm::ArrayRef<int64_t> index, int64_t) {
      KernelShape from(index);
      from[dim] = move(index[dim]);
      return get(input).at(from);
    });
  }

  /// Block j of the output is the mean of the blocks that are j modulo the
  /// number of the output's blocks; without `average` there is nothing to sum.
  llvm::LogicalResult writeOutput(const Dense &result,
                                  llvm::MutableArrayRef<float> output);
  llvm::LogicalResult evaluateStep(mlir::Operation *op);

  llvm::LogicalResult evaluate(DagShiftOp op);
  llvm::LogicalResult evaluate(DagUnfoldOp op);
  llvm::LogicalResult evaluate(DagTransposeOp op);
  llvm::LogicalResult evaluate(DagShuffleOp op);
  llvm::LogicalResult evaluate(DagReorderOp op);
  llvm::LogicalResult evaluate(DagAmplifyOp op);
  llvm::LogicalResult evaluate(DagFCOp op);
  /// A sum over channels of the group and over windows, each read from the
  /// weight in the order [output, channels, windows].
  llvm::LogicalResult evaluate(DagConvOp op);
  /// The point of [channels, spatial...] that a window reads, or nothing when
  /// it is outside. The dimensions of `op` count `numChannels` ones before the
  /// spatial ones.
  static std::optional<KernelShape>
  getWindowPoint(DagConvOp op, llvm::ArrayRef<int64_t> shape,
                 llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> window,
                 llvm::ArrayRef<int64_t> windows, unsigned numChannels);
  llvm::LogicalResult evaluate(DagMixOp op);
  llvm::LogicalResult evaluate(DagNormOp op);
  llvm::LogicalResult evaluate(DagPoolOp op);
  /// The operator's own evaluator, in single precision at its borders.
  llvm::LogicalResult evaluate(DagApplyOp op);
  llvm::LogicalResult evaluate(DagScaleOp op);

  static double apply(DagUnaryKind kind, double x);
  llvm::LogicalResult evaluate(DagUnaryOp op);
  /// Calls `visit(offset)` for every element of `input` that agrees with
  /// `index` outside of `dims`.
  template <typename Visit>
  static void forEachAlong(const Dense &input, llvm::ArrayRef<int64_t> dims,
                           llvm::ArrayRef<int64_t> index, Visit visit) {
    KernelShape extents;
    for (int64_t dim : dims)
      extents.push_back(input.shape[dim]);
    KernelShape from(index);
    forEachIndex(extents, [&](llvm::ArrayRef<int64_t> inner, int64_t) {
      for (auto [dim, i] : llvm::zip_equal(dims, inner))
        from[dim] = i;
      visit(input.getOffset(from));
    });
  }

  llvm::LogicalResult evaluate(DagFoldOp op);
  /// What a fold of `count` values gives.
  static double combine(DagFoldKind kind, double sum, double largest,
                        int64_t count) {
    if (kind == DagFoldKind::Max)
      return largest;
    return kind == DagFoldKind::Mean ? sum / double(count) : sum;
  }

  llvm::LogicalResult evaluate(DagSoftmaxOp op);
  /// Positions along `dim` in order; without a factor all of them are 1.
  llvm::LogicalResult scan(mlir::Value result, mlir::Value factor,
                           mlir::Value input, int64_t dim);
  llvm::LogicalResult evaluate(DagCumSumOp op);
  llvm::LogicalResult evaluate(DagScanOp op);
  static double apply(DagBroadcastKind kind, double left, double right);
  llvm::LogicalResult evaluate(DagBroadcastOp op);
  llvm::LogicalResult evaluate(DagMatMulOp op);

  llvm::ArrayRef<float> takeWeight() {
    llvm::ArrayRef<float> values = remaining.front().values;
    remaining = remaining.drop_front();
    return values;
  }

  KernelOp kernel;
  SizeValues sizes;
  bool isSingle;
  llvm::ArrayRef<ReferenceTensor> remaining;
  /// Looked up only, never iterated over: the pointers order nothing.
  llvm::DenseMap<mlir::Value, Dense> tensors;
};

} // namespace kas::reference

#endif // KAS_LIB_REFERENCE_KERNELEVALUATION_H
