//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EvaluateKernel.h"
#include "kas/Support/Random.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace kas;
using namespace kas::reference;
using namespace kas::solver;
using namespace mlir;

Values evaluateKernel(const std::string &text,
                      const std::vector<Values> &inputs,
                      const std::vector<Values> &weights, std::string *errors,
                      StepPrecision precision) {
  MLIRContext context;
  context.loadDialect<KasDialect>();
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return success();
  });
  Values output;
  if (auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context))) {
    KernelOp kernel = *module->getOps<KernelOp>().begin();
    SizeRules rules = getSizeRules(kernel);
    Binding binding(rules.numSymbols, 1);
    if (!rules.bindings.empty())
      binding = rules.bindings.front();
    auto emitError = [&] { return kernel.emitError(); };
    FailureOr<KernelShapes> shapes = getShapes(kernel, binding, emitError);
    if (succeeded(shapes)) {
      auto toTensors = [](const std::vector<Values> &values,
                          ArrayRef<SmallVector<int64_t>> shapes) {
        SmallVector<ReferenceTensor> tensors;
        for (auto [index, list] : llvm::enumerate(values))
          tensors.push_back({index < shapes.size()
                                 ? ArrayRef<int64_t>(shapes[index])
                                 : ArrayRef<int64_t>(),
                             list});
        return tensors;
      };
      output.resize(*getNumElements(shapes->output), -1.0f);
      if (failed(kas::reference::evaluateKernel(
              kernel, binding, toTensors(inputs, shapes->inputs),
              toTensors(weights, shapes->weights), output, emitError,
              precision)))
        output.clear();
    }
  }
  if (errors)
    *errors = messages;
  else
    EXPECT_EQ(messages, "");
  return output;
}

Values randomValues(size_t count, uint64_t seed) {
  RandomStream stream(seed);
  Values values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(stream.normal(i));
  return values;
}

void expectClose(const Values &actual, const std::vector<double> &expected) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-6 * largest) << "at " << i;
}
