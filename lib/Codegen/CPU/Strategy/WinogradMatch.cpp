//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions that Winograd's algorithm suits, as operators and as linalg.
//
//===----------------------------------------------------------------------===//

#include "WinogradMatch.h"
#include "MatchContraction.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// The number of groups where output `o` reads channel `channel` at the first
/// step `c` of `inputs`: a group's first channel. Nothing if it is no such.
std::optional<int64_t> getGroups(AffineExpr channel, unsigned o, unsigned c,
                                 int64_t outputs, int64_t inputs,
                                 unsigned numDims) {
  MLIRContext *context = channel.getContext();
  auto evaluate = [&](int64_t output, int64_t input) -> int64_t {
    SmallVector<AffineExpr> dims(numDims, getAffineConstantExpr(0, context));
    dims[o] = getAffineConstantExpr(output, context);
    dims[c] = getAffineConstantExpr(input, context);
    auto value = dyn_cast<AffineConstantExpr>(channel.replaceDims(dims));
    return value ? value.getValue() : -1;
  };
  int64_t perGroup = outputs;
  for (int64_t output = 0; output < outputs; ++output)
    if (evaluate(output, 0) != 0) {
      perGroup = output;
      break;
    }
  if (outputs % perGroup != 0)
    return std::nullopt;
  for (int64_t output = 0; output < outputs; ++output)
    for (int64_t input : {int64_t(0), inputs - 1})
      if (evaluate(output, input) != output / perGroup * inputs + input)
        return std::nullopt;
  return outputs / perGroup;
}

/// The reduction of three steps that `index` steps along next to the output
/// axis `axis`, and how many elements before that it begins.
std::optional<std::pair<unsigned, int64_t>>
matchWindow(AffineExpr index, unsigned axis, const Coordinates &operation) {
  unsigned numDims = operation.axes.size();
  std::optional<unsigned> reduction;
  for (unsigned dim = 0; dim < numDims; ++dim) {
    std::optional<int64_t> step = getCoefficient(index, dim);
    if (!step || (*step != 0 && *step != 1) || (dim == axis && *step != 1))
      return std::nullopt;
    if (*step == 0 || dim == axis)
      continue;
    if (reduction || dim < operation.numOutputs ||
        operation.axes[dim].extent != winogradWindow)
      return std::nullopt;
    reduction = dim;
  }
  SmallVector<AffineExpr> zeros(numDims,
                                getAffineConstantExpr(0, index.getContext()));
  auto base = dyn_cast<AffineConstantExpr>(index.replaceDims(zeros));
  if (!reduction || !base || base.getValue() > 0)
    return std::nullopt;
  return std::pair(*reduction, -base.getValue());
}

} // namespace

FailureOr<WinogradConvolution> kas::codegen::matchWinograd(ApplyOp apply) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete() || apply->getNumOperands() != 2)
    return failure();
  Coordinates operation = getCoordinates(op);
  if (operation.numOutputs != 4 || operation.axes.size() != 7 ||
      operation.data.size() != 4 || operation.weights.size() != 1 ||
      operation.getMeanDivisor() != 1 || operation.hasMax())
    return failure();
  MLIRContext *context = op.getContext();
  std::optional<std::pair<unsigned, int64_t>> windows[2];
  for (unsigned axis : {2, 3})
    if (!(windows[axis - 2] =
              matchWindow(operation.data[axis], axis, operation)))
      return failure();
  auto type = cast<RankedTensorType>(apply->getOperand(0).getType());
  // Only what lies outside of the image may be missing.
  for (const Guard &guard : operation.guards)
    if (!llvm::any_of(ArrayRef<unsigned>{2, 3}, [&](unsigned axis) {
          return guard.expr == operation.data[axis] &&
                 guard.extent == type.getDimSize(axis);
        }))
      return failure();
  unsigned i = windows[0]->first, j = windows[1]->first;
  // One image is number 0.
  bool isImage = operation.axes[0].extent == 1
                     ? isa<AffineConstantExpr>(operation.data[0])
                     : operation.data[0] == getAffineDimExpr(0, context);
  if (i == j || !isImage)
    return failure();
  unsigned c = 4 + 5 + 6 - i - j;
  int64_t inputs = operation.axes[c].extent;
  int64_t outputs = operation.axes[1].extent;
  std::optional<int64_t> groups =
      getGroups(operation.data[1], 1, c, outputs, inputs, 7);
  if (!groups)
    return failure();
  WinogradConvolution result{apply->getOperand(0),
                             apply->getOperand(1),
                             operation.axes[0].extent,
                             *groups,
                             inputs,
                             outputs / *groups,
                             type.getDimSize(2),
                             type.getDimSize(3),
                             operation.axes[2].extent,
                             operation.axes[3].extent,
                             windows[0]->second,
                             windows[1]->second,
                             {}};
  // Of g, k, c, i, j.
  auto dim = [&](unsigned position) {
    return getAffineDimExpr(position, context);
  };
  SmallVector<AffineExpr> dims(7, getAffineConstantExpr(0, context));
  dims[1] = dim(0) * result.outputs + dim(1);
  dims[c] = dim(2);
  dims[i] = dim(3);
  dims[j] = dim(4);
  for (AffineExpr expr : operation.weights.front()) {
    if (expr.isFunctionOfDim(0) || expr.isFunctionOfDim(2) ||
        expr.isFunctionOfDim(3))
      return failure();
    result.weightIndex.push_back(expr.replaceDims(dims));
  }
  return result;
}

namespace {

/// Data without the zeros around it, and how many of them are before it.
struct Unpadded {
  Value data;
  int64_t rowsBefore = 0, columnsBefore = 0;
};

Unpadded getUnpadded(Value data) {
  auto pad = data.getDefiningOp<tensor::PadOp>();
  std::optional<SmallVector<int64_t>> zeros;
  if (pad && pad.getSourceType().hasStaticShape())
    zeros = getZeros(pad);
  if (!zeros || (*zeros)[0] != 0 || (*zeros)[1] != 0 ||
      pad.getSourceType().getShape().take_front(2) !=
          pad.getResultType().getShape().take_front(2))
    return {data};
  return {pad.getSource(), (*zeros)[2], (*zeros)[3]};
}

/// The convolution of one group of tensors of static shapes.
FailureOr<WinogradConvolution>
makeConvolution(Value padded, Value weight, RankedTensorType outType,
                ArrayRef<AffineExpr> weightIndex) {
  auto [data, rowsBefore, columnsBefore] = getUnpadded(padded);
  auto type = dyn_cast<RankedTensorType>(data.getType());
  if (!type || !type.hasStaticShape() || !outType.hasStaticShape() ||
      !type.getElementType().isF32())
    return failure();
  return WinogradConvolution{data,
                             weight,
                             type.getDimSize(0),
                             1,
                             type.getDimSize(1),
                             outType.getDimSize(1),
                             type.getDimSize(2),
                             type.getDimSize(3),
                             outType.getDimSize(2),
                             outType.getDimSize(3),
                             rowsBefore,
                             columnsBefore,
                             SmallVector<AffineExpr>(weightIndex)};
}

/// The other dimension of `expr`, the sum of it and `dim`.
std::optional<unsigned> getOtherDim(AffineExpr expr, AffineExpr dim) {
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return std::nullopt;
  AffineExpr other = sum.getLHS() == dim ? sum.getRHS() : sum.getLHS();
  auto found = dyn_cast<AffineDimExpr>(other);
  if (!found || (sum.getLHS() != dim && sum.getRHS() != dim))
    return std::nullopt;
  return found.getPosition();
}

/// The index of the weight in groups, outputs, inputs, lines and columns of the
/// window, where the data is input `position` of `op`.
std::optional<SmallVector<AffineExpr>> matchIndices(linalg::GenericOp op,
                                                    unsigned position) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap data = maps[position], weight = maps[1 - position], out = maps[2];
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (op.getNumLoops() != 7 || data.getNumResults() != 4 ||
      weight.getNumResults() != 4 || out.getNumResults() != 4 ||
      !out.isProjectedPermutation() || !weight.isProjectedPermutation() ||
      data.getResult(0) != out.getResult(0))
    return std::nullopt;
  auto input = dyn_cast<AffineDimExpr>(data.getResult(1));
  auto line = getOtherDim(data.getResult(2), out.getResult(2));
  auto column = getOtherDim(data.getResult(3), out.getResult(3));
  if (!input || !line || !column || ranges[*line] != winogradWindow ||
      ranges[*column] != winogradWindow)
    return std::nullopt;
  MLIRContext *context = op.getContext();
  SmallVector<AffineExpr> index;
  for (AffineExpr expr : weight.getResults()) {
    unsigned at = cast<AffineDimExpr>(expr).getPosition();
    unsigned meaning = expr == out.getResult(1) ? 1
                       : expr == input          ? 2
                       : at == *line            ? 3
                       : at == *column          ? 4
                                                : 0;
    if (meaning == 0)
      return std::nullopt;
    index.push_back(getAffineDimExpr(meaning, context));
  }
  return index;
}

} // namespace

FailureOr<WinogradConvolution>
kas::codegen::matchWinograd(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || !hasContractionBody(op) ||
      op.getNumDpsInputs() != 2)
    return failure();
  for (unsigned position : {0, 1})
    if (auto index = matchIndices(op, position))
      return makeConvolution(
          op.getDpsInputs()[position], op.getDpsInputs()[1 - position],
          cast<RankedTensorType>(op.getResult(0).getType()), *index);
  return failure();
}

/// Whether the maps are those of a gradient by the weight.
static bool isGradient(AffineMap data, AffineMap gradient, AffineMap out,
                       ArrayRef<int64_t> ranges) {
  for (AffineMap map : {data, gradient, out})
    if (map.getNumResults() != 4)
      return false;
  if (ranges.size() != 7 || !gradient.isProjectedPermutation() ||
      !out.isProjectedPermutation() ||
      data.getResult(0) != gradient.getResult(0) ||
      data.getResult(1) != out.getResult(1) ||
      gradient.getResult(1) != out.getResult(0))
    return false;
  return llvm::all_of(ArrayRef<unsigned>{2, 3}, [&](unsigned axis) {
    auto place = cast<AffineDimExpr>(out.getResult(axis));
    return ranges[place.getPosition()] == winogradWindow &&
           getOtherDim(data.getResult(axis), gradient.getResult(axis)) ==
               place.getPosition();
  });
}

FailureOr<WinogradGradient>
kas::codegen::matchWinogradGradient(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || !hasContractionBody(op) ||
      op.getNumDpsInputs() != 2)
    return failure();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (unsigned position : {0, 1}) {
    Value gradient = op.getDpsInputs()[1 - position];
    auto outType = dyn_cast<RankedTensorType>(gradient.getType());
    if (!outType || !outType.hasStaticShape() ||
        !isGradient(maps[position], maps[1 - position], maps[2],
                    op.getStaticLoopRanges()))
      continue;
    auto [data, rowsBefore, columnsBefore] =
        getUnpadded(op.getDpsInputs()[position]);
    auto type = dyn_cast<RankedTensorType>(data.getType());
    if (!type || !type.hasStaticShape())
      return failure();
    return WinogradGradient{data,
                            gradient,
                            type.getDimSize(0),
                            type.getDimSize(1),
                            outType.getDimSize(1),
                            type.getDimSize(2),
                            type.getDimSize(3),
                            outType.getDimSize(2),
                            outType.getDimSize(3),
                            rowsBefore,
                            columnsBefore};
  }
  return failure();
}

FailureOr<WinogradConvolution>
kas::codegen::matchWinograd(linalg::Conv2DNchwFchwOp op) {
  auto isOne = [](DenseIntElementsAttr values) {
    return llvm::all_of(values.getValues<int64_t>(),
                        [](int64_t value) { return value == 1; });
  };
  auto weightType = dyn_cast<RankedTensorType>(op.getInputs()[1].getType());
  if (!op.hasPureTensorSemantics() || !isOne(op.getStrides()) ||
      !isOne(op.getDilations()) || !weightType ||
      !weightType.hasStaticShape() ||
      weightType.getDimSize(2) != winogradWindow ||
      weightType.getDimSize(3) != winogradWindow)
    return failure();
  auto dim = [&](unsigned position) {
    return getAffineDimExpr(position, op.getContext());
  };
  return makeConvolution(op.getInputs()[0], op.getInputs()[1],
                         cast<RankedTensorType>(op->getResult(0).getType()),
                         {dim(1), dim(2), dim(3), dim(4)});
}
