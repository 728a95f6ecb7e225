//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of a kernel as lines of PyTorch code.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TARGET_PYTORCHSTEPS_H
#define LIB_TARGET_PYTORCHSTEPS_H

#include "PyTorch.h"
#include "kas/Dialect/Kas/IR/KasDag.h"
#include "llvm/ADT/DenseMap.h"

namespace kas::target {

/// A function on one sample.
struct AppliedOperator {
  std::string function;
  llvm::SmallVector<int64_t> dataShape;
};

/// Writes the body of a function on tensors with the batch as a first
/// dimension, each line indented by four spaces.
class TorchSteps {
  using Shape = llvm::SmallVector<int64_t>;
  template <typename T>
  using ArrayRef = llvm::ArrayRef<T>;
  using StringRef = llvm::StringRef;

public:
  /// Makes the function of an operator.
  using ApplyFn =
      std::function<llvm::FailureOr<AppliedOperator>(DagApplyOp op)>;

  TorchSteps(KernelOp kernel, const Binding &binding, llvm::raw_ostream &os,
             ApplyFn apply)
      : kernel(kernel), symbols(kernel.getSymbolSet()), binding(binding),
        os(os), apply(std::move(apply)) {}

  /// All steps in program order, then the return.
  llvm::LogicalResult write(ArrayRef<std::string> inputs,
                            ArrayRef<std::string> weights);

private:
  /// A tensor: its name, and its shape without the batch.
  struct Tensor {
    std::string name;
    Shape shape;
    unsigned numChannels;
  };

  llvm::FailureOr<int64_t> getSize(SizeAttr size);
  llvm::FailureOr<Shape> getSizes(ArrayRef<SizeAttr> sizes);
  llvm::FailureOr<Shape> getSizes(mlir::ArrayAttr sizes);
  llvm::FailureOr<Tensor> makeTensor(mlir::Value value, std::string name);
  const Tensor &get(mlir::Value value) const {
    return tensors.find(value)->second;
  }

  std::string takeWeight();
  /// A line for a value that is no result of a step.
  std::string assign(const llvm::Twine &expr);

  /// The expression of each step, of the shape of its result but for those of
  /// `write...`, which may have it as a view.
  llvm::FailureOr<std::string> writeStep(mlir::Operation *op,
                                         const Tensor &result);
  std::string writeShift(DagShiftOp op);
  llvm::FailureOr<std::string> writeUnfold(DagUnfoldOp op);
  std::string writeTranspose(DagTransposeOp op);
  llvm::FailureOr<std::string> writeShuffle(DagShuffleOp op);
  std::string writeReorder(DagReorderOp op);
  std::string writeAmplify(DagAmplifyOp op, const Tensor &result);
  llvm::FailureOr<std::string> writeFC(DagFCOp op);
  llvm::FailureOr<std::string> writeConv(DagConvOp op);
  std::string writeMix(DagMixOp op, const Tensor &result);
  std::string writeScale(DagScaleOp op);
  std::string writeNorm(DagNormOp op);
  std::string writeUnary(DagUnaryOp op);
  std::string writePool(DagPoolOp op, const Tensor &result);
  std::string writeFold(DagFoldOp op);
  std::string writeSoftmax(DagSoftmaxOp op);
  std::string writeCumSum(DagCumSumOp op);
  std::string writeScan(DagScanOp op);
  llvm::FailureOr<std::string> writeBroadcast(DagBroadcastOp op);
  llvm::FailureOr<std::string> writeMatMul(DagMatMulOp op);
  llvm::FailureOr<std::string> writeApply(DagApplyOp op, const Tensor &result);
  llvm::LogicalResult writeOutput();

  /// `input`, with channels [groups..., others...], by a fully-connected layer.
  std::string writeLayer(StringRef input, int64_t groups, int64_t perGroup,
                         int64_t points, int64_t outputs, StringRef weight);

  KernelOp kernel;
  SymbolSet symbols;
  const Binding &binding;
  llvm::raw_ostream &os;
  ApplyFn apply;
  llvm::DenseMap<mlir::Value, Tensor> tensors;
  ArrayRef<std::string> remainingWeights;
  unsigned numLines = 0;
};

} // namespace kas::target

#endif // LIB_TARGET_PYTORCHSTEPS_H
