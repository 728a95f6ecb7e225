//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts that let a solver for linear arithmetic prove formulas with products:
// instances of lemmas on the products that occur.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RULEFACTS_H
#define KAS_TEST_LIB_RULEFACTS_H

#include "RuleFormula.h"

namespace kas::test {

/// What the points of one section of a formula are made of.
struct SectionFacts {
  /// 0 <= value < size.
  struct Range {
    Polynomial value, size;
  };
  /// quotient = floor(dividend / divisor).
  struct Division {
    Polynomial dividend, divisor, quotient;
  };
  /// A coordinate and what it is multiplied by.
  struct Product {
    Polynomial coordinate, factor;
  };
  std::vector<Range> ranges;
  std::vector<Division> divisions;
  std::vector<Product> splits;
};
struct FormulaFacts {
  SectionFacts one, two;
};

/// Adds the facts to the sections of `formula`.
void addFacts(Formula &formula, const FormulaFacts &facts);

} // namespace kas::test

#endif // KAS_TEST_LIB_RULEFACTS_H
