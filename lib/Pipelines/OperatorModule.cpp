//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Pipelines/OperatorModule.h"
#include "kas/Runtime/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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

/// The deviation of each of `count` weights that keeps a sum over all
/// reductions of products of data and weights at the deviation of the data.
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
  callee.setSymName("operator");

  SmallVector<SmallVector<SizeAttr>> weightSizes = op.getWeightSizes();
  SmallVector<Type> types{getTensorType(op.getDataSizes())};
  for (ArrayRef<SizeAttr> sizes : weightSizes)
    types.push_back(getTensorType(sizes));
  SmallVector<SizeAttr> outputSizes = op.getOutputSizes();
  Type resultType = outputSizes.empty()
                        ? RankedTensorType::get({}, builder.getF32Type())
                        : getTensorType(outputSizes);

  auto function =
      func::FuncOp::create(builder, loc, operatorFunctionName,
                           builder.getFunctionType(types, resultType));
  auto setAttributes = [&](unsigned index, const Twine &name, StringRef init) {
    function.setArgAttr(index, nameAttribute, builder.getStringAttr(name));
    function.setArgAttr(index, initializerAttribute,
                        builder.getStringAttr(init));
  };
  setAttributes(0, "data", "normal");
  for (unsigned i = 0; i < weightSizes.size(); ++i)
    setAttributes(i + 1, "weight" + Twine(i),
                  getWeightInitializer(op, weightSizes.size()));

  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  auto apply = ApplyOp::create(
      builder, loc, resultType, FlatSymbolRefAttr::get(callee.getSymNameAttr()),
      BindingAttr::get(context, {}, {}), body->getArgument(0),
      body->getArguments().drop_front());
  func::ReturnOp::create(builder, loc, apply.getResult());
  return module;
}
