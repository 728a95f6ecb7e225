//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of the tensor level as PyTorch code: the file around the steps.
// One function for the kernel with a line for each step (PyTorchSteps.cpp),
// functions before it for the operators that it applies, and an `nn.Module`
// with the weights.
//
//===----------------------------------------------------------------------===//

#include "PyTorchSteps.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Reference/KernelEvaluator.h"
#include "kas/Target/Text.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::target;
using namespace mlir;

/// `prefix0, prefix1, ...`
static SmallVector<std::string> makeNames(StringRef prefix, size_t count) {
  SmallVector<std::string> names;
  for (size_t index = 0; index < count; ++index)
    names.push_back((prefix + Twine(index)).str());
  return names;
}

/// One input is called `data`.
static SmallVector<std::string> nameInputs(size_t count) {
  return count == 1 ? SmallVector<std::string>{"data"}
                    : makeNames("data", count);
}

namespace {
/// The operators that a kernel applies, as functions before its own.
/// Each application has a function of its own: the bindings differ.
class AppliedOperators {
public:
  explicit AppliedOperators(KernelOp kernel)
      : module(ModuleOp::create(kernel.getLoc())) {}

  /// Writes the function that computes `op` at the binding, and names it.
  FailureOr<AppliedOperator> write(DagApplyOp op, KernelOp kernel,
                                   const Binding &binding,
                                   llvm::raw_ostream &os) {
    auto emitError = [&] { return op.emitOpError(); };
    OperatorOp callee = op.getOperator();
    std::optional<Binding> values =
        // The values of the operator's symbols from those of the kernel.
        callee ? op.getBinding(callee, kernel.getSymbolSet(), binding)
               : std::nullopt;
    if (!values)
      return emitError() << "requires an operator with sizes that are integers "
                            "(D16), got '@"
                         << op.getCallee() << "'";
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    std::string name = ("apply" + Twine(numOperators++)).str();
    // In a module of its own, which is thrown away with this object.
    FailureOr<OperatorOp> concrete =
        specialize(builder, callee, *values, name, emitError);
    if (failed(concrete))
      return failure();
    OperatorShapes shapes = getShapes(*concrete);
    // An empty description: the formula of the concrete operator.
    writeTorchFunction(*concrete, name, shapes, "", os);
    os << "\n\n";
    return AppliedOperator{name, shapes.data};
  }

private:
  OwningOpRef<ModuleOp> module;
  unsigned numOperators = 0;
};
} // namespace

/// The docstring of the function: shapes without the batch.
static void writeDocumentation(KernelOp kernel, StringRef binding,
                               const KernelShapes &shapes,
                               ArrayRef<std::string> inputs,
                               ArrayRef<std::string> weights,
                               llvm::raw_ostream &os) {
  // Quotes or backslashes would be read as the docstring's.
  os << "    \"\"\"The kernel";
  if (kernel.getSymName().find_first_of("\"\\\n") == StringRef::npos)
    os << ' ' << kernel.getSymName();
  if (!binding.empty())
    os << " at " << binding;
  os << ", for any batch, which is the first dimension.\n\n    ";
  for (auto [name, shape] : llvm::zip_equal(inputs, shapes.inputs))
    os << name << ": " << listNumbers(shape) << "; ";
  for (auto [name, shape] : llvm::zip_equal(weights, shapes.weights))
    os << name << ": " << listNumbers(shape) << "; ";
  os << "result: " << listNumbers(shapes.output) << "\n    \"\"\"\n";
}

/// Weights are drawn so that each layer keeps the deviation of its input; those
/// of `deviations` are of `getKernelWeights`.
static void writeClass(StringRef name, StringRef function,
                       const KernelShapes &shapes, ArrayRef<double> deviations,
                       ArrayRef<std::string> inputs,
                       ArrayRef<std::string> weights, llvm::raw_ostream &os) {
  os << "class " << name << "(nn.Module):\n";
  if (!weights.empty()) {
    os << "    def __init__(self):\n        super().__init__()\n";
    for (auto [weight, shape] : llvm::zip_equal(weights, shapes.weights))
      os << "        self." << weight << " = nn.Parameter(torch.empty("
         << listNumbers(shape) << "))\n";
    os << "        self.reset_parameters()\n\n"
       << "    def reset_parameters(self):\n"
       << "        # A contraction keeps the deviation of its input.\n";
    for (auto [weight, deviation] : llvm::zip_equal(weights, deviations))
      os << "        nn.init.normal_(self." << weight
         << ", std=" << llvm::format("%.6g", deviation) << ")\n";
    os << "\n";
  }
  std::string arguments = llvm::join(inputs, ", ");
  os << "    def forward(self, " << arguments << "):\n        return "
     << function << "(" << arguments;
  for (StringRef weight : weights)
    os << ", self." << weight;
  os << ")\n";
}

/// Fails, with a diagnostic at the step, where a size is no integer at this
/// binding or an operator cannot be specialized; nothing is written then.
LogicalResult kas::target::writePyTorch(KernelOp kernel, const Binding &binding,
                                        llvm::raw_ostream &os) {
  auto emitError = [&] { return kernel.emitOpError(); };
  FailureOr<KernelShapes> shapes = getShapes(kernel, binding, emitError);
  FailureOr<SmallVector<KernelWeight>> weights =
      getKernelWeights(kernel, binding);
  if (failed(shapes) || failed(weights))
    return failure();
  SmallVector<std::string> inputNames = nameInputs(shapes->inputs.size());
  SmallVector<std::string> weightNames = makeNames("weight", weights->size());

  // Everything is written when it is known that nothing fails.
  std::string operators, body;
  llvm::raw_string_ostream operatorStream(operators), bodyStream(body);
  AppliedOperators applied(kernel);
  TorchSteps steps(kernel, binding, bodyStream, [&](DagApplyOp op) {
    return applied.write(op, kernel, binding, operatorStream);
  });
  if (failed(steps.write(inputNames, weightNames)))
    return failure();

  std::string function = getTorchFunctionName(kernel.getSymName());
  os << "import torch\nimport torch.nn.functional as F\nfrom torch import "
        "nn\n\n\n"
     << operators << "def " << function << "("
     << llvm::join(llvm::concat<const std::string>(inputNames, weightNames),
                   ", ")
     << "):\n";
  // The binding as text: `C=64,H=56`.
  std::string values;
  llvm::raw_string_ostream valueStream(values);
  SymbolSet symbols = kernel.getSymbolSet();
  for (auto [index, value] : llvm::enumerate(binding))
    valueStream << (index ? "," : "") << symbols.getName(index) << '=' << value;
  writeDocumentation(kernel, values, *shapes, inputNames, weightNames, os);
  os << body << "\n\n";
  SmallVector<double> deviations = llvm::map_to_vector(
      *weights, [](const KernelWeight &weight) { return weight.deviation; });
  writeClass(getTorchClassName(kernel.getSymName()), function, *shapes,
             deviations, inputNames, weightNames, os);
  return success();
}
