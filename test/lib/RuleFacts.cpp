//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuleFacts.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace kas;
using namespace kas::test;

namespace {
/// Collects each fact once, in the order in which they come.
class FactBuilder {
public:
  FactBuilder(Formula &formula, const FormulaFacts &facts)
      : formula(formula), facts(facts) {}

  void build() {
    addSizes(facts.one);
    section = &formula.one;
    for (const Polynomial &size : sizes)
      addProduct(size);
    addSection(facts.one);
    // A lemma has one point only.
    if (facts.two.ranges.empty())
      return;
    section = &formula.two;
    addSection(facts.two);
    addPairs();
  }

private:
  void add(const Polynomial &value, const Polynomial &factor) {
    // What is linear needs no help.
    if (!value.isConstant() && !factor.isConstant() &&
        made.insert({value, factor}).second)
      section->facts.push_back({value, factor});
  }

  void addSizes(const SectionFacts &of) {
    for (const SectionFacts::Range &range : of.ranges)
      sizes.insert(range.size);
    for (const SectionFacts::Division &division : of.divisions)
      factors.insert(division.divisor);
    for (const SectionFacts::Product &split : of.splits)
      factors.insert(split.factor);
    std::set<Polynomial> products;
    for (const Polynomial &a : factors)
      for (const Polynomial &b : factors)
        products.insert(a * b);
    for (const Polynomial &product : products)
      if (isDivisorOfSize(product))
        factors.insert(product);
    sizes.insert(factors.begin(), factors.end());
  }
  bool isDivisorOfSize(const Polynomial &product) const {
    return llvm::any_of(sizes, [&](const Polynomial &size) {
      return size.divide(product).second.isZero();
    });
  }

  /// A product of sizes is as large as each factor.
  void addProduct(const Polynomial &size) {
    const auto &[monomial, coefficient] = *size.getTerms().begin();
    for (unsigned variable : monomial) {
      Polynomial symbol = Polynomial::variable(variable);
      Polynomial rest = size.divide(symbol).first;
      if (rest.isConstant())
        continue;
      add(symbol, rest);
      addProduct(rest);
    }
  }

  /// Of one point: bounds times what they are multiplied by, and quotients of
  /// what is not a multiple of the divisor.
  void addSection(const SectionFacts &of) {
    for (const SectionFacts::Range &range : of.ranges)
      for (const Polynomial &factor : factors)
        if (isDivisorOfSize(range.size * factor)) {
          add(range.value, factor);
          add(range.size - 1 - range.value, factor);
        }
    for (const SectionFacts::Division &a : of.divisions) {
      add(getRest(a), a.divisor);
      for (const SectionFacts::Division &b : of.divisions) {
        if (&a == &b)
          break;
        compare(a, b);
      }
    }
  }
  /// The quotient without what leaves the division.
  static Polynomial getRest(const SectionFacts::Division &division) {
    return division.quotient - division.dividend.divide(division.divisor).first;
  }
  void compare(const SectionFacts::Division &a,
               const SectionFacts::Division &b) {
    for (const Polynomial &divisor : {a.divisor, b.divisor}) {
      add(a.quotient - b.quotient, divisor);
      add(getRest(a) - getRest(b), divisor);
    }
    compareMultiple(a, b);
    compareMultiple(b, a);
  }
  /// The divisor of `a` is a multiple of that of `b`.
  void compareMultiple(const SectionFacts::Division &a,
                       const SectionFacts::Division &b) {
    auto [ratio, rest] = a.divisor.divide(b.divisor);
    if (!rest.isZero() || ratio == Polynomial(1))
      return;
    add(b.quotient - a.quotient * ratio, b.divisor);
    add(getRest(b) - getRest(a) * ratio, b.divisor);
  }

  /// Of two points: the same coordinate of both.
  void addPairs() {
    for (auto [a, b] : llvm::zip_equal(facts.one.splits, facts.two.splits))
      add(a.coordinate - b.coordinate, a.factor);
    for (auto [a, b] :
         llvm::zip_equal(facts.one.divisions, facts.two.divisions)) {
      add(a.quotient - b.quotient, a.divisor);
      add(getRest(a) - getRest(b), a.divisor);
    }
    addPairsOfDivisions();
    for (auto [a, b] : llvm::zip_equal(facts.one.ranges, facts.two.ranges))
      for (const Polynomial &factor : factors)
        if (isDivisorOfSize(a.size * factor))
          add(a.value - b.value, factor);
  }

  /// Two remainders by one divisor: the difference of one follows from that of
  /// the other.
  void addPairsOfDivisions() {
    auto getDifference = [&](size_t i) {
      return getRest(facts.one.divisions[i]) - getRest(facts.two.divisions[i]);
    };
    for (size_t i = 0; i < facts.one.divisions.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (facts.one.divisions[i].divisor == facts.one.divisions[j].divisor)
          add(getDifference(i) - getDifference(j),
              facts.one.divisions[i].divisor);
  }

  Formula &formula;
  const FormulaFacts &facts;
  Formula::Section *section = nullptr;
  std::set<Polynomial> sizes, factors;
  std::set<std::pair<Polynomial, Polynomial>> made;
};
} // namespace

void kas::test::addFacts(Formula &formula, const FormulaFacts &facts) {
  FactBuilder(formula, facts).build();
}

//===----------------------------------------------------------------------===//
// Lemmas
//===----------------------------------------------------------------------===//

static Formula getProductLemma() {
  Formula formula;
  Formula::Section &one = formula.one;
  Polynomial value = formula.addVariable(one, "value"),
             factor = formula.addVariable(one, "factor");
  one.premises.push_back({Constraint::NonNegative, factor});
  for (int64_t k = -2; k <= 2; ++k)
    for (int64_t sign : {1, -1})
      one.claims.push_back(
          {"k = " + std::to_string(k),
           {{Constraint::NonNegative, (value - k) * sign}},
           {{Constraint::NonNegative, (value - k) * factor * sign}}});
  return formula;
}

namespace {
/// The range of what a primitive makes of coordinates in their ranges.
struct RangeLemma {
  Formula formula;
  FormulaFacts facts;

  Polynomial addSize(llvm::StringRef name) {
    Polynomial size = formula.addVariable(formula.one, name);
    formula.one.premises.push_back({Constraint::NonNegative, size - 1});
    return size;
  }
  Polynomial addCoordinate(llvm::StringRef name, const Polynomial &size) {
    Polynomial value = formula.addVariable(formula.one, name);
    addRange(formula.one.premises, value, size);
    facts.one.ranges.push_back({value, size});
    return value;
  }
  /// What is proven may not be among the facts.
  Formula finish(const Polynomial &result, const Polynomial &size) {
    facts.one.ranges.push_back({0, size});
    addFacts(formula, facts);
    Claim claim{"range", {}, {}};
    addRange(claim.goals, result, size);
    formula.one.claims.push_back(claim);
    return std::move(formula);
  }
};
} // namespace

static Formula getSplitLemma() {
  RangeLemma lemma;
  Polynomial outerSize = lemma.addSize("G"), innerSize = lemma.addSize("B"),
             outer = lemma.addCoordinate("i", outerSize),
             inner = lemma.addCoordinate("j", innerSize);
  lemma.facts.one.splits.push_back({outer, innerSize});
  return lemma.finish(getSplit(outer, inner, innerSize), outerSize * innerSize);
}

static Formula getMergeLemma() {
  RangeLemma lemma;
  Polynomial quotientSize = lemma.addSize("G"), block = lemma.addSize("B"),
             whole = lemma.addCoordinate("i", quotientSize * block),
             quotient = lemma.formula.addVariable(lemma.formula.one, "q");
  addRange(lemma.formula.one.premises, whole - quotient * block, block);
  lemma.formula.one.facts = {{quotient, block},
                             {quotient - quotientSize, block}};
  return lemma.finish(quotient, quotientSize);
}

static Formula getStrideLemma() {
  RangeLemma lemma;
  Polynomial size = lemma.addSize("K"), factor = lemma.addSize("S"),
             base = lemma.addCoordinate("i", size);
  lemma.facts.one.splits.push_back({base, factor});
  return lemma.finish(base * factor, size * factor);
}

/// A shift by any amount is one to one.
static Formula getShiftLemma() {
  RangeLemma lemma;
  Formula::Section &section = lemma.formula.one;
  Polynomial size = lemma.addSize("N"),
             amount = lemma.formula.addVariable(section, "d");
  std::vector<Polynomial> points, shifted, quotients;
  for (llvm::StringRef name : {"i", "i_2"}) {
    points.push_back(lemma.addCoordinate(name, size));
    quotients.push_back(lemma.formula.addVariable(section, "q"));
    shifted.push_back(points.back() + amount - quotients.back() * size);
    addRange(section.premises, shifted.back(), size);
  }
  section.facts = {{quotients[0] - quotients[1], size}};
  section.claims.push_back({"one to one",
                            {{Constraint::Zero, shifted[0] - shifted[1]}},
                            {{Constraint::Zero, points[0] - points[1]}}});
  return std::move(lemma.formula);
}

std::vector<std::pair<std::string, Formula>> kas::test::getLemmas() {
  return {{"product", getProductLemma()},
          {"range_of_split", getSplitLemma()},
          {"range_of_merge", getMergeLemma()},
          {"range_of_stride", getStrideLemma()},
          {"shift_is_one_to_one", getShiftLemma()}};
}
