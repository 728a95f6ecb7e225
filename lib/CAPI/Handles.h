//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the handles of the C interface point to.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CAPI_HANDLES_H
#define KAS_LIB_CAPI_HANDLES_H

#include "kas-c/Kas.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include <mutex>

/// A module and its context, which has no threads of its own: those of the
/// caller are enough.
struct KasModule {
  KasModule();

  std::mutex mutex;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

struct KasFunction {
  kas::execution::CompiledFunction function;
};

namespace kas {

/// Sends the diagnostics of a module's context to the caller. Holds the
/// module's lock.
class ModuleAccess {
public:
  ModuleAccess(KasModule *module, KasDiagnostics diagnostics);

  mlir::MLIRContext *getContext() { return &module->context; }
  mlir::ModuleOp getModule() { return *module->module; }

  /// Reports `error` as an error without a location.
  void report(llvm::Error error);
  void report(const llvm::Twine &message);

  /// The operator `name`, or null with an error.
  OperatorOp lookupOperator(llvm::StringRef name);
  /// The operator `name` and the value of each of its symbols in `binding`,
  /// which is null for none; nothing with an error.
  std::optional<std::pair<OperatorOp, Binding>>
  lookupBound(llvm::StringRef name, const char *binding);
  /// The operator `name` at `binding`, in a module of its own.
  mlir::OwningOpRef<mlir::ModuleOp> specializeAlone(llvm::StringRef name,
                                                    const char *binding);
  /// A module of which `operatorFunctionName` (Conversion) computes the
  /// operator `name` at `binding`; null with an error.
  mlir::OwningOpRef<mlir::ModuleOp> makeProgram(llvm::StringRef name,
                                                const char *binding);

private:
  std::unique_lock<std::mutex> lock;
  KasModule *module;
  KasDiagnostics diagnostics;
  mlir::ScopedDiagnosticHandler handler;
};

/// Compiles the function `name` of the module as a caller's options say.
llvm::Expected<execution::CompiledFunction>
compileFunction(mlir::ModuleOp module, llvm::StringRef name,
                KasCompileOptions options, KasCallOptions call = {});

/// As above, as a handle; null with an error.
KasFunction *compile(ModuleAccess &access, mlir::ModuleOp module,
                     llvm::StringRef name, KasCompileOptions options,
                     KasCallOptions call = {});

/// Sends what is written to the caller's function.
class CallbackStream : public llvm::raw_ostream {
public:
  explicit CallbackStream(KasStream target) : target(target) {}
  ~CallbackStream() override { flush(); }

private:
  void write_impl(const char *text, size_t size) override {
    target.write(text, size, target.userData);
    position += size;
  }
  uint64_t current_pos() const override { return position; }

  KasStream target;
  uint64_t position = 0;
};

} // namespace kas

#endif // KAS_LIB_CAPI_HANDLES_H
