//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions made of kernels, and the pass.
// One function per binding; its weights are arguments with initializers (He et
// al., ICCV 2015: deviation 1 / sqrt(fan-in)), split over the weights of one
// step.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace kas;
using namespace kas::solver;

namespace kas {
#define GEN_PASS_DEF_KASKERNELTOLINALGPASS
#include "kas/Conversion/Passes.h.inc"
} // namespace kas

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {
/// The arguments of the function of a kernel.
/// By position: inputs, then weights in program order.
struct FunctionArguments {
  SmallVector<Type> types;
  SmallVector<std::string> names, initializers;

  /// `deviation` of the initializer `normal(...)`.
  void add(ArrayRef<int64_t> shape, Builder &builder, const Twine &name,
           double deviation) {
    types.push_back(RankedTensorType::get(shape, builder.getF32Type()));
    names.push_back(name.str());
    llvm::raw_string_ostream(initializers.emplace_back())
        << llvm::format("normal(%.6g)", deviation);
  }
};

/// Sizes of a kernel as numbers.
struct Numbers {
  KernelOp kernel;
  const Binding &binding;

  FailureOr<SmallVector<int64_t>> get(ArrayRef<SizeAttr> sizes) {
    SymbolSet symbols = kernel.getSymbolSet();
    SmallVector<int64_t> numbers;
    for (SizeAttr size : sizes) {
      std::optional<int64_t> value = kas::evaluate(size, symbols, binding);
      if (!value)
        return kernel.emitOpError("requires sizes that are integers (K3), got ")
               << size << " at the binding to lower";
      numbers.push_back(*value);
    }
    return numbers;
  }

  FailureOr<SmallVector<int64_t>> get(Type type) {
    return get(cast<SymbolicTensorType>(type).getDims());
  }

  /// The multiply-adds that make one element of the result of `op`.
  /// FLOPs count 2 for a multiply-add.
  double getTerms(DagOpInterface op) {
    double terms = 0, elements = 1;
    for (const SizeProduct &product : op.getFlops()) {
      double points = double(product.factor) / 2;
      for (SizeAttr size : product.sizes)
        points *= double(
            kas::evaluate(size, kernel.getSymbolSet(), binding).value_or(1));
      terms += points;
    }
    auto type = cast<SymbolicTensorType>(op->getResult(0).getType());
    for (SizeAttr size : type.getDims())
      elements *= double(
          kas::evaluate(size, kernel.getSymbolSet(), binding).value_or(1));
    return terms / elements;
  }
};
} // namespace

/// The weights of one step: together they keep the deviation of its input.
static LogicalResult addWeights(DagOpInterface op, Numbers &numbers,
                                SmallVector<KernelWeight> &weights) {
  SmallVector<SizeProduct> params = op.getParams();
  double terms = numbers.getTerms(op);
  // The FLOPs of an operator with several weights count a product for each.
  if (isa<DagApplyOp>(op) && !params.empty())
    terms /= double(params.size());
  // A product of n independent weights has the product of their variances, so
  // each takes the n-th root.
  double deviation =
      terms > 1 ? std::pow(terms, -0.5 / double(params.size())) : 1;
  for (const SizeProduct &param : params) {
    FailureOr<SmallVector<int64_t>> shape = numbers.get(param.sizes);
    if (failed(shape))
      return failure();
    weights.push_back({*shape, deviation});
  }
  return success();
}

FailureOr<SmallVector<KernelWeight>>
kas::getKernelWeights(KernelOp kernel, const Binding &binding) {
  Numbers numbers{kernel, binding};
  SmallVector<KernelWeight> weights;
  for (auto op : kernel.getBody().getOps<DagOpInterface>())
    if (failed(addWeights(op, numbers, weights)))
      return failure();
  return weights;
}

FailureOr<Binding> kas::completeBinding(KernelOp kernel, BindingAttr given,
                                        EmitErrorFn emitError) {
  SymbolSet symbols = kernel.getSymbolSet();
  for (StringAttr name : given.getNames())
    if (!symbols.lookup(name.getValue()))
      return emitError() << "requires symbols of kernel '"
                         << kernel.getSymName() << "' in the binding, got '"
                         << name.getValue() << "'";
  BindingAttr own;
  if (!kernel.getBindings().empty())
    own = cast<BindingAttr>(kernel.getBindings()[0]);
  Binding binding;
  // In the order of `getSymbolSet`, which `Binding` has.
  for (unsigned index = 0; index < symbols.size(); ++index) {
    StringRef name = symbols.getName(index);
    std::optional<int64_t> value = given.lookup(name);
    if (!value && own)
      value = own.lookup(name);
    if (!value)
      return emitError() << "requires a value for symbol '" << name
                         << "' of kernel '" << kernel.getSymName()
                         << "', got none";
    binding.push_back(*value);
  }
  return binding;
}

/// The function is erased again when a step cannot be lowered.
FailureOr<func::FuncOp>
kas::createKernelFunction(OpBuilder &builder, KernelOp kernel,
                          const Binding &binding, StringRef name,
                          const KernelToLinalgOptions &options) {
  Numbers numbers{kernel, binding};
  FunctionArguments arguments;
  // Kernels are written for one sample.
  auto getBatched = [&](Type type) -> FailureOr<SmallVector<int64_t>> {
    FailureOr<SmallVector<int64_t>> shape = numbers.get(type);
    if (succeeded(shape))
      shape->insert(shape->begin(), options.batch);
    return shape;
  };
  Block &block = kernel.getBody().front();
  for (BlockArgument input : block.getArguments()) {
    FailureOr<SmallVector<int64_t>> shape = getBatched(input.getType());
    if (failed(shape))
      return failure();
    arguments.add(*shape, builder, "input" + Twine(input.getArgNumber()), 1);
  }
  unsigned numInputs = arguments.types.size();
  FailureOr<SmallVector<KernelWeight>> weights =
      getKernelWeights(kernel, binding);
  if (failed(weights))
    return failure();
  for (auto [index, weight] : llvm::enumerate(*weights))
    arguments.add(weight.shape, builder, "weight" + Twine(index),
                  weight.deviation);
  FailureOr<SmallVector<int64_t>> output = getBatched(kernel.getResultType());
  if (failed(output))
    return failure();

  OpBuilder::InsertionGuard guard(builder);
  auto function = func::FuncOp::create(
      builder, kernel.getLoc(), name,
      builder.getFunctionType(
          arguments.types,
          RankedTensorType::get(*output, builder.getF32Type())));
  for (unsigned i = 0; i < arguments.types.size(); ++i) {
    function.setArgAttr(i, KasDialect::argumentNameAttrName,
                        builder.getStringAttr(arguments.names[i]));
    function.setArgAttr(i, KasDialect::initializerAttrName,
                        builder.getStringAttr(arguments.initializers[i]));
  }
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  ValueRange values(body->getArguments());
  FailureOr<Value> result = emitKernel(builder, kernel.getLoc(), kernel,
                                       binding, values.take_front(numInputs),
                                       values.drop_front(numInputs), options);
  // Half a function must not stay in the module.
  if (failed(result)) {
    function.erase();
    return failure();
  }
  func::ReturnOp::create(builder, kernel.getLoc(), *result);
  return function;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct KasKernelToLinalgPass
    : public kas::impl::KasKernelToLinalgPassBase<KasKernelToLinalgPass> {
  using KasKernelToLinalgPassBase::KasKernelToLinalgPassBase;

  void runOnOperation() override {
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels)
      if (failed(lower(kernel)))
        return signalPassFailure();
  }

  /// All bindings of one kernel; the kernel goes when all functions are there.
  LogicalResult lower(KernelOp kernel) {
    if (batch < 1)
      return kernel.emitOpError("requires a batch of at least 1, got ")
             << int64_t(batch);
    // A variable without a value has no size: the solver passes come first.
    if (!kernel.isSolved())
      return kernel.emitOpError("requires values for all variables (see "
                                "-kas-solve-shapes, -kas-solve-budget), got "
                                "none for '")
             << cast<StringAttr>(kernel.getVariables()[0]).getValue() << "'";
    SizeRules rules = getSizeRules(kernel);
    SmallVector<Binding, 0> bindings = rules.bindings;
    if (bindings.empty() && rules.numSymbols > 0)
      return kernel.emitOpError("requires bindings to lower, got none");
    // A kernel without symbols has one, empty, binding.
    if (bindings.empty())
      bindings.emplace_back();
    KernelToLinalgOptions lowering;
    lowering.batch = batch;
    lowering.maxElements = maxElements;
    // Windows that only a layer reads are not made.
    canonicalizeKernel(kernel);
    OpBuilder builder(kernel);
    StringRef name = kernel.getSymName();
    for (auto [index, values] : llvm::enumerate(bindings)) {
      // One binding: the function takes the kernel's place and name.
      std::string called = name.str();
      if (bindings.size() > 1)
        called += "_" + std::to_string(index);
      if (bindings.size() > 1 && getOperation().lookupSymbol(called))
        return kernel.emitOpError("requires the name '@")
               << called << "' for a function, got one that is taken";
      FailureOr<func::FuncOp> function =
          createKernelFunction(builder, kernel, values, called, lowering);
      if (failed(function))
        return failure();
      if (kernel.getSymVisibility())
        function->setSymVisibility(kernel.getSymVisibility());
      ++numFunctions;
    }
    kernel.erase();
    return success();
  }
};
} // namespace
