//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers a sequence of operators to a function: the stages, and the
// normalizations and rectifiers between them; results of parallel stages are
// added, multiplied or joined.
// Stages stay `kas.apply`, which the pipelines specialize and lower; what is
// between them is written element by element, so that fusion makes it an
// epilogue of the stage before (docs/internals/code-generation.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/SequenceToLinalg.h"
#include "kas/Conversion/TensorEmitter.h"
#include "kas/Dialect/Kas/Analysis/FanIn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace kas;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

/// The sizes must be legal at the binding (`verifyBinding`).
static RankedTensorType getType(OperatorOp op, ArrayRef<SizeAttr> sizes,
                                const Binding &binding, Type elementType) {
  SymbolSet symbols = op.getSymbolSet();
  SmallVector<int64_t> shape;
  for (SizeAttr size : sizes)
    shape.push_back(*kas::evaluate(size, symbols, binding));
  return RankedTensorType::get(shape, elementType);
}

/// Names are those of a PyTorch `Sequential`: `0.weight`.
static void addWeights(SequenceSignature &signature, unsigned stage,
                       OperatorOp op, const Binding &binding,
                       Type elementType) {
  std::string name = std::to_string(stage) + ".weight";
  auto sizes = op.getWeightSizes();
  for (auto [index, weight] : llvm::enumerate(sizes))
    signature.arguments.push_back(
        {sizes.size() == 1 ? name : name + "." + std::to_string(index),
         getType(op, weight, binding, elementType),
         getWeightInitializer(op, binding)});
}

/// Of results that are combined: only joining changes the shape.
static RankedTensorType combineTypes(SequenceStep step, RankedTensorType first,
                                     RankedTensorType second) {
  if (step != SequenceStep::Join)
    return first;
  SmallVector<int64_t> shape(first.getShape());
  shape[1] += second.getDimSize(1);
  return first.clone(shape);
}

/// One binding for all stages; each takes the symbols that it has.
FailureOr<SequenceSignature> kas::getSequenceSignature(SequenceOp op,
                                                       BindingAttr binding,
                                                       Type elementType,
                                                       EmitErrorFn emitError) {
  SequenceSignature signature;
  for (auto [number, stage] : llvm::enumerate(op.getOperators())) {
    FailureOr<Binding> values =
        getBinding(stage, getStageBinding(stage, binding), emitError);
    if (failed(values) || failed(verifyBinding(stage, *values, emitError)))
      return failure();
    if (number == 0)
      signature.data =
          getType(stage, stage.getDataSizes(), *values, elementType);
    RankedTensorType result =
        getType(stage, stage.getOutputSizes(), *values, elementType);
    signature.result =
        op.isParallel(number)
            ? combineTypes(op.getStep(number - 1), signature.result, result)
            : result;
    addWeights(signature, number, stage, *values, elementType);
    // There is one step fewer than stages: the last stage has none after it.
    if (number == op.getBetween().size() || !normalizes(op.getStep(number)))
      continue;
    // Dimension 1 is the channel.
    auto channels =
        RankedTensorType::get({signature.result.getDimSize(1)}, elementType);
    std::string prefix = std::to_string(number) + ".norm.";
    for (auto [name, initializer] :
         {std::pair<StringRef, StringRef>("weight", "ones"),
          {"bias", "zeros"},
          {"running_mean", "zeros"},
          {"running_var", "ones"}})
      signature.arguments.push_back(
          {prefix + name.str(), channels, initializer.str()});
  }
  return signature;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// 1 / sqrt(variance + epsilon).
static Value emitInverseDeviation(OpBuilder &builder, Location loc,
                                  Value variance) {
  auto body = [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
    Type type = v[0].getType();
    Value epsilon = scalars::makeConstant(builder, loc, type, sequenceEpsilon);
    Value one = scalars::makeConstant(builder, loc, type, 1);
    Value deviation = math::SqrtOp::create(
        builder, loc, arith::AddFOp::create(builder, loc, v[0], epsilon));
    return arith::DivFOp::create(builder, loc, one, deviation);
  };
  return TensorEmitter(builder, loc, cast<RankedTensorType>(variance.getType()))
      .map({{variance, {}}}, body);
}

/// `parameters` are scale, offset, running mean and running variance.
/// (x - mean) / deviation * scale + offset as four ops: the pattern of
/// -kas-training-step looks for exactly these.
static Value emitNormalization(OpBuilder &builder, Location loc, Value data,
                               ValueRange parameters) {
  auto type = cast<RankedTensorType>(data.getType());
  SmallVector<unsigned> others{0};
  for (unsigned dimension = 2; dimension < type.getRank(); ++dimension)
    others.push_back(dimension);
  TensorEmitter emitter(builder, loc, type);
  auto subtract = [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
    return arith::SubFOp::create(builder, loc, v[0], v[1]);
  };
  auto multiply = [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
    return arith::MulFOp::create(builder, loc, v[0], v[1]);
  };
  auto add = [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
    return arith::AddFOp::create(builder, loc, v[0], v[1]);
  };
  Value inverse = emitInverseDeviation(builder, loc, parameters[3]);
  Value result = emitter.map({{data, {}}, {parameters[2], others}}, subtract);
  result = emitter.map({{result, {}}, {inverse, others}}, multiply);
  result = emitter.map({{result, {}}, {parameters[0], others}}, multiply);
  return emitter.map({{result, {}}, {parameters[1], others}}, add);
}

/// The form that torch-mlir writes for ReLU. UGT is true for NaN, which so
/// comes through.
static Value emitRectifier(OpBuilder &builder, Location loc, Value data) {
  auto body = [](OpBuilder &builder, Location loc, ValueRange v) -> Value {
    Value zero = scalars::makeConstant(builder, loc, v[0].getType(), 0);
    Value isPositive = arith::CmpFOp::create(
        builder, loc, arith::CmpFPredicate::UGT, v[0], zero);
    return arith::SelectOp::create(builder, loc, isPositive, v[0], zero);
  };
  return TensorEmitter(builder, loc, cast<RankedTensorType>(data.getType()))
      .map({{data, {}}}, body);
}

/// One tensor of the results of parallel stages.
static Value emitCombination(OpBuilder &builder, Location loc,
                             SequenceStep step, Value first, Value second) {
  if (step == SequenceStep::Join)
    return tensor::ConcatOp::create(builder, loc, /*dim=*/1,
                                    ValueRange{first, second});
  auto body = [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
    if (step == SequenceStep::Add)
      return arith::AddFOp::create(builder, loc, v[0], v[1]);
    return arith::MulFOp::create(builder, loc, v[0], v[1]);
  };
  return TensorEmitter(builder, loc, cast<RankedTensorType>(first.getType()))
      .map({{first, {}}, {second, {}}}, body);
}

Value kas::emitSequence(OpBuilder &builder, Location loc, SequenceOp op,
                        BindingAttr binding, Value data, ValueRange arguments) {
  Type elementType = cast<ShapedType>(data.getType()).getElementType();
  // What the stages have given so far that are parallel to the next one.
  Value result;
  for (auto [number, stage] : llvm::enumerate(op.getOperators())) {
    BindingAttr attr = getStageBinding(stage, binding);
    FailureOr<Binding> values =
        getBinding(stage, attr, [&] { return op.emitError(); });
    assert(succeeded(values) && "the signature was had with this binding");
    unsigned numWeights = stage.getNumWeights();
    Value applied = ApplyOp::create(
        builder, loc,
        getType(stage, stage.getOutputSizes(), *values, elementType),
        FlatSymbolRefAttr::get(stage.getSymNameAttr()), attr, data,
        arguments.take_front(numWeights));
    arguments = arguments.drop_front(numWeights);
    result = op.isParallel(number)
                 ? emitCombination(builder, loc, op.getStep(number - 1), result,
                                   applied)
                 : applied;
    if (number == op.getBetween().size())
      break;
    if (op.isParallel(number + 1))
      continue;
    data = result;
    if (normalizes(op.getStep(number))) {
      data = emitNormalization(builder, loc, data, arguments.take_front(4));
      arguments = arguments.drop_front(4);
    }
    if (rectifies(op.getStep(number)))
      data = emitRectifier(builder, loc, data);
  }
  return result;
}

FailureOr<OwningOpRef<ModuleOp>>
kas::createSequenceModule(SequenceOp op, BindingAttr binding,
                          EmitErrorFn emitError) {
  MLIRContext *context = op.getContext();
  context->loadDialect<arith::ArithDialect, func::FuncDialect,
                       linalg::LinalgDialect, math::MathDialect,
                       tensor::TensorDialect>();
  FailureOr<SequenceSignature> signature =
      getSequenceSignature(op, binding, Float32Type::get(context), emitError);
  if (failed(signature))
    return failure();
  Location loc = op.getLoc();
  OpBuilder builder(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<Attribute> stages;
  for (auto [number, stage] : llvm::enumerate(op.getOperators())) {
    auto copy = cast<OperatorOp>(builder.clone(*stage.getOperation()));
    copy.setSymName("operator" + std::to_string(number));
    stages.push_back(FlatSymbolRefAttr::get(copy.getSymNameAttr()));
  }
  SmallVector<Type> types{signature->data};
  for (const SequenceArgument &argument : signature->arguments)
    types.push_back(argument.type);
  auto copy = cast<SequenceOp>(builder.clone(*op.getOperation()));
  copy.setSymName("sequence");
  copy.setStagesAttr(builder.getArrayAttr(stages));
  auto function =
      func::FuncOp::create(builder, loc, sequenceFunctionName,
                           builder.getFunctionType(types, signature->result));
  auto setAttributes = [&](unsigned index, StringRef name, StringRef init) {
    function.setArgAttr(index, KasDialect::argumentNameAttrName,
                        builder.getStringAttr(name));
    function.setArgAttr(index, KasDialect::initializerAttrName,
                        builder.getStringAttr(init));
  };
  setAttributes(0, "data", "normal");
  for (auto [index, argument] : llvm::enumerate(signature->arguments))
    setAttributes(index + 1, argument.name, argument.initializer);
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  Value result = emitSequence(builder, loc, copy, binding, body->getArgument(0),
                              body->getArguments().drop_front());
  func::ReturnOp::create(builder, loc, result);
  // The sequence was needed for its steps only; the function applies the
  // stages.
  copy.erase();
  return module;
}
