//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps without weights that compute: functions, folds, two tensors.
// Each function returns an expression of PyTorch for one step of a kernel
// (docs/reference/tensor-level.md). Tensors have the batch as a dimension more,
// in front: dimension d of the dialect is d + 1 here.
//
//===----------------------------------------------------------------------===//

#include "PyTorchSteps.h"
#include "PyTorchText.h"
#include <numbers>

using namespace kas;
using namespace kas::target;
using namespace kas::torch;
using namespace mlir;

std::string TorchSteps::writeUnary(DagUnaryOp op) {
  std::string x = get(op.getInput()).name;
  switch (op.getKind()) {
  case DagUnaryKind::ReLU:
    return "torch.relu(" + x + ")";
  case DagUnaryKind::GELU:
    return "F.gelu(" + x + ")";
  case DagUnaryKind::Sigmoid:
    return "torch.sigmoid(" + x + ")";
  case DagUnaryKind::TanH:
    return "torch.tanh(" + x + ")";
  case DagUnaryKind::Abs:
    return "torch.abs(" + x + ")";
  case DagUnaryKind::Exp:
    return "torch.exp(" + x + ")";
  case DagUnaryKind::Neg:
    return "-" + x;
  case DagUnaryKind::Sin:
    // The dialect's sin is sin(pi/2 * x), and its sqrt that of the magnitude:
    // so they are defined there.
    return "torch.sin(" + printNumber(std::numbers::pi / 2) + " * " + x + ")";
  case DagUnaryKind::Sqrt:
    return "torch.sqrt(torch.abs(" + x + "))";
  case DagUnaryKind::Sqr:
    return x + " * " + x;
  }
  llvm_unreachable("all functions are above");
}

/// The reduction of dimensions, counted with the batch.
static std::string fold(DagFoldKind kind, ArrayRef<int64_t> dims) {
  StringRef name = kind == DagFoldKind::Sum    ? "sum"
                   : kind == DagFoldKind::Mean ? "mean"
                                               : "amax";
  return "." + name.str() + "((" + listNumbers(dims, /*isTuple=*/true) + "))";
}

/// Each named dimension is split into the windows and their elements.
std::string TorchSteps::writePool(DagPoolOp op, const Tensor &result) {
  const Tensor &input = get(op.getInput());
  SmallVector<int64_t> split, folded;
  // For example 8x6 with windows of 2 along dimension 1: view (B, 8, 3, 2),
  // folded dimension 3.
  for (auto [dim, extent] : llvm::enumerate(result.shape)) {
    split.push_back(extent);
    if (!llvm::is_contained(op.getDims(), int64_t(dim)))
      continue;
    // Counted with the batch: the windows' elements come next.
    folded.push_back(split.size() + 1);
    split.push_back(input.shape[dim] / extent);
  }
  return input.name + reshape(split) + fold(op.getKind(), folded);
}

std::string TorchSteps::writeFold(DagFoldOp op) {
  return get(op.getInput()).name + fold(op.getKind(), shiftDims(op.getDims()));
}

std::string TorchSteps::writeSoftmax(DagSoftmaxOp op) {
  std::string x = get(op.getInput()).name;
  SmallVector<int64_t> dims = shiftDims(op.getDims());
  // torch.softmax takes one dimension.
  if (dims.size() == 1)
    return "torch.softmax(" + x + ", " + listNumbers(dims) + ")";
  return "torch.exp(" + x + " - torch.logsumexp(" + x + ", (" +
         listNumbers(dims) + "), keepdim=True))";
}

std::string TorchSteps::writeCumSum(DagCumSumOp op) {
  return "torch.cumsum(" + get(op.getInput()).name + ", " +
         std::to_string(op.getDim() + 1) + ")";
}

/// By doubling: see `KernelEmitter::scan`.
/// The recurrence y[i] = x[i] + f[i] * y[i-1] in log2(extent) steps. Before the
/// step with distance d, element i has the terms of its last d elements, and
/// f[i] the product of their factors:
///    y[i] += f[i] * y[i-d];  f[i] *= f[i-d]       for i >= d
std::string TorchSteps::writeScan(DagScanOp op) {
  const Tensor &input = get(op.getInput());
  std::string state = input.name, factor = get(op.getFactor()).name;
  std::string dim = std::to_string(op.getDim() + 1);
  int64_t extent = input.shape[op.getDim()];
  for (int64_t distance = 1; distance < extent; distance *= 2) {
    // `count` elements from `from` on along the dimension.
    auto take = [&](const std::string &tensor, int64_t from, int64_t count) {
      return tensor + ".narrow(" + dim + ", " + std::to_string(from) + ", " +
             std::to_string(count) + ")";
    };
    // The first `distance` elements stay, `last` comes after them.
    auto replace = [&](const std::string &tensor, const std::string &last) {
      return assign("torch.cat((" + take(tensor, 0, distance) + ", " + last +
                    "), " + dim + ")");
    };
    int64_t count = extent - distance;
    std::string factors = take(factor, distance, count);
    state = replace(state, take(state, distance, count) + " + " + factors +
                               " * " + take(state, 0, count));
    // The last step reads no factors any more.
    if (2 * distance < extent)
      factor = replace(factor, factors + " * " + take(factor, 0, count));
  }
  return state;
}

/// Element i of the right block meets element i mod L of the left one.
/// Common dimensions are at both ends: [first..., block..., last...]. The left
/// block has L elements, the right one a multiple.
FailureOr<std::string> TorchSteps::writeBroadcast(DagBroadcastOp op) {
  const Tensor &left = get(op.getLeft()), &right = get(op.getRight());
  ArrayRef<int64_t> shape(right.shape);
  int64_t numFirst = op.getCommon()[0], numLast = op.getCommon()[1];
  int64_t first = countElements(shape.take_front(numFirst));
  int64_t last = countElements(shape.take_back(numLast));
  // Everything between the common dimensions is one block.
  int64_t leftBlock = countElements(
      ArrayRef(left.shape).drop_front(numFirst).drop_back(numLast));
  int64_t rightBlock =
      countElements(shape.drop_front(numFirst).drop_back(numLast));
  if (rightBlock % leftBlock != 0)
    return op.emitOpError("requires a left block that divides ")
           << rightBlock << " (K3), got " << leftBlock;
  // [first, R/L, L, last] for both; PyTorch broadcasts the dimension of size 1.
  std::string a = left.name + reshape({first, 1, leftBlock, last});
  std::string b =
      right.name + reshape({first, rightBlock / leftBlock, leftBlock, last});
  switch (op.getKind()) {
  case DagBroadcastKind::Add:
    return "(" + a + " + " + b + ")";
  case DagBroadcastKind::Sub:
    return "(" + a + " - " + b + ")";
  case DagBroadcastKind::Mul:
    return "(" + a + " * " + b + ")";
  case DagBroadcastKind::Min:
    return "torch.minimum(" + a + ", " + b + ")";
  case DagBroadcastKind::Max:
    return "torch.maximum(" + a + ", " + b + ")";
  }
  llvm_unreachable("all kinds are above");
}

FailureOr<std::string> TorchSteps::writeMatMul(DagMatMulOp op) {
  // Left [batch..., rows, inner], right [batch..., inner, columns]; each may be
  // several dimensions, and be given transposed.
  auto [rowDims, innerDims] = op.getMatrix(/*isRight=*/false);
  FailureOr<Shape> rowShape = getSizes(rowDims);
  FailureOr<Shape> innerShape = getSizes(innerDims);
  FailureOr<Shape> columnShape = getSizes(op.getMatrix(true).second);
  if (failed(rowShape) || failed(innerShape) || failed(columnShape))
    return failure();
  const Tensor &left = get(op.getLeft()), &right = get(op.getRight());
  int64_t batch = countElements(ArrayRef(left.shape).take_front(op.getBatch()));
  int64_t rows = countElements(*rowShape), inner = countElements(*innerShape);
  int64_t columns = countElements(*columnShape);
  auto view = [&](const Tensor &tensor, int64_t height, int64_t width,
                  bool isTransposed) {
    if (isTransposed)
      return tensor.name + reshape({batch, width, height}) +
             ".transpose(-1, -2)";
    return tensor.name + reshape({batch, height, width});
  };
  std::string text = "torch.matmul(" +
                     view(left, rows, inner, op.getTransposeLeft()) + ", " +
                     view(right, inner, columns, op.getTransposeRight()) + ")";
  // As in attention: 1 / sqrt(inner).
  if (op.getScaled())
    text = "(" + text + " * " + printNumber(1 / std::sqrt(double(inner))) + ")";
  return text;
}
