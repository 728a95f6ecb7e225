//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel of the tensor level, on one sample.
//
//===----------------------------------------------------------------------===//

#include "Runnable.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "kas/Library/Operators.h"
#include "kas/Reference/KernelEvaluator.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::library;
using namespace kas::reference;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;

/// The values of the command line, then those of the kernel's first binding.
static Expected<Binding>
chooseBinding(KernelOp kernel, const RunSettings &settings, RunReport &report) {
  auto given =
      parseBinding(kernel.getContext(), llvm::join(settings.bindings, ","));
  if (!given)
    return given.takeError();
  DiagnosticCollector diagnostics(kernel.getContext());
  mlir::FailureOr<Binding> binding =
      completeBinding(kernel, *given, [&] { return kernel.emitError(); });
  if (mlir::failed(binding))
    return diagnostics.takeError();
  report.binding = formatBinding(kernel.getSymbolSet(), *binding);
  return *binding;
}

/// Two operations per multiply-add; a function of an element is half a one.
static int64_t countMACs(KernelOp kernel, const Binding &binding) {
  SymbolSet symbols = kernel.getSymbolSet();
  int64_t flops = 0;
  for (auto op : kernel.getBody().getOps<DagOpInterface>())
    for (const SizeProduct &product : op.getFlops()) {
      int64_t points = product.factor;
      for (SizeAttr size : product.sizes)
        points *= evaluate(size, symbols, binding).value_or(0);
      flops += points;
    }
  return flops / 2;
}

/// Inputs and output have a leading batch of 1, which the reference has not.
static Error evaluateReference(KernelOp kernel, const Binding &binding,
                               llvm::ArrayRef<Tensor> arguments,
                               Tensor &result) {
  DiagnosticCollector diagnostics(kernel.getContext());
  unsigned numInputs = kernel.getBody().getNumArguments();
  SmallVector<ReferenceTensor> inputs, weights;
  for (const Tensor &input : arguments.take_front(numInputs))
    inputs.push_back({llvm::ArrayRef<int64_t>(input.getShape()).drop_front(),
                      input.getValues()});
  for (const Tensor &weight : arguments.drop_front(numInputs))
    weights.push_back({weight.getShape(), weight.getValues()});
  if (mlir::failed(evaluateKernel(kernel, binding, inputs, weights,
                                  result.getValues(),
                                  [&] { return kernel.emitError(); })))
    return diagnostics.takeError();
  return Error::success();
}

Expected<mlir::OwningOpRef<mlir::ModuleOp>>
kas::lowerKernel(KernelOp kernel, const Binding &binding) {
  mlir::MLIRContext *context = kernel.getContext();
  context->loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      kernel->getParentOfType<mlir::ModuleOp>().clone();
  auto copy = module->lookupSymbol<KernelOp>(kernel.getSymName());
  DiagnosticCollector diagnostics(context);
  canonicalizeKernel(copy);
  mlir::OpBuilder builder(copy);
  mlir::FailureOr<mlir::func::FuncOp> function =
      createKernelFunction(builder, copy, binding, kernelFunctionName);
  if (mlir::failed(function))
    return diagnostics.takeError();
  for (KernelOp other : llvm::make_early_inc_range(module->getOps<KernelOp>()))
    other.erase();
  return module;
}

Expected<RunReport> kas::runKernel(mlir::MLIRContext &context,
                                   const RunSettings &settings) {
  if (Error error = checkSettings("kernel", settings))
    return error;
  if (settings.exact)
    return createStringError("an exact check requires an operator, or a "
                             "function of 'kas.apply' alone, got a kernel");
  auto loaded =
      load<KernelOp>(context, "kernel", settings.kernelName, settings.file,
                     getNamedKernels(), parseNamedKernel);
  if (!loaded)
    return loaded.takeError();
  KernelOp kernel = loaded->op;
  RunReport report;
  report.kind = "kernel";
  report.name = settings.kernelName;
  report.device = settings.device;
  auto binding = chooseBinding(kernel, settings, report);
  if (!binding)
    return binding.takeError();
  auto module = lowerKernel(kernel, *binding);
  if (!module)
    return module.takeError();
  auto signature = FunctionSignature::get(**module, kernelFunctionName);
  if (!signature)
    return signature.takeError();
  size_t numInputs = kernel.getBody().getNumArguments();
  report.macs = countMACs(kernel, *binding);
  report.params = 0;
  for (const TensorSignature &weight :
       llvm::ArrayRef(signature->arguments).drop_front(numInputs))
    *report.params += llvm::cantFail(numElements(weight.shape));
  Runnable runnable{"kernel", **module, kernelFunctionName, numInputs,
                    [&](llvm::ArrayRef<Tensor> arguments, Tensor &result) {
                      return evaluateReference(kernel, *binding, arguments,
                                               result);
                    }};
  if (Error error = runAndCheck(runnable, settings, report))
    return error;
  return report;
}
