//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/KernelEvaluator.h"
#include "KernelSizes.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <numbers>
#include <vector>

using namespace mlir;
using namespace kas;

namespace {
using Shape = KernelShape;

/// The value of a tensor of one sample, row-major.
struct Dense {
  Shape shape;
  std::vector<double> values;

  explicit Dense(Shape shape) : shape(std::move(shape)) {
    values.resize(*getNumElements(this->shape));
  }

  int64_t getOffset(ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (auto [i, extent] : llvm::zip_equal(index, shape))
      offset = offset * extent + i;
    return offset;
  }
  double at(ArrayRef<int64_t> index) const { return values[getOffset(index)]; }
};

/// Calls `visit(index, offset)` for every element of `shape` in order.
template <typename Visit>
void forEachIndex(ArrayRef<int64_t> shape, Visit visit) {
  Shape index(shape.size(), 0);
  for (int64_t offset = 0, e = *getNumElements(shape); offset < e; ++offset) {
    visit(index, offset);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}
} // namespace

static double maximum(double left, double right) {
  if (std::isnan(left) || left > right)
    return left;
  if (left == right)
    return std::signbit(left) ? right : left;
  return right;
}

static double minimum(double left, double right) {
  return -maximum(-left, -right);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {
class KernelEvaluation {
public:
  KernelEvaluation(KernelOp kernel, const Binding &binding,
                   EmitErrorFn emitError)
      : kernel(kernel), sizes{kernel.getSymbolSet(), binding, emitError} {}

  LogicalResult run(ArrayRef<ReferenceTensor> inputs,
                    ArrayRef<ReferenceTensor> weights,
                    MutableArrayRef<float> output) {
    remaining = weights;
    Block &block = kernel.getBody().front();
    for (auto [argument, input] :
         llvm::zip_equal(block.getArguments(), inputs)) {
      Dense dense{Shape(input.shape)};
      llvm::copy(input.values, dense.values.begin());
      tensors.try_emplace(argument, std::move(dense));
    }
    for (Operation &op : block.without_terminator())
      if (failed(evaluateStep(&op)))
        return failure();
    return writeOutput(get(kernel.getOutput().getInput()), output);
  }

private:
  const Dense &get(Value value) const { return tensors.find(value)->second; }

  /// The value of each element of `value` is `compute(index)`.
  template <typename Compute>
  LogicalResult fill(Value value, Compute compute) {
    FailureOr<Shape> shape = sizes.get(value.getType());
    if (failed(shape))
      return failure();
    Dense dense(*shape);
    forEachIndex(*shape, [&](ArrayRef<int64_t> index, int64_t offset) {
      dense.values[offset] = compute(index, offset);
    });
    tensors.try_emplace(value, std::move(dense));
    return success();
  }

  /// The same with the position along `dim` replaced by `move(position)`.
  template <typename Move>
  LogicalResult moveAlong(Value input, Value result, int64_t dim, Move move) {
    return fill(result, [&](ArrayRef<int64_t> index, int64_t) {
      Shape from(index);
      from[dim] = move(index[dim]);
      return get(input).at(from);
    });
  }

  /// Block j of the output is the mean of the blocks that are j modulo the
  /// number of the output's blocks; without `average` there is nothing to sum.
  LogicalResult writeOutput(const Dense &result,
                            MutableArrayRef<float> output) {
    DagOutputOp op = kernel.getOutput();
    int64_t numCopies = 1, numBlocks = 1;
    if (op.getCopies()) {
      FailureOr<int64_t> copies = sizes.get(*op.getCopies());
      FailureOr<int64_t> blocks = sizes.get(op.getNumBlocks());
      if (failed(copies) || failed(blocks))
        return failure();
      numCopies = *copies;
      numBlocks = *blocks;
    }
    int64_t blockSize = int64_t(output.size()) / numBlocks;
    for (int64_t offset = 0, e = output.size(); offset < e; ++offset) {
      double sum = 0;
      int64_t count = 0;
      for (int64_t block = offset / blockSize; block < numCopies;
           block += numBlocks, ++count)
        sum += result.values[block * blockSize + offset % blockSize];
      output[offset] = static_cast<float>(sum / double(count));
    }
    return success();
  }

  LogicalResult evaluateStep(Operation *op) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case<DagGroupOp, DagGroupAllOp, DagDropoutOp>([&](auto view) {
          return fill(view.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
            return get(view.getInput()).values[offset];
          });
        })
        .Case<DagShiftOp, DagUnfoldOp, DagTransposeOp, DagShuffleOp,
              DagReorderOp, DagAmplifyOp, DagFCOp, DagConvOp, DagMixOp,
              DagScaleOp, DagNormOp, DagUnaryOp, DagPoolOp, DagFoldOp,
              DagSoftmaxOp, DagBroadcastOp, DagMatMulOp, DagApplyOp>(
            [&](auto step) { return evaluate(step); })
        .Default([&](Operation *other) {
          return sizes.emitError()
                 << "requires an op with a meaning, got " << other->getName();
        });
  }

  LogicalResult evaluate(DagShiftOp op) {
    int64_t dim = op.getDim(), extent = get(op.getInput()).shape[dim];
    int64_t amount = static_cast<int64_t>(op.getAmount()) % extent;
    return moveAlong(op.getInput(), op.getResult(), dim,
                     [&](int64_t i) { return (i + amount + extent) % extent; });
  }

  LogicalResult evaluate(DagUnfoldOp op) {
    const Dense &input = get(op.getInput());
    auto type = cast<SymbolicTensorType>(op.getInput().getType());
    unsigned numChannels = type.getNumChannelDims();
    ArrayRef<int64_t> dims = op.getDims();
    FailureOr<Shape> windows =
        sizes.get(llvm::to_vector(op.getWindows().getAsRange<SizeAttr>()));
    if (failed(windows))
      return failure();
    int64_t dilation = op.getDilation();
    return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
      Shape from(index.take_front(numChannels));
      llvm::append_range(from, index.drop_front(numChannels + dims.size()));
      for (auto [place, dim] : llvm::enumerate(dims)) {
        // In 128 bits: the dilation may be any number.
        __int128 position =
            from[dim] + __int128(dilation) * (index[numChannels + place] -
                                              (*windows)[place] / 2);
        if (position < 0 || position >= input.shape[dim])
          return 0.0;
        from[dim] = static_cast<int64_t>(position);
      }
      return input.at(from);
    });
  }

  LogicalResult evaluate(DagTransposeOp op) {
    return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
      Shape from(index);
      std::swap(from[op.getDims()[0]], from[op.getDims()[1]]);
      return get(op.getInput()).at(from);
    });
  }

  LogicalResult evaluate(DagShuffleOp op) {
    FailureOr<int64_t> groups = sizes.get(op.getFactor());
    if (failed(groups))
      return failure();
    int64_t dim = op.getDim(), extent = get(op.getInput()).shape[dim];
    if (extent % *groups != 0)
      return sizes.emitError() << "requires groups that divide " << extent
                               << " (K3), got " << *groups;
    return moveAlong(op.getInput(), op.getResult(), dim, [&](int64_t i) {
      return i % *groups * (extent / *groups) + i / *groups;
    });
  }

  LogicalResult evaluate(DagReorderOp op) {
    int64_t dim = op.getDim(), extent = get(op.getInput()).shape[dim];
    int64_t numEven = (extent + 1) / 2;
    return moveAlong(op.getInput(), op.getResult(), dim, [&](int64_t i) {
      if (op.getInverse())
        return i % 2 == 0 ? i / 2 : numEven + i / 2;
      return i < numEven ? 2 * i : 2 * (i - numEven) + 1;
    });
  }

  LogicalResult evaluate(DagAmplifyOp op) {
    const Dense &input = get(op.getInput());
    return fill(op.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
      return input.values[offset % int64_t(input.values.size())];
    });
  }

  LogicalResult evaluate(DagFCOp op) {
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
      int64_t group = o / (*numOutputs / numGroups);
      double sum = 0;
      for (int64_t c = 0; c < perGroup; ++c)
        sum += double(weight[o * perGroup + c]) *
               input.values[(group * perGroup + c) * numPoints + point];
      return sum;
    });
  }

  /// A sum over channels of the group and over windows, each read from the
  /// weight in the order [output, channels, windows].
  LogicalResult evaluate(DagConvOp op) {
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
    Dense flat(Shape{product(channels)});
    flat.shape.append(input.shape.begin() + numChannels, input.shape.end());
    flat.values = input.values;
    ArrayRef<float> weight = takeWeight();
    int64_t numWindows = product(*windows);
    return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
      int64_t o = index[0], group = o / (*numOutputs / numGroups);
      double sum = 0;
      forEachIndex(*windows, [&](ArrayRef<int64_t> window, int64_t place) {
        std::optional<Shape> from = getWindowPoint(
            op, flat.shape, index, window, *windows, numChannels);
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

  /// The point of [channels, spatial...] that a window reads, or nothing when
  /// it is outside. The dimensions of `op` count `numChannels` ones before the
  /// spatial ones.
  static std::optional<Shape>
  getWindowPoint(DagConvOp op, ArrayRef<int64_t> shape, ArrayRef<int64_t> index,
                 ArrayRef<int64_t> window, ArrayRef<int64_t> windows,
                 unsigned numChannels) {
    Shape from(index);
    for (auto [dim, k, size] : llvm::zip_equal(op.getDims(), window, windows)) {
      int64_t at = dim - numChannels + 1;
      // In 128 bits: the dilation may be any number.
      __int128 position =
          from[at] + __int128(int64_t(op.getDilation())) * (k - size / 2);
      if (position < 0 || position >= shape[at])
        return std::nullopt;
      from[at] = static_cast<int64_t>(position);
    }
    return from;
  }

  LogicalResult evaluate(DagMixOp op) {
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
      int64_t row = 0;
      for (auto [dim, extent] : llvm::zip_equal(op.getDims(), *outputs))
        row = row * extent + index[dim];
      double sum = 0;
      int64_t column = 0;
      forEachAlong(input, op.getDims(), index, [&](int64_t offset) {
        sum += double(weight[row * numContracted + column++]) *
               input.values[offset];
      });
      return sum;
    });
  }

  LogicalResult evaluate(DagNormOp op) {
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
      return (input.values[offset] - mean[c]) / deviation * factor[c] +
             shift[c];
    });
  }

  LogicalResult evaluate(DagPoolOp op) {
    const Dense &input = get(op.getInput());
    FailureOr<Shape> windows =
        sizes.get(llvm::to_vector(op.getWindows().getAsRange<SizeAttr>()));
    if (failed(windows))
      return failure();
    return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
      double sum = 0, largest = 0;
      forEachIndex(*windows, [&](ArrayRef<int64_t> inner, int64_t count) {
        Shape from(index);
        for (auto [dim, i, size] :
             llvm::zip_equal(op.getDims(), inner, *windows))
          from[dim] = from[dim] * size + i;
        double value = input.at(from);
        sum += value;
        largest = count == 0 ? value : maximum(largest, value);
      });
      return combine(op.getKind(), sum, largest, product(*windows));
    });
  }

  /// The operator's own evaluator, in single precision at its borders.
  LogicalResult evaluate(DagApplyOp op) {
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
    OperatorShapes shapes = kas::getShapes(*concrete);
    const Dense &input = get(op.getInput());
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

  LogicalResult evaluate(DagScaleOp op) {
    const Dense &input = get(op.getInput());
    ArrayRef<float> weight = takeWeight();
    return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t offset) {
      int64_t position = 0;
      for (int64_t dim : op.getDims())
        position = position * input.shape[dim] + index[dim];
      return double(weight[position]) * input.values[offset];
    });
  }

  static double apply(DagUnaryKind kind, double x) {
    switch (kind) {
    case DagUnaryKind::ReLU:
      return maximum(x, 0.0);
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
    case DagUnaryKind::Sin:
      return std::sin(std::numbers::pi / 2 * x);
    case DagUnaryKind::Sqrt:
      return std::sqrt(std::abs(x));
    case DagUnaryKind::Sqr:
      return x * x;
    }
    llvm_unreachable("all functions are above");
  }

  LogicalResult evaluate(DagUnaryOp op) {
    return fill(op.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
      return apply(op.getKind(), get(op.getInput()).values[offset]);
    });
  }

  /// Calls `visit(offset)` for every element of `input` that agrees with
  /// `index` outside of `dims`.
  template <typename Visit>
  static void forEachAlong(const Dense &input, ArrayRef<int64_t> dims,
                           ArrayRef<int64_t> index, Visit visit) {
    Shape extents;
    for (int64_t dim : dims)
      extents.push_back(input.shape[dim]);
    Shape from(index);
    forEachIndex(extents, [&](ArrayRef<int64_t> inner, int64_t) {
      for (auto [dim, i] : llvm::zip_equal(dims, inner))
        from[dim] = i;
      visit(input.getOffset(from));
    });
  }

  LogicalResult evaluate(DagFoldOp op) {
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

  /// What a fold of `count` values gives.
  static double combine(DagFoldKind kind, double sum, double largest,
                        int64_t count) {
    if (kind == DagFoldKind::Max)
      return largest;
    return kind == DagFoldKind::Mean ? sum / double(count) : sum;
  }

  LogicalResult evaluate(DagSoftmaxOp op) {
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

  static double apply(DagBroadcastKind kind, double left, double right) {
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

  LogicalResult evaluate(DagBroadcastOp op) {
    const Dense &left = get(op.getLeft()), &right = get(op.getRight());
    auto getBlock = [&](const Dense &tensor) {
      return product(ArrayRef(tensor.shape)
                         .drop_front(op.getCommon()[0])
                         .drop_back(op.getCommon()[1]));
    };
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

  LogicalResult evaluate(DagMatMulOp op) {
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

  ArrayRef<float> takeWeight() {
    ArrayRef<float> values = remaining.front().values;
    remaining = remaining.drop_front();
    return values;
  }

  KernelOp kernel;
  SizeValues sizes;
  ArrayRef<ReferenceTensor> remaining;
  /// Looked up only, never iterated over: the pointers order nothing.
  DenseMap<Value, Dense> tensors;
};
} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Reports tensors that are not those of `shapes`.
static LogicalResult verifyTensors(ArrayRef<ReferenceTensor> tensors,
                                   ArrayRef<Shape> shapes, StringRef what,
                                   EmitErrorFn emitError) {
  if (tensors.size() != shapes.size())
    return emitError() << "requires " << shapes.size() << ' ' << what
                       << "s, got " << tensors.size();
  for (auto [index, tensor] : llvm::enumerate(tensors))
    if (tensor.shape != ArrayRef(shapes[index]) ||
        int64_t(tensor.values.size()) != product(shapes[index]))
      return emitError() << "requires " << what << ' ' << index << " of shape ["
                         << shapes[index] << "], got [" << tensor.shape
                         << "] with " << tensor.values.size() << " values";
  return success();
}

LogicalResult kas::evaluateKernel(KernelOp kernel, const Binding &binding,
                                  ArrayRef<ReferenceTensor> inputs,
                                  ArrayRef<ReferenceTensor> weights,
                                  MutableArrayRef<float> output,
                                  EmitErrorFn emitError) {
  FailureOr<KernelShapes> shapes = getShapes(kernel, binding, emitError);
  if (failed(shapes) ||
      failed(verifyTensors(inputs, shapes->inputs, "input", emitError)) ||
      failed(verifyTensors(weights, shapes->weights, "weight", emitError)))
    return failure();
  if (int64_t(output.size()) != product(shapes->output))
    return emitError() << "requires an output of " << product(shapes->output)
                       << " elements, got " << output.size();
  return KernelEvaluation(kernel, binding, emitError)
      .run(inputs, weights, output);
}
