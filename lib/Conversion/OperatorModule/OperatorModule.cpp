//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Wraps an operator, or its gradient, in a module with a function on tensors
// whose arguments have names and initializers.
// Such a module is what the pipelines compile and what evaluators, the tuner
// and the tools time or check, so that all of them see the same program.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/KasGradient.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/Format.h"

using namespace kas;
using namespace mlir;

static RankedTensorType getTensorType(ArrayRef<SizeAttr> sizes) {
  SmallVector<int64_t> shape;
  for (SizeAttr size : sizes)
    shape.push_back(*size.getConstantValue());
  return RankedTensorType::get(shape,
                               Float32Type::get(sizes.front().getContext()));
}

/// The types of the data and the weights.
static SmallVector<Type> getInputTypes(OperatorOp op) {
  SmallVector<Type> types{getTensorType(op.getDataSizes())};
  for (ArrayRef<SizeAttr> sizes : op.getWeightSizes())
    types.push_back(getTensorType(sizes));
  return types;
}

/// An operator may have no outputs: then the result is a scalar tensor.
static Type getResultType(OperatorOp op) {
  SmallVector<SizeAttr> sizes = op.getOutputSizes();
  return sizes.empty()
             ? RankedTensorType::get({}, Float32Type::get(op.getContext()))
             : getTensorType(sizes);
}

/// The deviation of each of `count` weights that keeps a sum over all
/// reductions of products of data and weights at the deviation of the data.
/// With n terms and `count` weights: each has the deviation n^(-1 / (2 count)),
/// whose product is 1 / sqrt(n). Means keep the scale by themselves.
static std::string getWeightInitializer(OperatorOp op, unsigned count) {
  double terms = 1;
  for (ReduceOp reduction : getReductions(op))
    if (reduction.getKind() == ReduceKind::Sum)
      terms *= getConcreteSize(reduction.getResult());
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("normal(%.6g)", std::pow(terms, -0.5 / count));
  return text;
}

OwningOpRef<ModuleOp> kas::createOperatorModule(OperatorOp op) {
  assert(op.isConcrete() && "sizes must be numbers");
  MLIRContext *context = op.getContext();
  context->loadDialect<func::FuncDialect>();
  Location loc = op.getLoc();
  OpBuilder builder(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToEnd(module->getBody());
  Operation *copy = builder.clone(*op.getOperation());
  auto callee = cast<OperatorOp>(copy);
  // A fixed name: the text of the module depends on the operator alone, so that
  // caches keyed by it hit.
  callee.setSymName("operator");

  SmallVector<Type> types = getInputTypes(op);
  unsigned numWeights = types.size() - 1;
  Type resultType = getResultType(op);

  auto function =
      func::FuncOp::create(builder, loc, operatorFunctionName,
                           builder.getFunctionType(types, resultType));
  auto setAttributes = [&](unsigned index, const Twine &name, StringRef init) {
    function.setArgAttr(index, KasDialect::argumentNameAttrName,
                        builder.getStringAttr(name));
    function.setArgAttr(index, KasDialect::initializerAttrName,
                        builder.getStringAttr(init));
  };
  setAttributes(0, "data", "normal");
  for (unsigned i = 0; i < numWeights; ++i)
    setAttributes(i + 1, "weight" + Twine(i),
                  getWeightInitializer(op, numWeights));

  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  auto apply = ApplyOp::create(
      builder, loc, resultType, FlatSymbolRefAttr::get(callee.getSymNameAttr()),
      BindingAttr::get(context, {}, {}), body->getArgument(0),
      body->getArguments().drop_front());
  func::ReturnOp::create(builder, loc, apply.getResult());
  return module;
}

OwningOpRef<ModuleOp>
kas::createGradientModule(OperatorOp op, unsigned tensor,
                          const AffineLoopOptions &options) {
  assert(op.isConcrete() && "sizes must be numbers");
  MLIRContext *context = op.getContext();
  context->loadDialect<affine::AffineDialect, arith::ArithDialect,
                       bufferization::BufferizationDialect, func::FuncDialect,
                       memref::MemRefDialect>();
  Location loc = op.getLoc();
  OpBuilder builder(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> types = getInputTypes(op);
  assert(tensor < types.size() && "the operator has no such tensor");
  Type targetType = types[tensor];
  unsigned numWeights = types.size() - 1;
  // The gradient of the output has its shape, and comes last.
  types.push_back(getResultType(op));
  auto function =
      func::FuncOp::create(builder, loc, gradientFunctionName,
                           builder.getFunctionType(types, targetType));
  function.setArgAttr(0, KasDialect::argumentNameAttrName,
                      builder.getStringAttr("data"));
  for (unsigned i = 0; i < numWeights; ++i)
    function.setArgAttr(i + 1, KasDialect::argumentNameAttrName,
                        builder.getStringAttr("weight" + Twine(i)));
  function.setArgAttr(numWeights + 1, KasDialect::argumentNameAttrName,
                      builder.getStringAttr("gradient"));

  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  Value result = emitGradient(builder, loc, op, tensor, body->getArguments(),
                              cast<TensorType>(targetType), options);
  func::ReturnOp::create(builder, loc, result);
  return module;
}
