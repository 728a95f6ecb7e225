//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Indices as sums, and their simplification within the ranges of loops: the
// expressions of operators (kas/Dialect/Kas/Analysis/Coordinates.h) go by it,
// too.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/IndexExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kas::schedule;
using llvm::ArrayRef;
using llvm::divideFloorSigned;
using Term = IndexTerm;
using Kind = Term::Kind;

IndexExpr IndexExpr::getConstant(int64_t value) {
  IndexExpr expr;
  expr.constant = value;
  return expr;
}

IndexExpr IndexExpr::getLoop(unsigned loop) {
  IndexExpr expr;
  expr.terms.emplace_back().loop = loop;
  return expr;
}

bool IndexTerm::dependsOn(unsigned other) const {
  return dividend ? dividend->dependsOn(other) : loop == other;
}

bool IndexTerm::isSame(const IndexTerm &other) const {
  if (kind != other.kind)
    return false;
  if (kind == Kind::Loop)
    return loop == other.loop;
  return divisor == other.divisor &&
         (dividend == other.dividend || *dividend == *other.dividend);
}

bool kas::schedule::operator==(const IndexExpr &a, const IndexExpr &b) {
  return a.constant == b.constant && a.terms.size() == b.terms.size() &&
         llvm::all_of(a.terms, [&](const Term &term) {
           return llvm::any_of(b.terms, [&](const Term &other) {
             return term.factor == other.factor && term.isSame(other);
           });
         });
}

void IndexExpr::add(const Term &term, int64_t factor) {
  auto *known = llvm::find_if(
      terms, [&](const Term &other) { return other.isSame(term); });
  if (known == terms.end()) {
    terms.push_back(term);
    terms.back().factor = term.factor * factor;
    if (terms.back().factor == 0)
      terms.pop_back();
    return;
  }
  known->factor += term.factor * factor;
  if (known->factor == 0)
    terms.erase(known);
}

void IndexExpr::add(const IndexExpr &other, int64_t factor) {
  for (const Term &term : other.terms)
    add(term, factor);
  constant += other.constant * factor;
}

bool IndexExpr::dependsOn(unsigned loop) const {
  return llvm::any_of(terms,
                      [&](const Term &term) { return term.dependsOn(loop); });
}

bool IndexExpr::isLinear() const {
  return llvm::all_of(terms,
                      [](const Term &term) { return term.kind == Kind::Loop; });
}

std::optional<int64_t> IndexExpr::getCoefficient(unsigned loop) const {
  int64_t sum = 0;
  for (const Term &term : terms) {
    if (!term.dependsOn(loop))
      continue;
    if (term.kind != Kind::Loop)
      return std::nullopt;
    sum += term.factor;
  }
  return sum;
}

static Interval getTermInterval(const Term &term, ArrayRef<Interval> ranges) {
  if (term.kind == Kind::Loop)
    return ranges[term.loop];
  Interval inside = term.dividend->getInterval(ranges);
  int64_t first = divideFloorSigned(inside.lower, term.divisor);
  int64_t last = divideFloorSigned(inside.upper, term.divisor);
  if (term.kind == Kind::Quotient)
    return {first, last};
  if (first == last)
    return {inside.lower - first * term.divisor,
            inside.upper - first * term.divisor};
  return {0, term.divisor - 1};
}

Interval IndexExpr::getInterval(ArrayRef<Interval> ranges) const {
  Interval sum{constant, constant};
  for (const Term &term : terms) {
    Interval own = getTermInterval(term, ranges);
    auto [lower, upper] =
        std::minmax({own.lower * term.factor, own.upper * term.factor});
    sum.lower += lower;
    sum.upper += upper;
  }
  return sum;
}

/// `dividend` divided, as it is.
static Term makeQuotient(IndexExpr dividend, int64_t divisor, Kind kind) {
  Term term;
  term.kind = kind;
  term.divisor = divisor;
  term.dividend = std::make_shared<const IndexExpr>(std::move(dividend));
  return term;
}

IndexExpr IndexExpr::replaceLoops(ArrayRef<IndexExpr> loops) const {
  IndexExpr result = getConstant(constant);
  for (const Term &term : terms) {
    if (term.kind == Kind::Loop) {
      result.add(loops[term.loop], term.factor);
      continue;
    }
    IndexExpr inside = term.dividend->replaceLoops(loops);
    if (!inside.terms.empty()) {
      result.add(makeQuotient(std::move(inside), term.divisor, term.kind),
                 term.factor);
      continue;
    }
    int64_t quotient = divideFloorSigned(inside.constant, term.divisor);
    result.constant +=
        term.factor * (term.kind == Kind::Quotient
                           ? quotient
                           : inside.constant - quotient * term.divisor);
  }
  return result;
}

/// The only term of `expr`, if that is a quotient or a remainder and nothing
/// else.
static const Term *getSingle(const IndexExpr &expr, Kind kind) {
  if (expr.constant == 0 && expr.terms.size() == 1 &&
      expr.terms.front().kind == kind && expr.terms.front().factor == 1)
    return &expr.terms.front();
  return nullptr;
}

IndexExpr IndexExpr::divide(int64_t divisor, bool isRemainder,
                            ArrayRef<Interval> ranges) const {
  IndexExpr multiple, rest;
  for (const Term &term : terms)
    (term.factor % divisor == 0 ? multiple : rest).add(term, 1);
  multiple.constant = divideFloorSigned(constant, divisor) * divisor;
  rest.constant = constant - multiple.constant;
  Interval interval = rest.getInterval(ranges);
  int64_t period = divideFloorSigned(interval.lower, divisor);
  bool isOnePeriod = period == divideFloorSigned(interval.upper, divisor);
  if (isRemainder) {
    if (isOnePeriod) {
      rest.constant -= period * divisor;
      return rest;
    }
    // (e mod (c * d)) mod d = e mod d.
    const Term *inner = getSingle(rest, Kind::Remainder);
    if (inner && inner->divisor % divisor == 0)
      return inner->dividend->simplify(ranges).divide(divisor, true, ranges);
    IndexExpr result;
    result.terms.push_back(
        makeQuotient(std::move(rest), divisor, Kind::Remainder));
    return result;
  }
  IndexExpr result;
  if (isOnePeriod)
    result.constant = period;
  else if (const Term *inner = getSingle(rest, Kind::Quotient))
    // (e floordiv c) floordiv d = e floordiv (c * d).
    result = inner->dividend->simplify(ranges).divide(inner->divisor * divisor,
                                                      false, ranges);
  else
    result.terms.push_back(
        makeQuotient(std::move(rest), divisor, Kind::Quotient));
  for (const Term &term : multiple.terms) {
    Term divided = term;
    divided.factor /= divisor;
    result.add(divided, 1);
  }
  result.constant += multiple.constant / divisor;
  return result;
}

/// a * c * (e floordiv c) + a * (e mod c) = a * e, where the remainder may have
/// been simplified already.
static void joinQuotients(IndexExpr &sum, ArrayRef<Interval> ranges) {
  for (const Term &term : sum.terms) {
    if (term.kind != Kind::Quotient || term.factor % term.divisor != 0)
      continue;
    int64_t factor = term.factor / term.divisor;
    IndexExpr dividend = term.dividend->simplify(ranges);
    IndexExpr remainder = dividend.divide(term.divisor, true, ranges);
    bool isFound = llvm::all_of(remainder.terms, [&](const Term &part) {
      return llvm::any_of(sum.terms, [&](const Term &other) {
        return other.isSame(part) && other.factor == factor * part.factor;
      });
    });
    if (!isFound)
      continue;
    sum.add(Term(term), -1);
    sum.add(remainder, -factor);
    sum.add(dividend, factor);
    return joinQuotients(sum, ranges);
  }
}

IndexExpr IndexExpr::simplify(ArrayRef<Interval> ranges) const {
  IndexExpr result = getConstant(constant);
  for (const Term &term : terms) {
    Interval interval = getTermInterval(term, ranges);
    if (interval.lower == interval.upper)
      result.constant += term.factor * interval.lower;
    else if (term.kind == Kind::Loop)
      result.add(term, 1);
    else
      result.add(term.dividend->simplify(ranges).divide(
                     term.divisor, term.kind == Kind::Remainder, ranges),
                 term.factor);
  }
  joinQuotients(result, ranges);
  return result;
}
