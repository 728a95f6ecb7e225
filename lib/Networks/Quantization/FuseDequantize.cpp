//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches layers of models that were quantized elsewhere (dequantize, layer,
// quantize) and lets them multiply int8. Models that ONNX Runtime or PT2E have
// quantized compute in f32 with pairs quantize/dequantize around each layer.
// Where data and weights of a layer are dequantized bytes, the layer becomes
// one of int8 on the stored values themselves:
//    sum (x - zx) sx * w sw = sx sw (sum x w - zx sum w)
// Views between the dequantization and the layer are repeated on the int8
// values. Data are unsigned, weights signed, as `vpdpbusd` wants them.
//
//===----------------------------------------------------------------------===//

#include "LayerQuantizer.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

using namespace kas;
using namespace kas::networks;
using namespace mlir;

namespace {

/// Bytes that are read as floats: (byte - zeroPoint) * scale.
struct Dequantized {
  Value bytes;
  bool isUnsigned = false;
  /// From 0 to 255 where `isUnsigned`, else from -128 to 127.
  int64_t zeroPoint = 0;
  /// A scalar, or, with an axis, a tensor with a number for each of its places.
  Value scale;
  /// The dimension of `bytes` along which the scale varies.
  std::optional<unsigned> axis;
};

/// A value and the operations that make it of `source`, last first: they move
/// elements, or put zeros around them.
/// For example a transposition of a padded tensor.
struct ViewedValue {
  Value source;
  SmallVector<Operation *> views;
};

} // namespace

/// The integer that all of `elements`, which are kept outside of the module,
/// are.
/// Large constants are resources, which `m_ConstantInt` does not look into.
template <typename ResourceAttr>
static std::optional<int64_t> getEqual(ElementsAttr elements) {
  auto resource = dyn_cast<ResourceAttr>(elements);
  auto numbers = resource ? resource.tryGetAsArrayRef() : std::nullopt;
  if (!numbers || numbers->empty() || !llvm::all_equal(*numbers))
    return std::nullopt;
  return static_cast<int64_t>(numbers->front());
}

/// The integer that `value`, or all of its elements, are.
/// Nothing for values that differ, or are not constant.
static std::optional<int64_t> getConstantInteger(Value value, bool isUnsigned) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return isUnsigned ? static_cast<int64_t>(number.getZExtValue())
                      : number.getSExtValue();
  ElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)))
    return std::nullopt;
  if (auto equal = getEqual<DenseI64ResourceElementsAttr>(elements))
    return equal;
  return getEqual<DenseI32ResourceElementsAttr>(elements);
}

/// The number of `value`, also where it is a constant of another type that is
/// rounded; nothing if it is no constant.
/// Importers keep scales in f64 and round them in the body.
static std::optional<double> getConstantFloat(Value value) {
  if (auto rounded = value.getDefiningOp<arith::TruncFOp>())
    value = rounded.getIn();
  FloatAttr number;
  if (!matchPattern(value, m_Constant(&number)))
    return std::nullopt;
  return number.getValueAsDouble();
}

//===----------------------------------------------------------------------===//
// Dequantization
//===----------------------------------------------------------------------===//

namespace {

/// Reads the body of an operation that turns bytes into floats.
/// The form is `float(int(byte) - zeroPoint) * scale`, with integers of any
/// width.
class DequantizeMatcher {
public:
  explicit DequantizeMatcher(linalg::GenericOp op) : op(op) {}

  std::optional<Dequantized> match() {
    // Elementwise, the int8 tensor being the first input at the identity.
    if (op.getNumLoops() != op.getNumParallelLoops() ||
        op.getNumDpsInputs() == 0 || op.getNumDpsInits() != 1 ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
        !op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isIdentity())
      return std::nullopt;
    result.bytes = op.getInputs().front();
    if (!getElementTypeOrSelf(result.bytes).isInteger(8))
      return std::nullopt;
    auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
    auto product = yield.getOperand(0).getDefiningOp<arith::MulFOp>();
    if (!product || !product.getType().isF32() ||
        !matchScale(product.getRhs()) || !matchSteps(product.getLhs()))
      return std::nullopt;
    return result;
  }

private:
  /// The operand that `value` of the body is an element of.
  OpOperand *getInput(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != op.getBody() ||
        argument.getArgNumber() >= op.getNumDpsInputs())
      return nullptr;
    return op.getDpsInputOperand(argument.getArgNumber());
  }

  /// A number for all elements, or one for each place of an axis.
  /// From outside of the body a scalar is the same for all elements.
  bool matchScale(Value value) {
    if (auto *input = getInput(value)) {
      AffineMap map = op.getMatchingIndexingMap(input);
      if (map.getNumResults() != 1)
        return false;
      auto dim = dyn_cast<AffineDimExpr>(map.getResult(0));
      if (!dim)
        return false;
      result.axis = dim.getPosition();
      result.scale = input->get();
      return true;
    }
    result.scale = value;
    return getConstantFloat(value) ||
           value.getParentRegion() != &op.getRegion();
  }

  /// The byte as an integer, less the zero point, as a float. Three forms: int8
  /// to float; extended, to float; extended less zero point, to float.
  bool matchSteps(Value value) {
    if (auto convert = value.getDefiningOp<arith::UIToFPOp>()) {
      result.isUnsigned = true;
      return isInt8(convert.getIn());
    }
    auto convert = value.getDefiningOp<arith::SIToFPOp>();
    if (!convert)
      return false;
    if (isInt8(convert.getIn()))
      return true;
    if (auto difference = convert.getIn().getDefiningOp<arith::SubIOp>())
      return matchZeroPoint(difference.getRhs()) &&
             matchExtended(difference.getLhs());
    return matchExtended(convert.getIn());
  }

  /// Whether `value` is the element of the int8 input.
  bool isInt8(Value value) {
    OpOperand *input = getInput(value);
    return input && input->getOperandNumber() == 0;
  }

  /// The byte as a wider integer; notes its sign.
  bool matchExtended(Value value) {
    if (auto extended = value.getDefiningOp<arith::ExtUIOp>()) {
      result.isUnsigned = true;
      return isInt8(extended.getIn());
    }
    auto extended = value.getDefiningOp<arith::ExtSIOp>();
    return extended && isInt8(extended.getIn());
  }

  /// A constant, in the body or an operand whose elements are all equal.
  bool matchZeroPoint(Value value) {
    bool isUnsigned = false;
    if (auto extended = value.getDefiningOp<arith::ExtUIOp>()) {
      isUnsigned = true;
      value = extended.getIn();
    } else if (auto extended = value.getDefiningOp<arith::ExtSIOp>()) {
      value = extended.getIn();
    }
    if (OpOperand *input = getInput(value))
      value = input->get();
    auto number = getConstantInteger(value, isUnsigned);
    result.zeroPoint = number.value_or(0);
    return number.has_value();
  }

  linalg::GenericOp op;
  Dequantized result;
};

} // namespace

static std::optional<Dequantized> matchDequantize(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic ? DequantizeMatcher(generic).match() : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Follows `value` back through reshapes, transpositions and padding with
/// zeros.
static ViewedValue traceViews(Value value) {
  ViewedValue traced{value, {}};
  while (Operation *op = traced.source.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             linalg::TransposeOp>(op) &&
        !getZeroPadding(traced.source))
      break;
    traced.views.push_back(op);
    traced.source = op->getOperand(0);
  }
  return traced;
}

/// The same views of `value`, whose elements have another type; what is put
/// around them is `padding`. In forward order; the padding value of int8 data
/// is the zero point.
static Value repeatViews(OpBuilder &builder, ViewedValue traced, Value value,
                         TypedAttr padding) {
  for (Operation *op : llvm::reverse(traced.views)) {
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType())
                    .clone(getElementTypeOrSelf(value));
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      value = tensor::ExpandShapeOp::create(builder, loc, type, value,
                                            expand.getReassociationIndices());
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      value = tensor::CollapseShapeOp::create(
          builder, loc, type, value, collapse.getReassociationIndices());
    } else if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                            type.getElementType());
      value = linalg::TransposeOp::create(builder, loc, value, empty,
                                          transpose.getPermutation())
                  ->getResult(0);
    } else {
      auto pad = cast<tensor::PadOp>(op);
      Value around = arith::ConstantOp::create(builder, loc, padding);
      value =
          tensor::PadOp::create(builder, loc, type, value, pad.getMixedLowPad(),
                                pad.getMixedHighPad(), around);
    }
  }
  return value;
}

/// The dimensions that an axis of the source becomes; nothing where it is mixed
/// with others, or where there are zeros around it.
/// Splitting an axis gives several dimensions, joining it with others of size 1
/// gives one.
static std::optional<SmallVector<int64_t>> moveAxis(ViewedValue traced,
                                                    int64_t axis) {
  SmallVector<int64_t> axes{axis};
  for (Operation *op : llvm::reverse(traced.views)) {
    SmallVector<int64_t> moved;
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      for (int64_t one : axes)
        llvm::append_range(moved, expand.getReassociationIndices()[one]);
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
      for (auto [number, group] :
           llvm::enumerate(collapse.getReassociationIndices())) {
        bool has = llvm::any_of(
            group, [&](int64_t one) { return llvm::is_contained(axes, one); });
        // The step would differ within one dimension.
        bool mixes = llvm::any_of(group, [&](int64_t one) {
          return !llvm::is_contained(axes, one) && shape[one] != 1;
        });
        if (has && mixes)
          return std::nullopt;
        if (has)
          moved.push_back(number);
      }
    } else if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
        if (llvm::is_contained(axes, from))
          moved.push_back(to);
    } else {
      return std::nullopt;
    }
    axes = std::move(moved);
  }
  return axes;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// Whether each output channel of `layer` has one step of the weights, which
/// differ along `axes` of them.
/// Along a reduction the steps could not be taken out of the sum.
static bool hasStepPerChannel(QuantizableLayer layer, ArrayRef<int64_t> axes) {
  AffineMap map = layer.op.getMatchingIndexingMap(layer.weights);
  auto kinds = layer.op.getIteratorTypesArray();
  ArrayRef<int64_t> sizes =
      cast<RankedTensorType>(layer.weights->get().getType()).getShape();
  return llvm::all_of(axes, [&](int64_t axis) {
    unsigned loop = cast<AffineDimExpr>(map.getResult(axis)).getPosition();
    return sizes[axis] == 1 || kinds[loop] == utils::IteratorType::parallel;
  });
}

/// `bytes` of the other sign: each less, or more, by 128.
/// XOR with the top bit: unsigned b is signed b - 128.
static Value changeSign(OpBuilder &builder, Location loc, Value bytes) {
  Value bit =
      arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(-128));
  return Emitter(builder, loc)
      .elementwise(
          bytes, builder.getI8Type(),
          [&](OpBuilder &inner, Location loc, ValueRange values) -> Value {
            return arith::XOrIOp::create(inner, loc, values[0], bit);
          });
}

/// The step of each of the weights, whose type is that of the floats.
/// A tensor of the shape of the weights, since the quantizer takes one for each
/// output channel out of it.
static Value makeSteps(OpBuilder &builder, Location loc,
                       const Dequantized &weights, RankedTensorType type) {
  Value scale = weights.scale;
  Emitter emitter(builder, loc);
  if (!weights.axis) {
    // A constant may be inside of the operation that reads it.
    if (auto number = getConstantFloat(scale))
      scale = emitter.floating(*number);
    return emitter.filled(scale, type.getShape());
  }
  SmallVector<int64_t> added;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != *weights.axis)
      added.push_back(dim);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::BroadcastOp::create(builder, loc, scale, empty, added)
      ->getResult(0);
}

/// What stands for the result of a layer whose data and weights are dequantized
/// bytes; null if they are not. Data needs one constant scale; weights a zero
/// point of 0 (128 of unsigned int8), so that the correction by the sum of
/// weights is all there is.
static Value fuse(QuantizableLayer layer) {
  ViewedValue dataView = traceViews(layer.data->get());
  ViewedValue weightView = traceViews(layer.weights->get());
  auto data = matchDequantize(dataView.source);
  auto weights = matchDequantize(weightView.source);
  if (!data || !weights || data->axis || !getConstantFloat(data->scale) ||
      weights->zeroPoint != (weights->isUnsigned ? 128 : 0) ||
      llvm::any_of(weightView.views, llvm::IsaPred<tensor::PadOp>))
    return Value();
  // A step for each output channel can be applied after the sum.
  if (weights->axis) {
    auto axes = moveAxis(weightView, *weights->axis);
    if (!axes || !hasStepPerChannel(layer, *axes))
      return Value();
  }
  // In terms of unsigned int8.
  int64_t zeroPoint = data->zeroPoint + (data->isUnsigned ? 0 : 128);
  if (zeroPoint < 0 || zeroPoint > 255)
    return Value();
  OpBuilder builder(layer.op);
  Location loc = layer.op.getLoc();
  Value bytes = data->bytes;
  if (!data->isUnsigned)
    bytes = changeSign(builder, loc, bytes);
  // Padding of zeros is padding of zero points in int8.
  bytes = repeatViews(
      builder, dataView, bytes,
      builder.getI8IntegerAttr(static_cast<int8_t>(uint8_t(zeroPoint))));
  Value given = weights->bytes;
  if (weights->isUnsigned)
    given = changeSign(builder, loc, given);
  Value steps = makeSteps(builder, loc, *weights,
                          cast<RankedTensorType>(weightView.source.getType()));
  // Weights have no padding; the value is not used.
  given = repeatViews(builder, weightView, given, builder.getI8IntegerAttr(0));
  steps = repeatViews(builder, weightView, steps, builder.getF32FloatAttr(0));
  LayerQuantizer quantizer(builder, layer, *getConstantFloat(data->scale),
                           static_cast<int32_t>(zeroPoint));
  return quantizer.run(bytes, given, steps);
}

/// Signed bytes as unsigned ones, more by 128. Padding is kept outside, with
/// its constant moved as well, so that the layer still sees a padded tensor.
static Value makeUnsigned(OpBuilder &builder, Location loc, Value bytes) {
  auto pad = bytes.getDefiningOp<tensor::PadOp>();
  Value around = pad ? pad.getConstantPaddingValue() : Value();
  auto number = around ? getConstantInteger(around, /*isUnsigned=*/true)
                       : std::optional<int64_t>();
  if (!number)
    return changeSign(builder, loc, bytes);
  Value source = changeSign(builder, loc, pad.getSource());
  Value moved = arith::ConstantOp::create(
      builder, loc,
      builder.getI8IntegerAttr(static_cast<int8_t>(uint8_t(*number) ^ 128)));
  return tensor::PadOp::create(builder, loc, pad.getResultType(), source,
                               pad.getMixedLowPad(), pad.getMixedHighPad(),
                               moved);
}

/// What stands for the result of a layer of signed bytes with zero points; null
/// where that of the weights is another than 0.
/// These are operations such as `linalg.conv_2d_nhwc_hwcf_q`, with the zero
/// points as operands 2 and 3; the result is of integers, so there is no scale.
static Value fuseZeroPoints(QuantizableLayer layer) {
  auto ofData = getConstantInteger(layer.op->getOperand(2), false);
  auto ofWeights = getConstantInteger(layer.op->getOperand(3), false);
  if (!ofData || !ofWeights || *ofWeights != 0 || *ofData < -128 ||
      *ofData > 127)
    return Value();
  OpBuilder builder(layer.op);
  Value data = makeUnsigned(builder, layer.op.getLoc(), layer.data->get());
  LayerQuantizer quantizer(builder, layer, /*scale=*/1,
                           static_cast<int32_t>(*ofData + 128));
  return quantizer.runOnIntegers(data, layer.weights->get());
}

/// The only use of `value`; where that is the result of an elementwise
/// operation, the only use in its reader's body.
static Operation *findOnlyUser(Value value) {
  if (!value.hasOneUse())
    return nullptr;
  OpOperand &use = *value.use_begin();
  if (isa<linalg::YieldOp>(use.getOwner())) {
    auto made = dyn_cast<linalg::GenericOp>(use.getOwner()->getParentOp());
    return made && made.getNumReductionLoops() == 0
               ? findOnlyUser(made->getResult(use.getOperandNumber()))
               : nullptr;
  }
  auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
  return reader ? findOnlyUser(reader.getMatchingBlockArgument(&use))
                : use.getOwner();
}

/// The number that `value`, in the body of an operation, has in all iterations,
/// if it is known.
static std::optional<double> findStep(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return getConstantFloat(value);
  auto op = dyn_cast<linalg::GenericOp>(argument.getOwner()->getParentOp());
  DenseFPElementsAttr elements;
  if (!op ||
      !matchPattern(op.getMatchingOpOperand(argument)->get(),
                    m_Constant(&elements)) ||
      !elements.isSplat())
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToDouble();
}

/// Quantizes by a product with the inverse of the step instead of a division,
/// which takes many times as long: a value between two bytes may become the
/// other one. Importers write one operation for all of it, or one for each of
/// the division, the step and the rounding.
static void multiplyByInverseSteps(func::FuncOp function) {
  SmallVector<std::pair<arith::DivFOp, double>> divisions;
  function.walk([&](arith::DivFOp op) {
    if (!op->getParentOfType<linalg::GenericOp>() ||
        !isa_and_nonnull<math::RoundEvenOp>(findOnlyUser(op)))
      return;
    // The inverse of a subnormal step is infinite; divisions that are not
    // followed by rounding are no quantization.
    double step = findStep(op.getRhs()).value_or(0);
    if (std::isnormal(static_cast<float>(step)))
      divisions.push_back({op, step});
  });
  for (auto [op, step] : divisions) {
    OpBuilder builder(op);
    Value inverse = arith::ConstantOp::create(
        builder, op.getLoc(), builder.getFloatAttr(op.getType(), 1 / step));
    Value product =
        arith::MulFOp::create(builder, op.getLoc(), op.getLhs(), inverse);
    op.replaceAllUsesWith(product);
    op.erase();
  }
}

/// Returns how many layers multiply int8 now. For example
///    %d = linalg.generic ins(%bytes) { (float(b) - 3) * 0.02 }
///    %y = linalg.matmul ins(%d, %dequantized_weights)
/// becomes a contraction of %bytes and the weights' int8 values in i32,
/// corrected and scaled.
unsigned kas::networks::fuseDequantize(func::FuncOp function) {
  unsigned numFused = 0;
  // Operations before it that nobody reads any more are removed by later
  // passes.
  auto replace = [&](QuantizableLayer layer, Value result) {
    if (!result)
      return;
    layer.op->getResult(0).replaceAllUsesWith(result);
    layer.op->erase();
    ++numFused;
  };
  // The list is made before anything changes.
  for (QuantizableLayer layer : findQuantizableLayers(function))
    replace(layer, fuse(layer));
  for (QuantizableLayer layer : findIntegerLayers(function))
    replace(layer, fuseZeroPoints(layer));
  multiplyByInverseSteps(function);
  return numFused;
}
