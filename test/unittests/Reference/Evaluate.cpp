//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::reference;
using namespace mlir;

Values evaluate(const std::string &text, const Values &data,
                const std::vector<Values> &weights, std::string *errors) {
  MLIRContext context;
  context.loadDialect<KasDialect>();
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return success();
  });
  Values output;
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (module) {
    OperatorOp op = *module->getOps<OperatorOp>().begin();
    OperatorShapes shapes;
    if (op.isConcrete())
      shapes = getShapes(op);
    SmallVector<ReferenceTensor> tensors;
    for (auto [index, weight] : llvm::enumerate(weights))
      tensors.push_back({index < shapes.weights.size()
                             ? ArrayRef<int64_t>(shapes.weights[index])
                             : ArrayRef<int64_t>(),
                         weight});
    // Too large an output is the evaluator's to report.
    int64_t numElements = getNumElements(shapes.output).value_or(0);
    output.resize(numElements < 1000000 ? numElements : 0, -1.0f);
    if (failed(evaluateOperator(op, {shapes.data, data}, tensors, output,
                                [&] { return op.emitError(); })))
      output.clear();
  }
  if (errors)
    *errors = messages;
  else
    EXPECT_EQ(messages, "");
  return output;
}
