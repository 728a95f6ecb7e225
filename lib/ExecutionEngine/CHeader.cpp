//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/ObjectFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

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

static void writeDeclaration(const FunctionSignature &signature,
                             llvm::raw_ostream &stream) {
  llvm::StringSet<> taken;
  llvm::SmallVector<std::string> parameters;
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
  for (const TensorSignature &result : signature.results)
    add(result, "float *");
  stream << " */\nconst char *" << signature.name << "("
         << (parameters.empty() ? "void" : llvm::join(parameters, ", "))
         << ");\n";
}

Error kas::execution::writeCHeader(mlir::ModuleOp module,
                                   llvm::raw_ostream &stream) {
  std::vector<FunctionSignature> signatures;
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
    signatures.push_back(std::move(*signature));
  }
  if (signatures.empty())
    return createStringError("expected at least one public function with a "
                             "body on tensors, got none");
  std::string guard =
      "KAS_" + StringRef(signatures.front().name).upper() + "_H";
  stream << "/* Made by kas. All buffers are contiguous, row-major, and do not "
            "overlap; results are\n * overwritten, nothing else is. A function "
            "returns "
            "NULL, or what the assertion says that failed,\n * "
            "\"FILE:LINE:COLUMN: TEXT\", a string that nobody frees; the "
            "results are not specified then. */\n"
         << "#ifndef " << guard << "\n#define " << guard
         << "\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const FunctionSignature &signature : signatures)
    writeDeclaration(signature, stream);
  stream << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return Error::success();
}
