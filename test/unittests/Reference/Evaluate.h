//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates an operator that is given as text.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_REFERENCE_EVALUATE_H
#define KAS_TEST_UNITTESTS_REFERENCE_EVALUATE_H

#include <string>
#include <vector>

using Values = std::vector<float>;

/// Parses `text`, a module that holds one concrete operator, and evaluates it
/// on `data` and `weights` (row-major). When anything fails the result is
/// empty, and the diagnostics are in `errors` if that is given, else failures
/// of the test.
Values evaluate(const std::string &text, const Values &data,
                const std::vector<Values> &weights = {},
                std::string *errors = nullptr);

#endif // KAS_TEST_UNITTESTS_REFERENCE_EVALUATE_H
