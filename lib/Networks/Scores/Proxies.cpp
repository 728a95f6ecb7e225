//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Adds a function that computes zero-cost proxies of a network: Fisher
// Potential, SNIP, gradient norm, SynFlow, NASWOT (sources: Scores/Proxies.h).
// All scores are sums over tensors that the network and its gradient have
// anyway, so one function computes all of them on one batch. Definitions are
// those of the papers (docs/guide/gradients.md, "Other proxies"); no score
// predicts accuracy well (research/reports/proxies.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Scores/Proxies.h"
#include "NetworkLayers.h"
#include "kas/Conversion/TensorEmitter.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Networks/Sites/Site.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::scalars;

//===----------------------------------------------------------------------===//
// Scores of tensors
//===----------------------------------------------------------------------===//

/// sum |w g|.
/// Lee et al., "SNIP", ICLR 2019, without the division by the whole.
static Value emitSnip(OpBuilder &builder, Value weight, Value gradient) {
  Location loc = weight.getLoc();
  return TensorEmitter(builder, loc, cast<RankedTensorType>(weight.getType()))
      .sum({weight, gradient},
           [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
             return math::AbsFOp::create(builder, loc,
                                         multiply(builder, loc, v[0], v[1]));
           });
}

/// sum g^2.
static Value emitSquares(OpBuilder &builder, Value gradient) {
  Location loc = gradient.getLoc();
  return TensorEmitter(builder, loc, cast<RankedTensorType>(gradient.getType()))
      .sum(gradient, [](OpBuilder &builder, Location loc, ValueRange v) {
        return multiply(builder, loc, v[0], v[0]);
      });
}

/// Element by element.
static Value emitUnary(OpBuilder &builder, Value value,
                       TensorEmitter::BodyFn body) {
  return TensorEmitter(builder, value.getLoc(),
                       cast<RankedTensorType>(value.getType()))
      .map({{value, {}}}, body);
}

/// Adds to `kernel` (N x N) at how many elements of `value` two samples are
/// both above 0 or both not; `batch` is the dimension of samples.
/// NASWOT's matrix of Mellor et al. (ICML 2021, eq. 2), one rectifier at a
/// time: entry (i, j) counts elements at which both samples are on the same
/// side of 0.
static Value addKernel(OpBuilder &builder, Value value, unsigned batch,
                       Value kernel) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  unsigned rank = type.getRank();
  // Loop 0 is the other sample, loop d + 1 dimension d of `value`: all
  // dimensions but the batch are summed over.
  SmallVector<AffineExpr> one, other;
  SmallVector<utils::IteratorType> iterators{utils::IteratorType::parallel};
  for (unsigned dimension = 0; dimension < rank; ++dimension) {
    one.push_back(builder.getAffineDimExpr(dimension + 1));
    other.push_back(dimension == batch ? builder.getAffineDimExpr(0)
                                       : one.back());
    iterators.push_back(dimension == batch ? utils::IteratorType::parallel
                                           : utils::IteratorType::reduction);
  }
  auto getMap = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(rank + 1, 0, exprs, builder.getContext());
  };
  AffineMap pair = getMap(
      {builder.getAffineDimExpr(0), builder.getAffineDimExpr(batch + 1)});
  return linalg::GenericOp::create(
             builder, loc, kernel.getType(), ValueRange{value, value}, kernel,
             ArrayRef<AffineMap>{getMap(one), getMap(other), pair}, iterators,
             [](OpBuilder &builder, Location loc, ValueRange v) {
               Value zero = arith::ConstantOp::create(
                   builder, loc, builder.getFloatAttr(v[0].getType(), 0.0));
               Value unit = arith::ConstantOp::create(
                   builder, loc, builder.getFloatAttr(v[0].getType(), 1.0));
               auto isOn = [&](Value element) -> Value {
                 return arith::CmpFOp::create(
                     builder, loc, arith::CmpFPredicate::OGT, element, zero);
               };
               Value equal =
                   arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         isOn(v[0]), isOn(v[1]));
               Value term =
                   arith::SelectOp::create(builder, loc, equal, unit, zero);
               linalg::YieldOp::create(
                   builder, loc,
                   ValueRange{arith::AddFOp::create(builder, loc, v[2], term)});
             })
      .getResult(0);
}

/// Zeros [samples, samples], to add to.
static Value makeKernel(OpBuilder &builder, Location loc, int64_t samples,
                        Type element) {
  Value zero = arith::ConstantOp::create(builder, loc,
                                         builder.getFloatAttr(element, 0.0));
  Value empty = tensor::EmptyOp::create(
      builder, loc, ArrayRef<int64_t>{samples, samples}, element);
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

/// Of an n x n matrix, row-major: Gaussian elimination with partial pivoting in
/// double precision. Minus infinity where samples have equal codes.
double kas::networks::getLogDeterminant(ArrayRef<float> matrix, unsigned n) {
  SmallVector<double> rows(matrix.begin(), matrix.end());
  double sum = 0;
  for (unsigned column = 0; column < n; ++column) {
    unsigned pivot = column;
    for (unsigned row = column; row < n; ++row)
      if (std::abs(rows[row * n + column]) > std::abs(rows[pivot * n + column]))
        pivot = row;
    double head = rows[pivot * n + column];
    if (head == 0)
      return -HUGE_VAL;
    sum += std::log(std::abs(head));
    // Columns before are zero already.
    for (unsigned index = column; index < n; ++index)
      std::swap(rows[pivot * n + index], rows[column * n + index]);
    for (unsigned row = column + 1; row < n; ++row) {
      double factor = rows[row * n + column] / head;
      for (unsigned index = column; index < n; ++index)
        rows[row * n + index] -= factor * rows[column * n + index];
    }
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Networks
//===----------------------------------------------------------------------===//

static SmallVector<Layer> findLayers(Block &block,
                                     const FisherOptions &options) {
  SmallVector<Layer> layers;
  for (auto op : block.getOps<linalg::LinalgOp>())
    if (std::optional<Layer> layer = matchLayer(op);
        layer && (!options.residualOnly || endsResidualBlock(*layer)))
      layers.push_back(*layer);
  return layers;
}

/// Replaces negative elements by 0 and does nothing else.
/// As a maximum with 0, or as a select by a comparison with 0.
static bool isRectifier(linalg::LinalgOp op) {
  if (op->getNumResults() != 1 || op.getNumDpsInputs() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops())
    return false;
  Operation *last =
      op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  Value input = op.getBlock()->getArgument(0);
  auto isZero = [](Value value) {
    return matchPattern(value, m_AnyZeroFloat());
  };
  if (isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(last))
    return (last->getOperand(0) == input && isZero(last->getOperand(1))) ||
           (last->getOperand(1) == input && isZero(last->getOperand(0)));
  auto select = dyn_cast_or_null<arith::SelectOp>(last);
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  return compare && compare.getLhs() == input && isZero(compare.getRhs()) &&
         llvm::is_contained(
             {arith::CmpFPredicate::OGT, arith::CmpFPredicate::UGT,
              arith::CmpFPredicate::OGE, arith::CmpFPredicate::UGE},
             compare.getPredicate()) &&
         select.getTrueValue() == input && isZero(select.getFalseValue());
}

/// Arguments of `function` that proxies ask about: weights, which have rank 2
/// or more. Biases and scales of normalizations are left out, as in the papers.
static SmallVector<Value> findParameters(func::FuncOp function) {
  SmallVector<Value> parameters;
  for (BlockArgument argument : function.getArguments().drop_front())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType());
        type && type.getRank() >= 2)
      parameters.push_back(argument);
  return parameters;
}

/// The number stands for an argument without a name.
static std::string getArgumentName(func::FuncOp function, Value value) {
  unsigned number = cast<BlockArgument>(value).getArgNumber();
  auto name = function.getArgAttrOfType<StringAttr>(
      number, KasDialect::argumentNameAttrName);
  return name ? name.getValue().str() : std::to_string(number);
}

static LogicalResult checkLayers(func::FuncOp function,
                                 ArrayRef<Layer> layers) {
  if (!layers.empty())
    return success();
  return function.emitError("for proxies, requires a convolution, got none");
}

FailureOr<func::FuncOp>
kas::networks::makeProxyFunction(func::FuncOp function, StringRef name,
                                 const FisherOptions &options,
                                 ProxyNames &names) {
  RankedTensorType resultType = checkClassifier(function, "proxies");
  if (!resultType)
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp proxies = cloneAfter(builder, function, name);
  Block &block = proxies.getBody().front();
  Location loc = function.getLoc();
  SmallVector<Layer> layers = findLayers(block, options);
  if (failed(checkLayers(function, layers))) {
    proxies.erase();
    return failure();
  }
  // Found before gradients are emitted, whose operations may look like
  // rectifiers.
  SmallVector<linalg::LinalgOp> rectifiers;
  for (auto op : block.getOps<linalg::LinalgOp>())
    if (isRectifier(op))
      rectifiers.push_back(op);
  // Results of layers first, then parameters.
  SmallVector<Value> wanted;
  for (const Layer &layer : layers) {
    names.layers.push_back(layer.name);
    wanted.push_back(layer.op->getResult(0));
    if (options.normalize)
      normalizeLayer(builder, layer);
  }
  SmallVector<Value> parameters = findParameters(proxies);
  for (Value parameter : parameters)
    names.parameters.push_back(getArgumentName(proxies, parameter));
  llvm::append_range(wanted, parameters);
  Value labels = addArgument(proxies, resultType, "labels");

  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  Value logits = end->getOperand(0);
  auto gradients = emitGradients(
      builder, logits, emitLossGradient(builder, logits, labels), wanted);
  if (failed(gradients)) {
    proxies.erase();
    return failure();
  }
  SmallVector<Value> fisher, snip, norms;
  // The gradients of parameters come after those of layers.
  for (auto [layer, gradient] : llvm::zip_first(layers, *gradients))
    fisher.push_back(emitFisher(builder, layer.op->getResult(0), gradient,
                                layer.batch, layer.spatial));
  for (auto [parameter, gradient] : llvm::zip_equal(
           parameters, ArrayRef(*gradients).drop_front(layers.size()))) {
    snip.push_back(emitSnip(builder, parameter, gradient));
    norms.push_back(
        emitUnary(builder, emitSquares(builder, gradient),
                  [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                    return math::SqrtOp::create(builder, loc, v[0]);
                  }));
  }
  Value kernel = makeKernel(builder, loc, resultType.getDimSize(0),
                            resultType.getElementType());
  for (linalg::LinalgOp op : rectifiers)
    kernel = addKernel(builder, op->getResult(0), /*batch=*/0, kernel);
  // Logits, then one vector for each proxy, then the matrix of NASWOT.
  setResults(proxies, {logits, collect(builder, loc, fisher),
                       collect(builder, loc, snip),
                       collect(builder, loc, norms), kernel});
  return proxies;
}

/// Lets the body of `function` read ones and magnitudes; the arguments that it
/// reads instead.
static void takeMagnitudes(OpBuilder &builder, func::FuncOp function) {
  builder.setInsertionPointToStart(&function.getBody().front());
  for (BlockArgument argument : function.getArguments()) {
    // The input of SynFlow is ones, whatever is given (Tanaka et al., NeurIPS
    // 2020).
    bool isInput = argument.getArgNumber() == 0;
    Value replaced = emitUnary(
        builder, argument,
        [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
          if (isInput)
            return arith::ConstantOp::create(
                builder, loc, builder.getFloatAttr(v[0].getType(), 1.0));
          return math::AbsFOp::create(builder, loc, v[0]);
        });
    argument.replaceAllUsesExcept(replaced, replaced.getDefiningOp());
  }
}

static Value makeOnes(OpBuilder &builder, Value value) {
  return emitUnary(builder, value,
                   [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                     return arith::ConstantOp::create(
                         builder, loc,
                         builder.getFloatAttr(v[0].getType(), 1.0));
                   });
}

/// R is the sum of the logits, so the gradient of each logit is 1. With
/// magnitudes everywhere w dR/dw is not negative, and |w g| is the score
/// itself.
FailureOr<func::FuncOp>
kas::networks::makeSynflowFunction(func::FuncOp function, StringRef name) {
  if (!checkClassifier(function, "proxies"))
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp synflow = cloneAfter(builder, function, name);
  Block &block = synflow.getBody().front();
  SmallVector<Value> parameters = findParameters(synflow);
  takeMagnitudes(builder, synflow);
  // What the body reads: each is the result of the only reader of a parameter.
  SmallVector<Value> wanted =
      llvm::map_to_vector(parameters, [](Value parameter) -> Value {
        return (*parameter.getUsers().begin())->getResult(0);
      });
  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  Value logits = end->getOperand(0);
  auto gradients =
      emitGradients(builder, logits, makeOnes(builder, logits), wanted);
  if (failed(gradients)) {
    synflow.erase();
    return failure();
  }
  SmallVector<Value> scores;
  for (auto [weight, gradient] : llvm::zip_equal(wanted, *gradients))
    scores.push_back(emitSnip(builder, weight, gradient));
  setResults(synflow, collect(builder, function.getLoc(), scores));
  return synflow;
}

//===----------------------------------------------------------------------===//
// One layer at a time
//===----------------------------------------------------------------------===//

/// The padding before a layer, if there is any.
/// It is cut out with the layer: gradients of windows skip it.
static tensor::PadOp getPadding(linalg::LinalgOp op) {
  auto pad = op.getDpsInputs()[0].getDefiningOp<tensor::PadOp>();
  return pad && pad.getConstantPaddingValue() ? pad : tensor::PadOp();
}

/// What `@layer` takes.
static SmallVector<Value, 3> getArguments(linalg::LinalgOp op) {
  tensor::PadOp pad = getPadding(op);
  return {pad ? pad.getSource() : op.getDpsInputs()[0], op.getDpsInputs()[1],
          op.getDpsInits()[0]};
}

/// A module with the function `@layer` of data, weights and initial value.
static OwningOpRef<ModuleOp> cutOut(linalg::LinalgOp op) {
  Location loc = op.getLoc();
  OpBuilder builder(op.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<Value, 3> arguments = getArguments(op);
  auto function = func::FuncOp::create(
      builder, loc, layerFunctionName,
      builder.getFunctionType(ValueRange(arguments).getTypes(),
                              op->getResultTypes()));
  StringRef names[] = {"data", "weight", "init"};
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  IRMapping mapping;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    function.setArgAttr(index, KasDialect::argumentNameAttrName,
                        builder.getStringAttr(names[index]));
    mapping.map(argument, block->getArgument(index));
  }
  // Constants that bodies read.
  auto clone = [&](Operation *outer) {
    outer->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (auto constant = operand.getDefiningOp<arith::ConstantOp>())
          if (!mapping.contains(operand))
            builder.clone(*constant, mapping);
    });
    return builder.clone(*outer, mapping);
  };
  if (tensor::PadOp pad = getPadding(op))
    clone(pad);
  Operation *copy = clone(op);
  func::ReturnOp::create(builder, loc, copy->getResults());
  return module;
}

bool kas::networks::matchConvolution(linalg::LinalgOp op) {
  return matchLayer(op).has_value();
}

/// The layer alone, for scoring candidates without a network around them.
CutLayer kas::networks::cutLayer(linalg::LinalgOp convolution) {
  Layer layer = *matchLayer(convolution);
  return {layer.name, layer.batch, layer.spatial, {}, cutOut(layer.op)};
}

/// The network with these results: logits, Fisher Potentials, and what every
/// layer needs to be scored alone (`CutLayer::places` says where each is).
FailureOr<func::FuncOp>
kas::networks::makeObservedFunction(func::FuncOp function, StringRef name,
                                    const FisherOptions &options, bool synflow,
                                    SmallVectorImpl<CutLayer> &cut) {
  RankedTensorType resultType = checkClassifier(function, "proxies");
  if (!resultType)
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp observed = cloneAfter(builder, function, name);
  Block &block = observed.getBody().front();
  if (synflow)
    takeMagnitudes(builder, observed);
  SmallVector<Layer> layers = findLayers(block, options);
  if (failed(checkLayers(function, layers))) {
    observed.erase();
    return failure();
  }
  SmallVector<Value> wanted;
  // Cut out before the normalization is put after it.
  for (Layer &layer : layers) {
    cut.push_back(
        {layer.name, layer.batch, layer.spatial, {}, cutOut(layer.op)});
    wanted.push_back(layer.op->getResult(0));
  }
  // The gradients of what the network reads instead of the layer's result.
  SmallVector<Value> ends;
  for (const Layer &layer : layers)
    ends.push_back(options.normalize && !synflow
                       ? normalizeLayer(builder, layer)
                       : layer.op->getResult(0));
  llvm::append_range(wanted, ends);
  Value labels =
      synflow ? Value() : addArgument(observed, resultType, "labels");
  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  Value logits = end->getOperand(0);
  Value lossGradient = synflow ? makeOnes(builder, logits)
                               : emitLossGradient(builder, logits, labels);
  auto gradients = emitGradients(builder, logits, lossGradient, wanted);
  if (failed(gradients)) {
    observed.erase();
    return failure();
  }
  SmallVector<Value> scores;
  // Each once: what two layers read is returned for both.
  llvm::SmallSetVector<Value, 16> results;
  // Logits and Fisher Potentials.
  constexpr unsigned numFixed = 2;
  for (auto [index, layer] : llvm::enumerate(layers)) {
    scores.push_back(emitFisher(builder, layer.op->getResult(0),
                                (*gradients)[index], layer.batch,
                                layer.spatial));
    SmallVector<Value, 3> values = getArguments(layer.op);
    values.push_back((*gradients)[layers.size() + index]);
    for (Value value : values) {
      // Arguments of the network are known to the caller: not returned again.
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        cut[index].places.push_back({true, argument.getArgNumber()});
        continue;
      }
      results.insert(value);
      auto position = llvm::find(results, value) - results.begin();
      cut[index].places.push_back({false, numFixed + unsigned(position)});
    }
  }
  SmallVector<Value> all{logits, collect(builder, function.getLoc(), scores)};
  llvm::append_range(all, results);
  setResults(observed, all);
  return observed;
}

/// The layer and a gradient of its result as arguments; the results are the
/// vector [Fisher, SNIP, squares of the gradient] and the matrix of NASWOT.
FailureOr<func::FuncOp> kas::networks::makeLayerScoreFunction(
    func::FuncOp layer, StringRef name, unsigned batch,
    ArrayRef<unsigned> spatial, bool normalize) {
  OpBuilder builder(layer->getContext());
  func::FuncOp scores = cloneAfter(builder, layer, name);
  Block &block = scores.getBody().front();
  Operation *end = block.getTerminator();
  Value result = end->getOperand(0);
  auto type = cast<RankedTensorType>(result.getType());
  // By the result, for Fisher, and by all weights.
  SmallVector<Value> wanted{result};
  llvm::append_range(wanted, scores.getArguments().drop_front().drop_back());
  Value gradient = addArgument(scores, type, "gradient");
  builder.setInsertionPoint(end);
  // With normalization the gradient that is given is that of the normalized
  // result.
  Value last =
      normalize ? emitNormalized(builder, result, batch, spatial) : result;
  auto gradients = emitGradients(builder, last, gradient, wanted);
  if (failed(gradients)) {
    scores.erase();
    return failure();
  }
  Location loc = layer.getLoc();
  Value zero = makeKernel(builder, loc, 1, type.getElementType());
  Value snip, squares;
  // A candidate may have several weights: their scores add up.
  auto add = [&](Value &sum, Value term) {
    sum = sum ? linalg::AddOp::create(
                    builder, loc, ValueRange{sum, term},
                    tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{},
                                            type.getElementType())
                        .getResult())
                    .getResult(0)
              : term;
  };
  for (auto [weight, by] : llvm::zip_equal(ArrayRef(wanted).drop_front(),
                                           ArrayRef(*gradients).drop_front())) {
    add(snip, emitSnip(builder, weight, by));
    add(squares, emitSquares(builder, by));
  }
  SmallVector<Value> all{
      emitFisher(builder, result, gradients->front(), batch, spatial)};
  // Without weights both are 0.
  Value none = tensor::CollapseShapeOp::create(
      builder, loc, zero, ArrayRef<ReassociationIndices>{});
  all.push_back(snip ? snip : none);
  all.push_back(squares ? squares : none);
  Value kernel = addKernel(
      builder, result, batch,
      makeKernel(builder, loc, type.getDimSize(batch), type.getElementType()));
  setResults(scores, {collect(builder, loc, all), kernel});
  return scores;
}

/// Fisher alone needs the gradient of the result and none of the weights', so
/// it compiles and runs in a fraction of the time.
FailureOr<func::FuncOp> kas::networks::makeLayerFisherFunction(
    func::FuncOp layer, StringRef name, unsigned batch,
    ArrayRef<unsigned> spatial, bool normalize) {
  OpBuilder builder(layer->getContext());
  func::FuncOp scores = cloneAfter(builder, layer, name);
  Operation *end = scores.getBody().front().getTerminator();
  Value result = end->getOperand(0);
  Value gradient = addArgument(scores, result.getType(), "gradient");
  builder.setInsertionPoint(end);
  // Back through the normalization; else the given gradient is the one.
  if (normalize) {
    Value last = emitNormalized(builder, result, batch, spatial);
    auto gradients = emitGradients(builder, last, gradient, result);
    if (failed(gradients)) {
      scores.erase();
      return failure();
    }
    gradient = gradients->front();
  }
  Value fisher = emitFisher(builder, result, gradient, batch, spatial);
  setResults(scores, collect(builder, layer.getLoc(), fisher));
  return scores;
}
