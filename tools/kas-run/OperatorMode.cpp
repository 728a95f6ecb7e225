//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runnable.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Library/Operators.h"
#include "kas/Reference/Evaluator.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::library;
using namespace kas::reference;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;

/// A concrete copy of the operator at the binding of the command line, beside
/// the original.
static Expected<OperatorOp>
makeConcrete(OperatorOp op, const RunSettings &settings, RunReport &report) {
  mlir::MLIRContext *context = op.getContext();
  auto attr = parseBinding(context, llvm::join(settings.bindings, ","));
  if (!attr)
    return attr.takeError();
  DiagnosticCollector diagnostics(context);
  auto emitError = [&] { return op.emitError(); };
  mlir::FailureOr<Binding> binding = getBinding(op, *attr, emitError);
  if (mlir::failed(binding))
    return diagnostics.takeError();
  mlir::FailureOr<Cost> cost = getCost(op, *binding, emitError);
  if (mlir::failed(cost))
    return diagnostics.takeError();
  mlir::FailureOr<int64_t> existing = getExistingMacs(op, *binding, emitError);
  if (mlir::failed(existing))
    return diagnostics.takeError();
  report.params = cost->parameters;
  report.macs = cost->macs;
  report.existingMacs = *existing;
  report.cost = *cost;
  report.printsCost = settings.cost;
  report.binding = formatBinding(op.getSymbolSet(), *binding);
  mlir::OpBuilder builder(op);
  mlir::FailureOr<OperatorOp> concrete = specialize(
      builder, op, *binding, (op.getSymName() + "_concrete").str(), emitError);
  if (mlir::failed(concrete))
    return diagnostics.takeError();
  return *concrete;
}

static Error evaluateReference(OperatorOp op, llvm::ArrayRef<Tensor> arguments,
                               Tensor &result) {
  auto view = [](const Tensor &tensor) {
    return ReferenceTensor{tensor.getShape(), tensor.getValues()};
  };
  SmallVector<ReferenceTensor> weights;
  for (const Tensor &weight : arguments.drop_front())
    weights.push_back(view(weight));
  DiagnosticCollector diagnostics(op.getContext());
  if (mlir::failed(evaluateOperator(op, view(arguments.front()), weights,
                                    result.getValues(),
                                    [&] { return op.emitError(); })))
    return diagnostics.takeError();
  return Error::success();
}

Expected<RunReport> kas::runOperator(mlir::MLIRContext &context,
                                     const RunSettings &settings) {
  if (Error error = checkSettings("operator", settings))
    return error;
  auto loaded =
      load<OperatorOp>(context, "operator", settings.operatorName,
                       settings.file, getNamedOperators(), parseNamedOperator);
  if (!loaded)
    return loaded.takeError();
  RunReport report;
  report.kind = "operator";
  report.name = settings.operatorName;
  report.device = settings.device;
  auto concrete = makeConcrete(loaded->op, settings, report);
  if (!concrete)
    return concrete.takeError();
  auto module = createOperatorModule(*concrete);
  Runnable runnable{"operator", *module, operatorFunctionName, 1,
                    [&](llvm::ArrayRef<Tensor> arguments, Tensor &result) {
                      return evaluateReference(*concrete, arguments, result);
                    }};
  if (Error error = runAndCheck(runnable, settings, report))
    return error;
  return report;
}
