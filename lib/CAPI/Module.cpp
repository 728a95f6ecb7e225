//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Modules of the C interface: each has a context of its own and a lock, and
// every call reports diagnostics through a `ModuleAccess`.
// Calls on one module wait for each other, on different modules they run in
// parallel: contexts share nothing. Passes work on a copy, which takes the
// place of the module when all have succeeded.
//
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/InitAll.h"
#include "kas/Networks/Sites/Substitute.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace mlir;

/// Every dialect that is compiled; loaded by a context when it is met.
static const DialectRegistry &getRegistry() {
  static const DialectRegistry registry = [] {
    DialectRegistry made;
    registerAllDialects(made);
    return made;
  }();
  return registry;
}

KasModule::KasModule()
    // Without threads of its own: a process may have hundreds of modules.
    : context(getRegistry(), MLIRContext::Threading::DISABLED) {
  // The generic form of an operation would be longer than the message.
  context.printOpOnDiagnostic(false);
}

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

static KasSeverity getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return KasSeverityError;
  case DiagnosticSeverity::Warning:
    return KasSeverityWarning;
  case DiagnosticSeverity::Remark:
    return KasSeverityRemark;
  case DiagnosticSeverity::Note:
    return KasSeverityNote;
  }
  llvm_unreachable("unknown severity");
}

/// `file:line:column`, or nothing.
static std::string getLocationText(Location location) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Names and call sites are unwrapped.
  if (auto file = location->findInstanceOf<FileLineColRange>())
    stream << file.getFilename().getValue() << ':' << file.getStartLine() << ':'
           << file.getStartColumn();
  return text;
}

/// Notes come as diagnostics of their own, after the one that they belong to.
static void report(const Diagnostic &diagnostic, KasDiagnostics target) {
  target.report(getSeverity(diagnostic.getSeverity()),
                getLocationText(diagnostic.getLocation()).c_str(),
                diagnostic.str().c_str(), target.userData);
  for (const Diagnostic &note : diagnostic.getNotes())
    report(note, target);
}

/// The lock is taken first and released last: the handler must not see
/// diagnostics of another call.
ModuleAccess::ModuleAccess(KasModule *module, KasDiagnostics diagnostics)
    : lock(module->mutex), module(module), diagnostics(diagnostics),
      handler(&module->context, [this](Diagnostic &diagnostic) {
        ::report(diagnostic, this->diagnostics);
      }) {}

/// Errors of the interface itself, which have no location.
void ModuleAccess::report(const llvm::Twine &message) {
  diagnostics.report(KasSeverityError, "", message.str().c_str(),
                     diagnostics.userData);
}

void ModuleAccess::report(llvm::Error error) {
  report(llvm::toString(std::move(error)));
}

/// A missing symbol and one of another kind are different mistakes.
OperatorOp ModuleAccess::lookupOperator(StringRef name) {
  Operation *symbol = getModule().lookupSymbol(name);
  auto op = dyn_cast_or_null<OperatorOp>(symbol);
  if (!symbol)
    report("the module has no operator '" + name + "'");
  else if (!op)
    report("expected '" + name + "' to be a kas.operator, got a " +
           symbol->getName().getStringRef());
  return op;
}

std::optional<std::pair<OperatorOp, Binding>>
ModuleAccess::lookupBound(StringRef name, const char *text) {
  OperatorOp op = lookupOperator(name);
  if (!op)
    return std::nullopt;
  // Null means no binding, for operators without symbols.
  auto attr = parseBinding(getContext(), text ? text : "");
  if (!attr) {
    report(attr.takeError());
    return std::nullopt;
  }
  auto emitError = [&] { return op.emitError(); };
  FailureOr<Binding> binding = getBinding(op, *attr, emitError);
  if (failed(binding) || failed(verifyBinding(op, *binding, emitError)))
    return std::nullopt;
  return std::pair(op, std::move(*binding));
}

/// A module with the concrete operator alone: nothing else of the module is
/// compiled with it, and the caller's module stays as it was.
OwningOpRef<ModuleOp> ModuleAccess::specializeAlone(StringRef name,
                                                    const char *text) {
  auto bound = lookupBound(name, text);
  if (!bound)
    return {};
  auto &[op, binding] = *bound;
  OwningOpRef<ModuleOp> alone = ModuleOp::create(op.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  auto emitError = [&] { return op.emitError(); };
  if (failed(specialize(builder, op, binding, name, emitError)))
    return {};
  return alone;
}

OwningOpRef<ModuleOp> ModuleAccess::makeProgram(StringRef name,
                                                const char *binding) {
  OwningOpRef<ModuleOp> alone = specializeAlone(name, binding);
  if (!alone)
    return {};
  return createOperatorModule(*alone->getOps<OperatorOp>().begin());
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// Text or bytecode; `name` stands for the file in locations. Null after
/// diagnostics.
KasModule *kasModuleParse(const char *text, size_t length, const char *name,
                          KasDiagnostics diagnostics) {
  auto result = std::make_unique<KasModule>();
  {
    // The access ends before the module may be destroyed.
    ModuleAccess access(result.get(), diagnostics);
    result->module = parseSourceString<ModuleOp>(
        StringRef(text, length), ParserConfig(&result->context), name);
  }
  return result->module ? result.release() : nullptr;
}

void kasModuleDestroy(KasModule *module) { delete module; }

/// `generic` is MLIR's generic form, without the custom syntax of any dialect.
void kasModulePrint(KasModule *module, bool generic, KasStream output) {
  // Printing reports nothing, so it needs no `ModuleAccess`.
  std::lock_guard<std::mutex> lock(module->mutex);
  CallbackStream stream(output);
  // Printing changes no IR, but names of values are cached in the context.
  OpPrintingFlags flags;
  if (generic)
    flags.printGenericOpForm();
  module->module->print(stream, flags);
}

/// With all locations: what is read again has the same key in the cache.
bool kasModuleWriteBytecode(KasModule *module, KasStream output,
                            KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  CallbackStream stream(output);
  return succeeded(writeBytecodeToFile(access.getModule(), stream));
}

/// For modules that were changed with `verifyEach` off.
bool kasModuleVerify(KasModule *module, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  return succeeded(verify(access.getModule()));
}

/// `pipeline` without the op that it is for, where that is the module.
/// Pipelines are often written with it, as `mlir-opt` prints them.
static StringRef getPassesOfModule(StringRef pipeline) {
  pipeline = pipeline.trim();
  StringRef inner = pipeline;
  if (inner.consume_front("builtin.module(") && inner.consume_back(")"))
    return inner;
  return pipeline;
}

/// `pipeline` is in the syntax of `mlir-opt --pass-pipeline`.
bool kasModuleRunPasses(KasModule *module, const char *pipeline,
                        KasDiagnostics diagnostics) {
  return kasModuleRunPassesWith(module, pipeline, {/*verifyEach=*/true},
                                diagnostics);
}

bool kasModuleRunPassesWith(KasModule *module, const char *pipeline,
                            KasPassOptions options,
                            KasDiagnostics diagnostics) {
  // Registries of passes are global; registering twice is an error of MLIR.
  static std::once_flag registered;
  std::call_once(registered, [] {
    mlir::registerAllPasses();
    kas::registerAllPasses();
  });
  ModuleAccess access(module, diagnostics);
  PassManager manager(access.getContext(), ModuleOp::getOperationName());
  // Pipelines that were tested run faster without.
  manager.enableVerifier(options.verifyEach);
  std::string complaints;
  llvm::raw_string_ostream stream(complaints);
  if (failed(parsePassPipeline(getPassesOfModule(pipeline), manager, stream))) {
    // The parser of pipelines writes to a stream and emits no diagnostics.
    access.report(StringRef(complaints).trim());
    return false;
  }
  // A pass that fails may leave anything.
  OwningOpRef<ModuleOp> copy = access.getModule().clone();
  if (failed(manager.run(*copy)) ||
      // Verified at least once: a module that is kept is valid.
      (!options.verifyEach && failed(verify(*copy))))
    return false;
  module->module = std::move(copy);
  return true;
}

/// Works on a copy, as passes do.
bool kasModuleSubstitute(KasModule *module, const char *text, size_t length,
                         KasLayers layers, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  auto operators = parseSourceString<ModuleOp>(
      StringRef(text, length), ParserConfig(access.getContext()), "<operator>");
  if (!operators)
    return false;
  networks::SubstituteOptions options;
  options.space = layers.space;
  options.layers.assign(layers.names, layers.names + layers.numNames);
  auto binding =
      parseBinding(access.getContext(), layers.binding ? layers.binding : "");
  if (!binding) {
    access.report(binding.takeError());
    return false;
  }
  options.binding = *binding;
  OwningOpRef<ModuleOp> copy = access.getModule().clone();
  FailureOr<StringRef> name = networks::takeOperators(*copy, *operators);
  if (failed(name)) {
    access.report("requires a kas.operator or a kas.sequence as the last op of "
                  "what takes the place of layers");
    return false;
  }
  options.operatorName = name->str();
  if (failed(networks::substitute(*copy, options)) || failed(verify(*copy)))
    return false;
  module->module = std::move(copy);
  return true;
}

/// Any symbol: operators, functions, spaces.
bool kasModuleGetText(KasModule *module, const char *name, KasStream output,
                      KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  Operation *symbol = access.getModule().lookupSymbol(name);
  if (!symbol) {
    access.report("the module has no symbol '" + StringRef(name) + "'");
    return false;
  }
  CallbackStream stream(output);
  symbol->print(stream);
  stream << "\n";
  return true;
}

/// The fields of a `kas.sequence`: steps between operators, the operators, and
/// the sizes of what the last ones give.
static void writeStages(llvm::json::OStream &writer, SequenceOp op) {
  writer.attributeArray("between", [&] {
    for (unsigned index : llvm::seq<unsigned>(op.getBetween().size()))
      writer.value(stringifySequenceStep(op.getStep(index)));
  });
  writer.attributeArray("stages", [&] {
    for (auto stage : op.getStages().getAsRange<FlatSymbolRefAttr>())
      writer.value(stage.getValue());
  });
  writer.attributeArray("output", [&] {
    for (SizeAttr size : op.getOutputSizes()) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      printSize(stream, size.getValue(),
                llvm::to_vector_of<StringRef>(size.getNames()));
      writer.value(text);
    }
  });
}

/// An object of kind and name for each symbol, in their order.
void kasModuleListSymbols(KasModule *module, KasStream json) {
  std::lock_guard<std::mutex> lock(module->mutex);
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.array([&] {
    for (Operation &op : *module->module->getBody())
      if (auto symbol = dyn_cast<SymbolOpInterface>(op);
          symbol && symbol.getNameAttr())
        writer.object([&] {
          writer.attribute("kind", op.getName().getStringRef());
          writer.attribute("name", symbol.getName());
          if (auto sequence = dyn_cast<SequenceOp>(op))
            writeStages(writer, sequence);
        });
  });
}
