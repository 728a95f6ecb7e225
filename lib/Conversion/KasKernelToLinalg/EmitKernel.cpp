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

#include "TensorSteps.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <numbers>
#include <optional>

using namespace mlir;
using namespace kas;

namespace {
using Shape = TensorSteps::Shape;

/// The product of some extents, all of a tensor that fits.
int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

/// The dimensions `first`, ..., `last` - 1.
SmallVector<int64_t> range(int64_t first, int64_t last) {
  return llvm::to_vector(llvm::seq(first, last));
}

Value yieldFirst(OpBuilder &, Location, ValueRange arguments) {
  return arguments[0];
}

class KernelEmitter {
public:
  KernelEmitter(ImplicitLocOpBuilder &builder, KernelOp kernel,
                const Binding &binding, int64_t batch,
                const KernelToLinalgOptions &options)
      : b(builder), steps(builder), kernel(kernel),
        symbols(kernel.getSymbolSet()), binding(binding), batch(batch),
        options(options) {}

  FailureOr<Value> run(ValueRange inputs, ValueRange weights) {
    for (Value value :
         llvm::concat<Value>(llvm::to_vector(inputs), llvm::to_vector(weights)))
      if (failed(checkElements(TensorSteps::getShape(value))))
        return failure();
    remaining = weights;
    Block &block = kernel.getBody().front();
    for (auto [argument, input] : llvm::zip_equal(block.getArguments(), inputs))
      values[argument] = input;
    for (Operation &op : block.without_terminator()) {
      // Every size of the step is known before anything is made of it.
      FailureOr<Shape> shape = getShape(op.getResult(0));
      if (failed(shape))
        return failure();
      FailureOr<Value> value = emitStep(&op, *shape);
      if (failed(value))
        return failure();
      values[op.getResult(0)] = *value;
    }
    return emitOutput();
  }

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
      if (failed(value))
        return failure();
      shape.push_back(*value);
    }
    return shape;
  }

  FailureOr<Shape> getSizes(ArrayAttr sizes) {
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
    return success();
  }

  /// With the batch in front.
  FailureOr<Shape> getShape(Value tensor) {
    FailureOr<Shape> shape =
        getSizes(cast<SymbolicTensorType>(tensor.getType()).getDims());
    if (failed(shape))
      return failure();
    shape->insert(shape->begin(), batch);
    if (failed(checkElements(*shape)))
      return failure();
    return shape;
  }

  static unsigned getNumChannelDims(Value tensor) {
    return cast<SymbolicTensorType>(tensor.getType()).getNumChannelDims();
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

  //===--------------------------------------------------------------------===//
  // Rearrangement
  //===--------------------------------------------------------------------===//

  FailureOr<Value> emitStep(Operation *op, ArrayRef<int64_t> shape) {
    return TypeSwitch<Operation *, FailureOr<Value>>(op)
        .Case<DagGroupOp, DagGroupAllOp, DagDropoutOp>([&](auto op) {
          return FailureOr<Value>(steps.view(values[op.getInput()], shape));
        })
        .Case<DagShiftOp, DagUnfoldOp, DagTransposeOp, DagShuffleOp,
              DagReorderOp, DagAmplifyOp, DagFCOp, DagConvOp, DagMixOp,
              DagScaleOp, DagNormOp, DagUnaryOp, DagPoolOp, DagFoldOp,
              DagSoftmaxOp, DagBroadcastOp, DagMatMulOp, DagApplyOp>(
            [&](auto op) { return emit(op, shape); })
        .Default([](Operation *other) -> FailureOr<Value> {
          return other->emitOpError("has no lowering to linalg");
        });
  }

  FailureOr<Value> emit(DagShiftOp op, ArrayRef<int64_t> shape) {
    int64_t dim = op.getDim() + 1, extent = shape[dim];
    int64_t amount = static_cast<int64_t>(op.getAmount()) % extent;
    int64_t start = (amount + extent) % extent;
    return steps.rearrange(
        values[op.getInput()], dim,
        {{start, 1, 0, 1, extent - start}, {0, 1, extent - start, 1, start}});
  }

  /// `input` with zeros around dimensions `dims`, enough for `windows`.
  FailureOr<Value> padForWindows(Value input, ArrayRef<int64_t> dims,
                                 ArrayRef<int64_t> windows, int64_t dilation) {
    Shape shape(TensorSteps::getShape(input)), low(shape.size(), 0), high(low);
    for (auto [dim, window] : llvm::zip_equal(dims, windows)) {
      int64_t before = window / 2, after = window - 1 - before;
      if (llvm::MulOverflow(before, dilation, low[dim]) ||
          llvm::MulOverflow(after, dilation, high[dim]) ||
          llvm::AddOverflow(shape[dim], low[dim], shape[dim]) ||
          llvm::AddOverflow(shape[dim], high[dim], shape[dim]))
        return kernel.emitOpError("requires windows that fit, got dilation ")
               << dilation;
    }
    if (failed(checkElements(shape)))
      return failure();
    return steps.pad(input, low, high);
  }

  FailureOr<Value> emit(DagUnfoldOp op, ArrayRef<int64_t> shape) {
    FailureOr<Shape> windows = getSizes(op.getWindows());
    if (failed(windows))
      return failure();
    SmallVector<int64_t> dims = shiftDims(op.getDims());
    FailureOr<Value> padded =
        padForWindows(values[op.getInput()], dims, *windows, op.getDilation());
    if (failed(padded))
      return failure();
    int64_t numFront = getNumChannelDims(op.getInput()) + 1;
    int64_t numWindows = dims.size();
    SmallVector<AffineExpr> sources;
    for (int64_t dim = 0, e = shape.size() - numWindows; dim < e; ++dim)
      sources.push_back(
          b.getAffineDimExpr(dim < numFront ? dim : dim + numWindows));
    for (auto [place, dim] : llvm::enumerate(dims))
      sources[dim] = sources[dim] + b.getAffineDimExpr(numFront + place) *
                                        int64_t(op.getDilation());
    return steps.map(shape, *padded, getMap(shape.size(), sources), yieldFirst);
  }

  FailureOr<Value> emit(DagTransposeOp op, ArrayRef<int64_t> shape) {
    SmallVector<int64_t> permutation = range(0, shape.size());
    std::swap(permutation[op.getDims()[0] + 1],
              permutation[op.getDims()[1] + 1]);
    return steps.permute(values[op.getInput()], permutation);
  }

  FailureOr<Value> emit(DagShuffleOp op, ArrayRef<int64_t> shape) {
    FailureOr<int64_t> groups = getSize(op.getFactor());
    if (failed(groups))
      return failure();
    int64_t dim = op.getDim() + 1, extent = shape[dim];
    if (extent % *groups != 0)
      return op.emitOpError("requires groups that divide ")
             << extent << " (K3), got " << *groups;
    Shape split(shape);
    split[dim] = *groups;
    split.insert(split.begin() + dim + 1, extent / *groups);
    SmallVector<int64_t> permutation = range(0, split.size());
    std::swap(permutation[dim], permutation[dim + 1]);
    Value parts = steps.view(values[op.getInput()], split);
    return steps.view(steps.permute(parts, permutation), shape);
  }

  FailureOr<Value> emit(DagReorderOp op, ArrayRef<int64_t> shape) {
    int64_t dim = op.getDim() + 1, extent = shape[dim];
    int64_t numEven = (extent + 1) / 2, numOdd = extent - numEven;
    Value input = values[op.getInput()];
    if (op.getInverse())
      return steps.rearrange(
          input, dim, {{0, 1, 0, 2, numEven}, {numEven, 1, 1, 2, numOdd}});
    return steps.rearrange(input, dim,
                           {{0, 2, 0, 1, numEven}, {1, 2, numEven, 1, numOdd}});
  }

  /// Block a of the result is block a mod (number of blocks) of the input.
  FailureOr<Value> emit(DagAmplifyOp op, ArrayRef<int64_t> shape) {
    FailureOr<int64_t> blocks = getSize(op.getImpliedSizes().front());
    if (failed(blocks))
      return failure();
    Value input = values[op.getInput()];
    int64_t copies = shape[1];
    if (*blocks > copies)
      return op.emitOpError("requires at most as many blocks as copies, ")
             << copies << " (D15), got " << *blocks;
    if (*blocks == copies)
      return steps.view(input, shape);
    int64_t rounds = llvm::divideCeil(copies, *blocks);
    Shape once(shape);
    once[1] = *blocks;
    Shape repeated(once);
    repeated.insert(repeated.begin() + 1, rounds);
    if (failed(checkElements(repeated)))
      return failure();
    SmallVector<int64_t> read = range(0, repeated.size());
    read.erase(read.begin() + 1);
    Value result = steps.map(repeated, steps.view(input, once),
                             getMap(repeated.size(), read), yieldFirst);
    once[1] *= rounds;
    return steps.takeFront(steps.view(result, once), 1, copies);
  }

  //===--------------------------------------------------------------------===//
  // Layers with weights
  //===--------------------------------------------------------------------===//

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
    if (failed(outputs))
      return failure();
    LayerSizes sizes{product(channels.take_front(op.getGroups())),
                     product(channels.drop_front(op.getGroups())), *outputs};
    if (sizes.outputs % sizes.groups != 0)
      return op.emitOpError("requires groups that divide ")
             << sizes.outputs << " (K3), got " << sizes.groups;
    return sizes;
  }

  /// A matrix product per sample and group over all positions.
  FailureOr<Value> emit(DagFCOp op, ArrayRef<int64_t> shape) {
    FailureOr<LayerSizes> sizes = getLayerSizes(op);
    if (failed(sizes))
      return failure();
    return steps.view(
        emitLayer(*sizes, values[op.getInput()], shape, {}, {}, {}, 1), shape);
  }

  FailureOr<Value> emit(DagConvOp op, ArrayRef<int64_t> shape) {
    FailureOr<LayerSizes> sizes = getLayerSizes(op);
    FailureOr<Shape> windows = getSizes(op.getWindows());
    if (failed(sizes) || failed(windows))
      return failure();
    SmallVector<int64_t> dims = shiftDims(op.getDims());
    FailureOr<Value> padded =
        padForWindows(values[op.getInput()], dims, *windows, op.getDilation());
    if (failed(padded))
      return failure();
    // The spatial dimensions, counted among themselves.
    int64_t numFront = getNumChannelDims(op.getInput()) + 1;
    for (int64_t &dim : dims)
      dim -= numFront;
    ArrayRef<int64_t> paddedSpatial =
        TensorSteps::getShape(*padded).drop_front(numFront);
    return steps.view(emitLayer(*sizes, *padded, shape, paddedSpatial, dims,
                                *windows, op.getDilation()),
                      shape);
  }

  /// `result[n, g, o, p] = sum over c, k of weight[g, o, c, k] *
  /// input[n, g, c, p + dilation*k]`, without the loops over one group, one
  /// output or one channel of a group. Without windows, all positions are one
  /// loop.
  Value emitLayer(const LayerSizes &sizes, Value input, ArrayRef<int64_t> shape,
                  ArrayRef<int64_t> inputSpatial, ArrayRef<int64_t> windowDims,
                  ArrayRef<int64_t> windows, int64_t dilation) {
    ArrayRef<int64_t> spatial = shape.drop_front(2);
    Shape positions(spatial), inputPositions(inputSpatial);
    if (windows.empty())
      positions = inputPositions = {product(spatial)};
    // Some operand of a loop, in the order of its dimensions.
    struct Operand {
      Shape shape;
      SmallVector<AffineExpr> indices;
      void add(int64_t extent, AffineExpr index) {
        shape.push_back(extent);
        indices.push_back(index);
      }
    };
    Operand read, weight, result;
    unsigned numLoops = 0;
    auto addLoop = [&] { return b.getAffineDimExpr(numLoops++); };
    AffineExpr sample = addLoop();
    read.add(batch, sample);
    result.add(batch, sample);
    if (sizes.groups > 1) {
      AffineExpr group = addLoop();
      for (Operand *operand : {&read, &weight, &result})
        operand->add(sizes.groups, group);
    }
    if (sizes.groups == 1 || sizes.getOutputsPerGroup() > 1) {
      AffineExpr output = addLoop();
      weight.add(sizes.getOutputsPerGroup(), output);
      result.add(sizes.getOutputsPerGroup(), output);
    }
    SmallVector<AffineExpr> points;
    for (int64_t extent : positions) {
      points.push_back(addLoop());
      result.add(extent, points.back());
    }
    unsigned firstReduction = numLoops;
    if (windows.empty() || sizes.perGroup > 1) {
      AffineExpr channel = addLoop();
      read.add(sizes.perGroup, channel);
      weight.add(sizes.perGroup, channel);
    }
    for (auto [dim, extent] : llvm::zip_equal(windowDims, windows)) {
      AffineExpr window = addLoop();
      points[dim] = points[dim] + window * dilation;
      weight.add(extent, window);
    }
    for (auto [extent, point] : llvm::zip_equal(inputPositions, points))
      read.add(extent, point);
    return steps.contract(
        result.shape, numLoops - firstReduction, steps.view(input, read.shape),
        getMap(numLoops, read.indices), steps.view(takeWeight(), weight.shape),
        getMap(numLoops, weight.indices));
  }

  FailureOr<Value> emit(DagMixOp op, ArrayRef<int64_t> shape) {
    unsigned numLoops = shape.size() + op.getDims().size();
    SmallVector<int64_t> reads = range(0, shape.size()), weights, contracted;
    for (auto [place, dim] : llvm::enumerate(shiftDims(op.getDims()))) {
      weights.push_back(dim);
      contracted.push_back(shape.size() + place);
      reads[dim] = contracted.back();
    }
    llvm::append_range(weights, contracted);
    return steps.contract(shape, op.getDims().size(), values[op.getInput()],
                          getMap(numLoops, reads), takeWeight(),
                          getMap(numLoops, weights));
  }

  FailureOr<Value> emit(DagScaleOp op, ArrayRef<int64_t> shape) {
    AffineMap maps[] = {b.getMultiDimIdentityMap(shape.size()),
                        getMap(shape.size(), shiftDims(op.getDims()))};
    return steps.map(shape, {values[op.getInput()], takeWeight()}, maps,
                     [](OpBuilder &nested, Location loc, ValueRange arguments) {
                       return arith::MulFOp::create(nested, loc, arguments[0],
                                                    arguments[1]);
                     });
  }

  FailureOr<Value> emit(DagNormOp op, ArrayRef<int64_t> shape) {
    SmallVector<Value> operands = {values[op.getInput()]};
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(shape.size())};
    for (int i = 0; i < 4; ++i) {
      operands.push_back(takeWeight());
      maps.push_back(
          getMap(shape.size(), range(1, 1 + getNumChannelDims(op.getInput()))));
    }
    return steps.map(
        shape, operands, maps,
        [](OpBuilder &nested, Location loc, ValueRange arguments) -> Value {
          ImplicitLocOpBuilder n(loc, nested);
          Value epsilon = arith::ConstantOp::create(
              n, n.getFloatAttr(arguments[0].getType(), DagNormOp::epsilon));
          Value variance = arith::AddFOp::create(
              n, math::AbsFOp::create(n, arguments[4]), epsilon);
          Value centered = arith::SubFOp::create(n, arguments[0], arguments[3]);
          Value factor = arith::DivFOp::create(
              n, arguments[1], math::SqrtOp::create(n, variance));
          return arith::AddFOp::create(
              n, arith::MulFOp::create(n, centered, factor), arguments[2]);
        });
  }

  //===--------------------------------------------------------------------===//
  // Element-wise functions and folds
  //===--------------------------------------------------------------------===//

  static Value apply(DagUnaryKind kind, ImplicitLocOpBuilder &n, Value x) {
    auto constant = [&](double value) -> Value {
      return arith::ConstantOp::create(n, n.getFloatAttr(x.getType(), value));
    };
    switch (kind) {
    case DagUnaryKind::ReLU:
      return arith::MaximumFOp::create(n, x, constant(0));
    case DagUnaryKind::GELU: {
      Value error = math::ErfOp::create(
          n, arith::MulFOp::create(n, x, constant(std::numbers::sqrt2 / 2)));
      Value half = arith::MulFOp::create(n, x, constant(0.5));
      return arith::MulFOp::create(
          n, half, arith::AddFOp::create(n, error, constant(1)));
    }
    case DagUnaryKind::Sigmoid: {
      Value power = math::ExpOp::create(n, arith::NegFOp::create(n, x));
      return arith::DivFOp::create(
          n, constant(1), arith::AddFOp::create(n, power, constant(1)));
    }
    case DagUnaryKind::TanH:
      return math::TanhOp::create(n, x);
    case DagUnaryKind::Abs:
      return math::AbsFOp::create(n, x);
    case DagUnaryKind::Exp:
      return math::ExpOp::create(n, x);
    case DagUnaryKind::Neg:
      return arith::NegFOp::create(n, x);
    case DagUnaryKind::Sin:
      return math::SinOp::create(
          n, arith::MulFOp::create(n, x, constant(std::numbers::pi / 2)));
    case DagUnaryKind::Sqrt:
      return math::SqrtOp::create(n, math::AbsFOp::create(n, x));
    case DagUnaryKind::Sqr:
      return arith::MulFOp::create(n, x, x);
    }
    llvm_unreachable("all functions are above");
  }

  FailureOr<Value> emit(DagUnaryOp op, ArrayRef<int64_t>) {
    return steps.map(values[op.getInput()], [&](OpBuilder &nested, Location loc,
                                                ValueRange arguments) {
      ImplicitLocOpBuilder n(loc, nested);
      return apply(op.getKind(), n, arguments[0]);
    });
  }

  /// Folds `dims` of `input`, counted with the batch.
  Value fold(DagFoldKind kind, Value input, ArrayRef<int64_t> dims) {
    Value result = steps.reduce(input, dims, kind == DagFoldKind::Max);
    if (kind != DagFoldKind::Mean)
      return result;
    int64_t count = product(TensorSteps::getShape(input)) /
                    product(TensorSteps::getShape(result));
    return steps.scale(result, 1 / double(count));
  }

  FailureOr<Value> emit(DagFoldOp op, ArrayRef<int64_t>) {
    return fold(op.getKind(), values[op.getInput()], shiftDims(op.getDims()));
  }

  /// Each named dimension is split into the windows and their elements.
  FailureOr<Value> emit(DagPoolOp op, ArrayRef<int64_t> shape) {
    FailureOr<Shape> windows = getSizes(op.getWindows());
    if (failed(windows))
      return failure();
    Shape split;
    SmallVector<int64_t> folded;
    SmallVector<int64_t> dims = shiftDims(op.getDims());
    for (auto [dim, extent] : llvm::enumerate(shape)) {
      split.push_back(extent);
      auto *found = llvm::find(dims, int64_t(dim));
      if (found == dims.end())
        continue;
      folded.push_back(split.size());
      split.push_back((*windows)[found - dims.begin()]);
    }
    return fold(op.getKind(), steps.view(values[op.getInput()], split), folded);
  }

  FailureOr<Value> emit(DagSoftmaxOp op, ArrayRef<int64_t> shape) {
    Value input = values[op.getInput()];
    SmallVector<int64_t> dims = shiftDims(op.getDims());
    SmallVector<int64_t> kept =
        llvm::filter_to_vector(range(0, shape.size()), [&](int64_t dim) {
          return !llvm::is_contained(dims, dim);
        });
    AffineMap maps[] = {b.getMultiDimIdentityMap(shape.size()),
                        getMap(shape.size(), kept)};
    Value largest = steps.reduce(input, dims, /*isMax=*/true);
    Value powers = steps.map(
        shape, {input, largest}, maps,
        [](OpBuilder &nested, Location loc, ValueRange arguments) -> Value {
          return math::ExpOp::create(
              nested, loc,
              arith::SubFOp::create(nested, loc, arguments[0], arguments[1]));
        });
    Value sums = steps.reduce(powers, dims, /*isMax=*/false);
    return steps.map(
        shape, {powers, sums}, maps,
        [](OpBuilder &nested, Location loc, ValueRange arguments) -> Value {
          return arith::DivFOp::create(nested, loc, arguments[0], arguments[1]);
        });
  }

  //===--------------------------------------------------------------------===//
  // Blending
  //===--------------------------------------------------------------------===//

  static Value apply(DagBroadcastKind kind, OpBuilder &n, Location loc,
                     Value left, Value right) {
    switch (kind) {
    case DagBroadcastKind::Add:
      return arith::AddFOp::create(n, loc, left, right);
    case DagBroadcastKind::Sub:
      return arith::SubFOp::create(n, loc, left, right);
    case DagBroadcastKind::Mul:
      return arith::MulFOp::create(n, loc, left, right);
    case DagBroadcastKind::Min:
      return arith::MinimumFOp::create(n, loc, left, right);
    case DagBroadcastKind::Max:
      return arith::MaximumFOp::create(n, loc, left, right);
    }
    llvm_unreachable("all kinds are above");
  }

  /// The right operand keeps its shape where the left block is as large as some
  /// last dimensions of the right one; otherwise both blocks become loops over
  /// repetitions and elements of the left block.
  FailureOr<Value> emit(DagBroadcastOp op, ArrayRef<int64_t> shape) {
    Value left = values[op.getLeft()], right = values[op.getRight()];
    int64_t numFirst = op.getCommon()[0] + 1, numLast = op.getCommon()[1];
    ArrayRef<int64_t> first = shape.take_front(numFirst);
    ArrayRef<int64_t> last = shape.take_back(numLast);
    ArrayRef<int64_t> block = shape.drop_front(numFirst).drop_back(numLast);
    int64_t leftBlock = product(
        TensorSteps::getShape(left).drop_front(numFirst).drop_back(numLast));
    int64_t rightBlock = product(block);
    if (rightBlock % leftBlock != 0)
      return op.emitOpError("requires a left block that divides ")
             << rightBlock << " (K3), got " << leftBlock;
    size_t numShared = 0;
    while (numShared < block.size() &&
           product(block.take_back(numShared)) < leftBlock)
      ++numShared;
    Shape pairs(first);
    if (product(block.take_back(numShared)) == leftBlock) {
      llvm::append_range(pairs, block);
    } else {
      numShared = 1;
      pairs.push_back(rightBlock / leftBlock);
      pairs.push_back(leftBlock);
    }
    llvm::append_range(pairs, last);
    SmallVector<int64_t> reads = range(0, numFirst);
    llvm::append_range(reads,
                       range(pairs.size() - numLast - numShared, pairs.size()));
    Shape leftShape;
    for (int64_t dim : reads)
      leftShape.push_back(pairs[dim]);
    AffineMap maps[] = {getMap(pairs.size(), reads),
                        b.getMultiDimIdentityMap(pairs.size())};
    Value result = steps.map(
        pairs, {steps.view(left, leftShape), steps.view(right, pairs)}, maps,
        [&](OpBuilder &nested, Location loc, ValueRange arguments) {
          return apply(op.getKind(), nested, loc, arguments[0], arguments[1]);
        });
    return steps.view(result, shape);
  }

  FailureOr<Value> emit(DagMatMulOp op, ArrayRef<int64_t> shape) {
    auto [rowDims, innerDims] = op.getMatrix(/*isRight=*/false);
    FailureOr<Shape> rowShape = getSizes(rowDims);
    FailureOr<Shape> innerShape = getSizes(innerDims);
    FailureOr<Shape> columnShape = getSizes(op.getMatrix(true).second);
    if (failed(rowShape) || failed(innerShape) || failed(columnShape))
      return failure();
    int64_t rows = product(*rowShape), inner = product(*innerShape);
    int64_t columns = product(*columnShape);
    int64_t matrices = product(shape) / (rows * columns);
    // Loops: matrix, row, column, inner.
    Shape leftShape = {matrices, rows, inner};
    SmallVector<int64_t> leftLoops = {0, 1, 3}, rightLoops = {0, 3, 2};
    Shape rightShape = {matrices, inner, columns};
    if (op.getTransposeLeft()) {
      std::swap(leftShape[1], leftShape[2]);
      std::swap(leftLoops[1], leftLoops[2]);
    }
    if (op.getTransposeRight()) {
      std::swap(rightShape[1], rightShape[2]);
      std::swap(rightLoops[1], rightLoops[2]);
    }
    Value result = steps.contract(
        {matrices, rows, columns}, 1,
        steps.view(values[op.getLeft()], leftShape), getMap(4, leftLoops),
        steps.view(values[op.getRight()], rightShape), getMap(4, rightLoops));
    result = steps.view(result, shape);
    return op.getScaled() ? steps.scale(result, 1 / std::sqrt(double(inner)))
                          : result;
  }

  //===--------------------------------------------------------------------===//
  // Operators
  //===--------------------------------------------------------------------===//

  /// The first dimension of data and output is the same symbol and nothing else
  /// is made of it.
  static std::optional<unsigned> findBatchSymbol(OperatorOp op) {
    SmallVector<SizeAttr> data = op.getDataSizes(),
                          output = op.getOutputSizes();
    if (data.empty() || output.empty() || data[0] != output[0] ||
        data[0].getNames().size() != 1)
      return std::nullopt;
    StringRef name = data[0].getNames().front().getValue();
    if (data[0] != SizeAttr::getSymbol(op.getContext(), name))
      return std::nullopt;
    auto isElsewhere = [&](ArrayRef<SizeAttr> sizes) {
      return llvm::any_of(sizes, [&](SizeAttr size) {
        return llvm::is_contained(size.getNames(), data[0].getNames().front());
      });
    };
    if (isElsewhere(ArrayRef(data).drop_front()) ||
        isElsewhere(ArrayRef(output).drop_front()))
      return std::nullopt;
    for (const SmallVector<SizeAttr> &weight : op.getWeightSizes())
      if (isElsewhere(weight))
        return std::nullopt;
    return op.getSymbolSet().lookup(name);
  }

  FailureOr<Value> emit(DagApplyOp op, ArrayRef<int64_t> shape) {
    OperatorOp callee = op.getOperator();
    std::optional<Binding> inner =
        callee ? op.getBinding(callee, symbols, binding) : std::nullopt;
    if (!inner)
      return op.emitOpError(
                 "requires an operator with sizes that are integers (D16), "
                 "got '@")
             << op.getCallee() << "'";
    if (std::optional<unsigned> symbol = findBatchSymbol(callee);
        symbol && (*inner)[*symbol] == 1)
      (*inner)[*symbol] = batch;
    else if (batch != 1)
      return op.emitOpError("requires an operator with a batch dimension of 1 "
                            "to lower ")
             << batch << " samples, got '@" << op.getCallee() << "'";
    if (failed(verifyBinding(callee, *inner, [&] { return op.emitOpError(); })))
      return failure();
    SymbolSet names = callee.getSymbolSet();
    auto getConcrete = [&](ArrayRef<SizeAttr> sizes) {
      return llvm::map_to_vector(sizes, [&](SizeAttr size) {
        return *kas::evaluate(size, names, *inner);
      });
    };
    SmallVector<std::pair<StringRef, int64_t>> entries;
    for (auto [index, value] : llvm::enumerate(*inner))
      entries.emplace_back(names.getName(index), value);
    Value data =
        steps.view(values[op.getInput()], getConcrete(callee.getDataSizes()));
    SmallVector<Value> weights;
    for (unsigned i = 0; i < callee.getNumWeights(); ++i)
      weights.push_back(takeWeight());
    auto type = cast<RankedTensorType>(data.getType())
                    .clone(getConcrete(callee.getOutputSizes()));
    Value result = ApplyOp::create(
        b, type, op.getCallee(),
        BindingAttr::getNormal(b.getContext(), entries), data, weights);
    return steps.view(result, shape);
  }

  //===--------------------------------------------------------------------===//
  // Output
  //===--------------------------------------------------------------------===//

  FailureOr<Value> emitOutput() {
    DagOutputOp op = kernel.getOutput();
    FailureOr<Shape> shape =
        getSizes(cast<SymbolicTensorType>(kernel.getResultType()).getDims());
    FailureOr<Shape> viewed = getSizes(op.getViewedDims());
    if (failed(shape) || failed(viewed))
      return failure();
    shape->insert(shape->begin(), batch);
    viewed->insert(viewed->begin(), batch);
    if (failed(checkElements(*shape)) || failed(checkElements(*viewed)))
      return failure();
    Value input = values[op.getInput()];
    if (int64_t elements = product(TensorSteps::getShape(input));
        elements != product(*viewed))
      return op.emitOpError("requires ")
             << product(*viewed) / batch << " elements in the output (K4), got "
             << elements / batch;
    if (!op.getCopies())
      return steps.view(input, *shape);
    FailureOr<int64_t> blocks = getSize(op.getNumBlocks());
    if (failed(blocks))
      return failure();
    int64_t copies = (*viewed)[1];
    if (*blocks > copies)
      return op.emitOpError("requires at most as many blocks as copies, ")
             << copies << " (D15), got " << *blocks;
    return steps.view(average(steps.view(input, *viewed), *blocks), *shape);
  }

  /// Block j is the mean of those blocks of dimension 1 that are j modulo
  /// `blocks`.
  Value average(Value input, int64_t blocks) {
    Shape shape(TensorSteps::getShape(input));
    int64_t copies = shape[1], rounds = llvm::divideCeil(copies, blocks);
    if (rounds == 1)
      return input;
    Shape low(shape.size(), 0), high(low);
    high[1] = rounds * blocks - copies;
    shape[1] = rounds;
    shape.insert(shape.begin() + 2, blocks);
    Value sums = steps.reduce(steps.view(steps.pad(input, low, high), shape),
                              {1}, /*isMax=*/false);
    if (high[1] == 0)
      return steps.scale(sums, 1 / double(rounds));
    SmallVector<float> factors;
    for (int64_t block = 0; block < blocks; ++block)
      factors.push_back(1.0f /
                        float(rounds - (block >= blocks - high[1] ? 1 : 0)));
    shape.erase(shape.begin() + 1);
    AffineMap maps[] = {b.getMultiDimIdentityMap(shape.size()),
                        getMap(shape.size(), ArrayRef<int64_t>{1})};
    return steps.map(shape, {sums, steps.constant(factors)}, maps,
                     [](OpBuilder &nested, Location loc, ValueRange arguments) {
                       return arith::MulFOp::create(nested, loc, arguments[0],
                                                    arguments[1]);
                     });
  }

  ImplicitLocOpBuilder &b;
  TensorSteps steps;
  KernelOp kernel;
  SymbolSet symbols;
  const Binding &binding;
  int64_t batch;
  const KernelToLinalgOptions &options;
  ValueRange remaining;
  /// Looked up only, never iterated over: the pointers order nothing.
  DenseMap<Value, Value> values;
};
} // namespace

FailureOr<Value> kas::emitKernel(OpBuilder &builder, Location loc,
                                 KernelOp kernel, const Binding &binding,
                                 ValueRange inputs, ValueRange weights,
                                 const KernelToLinalgOptions &options) {
  int64_t batch =
      inputs.empty() ? options.batch : TensorSteps::getShape(inputs[0])[0];
  ImplicitLocOpBuilder b(loc, builder);
  return KernelEmitter(b, kernel, binding, batch, options).run(inputs, weights);
}
