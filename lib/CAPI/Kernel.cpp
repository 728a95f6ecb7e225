//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to kernels of the tensor level
// (docs/reference/tensor-level.md): shapes, the reference evaluator, compiled
// functions, PyTorch code.
// A kernel is lowered through linalg like a network (`lower`): the forms of the
// rest of the interface (functions, gradients) are then those of any module.
//
//===----------------------------------------------------------------------===//

//
// Kernels of the tensor level: shapes, the reference, compiled functions.
//
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Reference/KernelEvaluator.h"
#include "kas/Target/Text.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::reference;
using namespace kas::target;
using namespace mlir;

/// The kernel called `name`, or null after an error that tells a missing symbol
/// from one of another kind.
static KernelOp lookupKernel(ModuleAccess &access, StringRef name) {
  Operation *symbol = access.getModule().lookupSymbol(name);
  auto kernel = dyn_cast_or_null<KernelOp>(symbol);
  if (!symbol)
    access.report("the module has no kernel '" + name + "'");
  else if (!kernel)
    access.report("expected '" + name + "' to be a kas.kernel, got a " +
                  symbol->getName().getStringRef());
  return kernel;
}

/// A value for each symbol: from `text`, else from the kernel's first binding.
static std::optional<Binding> bind(ModuleAccess &access, KernelOp kernel,
                                   const char *text) {
  auto given = parseBinding(access.getContext(), text ? text : "");
  if (!given) {
    access.report(given.takeError());
    return std::nullopt;
  }
  FailureOr<Binding> binding =
      completeBinding(kernel, *given, [&] { return kernel.emitError(); });
  return failed(binding) ? std::nullopt : std::optional(*binding);
}

/// A module with the kernel as function `run`; the operators that it applies
/// are structured operations where they can be.
static OwningOpRef<ModuleOp> lower(ModuleAccess &access, const char *name,
                                   const char *text, int64_t batch) {
  KernelOp original = lookupKernel(access, name);
  if (!original)
    return {};
  std::optional<Binding> binding = bind(access, original, text);
  if (!binding)
    return {};
  if (batch < 1) {
    access.report("requires a batch of at least 1, got " + Twine(batch));
    return {};
  }
  // Lowering creates operations of dialects that the text did not have.
  access.getContext()->loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = access.getModule().clone();
  auto kernel = module->lookupSymbol<KernelOp>(name);
  // As `-kas-canonicalize-kernels`: steps that do nothing are removed first.
  canonicalizeKernel(kernel);
  OpBuilder builder(kernel);
  KernelToLinalgOptions options;
  options.batch = batch;
  // The steps as linalg; the operators that it applies are applied still.
  if (failed(createKernelFunction(builder, kernel, *binding,
                                  operatorFunctionName, options)))
    return {};
  // Other contents of the module may not be lowerable; operators are those that
  // the kernel applies.
  for (Operation &op :
       llvm::make_early_inc_range(module->getBody()->getOperations()))
    if (!isa<func::FuncOp, OperatorOp>(op))
      op.erase();
  PassManager manager(access.getContext());
  // Then those become linalg as well.
  manager.addPass(createKasSpecializePass());
  manager.addPass(createKasToLinalgPass());
  manager.addPass(createKasEraseOperatorsPass());
  if (failed(manager.run(*module)))
    return {};
  return module;
}

/// Name, number of inputs and symbols: what needs no binding.
bool kasKernelDescribe(KasModule *module, const char *name, KasStream json,
                       KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  KernelOp kernel = lookupKernel(access, name);
  if (!kernel)
    return false;
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  SymbolSet symbols = kernel.getSymbolSet();
  writer.object([&] {
    writer.attribute("name", kernel.getSymName());
    writer.attribute("inputs", kernel.getBody().getNumArguments());
    writer.attributeArray("symbols", [&] {
      for (unsigned index = 0; index < symbols.size(); ++index)
        writer.value(symbols.getName(index));
    });
  });
  return true;
}

/// `batch` is the first dimension of inputs and output; weights have none.
bool kasKernelGetShapes(KasModule *module, const char *name,
                        const char *binding, int64_t batch, KasStream json,
                        KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  KernelOp kernel = lookupKernel(access, name);
  OwningOpRef<ModuleOp> lowered =
      // Shapes and deviations are read off the lowered function, where they are
      // numbers: weights come after the inputs, as arguments with a `kas.init`.
      kernel ? lower(access, name, binding, batch) : OwningOpRef<ModuleOp>();
  if (!lowered)
    return false;
  auto function = lowered->lookupSymbol<func::FuncOp>(operatorFunctionName);
  unsigned numInputs = kernel.getBody().getNumArguments();
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  ArrayRef<Type> types = function.getArgumentTypes();
  auto writeShapes = [&](ArrayRef<Type> types) {
    for (Type type : types)
      writer.value(llvm::json::Array(cast<RankedTensorType>(type).getShape()));
  };
  writer.object([&] {
    writer.attributeArray("inputs",
                          [&] { writeShapes(types.take_front(numInputs)); });
    writer.attributeArray("weights",
                          [&] { writeShapes(types.drop_front(numInputs)); });
    // For callers that draw the weights themselves.
    writer.attributeArray("deviations", [&] {
      for (unsigned index = numInputs; index < types.size(); ++index) {
        // `normal(0.25)`: the deviation that keeps that of the data.
        StringRef text = function
                             .getArgAttrOfType<StringAttr>(
                                 index, KasDialect::initializerAttrName)
                             .getValue();
        double deviation = 1;
        bool isNormal = text.consume_front("normal(") &&
                        text.consume_back(")") && !text.getAsDouble(deviation);
        assert(isNormal && "weights of kernels start as normal numbers");
        (void)isNormal;
        writer.value(deviation);
      }
    });
    writer.attribute(
        "output",
        llvm::json::Array(
            cast<RankedTensorType>(function.getResultTypes()[0]).getShape()));
  });
  return true;
}

/// The function takes inputs, then weights, and returns the result.
KasFunction *kasKernelCompile(KasModule *module, const char *name,
                              const char *binding, int64_t batch,
                              KasCompileOptions options,
                              KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> lowered = lower(access, name, binding, batch);
  if (!lowered)
    return nullptr;
  return compile(access, *lowered, operatorFunctionName, options);
}

/// The function takes a gradient of the result as well, and returns the result
/// and the gradients by all inputs and weights.
KasFunction *kasKernelCompileGradient(KasModule *module, const char *name,
                                      const char *binding, int64_t batch,
                                      KasCompileOptions options,
                                      KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> lowered = lower(access, name, binding, batch);
  if (!lowered)
    return nullptr;
  auto function = lowered->lookupSymbol<func::FuncOp>(operatorFunctionName);
  // Gradients of all inputs and weights, in their order.
  SmallVector<unsigned> all =
      llvm::to_vector(llvm::seq<unsigned>(function.getNumArguments()));
  // On linalg, so every step has the gradient of what it was lowered to.
  if (failed(makeGradientFunction(function, gradientFunctionName, all)))
    return nullptr;
  return compile(access, *lowered, gradientFunctionName, options);
}

/// By the reference evaluator, for a batch of one sample.
bool kasKernelEvaluate(KasModule *module, const char *name, const char *binding,
                       float *const *tensors, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  KernelOp kernel = lookupKernel(access, name);
  std::optional<Binding> values;
  if (kernel)
    values = bind(access, kernel, binding);
  if (!values)
    return false;
  auto emitError = [&] { return kernel.emitError(); };
  FailureOr<KernelShapes> shapes = getShapes(kernel, *values, emitError);
  if (failed(shapes))
    return false;
  // `tensors` are inputs, weights and the result; the caller has as many
  // elements as `kasKernelGetShapes` says.
  unsigned index = 0;
  auto view = [&](ArrayRef<int64_t> shape) {
    return ReferenceTensor{
        shape,
        ArrayRef<float>(tensors[index++], ShapedType::getNumElements(shape))};
  };
  SmallVector<ReferenceTensor> inputs, weights;
  for (ArrayRef<int64_t> shape : shapes->inputs)
    inputs.push_back(view(shape));
  for (ArrayRef<int64_t> shape : shapes->weights)
    weights.push_back(view(shape));
  MutableArrayRef<float> result(tensors[index],
                                ShapedType::getNumElements(shapes->output));
  return succeeded(
      evaluateKernel(kernel, *values, inputs, weights, result, emitError));
}

/// As `kas-translate --kas-to-pytorch` writes it.
bool kasKernelToPyTorch(KasModule *module, const char *name,
                        const char *binding, KasStream text,
                        KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  KernelOp kernel = lookupKernel(access, name);
  std::optional<Binding> values;
  if (kernel)
    values = bind(access, kernel, binding);
  if (!values)
    return false;
  CallbackStream stream(text);
  return succeeded(writePyTorch(kernel, *values, stream));
}
