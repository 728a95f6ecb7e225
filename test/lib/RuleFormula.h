//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What must hold so that the two operators of a rule are the same, as formulas
// over integers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RULEFORMULA_H
#define KAS_TEST_LIB_RULEFORMULA_H

#include "Polynomial.h"
#include "RuleStatement.h"
#include <string>

namespace kas::test {

/// A relation of `value` to zero, required only where each polynomial of `when`
/// is at least 0.
struct Constraint {
  enum Relation { NonNegative, Zero, NonZero };
  Relation relation;
  Polynomial value;
  std::vector<Polynomial> when = {};
};

/// An instance of the lemma on products: with factor >= 0 (a size), value >= k
/// gives value * factor >= k * factor, and value <= k gives value * factor <= k
/// * factor, for k from -2 to 2.
struct ProductFact {
  Polynomial value, factor;
};

/// One claim: where all of `assumed` hold, so do all of `goals`.
struct Claim {
  std::string name;
  std::vector<Constraint> assumed, goals;
};

/// Variables, what is known of them, and claims to be proven of that. What
/// concerns a second point of the iteration space is apart: fewer facts are
/// easier.
struct Formula {
  struct Section {
    std::vector<unsigned> variables;
    std::vector<Constraint> premises;
    std::vector<ProductFact> facts;
    std::vector<Claim> claims;
  };
  std::vector<std::string> variables;
  Section one, two;

  Polynomial addVariable(Section &section, llvm::StringRef name);
};

/// The bottom coordinates' expression of primitives.
inline Polynomial getSplit(const Polynomial &outer, const Polynomial &inner,
                           const Polynomial &innerSize) {
  return outer * innerSize + inner;
}

/// 0 <= value < size, where each polynomial of `when` is at least 0.
void addRange(std::vector<Constraint> &constraints, const Polynomial &value,
              const Polynomial &size, llvm::ArrayRef<Polynomial> when = {});

/// The claims of which the facts of all other formulas are instances: products,
/// and the ranges of what primitives make; and that shifts are bijections.
std::vector<std::pair<std::string, Formula>> getLemmas();

/// The claims that make the operators of `rule` the same. Reports what has no
/// formula.
mlir::FailureOr<Formula> getFormula(RuleStatement rule);

} // namespace kas::test

#endif // KAS_TEST_LIB_RULEFORMULA_H
