//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/ObjectFile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// C's and C++'s words that look like names.
static bool isKeyword(StringRef name) {
  static const llvm::StringSet<> words = {
      "alignas",  "alignof",  "and",      "asm",       "auto",   "bool",
      "break",    "case",     "catch",    "char",      "class",  "const",
      "continue", "default",  "delete",   "do",        "double", "else",
      "enum",     "explicit", "export",   "extern",    "false",  "float",
      "for",      "friend",   "goto",     "if",        "inline", "int",
      "long",     "main",     "mutable",  "namespace", "new",    "not",
      "operator", "or",       "private",  "protected", "public", "register",
      "restrict", "return",   "short",    "signed",    "sizeof", "static",
      "struct",   "switch",   "template", "this",      "throw",  "true",
      "try",      "typedef",  "typeid",   "typename",  "union",  "unsigned",
      "using",    "virtual",  "void",     "volatile",  "while",  "xor"};
  return words.contains(name);
}

static bool isIdentifier(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) && !isKeyword(name) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// A name that C allows and that `taken` does not have yet.
static std::string makeIdentifier(StringRef name, llvm::StringSet<> &taken) {
  std::string text;
  for (char c : name)
    text += llvm::isAlnum(c) ? c : '_';
  while (!isIdentifier(text) || !taken.insert(text).second)
    text =
        text.empty() || llvm::isDigit(text.front()) ? "_" + text : text + "_";
  return text;
}

/// `float[1][64]`, for comments.
static std::string describe(const TensorSignature &tensor) {
  std::string text = "float";
  for (int64_t extent : tensor.shape)
    text += "[" + std::to_string(extent) + "]";
  return text;
}

//===----------------------------------------------------------------------===//
// Prepared weights
//===----------------------------------------------------------------------===//

/// The function `name` of a lowered module; an error where it does not take
/// `numPointers` pointers alone.
static Error checkLowered(mlir::ModuleOp lowered, const Twine &name,
                          size_t numPointers) {
  std::string text = name.str();
  auto function = lowered.lookupSymbol<mlir::LLVM::LLVMFuncOp>(text);
  if (!function || !function.isPublic() || function.isExternal())
    return createStringError(
        "expected a lowered module with the function '" + text +
        "', as -kas-cpu-pipeline makes it, got none of that name");
  auto type = function.getFunctionType();
  if (type.getNumParams() != numPointers ||
      !llvm::all_of(type.getParams(),
                    llvm::IsaPred<mlir::LLVM::LLVMPointerType>))
    return createStringError("expected a lowered function '" + text + "' on " +
                             Twine(numPointers) + " pointers, got one on " +
                             Twine(type.getNumParams()) +
                             " arguments: it was made from another module");
  return Error::success();
}

/// How many floats `NAME_prepare` of `lowered` fills; 0 where there is none.
static Expected<int64_t> getNumPrepared(const FunctionSignature &signature,
                                        mlir::ModuleOp lowered) {
  if (!lowered)
    return 0;
  size_t numArguments = signature.arguments.size();
  size_t numBuffers = numArguments + signature.results.size();
  std::string counts = signature.name + "_prepared_elements";
  auto function = lowered.lookupSymbol<mlir::LLVM::LLVMFuncOp>(counts);
  if (!function) {
    if (Error error = checkLowered(lowered, signature.name, numBuffers))
      return error;
    return 0;
  }
  if (Error error = checkLowered(lowered, signature.name, numBuffers + 1))
    return error;
  // The packed buffer takes the place of the data, which is not prepared.
  if (Error error =
          checkLowered(lowered, signature.name + "_prepare", numArguments))
    return error;
  llvm::APInt count;
  if (function.isExternal() ||
      function.getBody().front().getTerminator()->getNumOperands() != 1 ||
      !matchPattern(function.getBody().front().getTerminator()->getOperand(0),
                    mlir::m_ConstantInt(&count)))
    return createStringError("expected a function '" + counts +
                             "' that returns a constant");
  return count.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Declares the function, and what prepares its weights where there is a buffer
/// of `numPrepared` floats.
static void writeDeclaration(const FunctionSignature &signature,
                             int64_t numPrepared, llvm::raw_ostream &stream) {
  llvm::StringSet<> taken;
  llvm::SmallVector<std::string> parameters, weights;
  stream << "\n/*\n";
  auto add = [&](const TensorSignature &tensor, StringRef type) {
    std::string name = makeIdentifier(tensor.name, taken);
    stream << " * " << name << ": " << describe(tensor);
    if (name != tensor.name && !StringRef(tensor.name).contains("*/"))
      stream << " (" << tensor.name << ")";
    stream << "\n";
    parameters.push_back((type + name).str());
  };
  for (const TensorSignature &argument : signature.arguments)
    add(argument, "const float *");
  if (numPrepared)
    weights.append(parameters.begin() + 1, parameters.end());
  for (const TensorSignature &result : signature.results)
    add(result, "float *");
  const std::string &name = signature.name;
  if (numPrepared) {
    std::string packed = makeIdentifier("packed", taken);
    stream << " * " << packed << ": float[" << numPrepared
           << "], from a multiple of 64 bytes on; " << name
           << "_prepare fills it\n * once, from the weights, and "
           << "takes nothing else\n";
    parameters.push_back("const void *" + packed);
    weights.push_back("void *" + packed);
  }
  stream << " */\n";
  if (numPrepared)
    stream << "int64_t " << name << "_prepared_elements(void);\nconst char *"
           << name << "_prepare(" << llvm::join(weights, ", ") << ");\n";
  stream << "const char *" << name << "("
         << (parameters.empty() ? "void" : llvm::join(parameters, ", "))
         << ");\n";
}

Error kas::execution::writeCHeader(mlir::ModuleOp module,
                                   llvm::raw_ostream &stream,
                                   mlir::ModuleOp lowered) {
  std::vector<std::pair<FunctionSignature, int64_t>> functions;
  bool prepares = false;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    auto signature = FunctionSignature::get(module, function.getSymName());
    if (!signature)
      return signature.takeError();
    if (!isIdentifier(signature->name))
      return createStringError("expected functions with names that C allows, "
                               "got '" +
                               signature->name + "'");
    Expected<int64_t> numPrepared = getNumPrepared(*signature, lowered);
    if (!numPrepared)
      return numPrepared.takeError();
    prepares |= *numPrepared != 0;
    functions.emplace_back(std::move(*signature), *numPrepared);
  }
  if (functions.empty())
    return createStringError("expected at least one public function with a "
                             "body on tensors, got none");
  std::string guard =
      "KAS_" + StringRef(functions.front().first.name).upper() + "_H";
  stream << "/* Made by kas. All buffers are contiguous, row-major, and do not "
            "overlap; results are\n * overwritten, nothing else is. A function "
            "returns "
            "NULL, or what the assertion says that failed,\n * "
            "\"FILE:LINE:COLUMN: TEXT\", a string that nobody frees; the "
            "results are not specified then.";
  if (!lowered)
    stream << "\n * Not for objects with prepare-weights=true: their header "
              "needs --kas-lowered.";
  stream << " */\n#ifndef " << guard << "\n#define " << guard << "\n"
         << (prepares ? "\n#include <stdint.h>\n" : "")
         << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const auto &[signature, numPrepared] : functions)
    writeDeclaration(signature, numPrepared, stream);
  stream << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return Error::success();
}
