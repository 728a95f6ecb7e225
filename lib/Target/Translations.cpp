//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The translations of operators to texts: PyTorch, formula, graph, loop nest.
// `kas-translate --kas-to-pytorch` and its like. Texts with symbols (formula,
// graph) are of any operator; loops and PyTorch code need numbers, those of
// `--kas-bind`.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Support/FileLocation.h"
#include "kas/Target/Text.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace kas;
using namespace kas::target;
using namespace mlir;

/// Writes an operator, which may be concrete, made from the second one at the
/// binding.
/// The arguments: the operator to write, its source, and the binding as text.
using Writer = void (*)(OperatorOp op, OperatorOp source, StringRef binding,
                        llvm::raw_ostream &os);

/// A copy of `op` at the binding of the command line, in `scratch`.
/// Fails with a diagnostic for a binding that is missing or against the rules
/// of the operator.
static FailureOr<OperatorOp> makeConcrete(OperatorOp op, ModuleOp scratch,
                                          StringRef binding) {
  auto emitError = [&] { return op.emitError(); };
  if (!op.isConcrete() && binding.empty()) {
    emitError() << "requires values for the symbols of '" << op.getSymName()
                << "', such as --kas-bind=N=1,C=64, got none";
    return failure();
  }
  auto attr =
      parseBinding(op.getContext(), op.isConcrete() ? StringRef() : binding);
  if (!attr) {
    emitError() << llvm::toString(attr.takeError());
    return failure();
  }
  FailureOr<Binding> values = getBinding(op, *attr, emitError);
  // Only sizes of this binding are checked: the operator need not be legal at
  // others.
  if (failed(values) || failed(verifyBinding(op, *values, emitError)))
    return failure();
  OpBuilder builder = OpBuilder::atBlockEnd(scratch.getBody());
  return specialize(builder, op, *values, op.getSymName(), emitError);
}

/// All operators of the module, in their order. `getBinding` is null for texts
/// with symbols.
static LogicalResult
writeOperators(ModuleOp module, llvm::raw_ostream &os, Writer writer,
               const std::function<std::string()> *getBinding) {
  // The source is at hand: the generic form of an op says no more.
  module.getContext()->printOpOnDiagnostic(false);
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(module.getLoc());
  bool isFirst = true;
  for (auto op : module.getOps<OperatorOp>()) {
    FailureOr<OperatorOp> chosen =
        getBinding ? makeConcrete(op, *scratch, (*getBinding)())
                   : FailureOr<OperatorOp>(op);
    if (failed(chosen))
      return failure();
    // Whole files are separated by empty lines.
    os << (isFirst || !getBinding ? "" : "\n\n");
    isFirst = false;
    writer(*chosen, op, getBinding ? (*getBinding)() : "", os);
  }
  if (isFirst)
    return emitError(getFileLocation(module))
           << "requires a kas.operator in the module, got none";
  return success();
}

/// Whole files, separated by empty lines.
/// Operators that a kernel applies are functions in its file and none of their
/// own.
static LogicalResult writeTorchFiles(ModuleOp module, llvm::raw_ostream &os,
                                     StringRef text) {
  module.getContext()->printOpOnDiagnostic(false);
  llvm::SmallPtrSet<Operation *, 4> applied;
  // These are written with their kernels.
  module.walk([&](DagApplyOp op) { applied.insert(op.getOperator()); });
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(module.getLoc());
  bool isFirst = true;
  for (Operation &op : *module.getBody()) {
    if (!isa<OperatorOp, KernelOp>(op) || applied.contains(&op))
      continue;
    os << (isFirst ? "" : "\n\n");
    isFirst = false;
    if (auto kernel = dyn_cast<KernelOp>(op)) {
      auto emitError = [&] { return kernel.emitError(); };
      auto given = parseBinding(op.getContext(), text);
      if (!given)
        return emitError() << llvm::toString(given.takeError());
      // Symbols that follow from others need not be given.
      FailureOr<Binding> binding = completeBinding(kernel, *given, emitError);
      if (failed(binding) || failed(writePyTorch(kernel, *binding, os)))
        return failure();
      continue;
    }
    auto source = cast<OperatorOp>(op);
    FailureOr<OperatorOp> concrete = makeConcrete(source, *scratch, text);
    if (failed(concrete))
      return failure();
    writePyTorch(*concrete, os, describeForPyTorch(source, text));
  }
  if (isFirst)
    return emitError(getFileLocation(module))
           << "requires a kas.operator or a kas.kernel in the module, got none";
  return success();
}

/// `getBinding` reads the tool's option `--kas-bind` when a translation runs:
/// libraries have no options.
void kas::target::registerTextTranslations(
    std::function<std::string()> getBinding) {
  auto registerDialects = [](DialectRegistry &registry) {
    registerAllDialects(registry);
    registry.insert<KasDialect>();
  };
  // Both wrap a writer of one operator into one of a module.
  auto makeSymbolic = [](Writer writer) {
    return [writer](ModuleOp module, llvm::raw_ostream &os) {
      return writeOperators(module, os, writer, nullptr);
    };
  };
  auto makeConcreteWriter = [&](Writer writer) {
    return [writer, getBinding](ModuleOp module, llvm::raw_ostream &os) {
      return writeOperators(module, os, writer, &getBinding);
    };
  };
  TranslateFromMLIRRegistration formula(
      "kas-to-formula", "write operators as formulas",
      makeSymbolic(
          [](OperatorOp op, OperatorOp, StringRef, llvm::raw_ostream &os) {
            os << op.getSymName() << ": ";
            writeFormula(op, os);
            os << "\n";
          }),
      registerDialects);
  TranslateFromMLIRRegistration graph(
      "kas-to-dot", "draw operators as graphs, for Graphviz",
      makeSymbolic([](OperatorOp op, OperatorOp, StringRef,
                      llvm::raw_ostream &os) { writeGraph(op, os); }),
      registerDialects);
  TranslateFromMLIRRegistration loops(
      "kas-to-c", "write operators as plain loops in C, at --kas-bind",
      makeConcreteWriter(
          [](OperatorOp op, OperatorOp source, StringRef,
             llvm::raw_ostream &os) { writeLoopNest(op, os, source); }),
      registerDialects);
  TranslateFromMLIRRegistration pytorch(
      "kas-to-pytorch",
      "write operators and kernels as PyTorch code that needs no kas, at "
      "--kas-bind",
      [getBinding](ModuleOp module, llvm::raw_ostream &os) {
        return writeTorchFiles(module, os, getBinding());
      },
      registerDialects);
}
