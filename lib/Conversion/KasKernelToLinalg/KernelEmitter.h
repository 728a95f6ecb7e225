//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of a kernel as tensor and linalg ops.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CONVERSION_KASKERNELTOLINALG_KERNELEMITTER_H
#define KAS_LIB_CONVERSION_KASKERNELTOLINALG_KERNELEMITTER_H

#include "TensorSteps.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <optional>

namespace kas {

/// The product of some extents.
inline int64_t getProduct(llvm::ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

/// The dimensions `first`, ..., `last` - 1.
inline llvm::SmallVector<int64_t> getRange(int64_t first, int64_t last) {
  return llvm::to_vector(llvm::seq(first, last));
}

/// The body of a copy.
inline mlir::Value yieldFirst(mlir::OpBuilder &, mlir::Location,
                              mlir::ValueRange arguments) {
  return arguments[0];
}

/// Emits the steps of one kernel at one binding, in program order. Tensors have
/// the batch as a first dimension.
class KernelEmitter {
  using Shape = TensorSteps::Shape;
  using Value = mlir::Value;
  using Location = mlir::Location;
  using OpBuilder = mlir::OpBuilder;
  using ValueRange = mlir::ValueRange;
  using AffineExpr = mlir::AffineExpr;
  using AffineMap = mlir::AffineMap;
  using LogicalResult = llvm::LogicalResult;
  using ImplicitLocOpBuilder = mlir::ImplicitLocOpBuilder;
  template <typename T>
  using ArrayRef = llvm::ArrayRef<T>;
  template <typename T>
  using SmallVector = llvm::SmallVector<T>;
  template <typename T>
  using FailureOr = llvm::FailureOr<T>;

public:
  KernelEmitter(ImplicitLocOpBuilder &builder, KernelOp kernel,
                const Binding &binding, int64_t batch,
                const KernelToLinalgOptions &options)
      : b(builder), steps(builder), kernel(kernel),
        symbols(kernel.getSymbolSet()), binding(binding), batch(batch),
        options(options) {}

  FailureOr<Value> run(ValueRange inputs, ValueRange weights);

private:
  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  FailureOr<int64_t> getSize(SizeAttr size) {
    std::optional<int64_t> value = kas::evaluate(size, symbols, binding);
    if (!value)
      return kernel.emitOpError("requires sizes that are integers (K3), got ")
             << size << " at the binding to lower";
    return *value;
  }

  FailureOr<Shape> getSizes(ArrayRef<SizeAttr> sizes) {
    Shape shape;
    for (SizeAttr size : sizes) {
      FailureOr<int64_t> value = getSize(size);
      if (mlir::failed(value))
        return mlir::failure();
      shape.push_back(*value);
    }
    return shape;
  }

  FailureOr<Shape> getSizes(mlir::ArrayAttr sizes) {
    return getSizes(llvm::to_vector(sizes.getAsRange<SizeAttr>()));
  }

  LogicalResult checkElements(ArrayRef<int64_t> shape) {
    int64_t elements = 1;
    for (int64_t extent : shape)
      if (llvm::MulOverflow(elements, extent, elements) ||
          elements > options.maxElements)
        return kernel.emitOpError("requires tensors of at most ")
               << options.maxElements << " elements, got shape [" << shape
               << "]";
    return mlir::success();
  }

  /// With the batch first.
  FailureOr<Shape> getShape(Value tensor) {
    FailureOr<Shape> shape =
        getSizes(llvm::cast<SymbolicTensorType>(tensor.getType()).getDims());
    if (mlir::failed(shape))
      return mlir::failure();
    shape->insert(shape->begin(), batch);
    if (mlir::failed(checkElements(*shape)))
      return mlir::failure();
    return shape;
  }

  static unsigned getNumChannelDims(Value tensor) {
    return llvm::cast<SymbolicTensorType>(tensor.getType()).getNumChannelDims();
  }

  AffineMap getMap(unsigned numLoops, ArrayRef<AffineExpr> results) {
    return AffineMap::get(numLoops, 0, results, b.getContext());
  }

  /// The loops `loops` in this order.
  AffineMap getMap(unsigned numLoops, ArrayRef<int64_t> loops) {
    SmallVector<AffineExpr> results;
    for (int64_t loop : loops)
      results.push_back(b.getAffineDimExpr(loop));
    return getMap(numLoops, results);
  }

  /// Dimension `dim` of a tensor of the kernel, counted with the batch.
  static SmallVector<int64_t> shiftDims(ArrayRef<int64_t> dims) {
    return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
  }

  Value takeWeight() {
    Value weight = remaining.front();
    remaining = remaining.drop_front();
    return weight;
  }

  /// The channels of a layer with groups.
  struct LayerSizes {
    int64_t groups, perGroup, outputs;
    int64_t getOutputsPerGroup() const { return outputs / groups; }
  };

  template <typename LayerOp>
  FailureOr<LayerSizes> getLayerSizes(LayerOp op) {
    ArrayRef<int64_t> channels =
        TensorSteps::getShape(values[op.getInput()])
            .slice(1, getNumChannelDims(op.getInput()));
    FailureOr<int64_t> outputs = getSize(op.getChannels());
    if (mlir::failed(outputs))
      return mlir::failure();
    LayerSizes sizes{getProduct(channels.take_front(op.getGroups())),
                     getProduct(channels.drop_front(op.getGroups())), *outputs};
    if (sizes.outputs % sizes.groups != 0)
      return op.emitOpError("requires groups that divide ")
             << sizes.outputs << " (K3), got " << sizes.groups;
    return sizes;
  }

  //===--------------------------------------------------------------------===//
  // Steps
  //===--------------------------------------------------------------------===//

  FailureOr<Value> emitStep(mlir::Operation *op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagShiftOp op, ArrayRef<int64_t> shape);
  /// How windows are placed.
  struct WindowPosition {
    int64_t dilation = 1;
    /// They end at their position instead of lying around it.
    bool isCausal = false;
  };
  FailureOr<Value> padForWindows(Value input, ArrayRef<int64_t> dims,
                                 ArrayRef<int64_t> windows,
                                 WindowPosition place);
  FailureOr<Value> emit(DagUnfoldOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagTransposeOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagShuffleOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagReorderOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagAmplifyOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagFCOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagConvOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emitLayer(const LayerSizes &sizes, Value input,
                             ArrayRef<int64_t> shape,
                             ArrayRef<int64_t> windowDims,
                             ArrayRef<int64_t> windows, WindowPosition place);
  Value emitMixOfRun(Value input, ArrayRef<int64_t> shape, int64_t first,
                     int64_t last);
  FailureOr<Value> emit(DagMixOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagScaleOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagNormOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagUnaryOp op, ArrayRef<int64_t>);
  Value fold(DagFoldKind kind, Value input, ArrayRef<int64_t> dims);
  FailureOr<Value> emit(DagFoldOp op, ArrayRef<int64_t>);
  FailureOr<Value> emit(DagPoolOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagSoftmaxOp op, ArrayRef<int64_t> shape);
  Value scan(Value factor, Value input, int64_t dim);
  FailureOr<Value> emit(DagCumSumOp op, ArrayRef<int64_t>);
  FailureOr<Value> emit(DagScanOp op, ArrayRef<int64_t>);
  FailureOr<Value> emit(DagBroadcastOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagMatMulOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emit(DagApplyOp op, ArrayRef<int64_t> shape);
  FailureOr<Value> emitOutput();
  Value average(Value input, int64_t blocks);

  ImplicitLocOpBuilder &b;
  TensorSteps steps;
  KernelOp kernel;
  SymbolSet symbols;
  const Binding &binding;
  int64_t batch;
  const KernelToLinalgOptions &options;
  ValueRange remaining;
  /// Looked up only, never iterated over: the pointers order nothing.
  llvm::DenseMap<Value, Value> values;
};

} // namespace kas

#endif // KAS_LIB_CONVERSION_KASKERNELTOLINALG_KERNELEMITTER_H
