//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints random operators for tests in other languages: one line of JSON each,
// with the operator's text and a binding at which it is legal.
//
//===----------------------------------------------------------------------===//

#include "RandomKernel.h"
#include "RandomOperator.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

int main(int argc, char **argv) {
  llvm::cl::opt<unsigned> count("count", llvm::cl::desc("How many"),
                                llvm::cl::init(60));
  llvm::cl::opt<unsigned> seed("seed", llvm::cl::desc("The first seed"),
                               llvm::cl::init(0));
  llvm::cl::opt<bool> kernels("kernels", llvm::cl::desc("Kernels instead"));
  llvm::cl::opt<int64_t> maxElements(
      "max-elements", llvm::cl::desc("Of any tensor of a kernel"),
      llvm::cl::init(RandomKernelOptions().maxElements));
  llvm::cl::ParseCommandLineOptions(argc, argv, "random kas operators\n");
  MLIRContext context;
  context.loadDialect<KasDialect>();
  for (unsigned number = seed; number < seed + count; ++number) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    std::string name = "random" + std::to_string(number);
    if (kernels) {
      // With the operators that it applies, at its own binding.
      RandomKernelOptions options;
      options.maxElements = maxElements;
      addRandomKernel(*module, name, number, options);
      std::string text;
      llvm::raw_string_ostream stream(text);
      module->print(stream);
      llvm::outs() << llvm::json::Value(
                          llvm::json::Object{{"name", name}, {"text", text}})
                   << "\n";
      continue;
    }
    RandomOperator made = makeRandomOperator(builder, name, number);
    std::string text;
    llvm::raw_string_ostream stream(text);
    made.op.print(stream);
    SymbolSet symbols = made.op.getSymbolSet();
    llvm::json::Object binding;
    for (auto [index, value] : llvm::enumerate(made.binding))
      binding[symbols.getName(index)] = value;
    llvm::outs() << llvm::json::Value(
                        llvm::json::Object{{"name", name},
                                           {"text", text},
                                           {"binding", std::move(binding)}})
                 << "\n";
  }
  return 0;
}
