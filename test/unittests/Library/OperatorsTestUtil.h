//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between the formulas, which know nothing of kas, and the named operators.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_LIBRARY_OPERATORSTESTUTIL_H
#define TEST_UNITTESTS_LIBRARY_OPERATORSTESTUTIL_H

#include "Formulas.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "gtest/gtest.h"

namespace kas {

/// The values of `sizes` for the symbols of `op`, in their order. Symbols that
/// the formula does not give, or gives without need, fail the test.
inline Binding getTestBinding(OperatorOp op, const formulas::Sizes &sizes) {
  Binding binding;
  SymbolSet symbols = op.getSymbolSet();
  size_t given = 0;
  for (const auto &[name, member] : formulas::symbols)
    given += sizes.*member != 0;
  EXPECT_EQ(given, symbols.size());
  for (unsigned i = 0; i < symbols.size(); ++i) {
    int64_t value = 0;
    for (const auto &[name, member] : formulas::symbols)
      if (symbols.getName(i) == name)
        value = sizes.*member;
    EXPECT_GE(value, 1) << symbols.getName(i).str();
    binding.push_back(value);
  }
  return binding;
}

/// Shape and values of a tensor that goes into an operator.
struct TestTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// Computes a concrete operator; empty when it failed with a diagnostic.
using EvaluateFn = llvm::function_ref<std::vector<float>(
    OperatorOp op, const TestTensor &data,
    const std::vector<TestTensor> &weights)>;

/// Changes an operator before it is made concrete.
using TransformFn = llvm::function_ref<void(OperatorOp op)>;

/// Compares `evaluate` with `formula` at each of its bindings, on random values
/// of a fixed seed. The largest difference may be `tolerance` times the largest
/// magnitude.
void checkAgainstFormula(
    const formulas::Formula &formula, EvaluateFn evaluate, double tolerance,
    TransformFn transform = [](OperatorOp) {});

/// The name of a test over the formulas.
inline std::string
getName(const testing::TestParamInfo<formulas::Formula> &info) {
  return info.param.name;
}

} // namespace kas

namespace formulas {
inline void PrintTo(const Formula &formula, std::ostream *os) {
  *os << formula.name;
}
} // namespace formulas

#endif // TEST_UNITTESTS_LIBRARY_OPERATORSTESTUTIL_H
