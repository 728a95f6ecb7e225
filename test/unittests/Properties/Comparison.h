//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How what was compiled is compared with the reference.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_COMPARISON_H
#define KAS_TEST_UNITTESTS_PROPERTIES_COMPARISON_H

#include "Properties.h"
#include "kas/Reference/ExactCheck.h"

namespace kas::test {

struct Comparison {
  /// What is computed in: on integers for which nothing rounds, bit by bit.
  reference::ExactFormat format = {};
  unsigned draws = 2;
  /// Where there are no such integers, and values are any numbers: the largest
  /// relative error.
  double tolerance = 1e-4;
  /// Where factors are rounded: times `getCancellationFloor`, which is for f32.
  double floorFactor = 1;
};

/// f32 sums of factors of `type`: tf32, f16 or bf16. `elements`: outputs are of
/// that type, too.
Comparison compareRounded(llvm::StringRef type, bool elements = false);

/// How many operators were compared.
struct ComparisonCounts {
  unsigned all = 0, exact = 0;

  /// Records them as properties of the test; nine of ten must be exact.
  void check() const;
};

/// Compares what `run` returns for tensors of the concrete operator `op` with
/// the reference; values are drawn from `seed`.
void compareWithReference(
    OperatorOp op, uint64_t seed, const Comparison &comparison,
    ComparisonCounts &counts,
    llvm::function_ref<std::vector<float>(const Inputs &)> run);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_COMPARISON_H
