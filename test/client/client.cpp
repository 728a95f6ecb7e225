//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Uses kas as a library: loads the dialect, reads an operator, canonicalizes it
// and prints it.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

static constexpr const char *text = R"mlir(
kas.operator @halves<N, C | s>(%n: N, %c: C) from [N, C] {
  %q, %r = kas.merge %c by s : C
  %t = kas.split %q, %r : C/s, s
  kas.yield data(%n, %t)
}
)mlir";

int main() {
  mlir::MLIRContext context;
  context.loadDialect<kas::KasDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return 1;
  auto op = *module->getOps<kas::OperatorOp>().begin();
  llvm::outs() << "read: " << op.getSymName() << "\n" << op << "\n";

  mlir::PassManager passes(&context);
  passes.addPass(kas::createKasCanonicalizePass());
  if (failed(passes.run(*module)))
    return 1;
  llvm::outs() << "canonical:\n" << *module;
  return 0;
}
