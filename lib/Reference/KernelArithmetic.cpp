//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of kernels that compute: layers, functions, reductions, products.
//
// Each op is written as the loop that docs/reference/tensor-level.md has for
// it, one output element at a time, in double precision. Shapes are
// [channels..., spatial...] of one sample, row-major. Speed does not matter
// here, independence of the lowerings does. Where the size is a symbol, it is a
// number by now (`SizeValues`), and what only numbers show is reported (K3).
//
//===----------------------------------------------------------------------===//

#include "KernelEvaluation.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/Sequence.h"
#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace kas;
using namespace kas::reference;

using Shape = KernelShape;

/// As `arith.maximumf`: NaN when either is, +0 above -0. (With right NaN all
/// comparisons are false, and it is returned.)
static double maximum(double left, double right) {
  if (std::isnan(left) || left > right)
    return left;
  if (left == right)
    return std::signbit(left) ? right : left;
  return right;
}

/// -0 below +0 follows by symmetry.
static double minimum(double left, double right) {
  return -maximum(-left, -right);
}

/// out[o, p] = sum over c of weight[o, c] * in[group(o) * perGroup + c, p],
/// where p counts the pixels. The first `getGroups()` channel dimensions are
/// the groups; the others are contracted.
LogicalResult KernelEvaluation::evaluate(DagFCOp op) {
  const Dense &input = get(op.getInput());
  auto type = cast<SymbolicTensorType>(op.getInput().getType());
  ArrayRef<int64_t> channels =
      ArrayRef(input.shape).take_front(type.getNumChannelDims());
  int64_t numGroups = product(channels.take_front(op.getGroups()));
  int64_t perGroup = product(channels.drop_front(op.getGroups()));
  int64_t numPoints =
      product(ArrayRef(input.shape).drop_front(channels.size()));
  FailureOr<int64_t> numOutputs = sizes.get(op.getChannels());
  if (failed(numOutputs))
    return failure();
  if (*numOutputs % numGroups != 0)
    return sizes.emitError() << "requires groups that divide " << *numOutputs
                             << " (K3), got " << numGroups;
  ArrayRef<float> weight = takeWeight();
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t offset) {
    int64_t o = index[0], point = offset % numPoints;
    // Outputs of one group are neighbours.
    int64_t group = o / (*numOutputs / numGroups);
    double sum = 0;
    for (int64_t c = 0; c < perGroup; ++c)
      sum += double(weight[o * perGroup + c]) *
             input.values[(group * perGroup + c) * numPoints + point];
    return sum;
  });
}

/// A grouped convolution with stride 1: out[o, p] = sum over windows w and
/// channels c of weight[o, c, w] * in[group(o) * perGroup + c, p + dilation *
/// (w - low)], zero in the padding.
LogicalResult KernelEvaluation::evaluate(DagConvOp op) {
  const Dense &input = get(op.getInput());
  auto type = cast<SymbolicTensorType>(op.getInput().getType());
  unsigned numChannels = type.getNumChannelDims();
  ArrayRef<int64_t> channels = ArrayRef(input.shape).take_front(numChannels);
  int64_t numGroups = product(channels.take_front(op.getGroups()));
  int64_t perGroup = product(channels.drop_front(op.getGroups()));
  FailureOr<Shape> windows =
      sizes.get(llvm::to_vector(op.getWindows().getAsRange<SizeAttr>()));
  FailureOr<int64_t> numOutputs = sizes.get(op.getChannels());
  if (failed(windows) || failed(numOutputs))
    return failure();
  if (*numOutputs % numGroups != 0)
    return sizes.emitError() << "requires groups that divide " << *numOutputs
                             << " (K3), got " << numGroups;
  // All channel dimensions as one: only their product matters here.
  Dense flat(Shape{product(channels)});
  flat.shape.append(input.shape.begin() + numChannels, input.shape.end());
  flat.values = input.values;
  ArrayRef<float> weight = takeWeight();
  int64_t numWindows = product(*windows);
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
    int64_t o = index[0], group = o / (*numOutputs / numGroups);
    double sum = 0;
    forEachIndex(*windows, [&](ArrayRef<int64_t> window, int64_t place) {
      std::optional<Shape> from =
          getWindowPoint(op, flat.shape, index, window, *windows, numChannels);
      // In the padding: adds nothing, whatever the weight is (also NaN).
      if (!from)
        return;
      for (int64_t c = 0; c < perGroup; ++c) {
        (*from)[0] = group * perGroup + c;
        sum += double(weight[(o * perGroup + c) * numWindows + place]) *
               flat.at(*from);
      }
    });
    return sum;
  });
}

std::optional<Shape> KernelEvaluation::getWindowPoint(
    DagConvOp op, ArrayRef<int64_t> shape, ArrayRef<int64_t> index,
    ArrayRef<int64_t> window, ArrayRef<int64_t> windows, unsigned numChannels) {
  Shape from(index);
  for (auto [dim, k, size] : llvm::zip_equal(op.getDims(), window, windows)) {
    // `shape` and `index` have one channel dimension, `dims` count all.
    int64_t at = dim - numChannels + 1;
    // In 128 bits: the dilation may be any number.
    __int128 position = from[at] + __int128(int64_t(op.getDilation())) *
                                       (k - getLow(size, op.getCausal()));
    if (position < 0 || position >= shape[at])
      return std::nullopt;
    from[at] = static_cast<int64_t>(position);
  }
  return from;
}

/// A matrix [outputs, contracted] along `dims`, which keep their positions in
/// the shape but not their sizes; the same matrix for all other indices.
LogicalResult KernelEvaluation::evaluate(DagMixOp op) {
  const Dense &input = get(op.getInput());
  ArrayRef<float> weight = takeWeight();
  Shape extents;
  for (int64_t dim : op.getDims())
    extents.push_back(input.shape[dim]);
  int64_t numContracted = product(extents);
  FailureOr<Shape> outputs =
      sizes.get(llvm::to_vector(op.getSizes().getAsRange<SizeAttr>()));
  if (failed(outputs))
    return failure();
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
    // The row-major position of the output along `dims`.
    int64_t row = 0;
    for (auto [dim, extent] : llvm::zip_equal(op.getDims(), *outputs))
      row = row * extent + index[dim];
    double sum = 0;
    int64_t column = 0;
    forEachAlong(input, op.getDims(), index, [&](int64_t offset) {
      sum +=
          double(weight[row * numContracted + column++]) * input.values[offset];
    });
    return sum;
  });
}

/// Batch normalization with given statistics, per channel. The magnitude of the
/// variance is taken, so that random weights are legal.
LogicalResult KernelEvaluation::evaluate(DagNormOp op) {
  const Dense &input = get(op.getInput());
  auto type = cast<SymbolicTensorType>(op.getInput().getType());
  int64_t numPoints =
      product(ArrayRef(input.shape).drop_front(type.getNumChannelDims()));
  ArrayRef<float> factor = takeWeight(), shift = takeWeight();
  ArrayRef<float> mean = takeWeight(), variance = takeWeight();
  return fill(op.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
    int64_t c = offset / numPoints;
    double deviation =
        std::sqrt(std::abs(double(variance[c])) + DagNormOp::epsilon);
    return (input.values[offset] - mean[c]) / deviation * factor[c] + shift[c];
  });
}

/// Disjoint windows: output i reads i * size to i * size + size - 1.
LogicalResult KernelEvaluation::evaluate(DagPoolOp op) {
  const Dense &input = get(op.getInput());
  FailureOr<Shape> windows =
      sizes.get(llvm::to_vector(op.getWindows().getAsRange<SizeAttr>()));
  if (failed(windows))
    return failure();
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
    double sum = 0, largest = 0;
    forEachIndex(*windows, [&](ArrayRef<int64_t> inner, int64_t count) {
      Shape from(index);
      for (auto [dim, i, size] : llvm::zip_equal(op.getDims(), inner, *windows))
        from[dim] = from[dim] * size + i;
      double value = input.at(from);
      sum += value;
      // No start value: NaN must come through.
      largest = count == 0 ? value : maximum(largest, value);
    });
    return combine(op.getKind(), sum, largest, product(*windows));
  });
}

/// Specializes the callee in a module of its own, so that the kernel's module
/// stays as it is, and runs the evaluator of operators on it.
LogicalResult KernelEvaluation::evaluate(DagApplyOp op) {
  OperatorOp callee = op.getOperator();
  std::optional<Binding> values =
      callee ? op.getBinding(callee, sizes.symbols, sizes.binding)
             : std::nullopt;
  if (!values)
    return sizes.emitError() << "requires an operator with sizes that are "
                                "integers (D16), got '@"
                             << op.getCallee() << "'";
  OpBuilder builder(op.getContext());
  OwningOpRef<ModuleOp> module(ModuleOp::create(builder, op.getLoc()));
  builder.setInsertionPointToStart(module->getBody());
  FailureOr<OperatorOp> concrete =
      specialize(builder, callee, *values, "concrete", sizes.emitError);
  FailureOr<Shape> shape = sizes.get(op.getResult().getType());
  if (failed(concrete) || failed(shape))
    return failure();
  OperatorShapes shapes = kas::reference::getShapes(*concrete);
  const Dense &input = get(op.getInput());
  // Rounds: operators have tensors of f32.
  std::vector<float> data(input.values.begin(), input.values.end());
  SmallVector<ReferenceTensor> weights;
  for (ArrayRef<int64_t> weight : shapes.weights)
    weights.push_back({weight, takeWeight()});
  Dense result(*shape);
  std::vector<float> output(result.values.size());
  if (failed(evaluateOperator(*concrete, {shapes.data, data}, weights, output,
                              sizes.emitError)))
    return failure();
  llvm::copy(output, result.values.begin());
  tensors.try_emplace(op.getResult(), std::move(result));
  return success();
}

/// One weight per position along `dims`, in row-major order of these.
LogicalResult KernelEvaluation::evaluate(DagScaleOp op) {
  const Dense &input = get(op.getInput());
  ArrayRef<float> weight = takeWeight();
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t offset) {
    int64_t position = 0;
    for (int64_t dim : op.getDims())
      position = position * input.shape[dim] + index[dim];
    return double(weight[position]) * input.values[offset];
  });
}

double KernelEvaluation::apply(DagUnaryKind kind, double x) {
  switch (kind) {
  case DagUnaryKind::ReLU:
    return maximum(x, 0.0);
  // The exact one, not the approximation by tanh.
  case DagUnaryKind::GELU:
    return x * 0.5 * (1 + std::erf(x * std::numbers::sqrt2 / 2));
  case DagUnaryKind::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case DagUnaryKind::TanH:
    return std::tanh(x);
  case DagUnaryKind::Abs:
    return std::abs(x);
  case DagUnaryKind::Exp:
    return std::exp(x);
  case DagUnaryKind::Neg:
    return -x;
  // Of quarter turns, as in Canvas: sin(pi x / 2).
  case DagUnaryKind::Sin:
    return std::sin(std::numbers::pi / 2 * x);
  // Of the magnitude: defined everywhere.
  case DagUnaryKind::Sqrt:
    return std::sqrt(std::abs(x));
  case DagUnaryKind::Sqr:
    return x * x;
  }
  llvm_unreachable("all functions are above");
}

LogicalResult KernelEvaluation::evaluate(DagUnaryOp op) {
  return fill(op.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
    return apply(op.getKind(), get(op.getInput()).values[offset]);
  });
}

/// Reduces `dims`, which the result does not have.
LogicalResult KernelEvaluation::evaluate(DagFoldOp op) {
  const Dense &input = get(op.getInput());
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
    // The folded dimensions are put back.
    Shape from;
    const int64_t *next = index.begin();
    for (int64_t dim : llvm::seq<int64_t>(0, input.shape.size()))
      from.push_back(llvm::is_contained(op.getDims(), dim) ? 0 : *next++);
    double sum = 0, largest = 0;
    int64_t count = 0;
    forEachAlong(input, op.getDims(), from, [&](int64_t offset) {
      double value = input.values[offset];
      sum += value;
      largest = count++ == 0 ? value : maximum(largest, value);
    });
    return combine(op.getKind(), sum, largest, count);
  });
}

/// Along all of `dims` at once. The largest value is subtracted first, as
/// compiled code does: exp() of a positive number may overflow.
LogicalResult KernelEvaluation::evaluate(DagSoftmaxOp op) {
  const Dense &input = get(op.getInput());
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t offset) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    forEachAlong(input, op.getDims(), index, [&](int64_t other) {
      largest = maximum(largest, input.values[other]);
    });
    forEachAlong(input, op.getDims(), index, [&](int64_t other) {
      sum += std::exp(input.values[other] - largest);
    });
    return std::exp(input.values[offset] - largest) / sum;
  });
}

/// state[i] = factor[i] * state[i - 1] + input[i], state[-1] = 0.
LogicalResult KernelEvaluation::scan(Value result, Value factor, Value input,
                                     int64_t dim) {
  const Dense &added = get(input);
  // The stride of `dim`.
  int64_t distance = product(ArrayRef(added.shape).drop_front(dim + 1));
  std::vector<double> states(added.values.size());
  // An element comes after those before it, in row-major order as well.
  return fill(result, [&](ArrayRef<int64_t> index, int64_t offset) {
    double state = added.values[offset];
    if (index[dim] > 0)
      state +=
          (factor ? get(factor).values[offset] : 1) * states[offset - distance];
    return states[offset] = state;
  });
}

LogicalResult KernelEvaluation::evaluate(DagCumSumOp op) {
  return scan(op.getResult(), Value(), op.getInput(), op.getDim());
}

LogicalResult KernelEvaluation::evaluate(DagScanOp op) {
  return scan(op.getResult(), op.getFactor(), op.getInput(), op.getDim());
}

double KernelEvaluation::apply(DagBroadcastKind kind, double left,
                               double right) {
  switch (kind) {
  case DagBroadcastKind::Add:
    return left + right;
  case DagBroadcastKind::Sub:
    return left - right;
  case DagBroadcastKind::Mul:
    return left * right;
  case DagBroadcastKind::Min:
    return minimum(left, right);
  case DagBroadcastKind::Max:
    return maximum(left, right);
  }
  llvm_unreachable("all kinds are above");
}

/// Shapes are prefix x block x suffix, where prefix and suffix are common to
/// both operands. The left block is repeated to fill the right one: [2] to [6]
/// reads 0 1 0 1 0 1.
LogicalResult KernelEvaluation::evaluate(DagBroadcastOp op) {
  const Dense &left = get(op.getLeft()), &right = get(op.getRight());
  auto getBlock = [&](const Dense &tensor) {
    return product(ArrayRef(tensor.shape)
                       .drop_front(op.getCommon()[0])
                       .drop_back(op.getCommon()[1]));
  };
  // Blocks need not have equal dimensions, only sizes that divide.
  int64_t leftBlock = getBlock(left), rightBlock = getBlock(right);
  int64_t inner = product(ArrayRef(right.shape).take_back(op.getCommon()[1]));
  if (rightBlock % leftBlock != 0)
    return sizes.emitError() << "requires a left block that divides "
                             << rightBlock << " (K3), got " << leftBlock;
  return fill(op.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
    int64_t last = offset % inner;
    int64_t block = offset / inner % rightBlock;
    int64_t first = offset / inner / rightBlock;
    int64_t from = (first * leftBlock + block % leftBlock) * inner + last;
    return apply(op.getKind(), left.values[from], right.values[offset]);
  });
}

/// A batch of matrix products: [batch, rows, inner] x [batch, inner, columns],
/// either one transposed in memory. Scaled: by 1 / sqrt(inner), as in
/// attention.
LogicalResult KernelEvaluation::evaluate(DagMatMulOp op) {
  const Dense &left = get(op.getLeft()), &right = get(op.getRight());
  auto [rowDims, innerDims] = op.getMatrix(/*isRight=*/false);
  FailureOr<Shape> rowShape = sizes.get(rowDims);
  FailureOr<Shape> innerShape = sizes.get(innerDims);
  FailureOr<Shape> columnShape = sizes.get(op.getMatrix(true).second);
  if (failed(rowShape) || failed(innerShape) || failed(columnShape))
    return failure();
  int64_t rows = product(*rowShape), inner = product(*innerShape);
  int64_t columns = product(*columnShape);
  bool swapsLeft = op.getTransposeLeft(), swapsRight = op.getTransposeRight();
  double scale = op.getScaled() ? 1 / std::sqrt(double(inner)) : 1;
  return fill(op.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
    int64_t column = offset % columns, row = offset / columns % rows;
    int64_t batch = offset / columns / rows;
    const double *a = left.values.data() + batch * rows * inner;
    const double *b = right.values.data() + batch * inner * columns;
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k)
      sum += a[swapsLeft ? k * rows + row : row * inner + k] *
             b[swapsRight ? column * inner + k : k * columns + column];
    return sum * scale;
  });
}
