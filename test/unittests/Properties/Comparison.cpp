//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

Comparison kas::test::compareRounded(StringRef type, bool elements) {
  // Results of stages are rounded to 10 bits after the point or to 7, too. Four
  // factors of 10 bits are off by a fifth of the tolerance, relative to sums
  // without signs.
  bool isShort = type == "bf16";
  unsigned bits = isShort ? 8 : 11;
  return {.format = {.sumBits = 24,
                     .factorBits = bits,
                     .elementBits = elements ? bits : 24},
          .tolerance = isShort ? 8e-2 : 1e-2,
          .floorFactor = 20};
}

void ComparisonCounts::check() const {
  testing::Test::RecordProperty("compared", static_cast<int>(all));
  testing::Test::RecordProperty("exact", static_cast<int>(exact));
  EXPECT_GE(10 * exact, 9 * all);
}

static void
compareExactly(const ExactCheck &check, const OperatorShapes &shapes,
               llvm::function_ref<std::vector<float>(const Inputs &)> run) {
  for (auto [number, draw] : llvm::enumerate(check.getDraws())) {
    std::vector<float> output = run(Inputs(
        shapes, draw.inputs.front(), ArrayRef(draw.inputs).drop_front().vec()));
    ASSERT_EQ(output.size(), draw.results.front().size());
    if (auto difference = check.compare(number, {ArrayRef<float>(output)}))
      FAIL() << check.describe(number, *difference) << "\n" << check.describe();
  }
}

void kas::test::compareWithReference(
    OperatorOp op, uint64_t seed, const Comparison &comparison,
    ComparisonCounts &counts,
    llvm::function_ref<std::vector<float>(const Inputs &)> run) {
  OperatorShapes shapes = getShapes(op);
  auto check = ExactCheck::create(
      getExactProblem(op),
      {.format = comparison.format, .seed = seed, .draws = comparison.draws});
  ++counts.all;
  if (check) {
    ++counts.exact;
    return compareExactly(*check, shapes, run);
  }
  llvm::consumeError(check.takeError());
  Inputs inputs(shapes, seed);
  EXPECT_LE(getError(run(inputs), evaluate(op, inputs),
                     comparison.floorFactor * getCancellationFloor(op, inputs)),
            comparison.tolerance);
}
