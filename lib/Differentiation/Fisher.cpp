//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Differentiation/Fisher.h"
#include "StructuredGradient.h"
#include "kas/Differentiation/Differentiate.h"
#include "kas/Models/Site.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Generic operations by their dimensions
//===----------------------------------------------------------------------===//

namespace {

using BodyFn = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// Structured operations over the dimensions of one tensor. Operands and result
/// have all of them but some.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, RankedTensorType type)
      : builder(builder), loc(loc), type(type) {}

  /// `body` of the elements of `inputs`; `dropped` of each are the dimensions
  /// that it does not have.
  Value map(ArrayRef<std::pair<Value, SmallVector<unsigned>>> inputs,
            BodyFn body);
  /// Sums, or with `isMaximum` the largest, over the dimensions `dropped`, of
  /// `body` of the elements of `inputs`.
  Value reduce(ValueRange inputs, ArrayRef<unsigned> dropped, bool isMaximum,
               BodyFn body);

private:
  AffineMap getMap(ArrayRef<unsigned> dropped) {
    SmallVector<AffineExpr> exprs;
    for (unsigned dimension = 0; dimension < type.getRank(); ++dimension)
      if (!llvm::is_contained(dropped, dimension))
        exprs.push_back(builder.getAffineDimExpr(dimension));
    return AffineMap::get(type.getRank(), 0, exprs, builder.getContext());
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
};

} // namespace

Value Emitter::map(ArrayRef<std::pair<Value, SmallVector<unsigned>>> inputs,
                   BodyFn body) {
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const auto &[value, dropped] : inputs) {
    values.push_back(value);
    maps.push_back(getMap(dropped));
  }
  maps.push_back(getMap({}));
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, type, values, empty, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(builder, loc,
                                body(builder, loc, arguments.drop_back()));
      });
  return generic.getResult(0);
}

Value Emitter::reduce(ValueRange inputs, ArrayRef<unsigned> dropped,
                      bool isMaximum, BodyFn body) {
  SmallVector<int64_t> shape;
  SmallVector<utils::IteratorType> iterators;
  for (auto [dimension, size] : llvm::enumerate(type.getShape())) {
    bool isDropped = llvm::is_contained(dropped, dimension);
    if (!isDropped)
      shape.push_back(size);
    iterators.push_back(isDropped ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
  }
  auto element = cast<FloatType>(type.getElementType());
  APFloat start = isMaximum ? APFloat::getInf(element.getFloatSemantics(), true)
                            : APFloat::getZero(element.getFloatSemantics());
  Value first = arith::ConstantOp::create(builder, loc,
                                          builder.getFloatAttr(element, start));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, element);
  Value init = linalg::FillOp::create(builder, loc, first, empty).getResult(0);
  SmallVector<AffineMap> maps(inputs.size(), getMap({}));
  maps.push_back(getMap(dropped));
  auto generic = linalg::GenericOp::create(
      builder, loc, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        Value term = body(builder, loc, arguments.drop_back());
        Value combined = isMaximum ? Value(arith::MaximumFOp::create(
                                         builder, loc, arguments.back(), term))
                                   : Value(arith::AddFOp::create(
                                         builder, loc, arguments.back(), term));
        linalg::YieldOp::create(builder, loc, combined);
      });
  return generic.getResult(0);
}

static Value multiply(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::MulFOp::create(builder, loc, a, b);
}

static Value scale(OpBuilder &builder, Location loc, Value a, double factor) {
  Value constant = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(a.getType(), factor));
  return arith::MulFOp::create(builder, loc, a, constant);
}

//===----------------------------------------------------------------------===//
// The score of one layer
//===----------------------------------------------------------------------===//

Value kas::emitFisher(OpBuilder &builder, Value activation, Value gradient,
                      unsigned batch, ArrayRef<unsigned> spatial) {
  Location loc = activation.getLoc();
  auto type = cast<RankedTensorType>(activation.getType());
  Value sums = Emitter(builder, loc, type)
                   .reduce({activation, gradient}, spatial,
                           /*isMaximum=*/false,
                           [](OpBuilder &builder, Location loc, ValueRange v) {
                             return multiply(builder, loc, v[0], v[1]);
                           });
  double factor = 0.5 / type.getDimSize(batch);
  auto sumsType = cast<RankedTensorType>(sums.getType());
  SmallVector<unsigned> all =
      llvm::to_vector(llvm::seq<unsigned>(sumsType.getRank()));
  return Emitter(builder, loc, sumsType)
      .reduce(sums, all, /*isMaximum=*/false,
              [&](OpBuilder &builder, Location loc, ValueRange v) {
                Value square = multiply(builder, loc, v[0], v[0]);
                return scale(builder, loc, square, factor);
              });
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

namespace {

/// The result of a convolution, and what its dimensions are.
struct Layer {
  linalg::LinalgOp op;
  std::string name;
  unsigned batch = 0;
  SmallVector<unsigned> spatial;
};

} // namespace

static std::optional<Layer> matchLayer(linalg::LinalgOp op) {
  if (!linalg::isaConvolutionOpInterface(op) || op->getNumResults() != 1)
    return std::nullopt;
  auto dims = linalg::inferConvolutionDims(op);
  if (failed(dims) || dims->batch.size() != 1 || dims->filterLoop.empty() ||
      dims->outputChannel.size() + dims->depth.size() == 0)
    return std::nullopt;
  Layer layer;
  layer.op = op;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  auto getDimension = [&](unsigned loop) {
    return map.getResultPosition(getAffineDimExpr(loop, op->getContext()));
  };
  layer.batch = *getDimension(dims->batch.front());
  for (unsigned loop : dims->outputImage)
    layer.spatial.push_back(*getDimension(loop));
  if (auto argument = dyn_cast<BlockArgument>(op.getDpsInputs()[1]))
    if (auto function =
            dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), argumentNameAttributeName)) {
        StringRef text = name.getValue();
        text.consume_back(".weight");
        layer.name = text.str();
      }
  return layer;
}

/// Its only reader adds it to another tensor of the same type.
static bool endsResidualBlock(const Layer &layer) {
  Value result = layer.op->getResult(0);
  if (!result.hasOneUse())
    return false;
  auto reader = dyn_cast<linalg::LinalgOp>(*result.getUsers().begin());
  if (!reader || reader.getNumDpsInputs() != 2 ||
      reader.getNumReductionLoops() != 0)
    return false;
  Operation &first = reader.getBlock()->front();
  return isa<arith::AddFOp>(first) &&
         llvm::all_of(reader.getDpsInputs(), [&](Value input) {
           return input.getType() == result.getType();
         });
}

/// Puts the result of a convolution, normalized over batch and space, in its
/// place.
static void normalizeLayer(OpBuilder &builder, const Layer &layer) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(layer.op);
  Location loc = layer.op->getLoc();
  Value result = layer.op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<unsigned> dropped = layer.spatial;
  dropped.push_back(layer.batch);
  double count = 1;
  for (unsigned dimension : dropped)
    count *= type.getDimSize(dimension);
  Emitter emitter(builder, loc, type);
  Value mean =
      emitter.reduce(result, dropped, /*isMaximum=*/false,
                     [&](OpBuilder &builder, Location loc, ValueRange v) {
                       return scale(builder, loc, v[0], 1 / count);
                     });
  Value centred =
      emitter.map({{result, {}}, {mean, dropped}},
                  [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                    return arith::SubFOp::create(builder, loc, v[0], v[1]);
                  });
  Value variance = emitter.reduce(
      centred, dropped, /*isMaximum=*/false,
      [&](OpBuilder &builder, Location loc, ValueRange v) {
        return scale(builder, loc, multiply(builder, loc, v[0], v[0]),
                     1 / count);
      });
  // The constant of torch.nn.BatchNorm2d.
  Value normalized = emitter.map(
      {{centred, {}}, {variance, dropped}},
      [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Value epsilon = arith::ConstantOp::create(
            builder, loc, builder.getFloatAttr(v[1].getType(), 1e-5));
        Value sum = arith::AddFOp::create(builder, loc, v[1], epsilon);
        Value factor = math::RsqrtOp::create(builder, loc, sum);
        return multiply(builder, loc, v[0], factor);
      });
  Operation *last = normalized.getDefiningOp();
  result.replaceUsesWithIf(normalized, [&](OpOperand &use) {
    return last->isBeforeInBlock(use.getOwner());
  });
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// The gradient of the cross entropy, averaged over the samples, by `logits`.
static Value emitLossGradient(OpBuilder &builder, Value logits, Value labels) {
  Location loc = logits.getLoc();
  auto type = cast<RankedTensorType>(logits.getType());
  Emitter emitter(builder, loc, type);
  auto first = [](OpBuilder &, Location, ValueRange v) { return v[0]; };
  Value largest = emitter.reduce(logits, {1}, /*isMaximum=*/true, first);
  Value powers =
      emitter.map({{logits, {}}, {largest, {1}}},
                  [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                    Value shifted =
                        arith::SubFOp::create(builder, loc, v[0], v[1]);
                    return math::ExpOp::create(builder, loc, shifted);
                  });
  Value sum = emitter.reduce(powers, {1}, /*isMaximum=*/false, first);
  double factor = 1.0 / type.getDimSize(0);
  return emitter.map(
      {{powers, {}}, {sum, {1}}, {labels, {}}},
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        Value share = arith::DivFOp::create(builder, loc, v[0], v[1]);
        Value excess = arith::SubFOp::create(builder, loc, share, v[2]);
        return scale(builder, loc, excess, factor);
      });
}

/// The scores, one element each, in one tensor.
static Value collect(OpBuilder &builder, Location loc, ValueRange scores) {
  Type element =
      cast<RankedTensorType>(scores.front().getType()).getElementType();
  Value result = tensor::EmptyOp::create(
      builder, loc, ArrayRef<int64_t>{int64_t(scores.size())}, element);
  for (auto [index, score] : llvm::enumerate(scores)) {
    Value one = tensor::ExpandShapeOp::create(
        builder, loc, RankedTensorType::get({1}, element), score,
        ArrayRef<ReassociationIndices>{});
    result = tensor::InsertSliceOp::create(
        builder, loc, one, result,
        ArrayRef<OpFoldResult>{builder.getIndexAttr(index)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(1)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
  }
  return result;
}

FailureOr<func::FuncOp>
kas::makeFisherFunction(func::FuncOp function, StringRef name,
                        const FisherOptions &options,
                        SmallVectorImpl<std::string> &names) {
  auto resultType =
      function.getNumResults() == 1
          ? dyn_cast<RankedTensorType>(function.getResultTypes()[0])
          : RankedTensorType();
  if (!function.getBody().hasOneBlock() || !resultType ||
      resultType.getRank() != 2 || !resultType.hasStaticShape())
    return function.emitError("for Fisher Potential, requires a function with "
                              "one block and one result of static shape "
                              "samples x classes");
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  func::FuncOp fisher = function.clone();
  fisher.setName(name);
  builder.insert(fisher);
  Block &block = fisher.getBody().front();

  SmallVector<Layer> layers;
  for (auto op : block.getOps<linalg::LinalgOp>())
    if (std::optional<Layer> layer = matchLayer(op);
        layer && (!options.residualOnly || endsResidualBlock(*layer)))
      layers.push_back(*layer);
  auto fail = [&]() -> FailureOr<func::FuncOp> {
    fisher.erase();
    return failure();
  };
  if (layers.empty()) {
    function.emitError(
        "for Fisher Potential, requires a convolution, got none");
    return fail();
  }
  SmallVector<Value> activations;
  for (const Layer &layer : layers) {
    names.push_back(layer.name);
    activations.push_back(layer.op->getResult(0));
    if (options.normalize)
      normalizeLayer(builder, layer);
  }
  LogicalResult inserted = fisher.insertArgument(
      fisher.getNumArguments(), resultType,
      builder.getDictionaryAttr(builder.getNamedAttr(
          argumentNameAttributeName, builder.getStringAttr("labels"))),
      function.getLoc());
  assert(succeeded(inserted) && "a func.func takes arguments");
  (void)inserted;

  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  Value logits = end->getOperand(0);
  Value lossGradient =
      emitLossGradient(builder, logits, block.getArguments().back());
  auto gradients = emitGradients(builder, logits, lossGradient, activations);
  if (failed(gradients))
    return fail();
  SmallVector<Value> scores;
  for (auto [layer, activation, gradient] :
       llvm::zip_equal(layers, activations, *gradients))
    scores.push_back(
        emitFisher(builder, activation, gradient, layer.batch, layer.spatial));
  Value all = collect(builder, function.getLoc(), scores);
  end->setOperands({logits, all});
  fisher.setType(builder.getFunctionType(fisher.getArgumentTypes(),
                                         TypeRange{resultType, all.getType()}));
  fisher.removeResAttrsAttr();
  return fisher;
}
