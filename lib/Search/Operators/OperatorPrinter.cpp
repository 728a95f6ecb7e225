//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints found operators as files, in a context of its own.
//
// A context with one dialect, locked: printing happens on the threads of a
// driver.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/OperatorPrinter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

using namespace kas;
using namespace kas::search;

OperatorPrinter::OperatorPrinter(std::shared_ptr<const SearchProblem> problem)
    : problem(std::move(problem)) {
  context.loadDialect<KasDialect>();
}

/// The operation without the module around it.
std::string OperatorPrinter::print(const OperatorGraph &graph) {
  std::lock_guard<std::mutex> lock(mutex);
  mlir::OpBuilder builder(&context);
  mlir::Location location = builder.getUnknownLoc();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(location);
  builder.setInsertionPointToEnd(module->getBody());
  OperatorOp op =
      buildOperator(builder, location, "candidate", *problem, graph);
  std::string text;
  llvm::raw_string_ostream stream(text);
  op.print(stream);
  stream << "\n";
  return text;
}
