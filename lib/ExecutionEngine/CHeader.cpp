//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the C header of an object file: declarations of its functions with
// names that C allows.
//
// What the signature of a function does not show is read off the lowered
// module, where that is given: prepacked weights (`NAME_prepack`), a number of
// samples (any-batch), a workspace (docs/guide/deploying.md).
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/ObjectFile.h"
#include "kas/Support/CNames.h"
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

/// A name that C allows and that `taken` does not have yet.
static std::string makeIdentifier(StringRef name, llvm::StringSet<> &taken) {
  std::string text = cleanForC(name);
  // Ends, as the text gets longer each time.
  while (!isCIdentifier(text) || !taken.insert(text).second)
    text =
        text.empty() || llvm::isDigit(text.front()) ? "_" + text : text + "_";
  return text;
}

/// C has no type for these that compilers agree on.
static bool isHalf(const TensorSignature &tensor) {
  return tensor.type == "f16" || tensor.type == "bf16";
}

/// The type of an element in C, which for halves is that of their bits.
static std::string getCType(const TensorSignature &tensor) {
  if (tensor.type == "f32")
    return "float";
  if (tensor.type == "f64")
    return "double";
  if (tensor.type == "i1")
    return "bool";
  if (isHalf(tensor))
    return "uint16_t";
  // i8, ui8, u8: the letters go, the width stays.
  StringRef width = StringRef(tensor.type).ltrim("ui");
  return (tensor.type.front() == 'u' ? "uint" : "int") + width.str() + "_t";
}

/// `float[1][64]`, for comments; with `samples` in place of the first extent
/// where that is not empty.
static std::string describe(const TensorSignature &tensor, StringRef samples) {
  std::string text = getCType(tensor);
  for (auto [dim, extent] : llvm::enumerate(tensor.shape))
    text += "[" +
            (dim == 0 && !samples.empty() ? samples.str()
                                          : std::to_string(extent)) +
            "]";
  return isHalf(tensor) ? text + ", the bits of " + tensor.type : text;
}

//===----------------------------------------------------------------------===//
// Prepacked weights
//===----------------------------------------------------------------------===//

namespace {
/// What the header states for a function.
struct Declaration {
  FunctionSignature signature;
  /// How many floats `NAME_prepack` fills; 0 where there is none.
  int64_t numPrepacked = 0;
  bool anyBatch = false;
  /// How many bytes the workspace has, where the function takes one.
  std::optional<int64_t> workspace;
};
} // namespace

/// The function `name` of a lowered module; an error where it does not take
/// `numPointers` pointers alone, and with `anyBatch` a number of samples.
/// Pointers alone cannot tell arguments from one another, but their number
/// tells whether the two modules belong together.
static Error checkLowered(mlir::ModuleOp lowered, const Twine &name,
                          size_t numPointers, bool anyBatch = false) {
  std::string text = name.str();
  auto function = lowered.lookupSymbol<mlir::LLVM::LLVMFuncOp>(text);
  if (!function || !function.isPublic() || function.isExternal())
    return createStringError(
        "expected a lowered module with the function '" + text +
        "', as -kas-cpu-pipeline makes it, got none of that name");
  auto parameters = function.getFunctionType().getParams();
  if (parameters.size() != numPointers + (anyBatch ? 1 : 0) ||
      !llvm::all_of(parameters.drop_back(anyBatch ? 1 : 0),
                    llvm::IsaPred<mlir::LLVM::LLVMPointerType>))
    return createStringError("expected a lowered function '" + text + "' on " +
                             Twine(numPointers) + " pointers, got one on " +
                             Twine(parameters.size()) +
                             " arguments: it was made from another module");
  return Error::success();
}

/// What the function of this name returns, which takes nothing.
static Expected<int64_t> getConstant(mlir::LLVM::LLVMFuncOp function) {
  llvm::APInt count;
  if (function.isExternal() ||
      function.getBody().front().getTerminator()->getNumOperands() != 1 ||
      !matchPattern(function.getBody().front().getTerminator()->getOperand(0),
                    mlir::m_ConstantInt(&count)))
    return createStringError("expected a function '" + function.getName() +
                             "' that returns a constant");
  return count.getSExtValue();
}

/// Compares the lowered function and what prepacks its weights.
static Expected<int64_t> getNumPrepacked(const FunctionSignature &signature,
                                         mlir::ModuleOp lowered, bool anyBatch,
                                         bool hasWorkspace) {
  size_t numArguments = signature.arguments.size() + (hasWorkspace ? 1 : 0);
  size_t numBuffers = numArguments + signature.results.size();
  // `-kas-prepack-weights` adds this function where it prepacks anything.
  std::string counts = signature.name + "_prepacked_elements";
  auto function = lowered.lookupSymbol<mlir::LLVM::LLVMFuncOp>(counts);
  if (!function) {
    if (Error error =
            checkLowered(lowered, signature.name, numBuffers, anyBatch))
      return error;
    return 0;
  }
  if (Error error =
          checkLowered(lowered, signature.name, numBuffers + 1, anyBatch))
    return error;
  // `NAME_prepack` takes the weights, not the data.
  size_t numWeights =
      llvm::count_if(signature.arguments, [](const TensorSignature &argument) {
        return !argument.isData;
      });
  // What is packed, and the workspace, come after the weights.
  if (Error error = checkLowered(lowered, signature.name + "_prepack",
                                 numWeights + (hasWorkspace ? 2 : 1)))
    return error;
  return getConstant(function);
}

/// `lowered` may be null.
static Expected<Declaration> getDeclaration(FunctionSignature signature,
                                            mlir::ModuleOp lowered) {
  // The symbol cannot be renamed here: the object has it already.
  if (!isCIdentifier(signature.name))
    return createStringError("expected functions with names that C allows, "
                             "got '" +
                             signature.name + "'");
  Declaration declaration;
  declaration.signature = std::move(signature);
  if (!lowered)
    return declaration;
  // An integer at the end is a number of samples only where the arguments and
  // results have samples; else the check below finds it.
  const auto hasSamples = [](const TensorSignature &tensor) {
    return !tensor.shape.empty();
  };
  const FunctionSignature &tensors = declaration.signature;
  declaration.anyBatch = takesNumSamples(lowered, tensors.name) &&
                         !tensors.arguments.empty() &&
                         hasSamples(tensors.arguments.front()) &&
                         llvm::all_of(tensors.results, hasSamples);
  if (auto function = lowered.lookupSymbol<mlir::LLVM::LLVMFuncOp>(
          declaration.signature.name + "_workspace_bytes")) {
    Expected<int64_t> bytes = getConstant(function);
    if (!bytes)
      return bytes.takeError();
    declaration.workspace = *bytes;
  }
  Expected<int64_t> numPrepacked =
      getNumPrepacked(declaration.signature, lowered, declaration.anyBatch,
                      declaration.workspace.has_value());
  if (!numPrepacked)
    return numPrepacked.takeError();
  declaration.numPrepacked = *numPrepacked;
  return declaration;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Declares the function, and what prepacks its weights where there is any.
/// For a function with prepacked weights, about this is written:
///    /*
///     * x: float[1][64]
///     * w: float[64][64]
///     * y: float[1][64]
///     * packed: float[4096], from a multiple of 64 bytes on; f_prepack fills
///     it
///     */
///    int64_t f_prepacked_elements(void);
///    const char *f_prepack(const float *w, void *packed);
///    const char *f(const float *x, const float *w, float *y,
///                  const void *packed);
static void writeDeclaration(const Declaration &declaration,
                             llvm::raw_ostream &stream) {
  const FunctionSignature &signature = declaration.signature;
  int64_t numPrepacked = declaration.numPrepacked;
  // Names must differ within one declaration only.
  llvm::StringSet<> taken;
  llvm::SmallVector<std::string> parameters, weights;
  std::string samples;
  if (declaration.anyBatch)
    samples = makeIdentifier("samples", taken);
  stream << "\n/*\n";
  auto add = [&](const TensorSignature &tensor, StringRef prefix,
                 bool hasSamples) {
    std::string name = makeIdentifier(tensor.name, taken);
    stream << " * " << name << ": "
           << describe(tensor, hasSamples ? samples : "");
    // An original name that would end the comment is left out.
    if (name != tensor.name && !StringRef(tensor.name).contains("*/"))
      stream << " (" << tensor.name << ")";
    stream << "\n";
    parameters.push_back((prefix + getCType(tensor) + " *" + name).str());
  };
  for (auto [index, argument] : llvm::enumerate(signature.arguments))
    // The first argument is the batch.
    add(argument, "const ", /*hasSamples=*/index == 0);
  if (numPrepacked)
    for (auto [argument, parameter] :
         llvm::zip_equal(signature.arguments, parameters))
      if (!argument.isData)
        weights.push_back(parameter);
  for (const TensorSignature &result : signature.results)
    add(result, "", /*hasSamples=*/true);
  const std::string &name = signature.name;
  if (numPrepacked) {
    std::string packed = makeIdentifier("packed", taken);
    stream << " * " << packed << ": float[" << numPrepacked
           << "], from a multiple of 64 bytes on; " << name
           << "_prepack fills it\n * once, from the weights, and "
           << "takes nothing else\n";
    parameters.push_back("const void *" + packed);
    weights.push_back("void *" + packed);
  }
  if (declaration.workspace) {
    std::string workspace = makeIdentifier("workspace", taken);
    stream << " * " << workspace << ": char[" << *declaration.workspace
           << "], from a multiple of 64 bytes on, one for each call at a "
              "time\n";
    parameters.push_back("void *" + workspace);
    weights.push_back("void *" + workspace);
  }
  // Last of all, as the passes add it.
  if (!samples.empty()) {
    stream << " * " << samples << ": how many, 0 or more; up to "
           << signature.arguments.front().shape.front() << " it was made for\n";
    parameters.push_back("int64_t " + samples);
  }
  stream << " */\n";
  if (declaration.workspace)
    stream << "#define " << StringRef(name).upper() << "_WORKSPACE_BYTES "
           << *declaration.workspace << "\nint64_t " << name
           << "_workspace_bytes(void);\n";
  if (numPrepacked && declaration.workspace)
    stream << "#define " << StringRef(name).upper() << "_PREPACKED_ELEMENTS "
           << numPrepacked << "\n";
  if (numPrepacked)
    stream << "int64_t " << name << "_prepacked_elements(void);\nconst char *"
           << name << "_prepack(" << llvm::join(weights, ", ") << ");\n";
  stream << "const char *" << name << "("
         << (parameters.empty() ? "void" : llvm::join(parameters, ", "))
         << ");\n";
}

Error kas::execution::writeCHeader(mlir::ModuleOp module,
                                   llvm::raw_ostream &stream,
                                   mlir::ModuleOp lowered) {
  std::vector<Declaration> functions;
  // Which headers of C the declarations need.
  bool hasNumbers = false, hasFlags = false;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    // Private functions are not in the symbol table of the object.
    if (!function.isPublic() || function.isExternal())
      continue;
    auto signature = FunctionSignature::get(module, function.getSymName(),
                                            ElementTypes::Any);
    if (!signature)
      return signature.takeError();
    auto declaration = getDeclaration(std::move(*signature), lowered);
    if (!declaration)
      return declaration.takeError();
    hasNumbers |= declaration->numPrepacked != 0 || declaration->anyBatch ||
                  declaration->workspace.has_value();
    for (llvm::ArrayRef<TensorSignature> tensors :
         {llvm::ArrayRef(declaration->signature.arguments),
          llvm::ArrayRef(declaration->signature.results)})
      for (const TensorSignature &tensor : tensors) {
        hasNumbers |= StringRef(getCType(tensor)).ends_with("_t");
        hasFlags |= tensor.type == "i1";
      }
    functions.push_back(std::move(*declaration));
  }
  if (functions.empty())
    return createStringError("expected at least one public function with a "
                             "body on tensors, got none");
  // Headers of different functions may be included together.
  std::string guard =
      "KAS_" + StringRef(functions.front().signature.name).upper() + "_H";
  stream << "/* Made by kas. All buffers are contiguous, row-major, and do not "
            "overlap; results are\n * overwritten, nothing else is. A function "
            "returns "
            "NULL, or what the assertion says that failed,\n * "
            "\"FILE:LINE:COLUMN: TEXT\", a string that nobody frees; the "
            "results are not specified then.";
  if (!lowered)
    stream << "\n * Not for objects with prepack-weights=true or "
              "any-batch=true: their header\n * needs --kas-lowered.";
  stream << " */\n#ifndef " << guard << "\n#define " << guard << "\n"
         << (hasNumbers || hasFlags ? "\n" : "")
         << (hasFlags ? "#include <stdbool.h>\n" : "")
         << (hasNumbers ? "#include <stdint.h>\n" : "")
         << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const Declaration &declaration : functions)
    writeDeclaration(declaration, stream);
  stream << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return Error::success();
}
