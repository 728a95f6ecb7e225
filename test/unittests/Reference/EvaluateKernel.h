//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates a kernel of the tensor level that is given as text.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_REFERENCE_EVALUATEKERNEL_H
#define KAS_TEST_UNITTESTS_REFERENCE_EVALUATEKERNEL_H

#include "Evaluate.h"
#include "kas/Reference/KernelEvaluator.h"

/// Parses `text`, a module that holds one kernel, and evaluates it at its first
/// binding (all symbols 1 without one) on `inputs` and `weights` (row-major).
/// When anything fails the result is empty, and the diagnostics are in `errors`
/// if that is given, else failures of the test.
Values evaluateKernel(const std::string &text,
                      const std::vector<Values> &inputs,
                      const std::vector<Values> &weights = {},
                      std::string *errors = nullptr,
                      kas::reference::StepPrecision precision =
                          kas::reference::StepPrecision::Double);

/// As many normally distributed values.
Values randomValues(size_t count, uint64_t seed);

/// Equal but for 1e-6 of the largest magnitude.
void expectClose(const Values &actual, const std::vector<double> &expected);

#endif // KAS_TEST_UNITTESTS_REFERENCE_EVALUATEKERNEL_H
