//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator or a kernel at a binding, as what kas-run runs on a device and
// compares with the reference.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_RUNNABLE_H
#define KAS_TOOLS_RUNNABLE_H

#include "KasRun.h"
#include "kas/Dialect/Kas/IR/KasDag.h"
#include "kas/Library/Operators.h"
#include "kas/Support/NearName.h"
#include <functional>

namespace kas {

struct Runnable {
  /// "operator" or "kernel".
  llvm::StringRef kind;
  /// Has the function: of the inputs, then the weights, to one result.
  mlir::ModuleOp module;
  llvm::StringRef function;
  size_t numInputs = 1;
  /// What the reference evaluator gives for arguments of the function.
  std::function<llvm::Error(llvm::ArrayRef<execution::Tensor> arguments,
                            execution::Tensor &result)>
      evaluate;
};

/// The function that `lowerKernel` makes.
constexpr llvm::StringLiteral kernelFunctionName = "run";

/// A module in which the kernels are the one function, at `binding`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
lowerKernel(KernelOp kernel, const Binding &binding);

/// As in reports: `N=1,C=64`.
std::string formatBinding(const SymbolSet &symbols, const Binding &binding);

/// A device that there is, and no file to compare with.
llvm::Error checkSettings(llvm::StringRef kind, const RunSettings &settings);

/// Runs on `settings.device`, with times and a comparison where they are
/// requested for; nothing when only costs are.
llvm::Error runAndCheck(const Runnable &runnable, const RunSettings &settings,
                        RunReport &report);

/// An op of a file or of the library, with its module.
template <typename OpTy>
struct Loaded {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  OpTy op;
};

/// `name` or `@name` of the file; what is called `kas.name` and is not in the
/// file, or is without one, is of the library: `parseNamed` gives its module,
/// or null.
template <typename OpTy>
llvm::Expected<Loaded<OpTy>>
load(mlir::MLIRContext &context, llvm::StringRef kind, llvm::StringRef name,
     llvm::StringRef file, llvm::ArrayRef<library::NamedOperator> named,
     mlir::OwningOpRef<mlir::ModuleOp> (*parseNamed)(mlir::MLIRContext *,
                                                     llvm::StringRef)) {
  Loaded<OpTy> loaded;
  if (!file.empty()) {
    auto module = parseModule(context, file);
    if (!module)
      return module.takeError();
    loaded.module = std::move(*module);
    llvm::StringRef symbol = name;
    symbol.consume_front("@");
    loaded.op = loaded.module->template lookupSymbol<OpTy>(symbol);
    if (loaded.op)
      return loaded;
    if (!name.starts_with("kas."))
      return llvm::createStringError(
          "no " + kind + " '" + name + "' in '" + file + "'" +
          suggestNearName(
              symbol,
              llvm::map_to_vector(loaded.module->template getOps<OpTy>(),
                                  [](OpTy op) { return op.getSymName(); })));
  }
  loaded.module = parseNamed(&context, name);
  if (!loaded.module) {
    llvm::StringRef symbol = name, near;
    symbol.consume_front("kas.");
    near = findNearName(
        symbol,
        llvm::map_to_vector(
            named, [](const library::NamedOperator &op) { return op.name; }));
    return llvm::createStringError(
        "no " + kind + " '" + name + "' in the library" +
        (near.empty() ? "" : " (did you mean 'kas." + near.str() + "'?)"));
  }
  loaded.op = *loaded.module->template getOps<OpTy>().begin();
  return loaded;
}

} // namespace kas

#endif // KAS_TOOLS_RUNNABLE_H
