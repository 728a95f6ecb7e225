//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exports operators as PyTorch modules: class, function and initialization.
// The result needs PyTorch alone: a function on tensors, whose docstring is the
// formula, and an `nn.Module` with the weights. Contractions become views and
// one einsum (PyTorchContraction.cpp), which PyTorch computes as matrix
// products; all other operators gather their elements (PyTorchGather.cpp).
//
//===----------------------------------------------------------------------===//

#include "PyTorch.h"
#include "kas/Dialect/Kas/Analysis/FanIn.h"
#include "kas/Reference/Evaluator.h"
#include "kas/Support/CNames.h"
#include "kas/Target/Text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::target;
using namespace mlir;

/// `1, 2`, or `1,` for the tuple of one element, as Python has it.
std::string kas::target::listNumbers(ArrayRef<int64_t> numbers, bool isTuple) {
  std::string text = llvm::join(
      llvm::map_range(numbers,
                      [](int64_t number) { return std::to_string(number); }),
      ", ");
  return isTuple && numbers.size() == 1 ? text + "," : text;
}

/// `conv2d_grouped` -> `Conv2dGrouped`; a name that begins with a digit, or has
/// no letter at all, gets a prefix.
std::string kas::target::getTorchClassName(StringRef name) {
  std::string result;
  bool isUpper = true;
  for (char c : name) {
    if (!llvm::isAlnum(c)) {
      isUpper = true;
      continue;
    }
    result += isUpper ? llvm::toUpper(c) : c;
    isUpper = false;
  }
  return result.empty() || llvm::isDigit(result[0]) ? "Operator" + result
                                                    : result;
}

/// Keywords of Python and names that the code uses itself.
bool kas::target::isTorchKeyword(StringRef name) {
  static constexpr StringRef reserved[] = {
      "and",      "as",       "assert", "async", "await",  "break",  "class",
      "continue", "def",      "del",    "elif",  "else",   "except", "finally",
      "for",      "from",     "global", "if",    "import", "in",     "is",
      "lambda",   "nonlocal", "not",    "or",    "pass",   "raise",  "return",
      "try",      "while",    "with",   "yield", "None",   "True",   "False",
      "torch",    "nn",       "F",      "data"};
  return llvm::is_contained(reserved, name);
}

/// Names of the dialect may have dots and dashes.
std::string kas::target::getTorchFunctionName(StringRef name) {
  std::string result = cleanForC(name);
  if (result.empty() || llvm::isDigit(result[0]) || isTorchKeyword(result) ||
      StringRef(result).starts_with("weight"))
    result = "operator_" + result;
  return result;
}

/// For example
///    def conv1d(data, weight0):
///        """Y[n,c,w] = ...
///
///        data: 1, 32, 56; weight0: 64, 32, 3; result: 1, 64, 56
///        """
/// and the body by the contraction or, else, by gathering.
void kas::target::writeTorchFunction(OperatorOp op, StringRef name,
                                     const OperatorShapes &shapes,
                                     StringRef description,
                                     llvm::raw_ostream &os) {
  os << "def " << name << "(data";
  for (size_t index = 0; index < shapes.weights.size(); ++index)
    os << ", weight" << index;
  os << "):\n    \"\"\"";
  if (description.empty())
    writeFormula(op, os);
  os << description << "\n\n    data: " << listNumbers(shapes.data);
  for (auto [index, shape] : llvm::enumerate(shapes.weights))
    os << "; weight" << index << ": " << listNumbers(shape);
  os << "; result: "
     << (shapes.output.empty() ? "a number" : listNumbers(shapes.output))
     << "\n    \"\"\"\n";
  // Writes nothing when it fails.
  if (failed(writeTorchContraction(op, os)))
    writeTorchGather(op, os);
}

/// The module: parameters, their initialization, and a call of the function.
/// `class Conv1d(nn.Module)` with parameters weight0, weight1, ... in the order
/// of the operator's weights; operators without weights need no constructor.
static void writeClass(OperatorOp op, StringRef function,
                       const OperatorShapes &shapes, llvm::raw_ostream &os) {
  size_t numWeights = shapes.weights.size();
  os << "class " << getTorchClassName(op.getSymName()) << "(nn.Module):\n";
  if (numWeights > 0) {
    os << "    def __init__(self):\n        super().__init__()\n";
    for (auto [index, shape] : llvm::enumerate(shapes.weights))
      os << "        self.weight" << index << " = nn.Parameter(torch.empty("
         << listNumbers(shape) << "))\n";
    os << "        self.reset_parameters()\n\n"
       << "    def reset_parameters(self):\n"
       << "        # Rectified data keeps its mean square: the product of the "
          "weights has variance 2 / fan-in.\n";
    // Each of W independent factors has the W-th root of the variance.
    double deviation =
        std::pow(2 / getFanIn(op, {}), 0.5 / static_cast<double>(numWeights));
    for (size_t index = 0; index < numWeights; ++index)
      os << "        nn.init.normal_(self.weight" << index
         << ", std=" << llvm::format("%.8g", deviation) << ")\n";
    os << "\n";
  }
  os << "    def forward(self, data):\n        return " << function << "(data";
  for (size_t index = 0; index < numWeights; ++index)
    os << ", self.weight" << index;
  os << ")\n";
}

/// The formula with symbols says more than that of the concrete operator, so it
/// is the docstring where the source is at hand.
std::string kas::target::describeForPyTorch(OperatorOp op, StringRef binding) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  writeFormula(op, stream);
  if (!op.isConcrete())
    stream << "; at " << binding;
  return text;
}

void kas::target::writePyTorch(OperatorOp op, llvm::raw_ostream &os,
                               StringRef description) {
  // Shapes are written as numbers.
  assert(op.isConcrete() && "PyTorch code needs numbers");
  OperatorShapes shapes = getShapes(op);
  std::string function = getTorchFunctionName(op.getSymName());
  os << "import torch\nimport torch.nn.functional as F\nfrom torch import "
        "nn\n\n\n";
  writeTorchFunction(op, function, shapes, description, os);
  os << "\n\n";
  writeClass(op, function, shapes, os);
}
