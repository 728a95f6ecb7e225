//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a pass manager and turns its diagnostics into an error.
// Callers are libraries: errors are values, and nothing is printed.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/RunPasses.h"
#include "mlir/IR/Diagnostics.h"

using namespace kas;
using namespace mlir;

llvm::Error kas::runPasses(ModuleOp module, llvm::StringRef failure,
                           llvm::function_ref<void(OpPassManager &)> addPasses,
                           PassTimes *times) {
  std::string complaints;
  // Errors become text of the result; warnings and remarks go on to the handler
  // of the program.
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return mlir::failure();
        llvm::raw_string_ostream stream(complaints);
        stream << "\n" << diagnostic.getLocation() << ": " << diagnostic;
        return success();
      });
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  // Checking the module after each pass takes a good part of a compilation; the
  // tests of the passes run with the verifier.
  manager.enableVerifier(false);
  if (times)
    times->observe(manager);
  addPasses(manager);
  // `failure` says what was tried; each diagnostic follows on a line of its
  // own.
  if (mlir::failed(manager.run(module)))
    return llvm::createStringError(failure + ":" + complaints);
  return llvm::Error::success();
}
