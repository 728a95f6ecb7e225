//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns normalizations by running statistics, as exporters write them, into
// batch normalizations that update these statistics.
// Exporters in evaluation mode write a normalization as elementwise operations
// on arguments NAME.running_mean and NAME.running_var:
//    (x - mean) * (1 / sqrt(var + epsilon)) * weight + bias
// They are found by these names, not by form alone, since the same arithmetic
// on other tensors is no batch normalization. A network with a normalization
// that is written in another way is an error: training it with fixed statistics
// would be wrong silently.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Training/RunningStatistics.h"
#include "kas/Conversion/TensorEmitter.h"
#include "kas/Dialect/Kas/IR/TrainingAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::scalars;

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

namespace {

/// The chain of elementwise operations of one normalization.
class NormalizationMatcher {
public:
  NormalizationMatcher(func::FuncOp function, StringRef prefix)
      : function(function), prefix(prefix) {}

  /// Fails with a diagnostic that names the normalization.
  FailureOr<RunningStatistics> replace();

private:
  /// Null if there is none of this name.
  BlockArgument getArgument(const Twine &name);
  /// The only operation that reads `value`, an elementwise one of two operands
  /// whose body is one `Step`; null with a diagnostic.
  template <typename Step>
  linalg::GenericOp getReader(Value value, StringRef what);
  /// The argument that one element for each channel of `value` comes from,
  /// through reshapes and elementwise operations on one tensor.
  BlockArgument trace(Value value, SmallVectorImpl<linalg::GenericOp> &steps);
  std::optional<double> matchDeviation(ArrayRef<linalg::GenericOp> steps);
  InFlightDiagnostic emitError(Value at) {
    return mlir::emitError(at.getLoc()) << "to train '" << prefix << "', ";
  }

  func::FuncOp function;
  std::string prefix;
};

} // namespace

BlockArgument NormalizationMatcher::getArgument(const Twine &name) {
  std::string text = name.str();
  for (BlockArgument argument : function.getArguments()) {
    auto attribute = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), KasDialect::argumentNameAttrName);
    if (attribute && attribute.getValue() == text)
      return argument;
  }
  return nullptr;
}

static bool isElementwise(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0 && op->getNumResults() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         !op.hasIndexSemantics();
}

template <typename Step>
linalg::GenericOp NormalizationMatcher::getReader(Value value, StringRef what) {
  // Statistics [C] are reshaped to [C, 1, 1] to be broadcast.
  while (value.hasOneUse() &&
         isa<tensor::ExpandShapeOp>(*value.getUsers().begin()))
    value = value.getUsers().begin()->getResult(0);
  auto reader = value.hasOneUse()
                    ? dyn_cast<linalg::GenericOp>(*value.getUsers().begin())
                    : nullptr;
  if (reader && isElementwise(reader) && reader.getNumDpsInputs() == 2) {
    auto step = dyn_cast<Step>(reader.getBody()->front());
    // The step and the yield.
    if (step && reader.getBody()->getOperations().size() == 2)
      return reader;
  }
  emitError(value) << "requires " << what
                   << " as the only reader of running statistics and what is "
                      "made of them";
  return nullptr;
}

/// `steps` gets the operations on the way, last first. Null for any other
/// producer.
BlockArgument
NormalizationMatcher::trace(Value value,
                            SmallVectorImpl<linalg::GenericOp> &steps) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument;
    Operation *op = value.getDefiningOp();
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (isa<tensor::ExpandShapeOp>(op)) {
      value = op->getOperand(0);
    } else if (generic && isElementwise(generic) &&
               generic.getNumDpsInputs() == 1) {
      steps.push_back(generic);
      value = generic.getDpsInputs().front();
    } else {
      return nullptr;
    }
  }
}

/// Constants are rounded in bodies: f64 to f32.
static std::optional<double> getFloat(Value value) {
  if (auto truncate = value.getDefiningOp<arith::TruncFOp>())
    return getFloat(truncate.getIn());
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : nullptr;
  if (!number)
    return std::nullopt;
  return number.getValueAsDouble();
}

/// Epsilon, where `steps`, the last first, are 1 / sqrt(v + epsilon).
/// The root may be a `sqrt` and a division, or one `rsqrt`; assertions that the
/// variance is not negative are passed over.
std::optional<double>
NormalizationMatcher::matchDeviation(ArrayRef<linalg::GenericOp> steps) {
  std::optional<double> epsilon;
  bool isRoot = false, isInverse = false;
  for (linalg::GenericOp generic : llvm::reverse(steps))
    for (Operation &op : generic.getBody()->without_terminator()) {
      if (auto add = dyn_cast<arith::AddFOp>(op)) {
        std::optional<double> left = getFloat(add.getLhs()),
                              right = getFloat(add.getRhs());
        // The sum comes once, and before the root.
        if (epsilon || isRoot || (!left && !right))
          return std::nullopt;
        epsilon = left ? left : right;
      } else if (isa<math::SqrtOp>(op) && !isRoot) {
        isRoot = true;
      } else if (isa<math::RsqrtOp>(op) && !isRoot && !isInverse) {
        isRoot = isInverse = true;
      } else if (auto divide = dyn_cast<arith::DivFOp>(op);
                 divide && !isInverse && getFloat(divide.getLhs()) == 1.0) {
        isInverse = true;
      } else if (op.getName().getStringRef() != "cf.assert" &&
                 !isa<arith::CmpFOp, arith::TruncFOp, arith::ConstantOp>(op)) {
        return std::nullopt;
      }
    }
  return isRoot && isInverse ? epsilon : std::nullopt;
}

/// mean, then deviation, then the affine part, where NAME.weight and NAME.bias
/// exist.
FailureOr<RunningStatistics> NormalizationMatcher::replace() {
  RunningStatistics statistics;
  statistics.mean = getArgument(prefix + ".running_mean");
  statistics.variance = getArgument(prefix + ".running_var");
  if (!statistics.variance)
    return emitError(statistics.mean)
           << "requires an argument '" << prefix << ".running_var'";
  // PyTorch's cumulative average; null: an exponential one.
  statistics.numBatches = getArgument(prefix + ".num_batches_tracked");
  if (auto momentum = function.getArgAttrOfType<FloatAttr>(
          statistics.mean.getArgNumber(), momentumAttrName))
    statistics.momentum = momentum.getValueAsDouble();
  auto centred = getReader<arith::SubFOp>(statistics.mean, "a subtraction");
  if (!centred)
    return failure();
  SmallVector<linalg::GenericOp> steps;
  // The data is the minuend.
  if (centred.getBody()->front().getOperand(0) !=
          centred.getBody()->getArgument(0) ||
      trace(centred.getDpsInputs()[1], steps) != statistics.mean)
    return emitError(centred.getResult(0))
           << "requires the running mean to be subtracted";
  steps.clear();
  auto scaled =
      getReader<arith::MulFOp>(centred.getResult(0), "a multiplication");
  if (!scaled)
    return failure();
  // Products commute.
  unsigned other = scaled.getDpsInputs()[0] == centred.getResult(0) ? 1 : 0;
  std::optional<double> epsilon;
  if (trace(scaled.getDpsInputs()[other], steps) == statistics.variance)
    epsilon = matchDeviation(steps);
  if (!epsilon)
    return emitError(scaled.getResult(0))
           << "requires a multiplication by 1 / sqrt(" << prefix
           << ".running_var + epsilon)";

  // `last` moves along as affine steps are found.
  Value data = centred.getDpsInputs()[0], last = scaled.getResult(0);
  BlockArgument scale = getArgument(prefix + ".weight"),
                offset = getArgument(prefix + ".bias");
  steps.clear();
  // Weight and bias are read directly, with nothing but reshapes between.
  auto takeAffine = [&](linalg::GenericOp step, BlockArgument argument) {
    unsigned other = step && step.getDpsInputs()[0] == last ? 1 : 0;
    if (!step || trace(step.getDpsInputs()[other], steps) != argument ||
        !steps.empty())
      return false;
    last = step.getResult(0);
    return true;
  };
  if (scale &&
      !takeAffine(getReader<arith::MulFOp>(last, "a multiplication"), scale))
    return emitError(last) << "requires a multiplication by '" << prefix
                           << ".weight'";
  if (offset &&
      !takeAffine(getReader<arith::AddFOp>(last, "an addition"), offset))
    return emitError(last) << "requires an addition of '" << prefix << ".bias'";

  OpBuilder builder(last.getDefiningOp());
  Location loc = last.getLoc();
  auto type = cast<RankedTensorType>(statistics.mean.getType());
  auto makeConstant = [&](double value) -> Value {
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(
            type, builder.getFloatAttr(type.getElementType(), value)));
  };
  Value scaleValue = scale ? Value(scale) : makeConstant(1);
  Value offsetValue = offset ? Value(offset) : makeConstant(0);
  // Its second and third result are mean and variance of the batch.
  statistics.normalization = BatchNormOp::create(
      builder, loc, TypeRange{data.getType(), type, type}, data, scaleValue,
      offsetValue, builder.getF64FloatAttr(*epsilon));
  last.replaceAllUsesWith(statistics.normalization.getResult());
  return statistics;
}

/// Statistics that are marked as constant stay constant.
FailureOr<SmallVector<RunningStatistics>>
kas::networks::replaceRunningStatistics(func::FuncOp function) {
  SmallVector<RunningStatistics> all;
  for (BlockArgument argument : function.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), KasDialect::argumentNameAttrName);
    StringRef prefix = name ? name.getValue() : "";
    if (!prefix.consume_back(".running_mean") ||
        function.getArgAttr(argument.getArgNumber(), constantAttrName))
      continue;
    FailureOr<RunningStatistics> statistics =
        NormalizationMatcher(function, prefix).replace();
    if (failed(statistics))
      return failure();
    all.push_back(*statistics);
  }
  // What the normalizations were is of no use any more, and its assertions
  // would keep it.
  IRRewriter rewriter(function->getContext());
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front())
    if (isa<linalg::GenericOp, tensor::ExpandShapeOp>(op))
      ops.push_back(&op);
  // Readers before producers.
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      rewriter.eraseOp(op);
  return all;
}

//===----------------------------------------------------------------------===//
// Running statistics
//===----------------------------------------------------------------------===//

/// (1 - weight) times `old`, plus weight times `factor` times `batch`; the
/// weight is `weight`, of rank 0, or `momentum` where that is null.
static Value emitAverage(OpBuilder &builder, Value old, Value batch,
                         Value weight, double momentum, double factor) {
  TensorEmitter emitter(builder, batch.getLoc(),
                        cast<RankedTensorType>(batch.getType()));
  SmallVector<TensorWithoutDims> inputs{{old, {}}, {batch, {}}};
  // Of rank 0: the channel dimension is left out.
  if (weight)
    inputs.push_back({weight, {0}});
  return emitter.map(
      inputs, [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        if (!weight)
          return arith::AddFOp::create(
              builder, loc, scale(builder, loc, v[0], 1 - momentum),
              scale(builder, loc, v[1], momentum * factor));
        Value scaled = scale(builder, loc, v[1], factor);
        // old + weight * (batch - old): for a weight of 1 the old value has no
        // part.
        Value change = arith::SubFOp::create(builder, loc, scaled, v[0]);
        return arith::AddFOp::create(builder, loc, v[0],
                                     multiply(builder, loc, change, v[2]));
      });
}

/// As PyTorch: the running variance is the unbiased one, so the batch's is
/// multiplied by n / (n - 1).
UpdatedStatistics kas::networks::updateStatistics(
    OpBuilder &builder, const RunningStatistics &statistics, double momentum) {
  BatchNormOp op = statistics.normalization;
  momentum = statistics.momentum.value_or(momentum);
  double count = op.getNumElementsOfChannel();
  UpdatedStatistics updated;
  Value weight;
  // Momentum is 1 / number of batches, so that the average is over all batches.
  if (statistics.numBatches) {
    Location loc = op.getLoc();
    TensorEmitter emitter(
        builder, loc, cast<RankedTensorType>(statistics.numBatches.getType()));
    auto one = [&](OpBuilder &builder, Location loc, Value number) {
      return makeConstant(builder, loc, number.getType(), 1);
    };
    updated.numBatches = emitter.map(
        {{statistics.numBatches, {}}},
        [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
          return arith::AddFOp::create(builder, loc, v[0],
                                       one(builder, loc, v[0]));
        });
    weight = emitter.map(
        {{updated.numBatches, {}}},
        [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
          return arith::DivFOp::create(builder, loc, one(builder, loc, v[0]),
                                       v[0]);
        });
  }
  updated.mean = emitAverage(builder, statistics.mean, op.getMean(), weight,
                             momentum, /*factor=*/1);
  updated.variance = emitAverage(builder, statistics.variance, op.getVariance(),
                                 weight, momentum, count / (count - 1));
  return updated;
}
