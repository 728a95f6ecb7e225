//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-prove-rules: writes what must be proven of rules in SMT-LIB.
//
//===----------------------------------------------------------------------===//

#include "RuleExport.h"
#include "kas/Support/CommandLine.h"
#include "kas/Support/ParseModule.h"
#include "mlir/Dialect/SMT/IR/SMTDialect.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
class Writer {
public:
  Writer(MLIRContext &context, StringRef folder, bool writesInstances)
      : context(context), folder(folder), writesInstances(writesInstances) {}

  LogicalResult writeLemmas() {
    for (const auto &[name, formula] : getLemmas())
      if (failed(write("lemma_" + name, formula)))
        return failure();
    return success();
  }

  /// NAME.smt2, NAME.near_miss.smt2 and, with instances, NAME.before.mlir and
  /// NAME.after.mlir.
  LogicalResult writeRule(ModuleOp module) {
    FailureOr<RuleStatement> rule = getStatement(module),
                             miss = getStatement(module, /*nearMiss=*/true);
    if (failed(rule) || failed(miss))
      return failure();
    FailureOr<Formula> formula = getFormula(*rule), wrong = getFormula(*miss);
    if (failed(formula) || failed(wrong))
      return failure();
    std::string name = rule->name.str();
    if (failed(write(name, *formula)) ||
        failed(write(name + ".near_miss", *wrong)))
      return failure();
    return success(!writesInstances ||
                   (succeeded(writeInstance(*rule, rule->before, "before")) &&
                    succeeded(writeInstance(*rule, rule->after, "after"))));
  }

private:
  LogicalResult write(const std::string &name, const Formula &formula) {
    return write(name + ".smt2", [&](llvm::raw_ostream &os) {
      return exportFormula(formula, context, os);
    });
  }
  LogicalResult writeInstance(const RuleStatement &rule, OperatorOp op,
                              StringRef suffix) {
    FailureOr<OwningOpRef<ModuleOp>> instance = getInstance(rule, op);
    if (failed(instance) || failed(verifyInstance(rule, op)))
      return failure();
    return write((rule.name + "." + suffix + ".mlir").str(),
                 [&](llvm::raw_ostream &os) {
                   os << **instance << "\n";
                   return success();
                 });
  }
  LogicalResult
  write(const std::string &name,
        llvm::function_ref<LogicalResult(llvm::raw_ostream &)> print) {
    llvm::SmallString<128> path = folder;
    llvm::sys::path::append(path, name);
    std::error_code error;
    llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_Text);
    if (error) {
      llvm::errs() << "error: cannot write '" << path
                   << "': " << error.message() << "\n";
      return failure();
    }
    if (failed(print(file.os())))
      return failure();
    file.keep();
    return success();
  }

  MLIRContext &context;
  StringRef folder;
  bool writesInstances;
};
} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  removeLibraryOptions();
  llvm::cl::list<std::string> inputs(llvm::cl::Positional, llvm::cl::OneOrMore,
                                     llvm::cl::desc("<rules.mlir>..."));
  llvm::cl::opt<std::string> folder(
      "o", llvm::cl::Required,
      llvm::cl::desc("The folder, which must be there, for NAME.smt2 of each "
                     "rule and lemma, and NAME.near_miss.smt2"));
  llvm::cl::opt<bool> instances(
      "instances",
      llvm::cl::desc("Write NAME.before.mlir and NAME.after.mlir as well: the "
                     "operators at the rule's numbers, both called NAME"));
  llvm::cl::ParseCommandLineOptions(argc, argv,
                                    "what must be proven of rules\n");
  MLIRContext context;
  context.loadDialect<KasDialect, smt::SMTDialect>();
  // The attributes of rules are `rule.*`.
  context.allowUnregisteredDialects();
  Writer writer(context, folder, instances);
  if (failed(writer.writeLemmas()))
    return 1;
  for (const std::string &input : inputs) {
    llvm::Expected<OwningOpRef<ModuleOp>> module = parseModule(context, input);
    if (!module) {
      llvm::errs() << "error: " << llvm::toString(module.takeError()) << "\n";
      return 1;
    }
    for (ModuleOp rule : getRules(**module))
      if (failed(writer.writeRule(rule)))
        return 1;
  }
  return 0;
}
