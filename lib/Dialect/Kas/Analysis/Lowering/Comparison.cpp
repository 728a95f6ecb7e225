//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares the terms that lowered code sums with those of the operator, for all
// points at once, and describes the first difference
// (docs/internals/proving-lowerings.md).
//
// Order: defined values, products, then a matching of the reductions; a
// matching is a guess, and only the comparison of relations under it accepts.
// Where none is found, terms of sample outputs are listed, to tell "different"
// from "cannot say".
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

using namespace kas;
using namespace kas::lowering;
using namespace mlir;

/// Points, or outputs, that are tried before anything is proven: a wrong
/// matching nearly always fails there, at a thousandth of the cost.
static constexpr unsigned numSamples = 32;
/// Terms of one output that are listed to compare them.
static constexpr int64_t maxTerms = int64_t(1) << 18;
/// Points of the reductions of which one may exist for all outputs.
static constexpr unsigned maxCommonPoints = 4096;

/// Equal to six digits: constants are rounded to f32.
static bool areClose(double left, double right) {
  return std::abs(left - right) <=
         1e-6 * std::max(std::abs(left), std::abs(right));
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static void print(raw_ostream &os, ArrayRef<int64_t> numbers) {
  os << '[';
  llvm::interleaveComma(numbers, os);
  os << ']';
}

/// As diagnostics have it: `data`, `weight 0`, ...
static std::string getInputName(size_t input) {
  return input == 0 ? "data" : "weight " + std::to_string(input - 1);
}

static SmallVector<int64_t> evaluateAll(ArrayRef<AffineExpr> exprs,
                                        ArrayRef<int64_t> point) {
  return llvm::map_to_vector(
      exprs, [&](AffineExpr expr) { return evaluateAt(expr, point); });
}

/// For each factor of a term the number of its input, then its indices; sorted.
// Sorted, since products commute.
using Elements = std::vector<std::vector<int64_t>>;
static Elements getElements(const Term &term, ValueRange inputs,
                            ArrayRef<int64_t> point) {
  Elements elements;
  for (const Factor &factor : term.factors) {
    std::vector<int64_t> &element = elements.emplace_back();
    element.push_back(llvm::find(inputs, factor.tensor) - inputs.begin());
    llvm::append_range(element, evaluateAll(factor.indices, point));
  }
  llvm::sort(elements);
  return elements;
}

static std::string describe(const Elements &elements) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      elements, os,
      [&](ArrayRef<int64_t> element) {
        os << getInputName(element.front());
        print(os, element.drop_front());
      },
      " * ");
  return text.empty() ? "a constant" : text;
}

std::string Comparison::describeOutput(ArrayRef<int64_t> point) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << " at output ";
  print(os, point.take_front(numOutputs));
  return text;
}

LoweringResult Comparison::differ(const Twine &text) const {
  return {LoweringVerdict::Different, text.str()};
}

//===----------------------------------------------------------------------===//
// Parts that need no matching
//===----------------------------------------------------------------------===//

/// Nothing: every output has a value, and no sum has minus infinity in it.
std::optional<LoweringResult> Comparison::checkDefined() {
  if (got.accumulator || got.isMixed)
    return LoweringResult{LoweringVerdict::Undecided,
                          "its value is not one reduction"};
  for (const Conditions &region : got.undefined)
    if (std::optional<Point> point = findPoint(region, dims))
      return differ("requires elements that something has written" +
                    describeOutput(*point) + ", got one that nothing has");
  for (const Conditions &region : got.lowest)
    if (std::optional<Point> point = findPoint(region, dims))
      return differ("requires a sum" + describeOutput(*point) +
                    ", got minus infinity");
  return std::nullopt;
}

/// All terms must have the same loops: they are then parts of one reduction, in
/// different regions (the inside and the border of a padded tensor).
std::optional<LoweringResult> Comparison::checkTerms() {
  // Terms without points say nothing.
  llvm::erase_if(got.terms, [&](const Term &term) {
    return term.isZeroWhereEmpty && !term.where.empty() &&
           !findPoint(term.where, dims);
  });
  if (got.terms.empty()) {
    // The code is zero everywhere: right only if the operator has no points.
    std::optional<Point> point = findPoint(required.where, operatorDims);
    if (!point)
      return LoweringResult();
    return differ("requires " +
                  describe(getElements(required, inputs, *point)) +
                  describeOutput(*point) + ", got nothing");
  }
  const Term &first = got.terms.front();
  for (const Term &term : ArrayRef(got.terms).drop_front()) {
    bool isSame =
        term.loops.size() == first.loops.size() &&
        llvm::all_of(llvm::zip(term.loops, first.loops), [](const auto &pair) {
          auto &[left, right] = pair;
          return left.dim == right.dim && left.isMax == right.isMax;
        });
    if (!isSame || term.isZeroWhereEmpty != first.isZeroWhereEmpty)
      return LoweringResult{LoweringVerdict::Undecided,
                            "it is a sum of several reductions"};
  }
  return std::nullopt;
}

/// Factor i of the operator becomes factor `order[i]` of the code. False when
/// tensors differ. Several orders fit where one tensor occurs twice.
bool Comparison::orderFactors(ArrayRef<unsigned> order) {
  for (Term &term : got.terms)
    for (auto [index, factor] : llvm::enumerate(required.factors))
      if (term.factors[order[index]].tensor != factor.tensor)
        return false;
  for (Term &term : got.terms) {
    SmallVector<Factor> ordered;
    for (unsigned index : order)
      ordered.push_back(term.factors[index]);
    term.factors = std::move(ordered);
  }
  return true;
}

/// The same inputs, as often, in each term.
std::optional<LoweringResult> Comparison::checkFactors() {
  auto getInputs = [&](const Term &term) {
    SmallVector<size_t> numbers =
        llvm::map_to_vector(term.factors, [&](const Factor &factor) {
          return size_t(llvm::find(inputs, factor.tensor) - inputs.begin());
        });
    llvm::sort(numbers);
    return numbers;
  };
  auto describeInputs = [](ArrayRef<size_t> numbers) {
    return numbers.empty()
               ? "a constant"
               : llvm::join(llvm::map_range(numbers, getInputName), " * ");
  };
  SmallVector<size_t> expected = getInputs(required);
  for (const Term &term : got.terms)
    if (SmallVector<size_t> actual = getInputs(term); actual != expected)
      return differ("requires products " + describeInputs(expected) + ", got " +
                    describeInputs(actual));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Matched reductions
//===----------------------------------------------------------------------===//

/// Whether both take the same elements at these points of the operator and of
/// the code.
static bool agreeAt(const Term &required, ArrayRef<int64_t> operatorPoint,
                    ArrayRef<Term> got, ArrayRef<int64_t> codePoint) {
  unsigned found = 0;
  for (const Term &term : got) {
    if (!contains(term.where, codePoint))
      continue;
    ++found;
    for (auto [left, right] : llvm::zip_equal(required.factors, term.factors))
      if (evaluateAll(left.indices, operatorPoint) !=
          evaluateAll(right.indices, codePoint))
        return false;
  }
  // Exactly one term of the code is there where the operator has a point: two
  // would add it twice.
  return found == (contains(required.where, operatorPoint) ? 1 : 0);
}

/// Points where earlier matchings failed come first: they are at the borders
/// where matchings differ.
bool Comparison::agreeAtSamples(const Matching &matching) {
  auto agree = [&](ArrayRef<int64_t> point) {
    return agreeAt(required, evaluateAll(matching.operatorDims, point),
                   got.terms, evaluateAll(matching.codeDims, point));
  };
  ArrayRef<Interval> ranges = matching.dims.ranges;
  auto isInRanges = [&](ArrayRef<int64_t> point) {
    return point.size() == ranges.size() &&
           llvm::all_of(llvm::zip_equal(point, ranges), [](const auto &pair) {
             return std::get<0>(pair) <= std::get<1>(pair).upper;
           });
  };
  for (const Point &point : samples)
    if (isInRanges(point) && !agree(point))
      return false;
  Random random(/*seed=*/ranges.size());
  Point point(ranges.size());
  for (unsigned sample = 0; sample < numSamples; ++sample) {
    for (auto [value, range] : llvm::zip_equal(point, ranges))
      value = sample == 0   ? range.lower
              : sample == 1 ? range.upper
                            : int64_t(random.below(range.upper + 1));
    if (!agree(point))
      return false;
  }
  return true;
}

static Conditions replaceDims(const Conditions &region,
                              ArrayRef<AffineExpr> dims) {
  return llvm::map_to_vector(region, [&](const Constraint &constraint) {
    return Constraint{constraint.expr.replaceDims(dims), constraint.isEquality};
  });
}

/// A point of `region` at which the two expressions differ.
/// left != right is left > right or left < right: two systems.
static std::optional<SmallVector<int64_t>> findUnequal(const Conditions &region,
                                                       AffineExpr left,
                                                       AffineExpr right,
                                                       const Dims &dims) {
  if (left == right)
    return std::nullopt;
  for (AffineExpr larger : {left - right - 1, right - left - 1}) {
    Conditions unequal = region;
    if (!addConstraint(unequal, {larger}, dims))
      continue;
    if (auto point = findPoint(unequal, dims))
      return point;
  }
  return std::nullopt;
}

/// With D the points of the operator and R1, R2, ... the regions of the code's
/// terms: D is in the union of the R, each R is in D, the R are disjoint, and
/// in each R all indices are equal. Together: the same terms, each once.
auto Comparison::findDifference(const Matching &matching)
    -> std::optional<Point> {
  const Dims &common = matching.dims;
  Conditions domain = replaceDims(required.where, matching.operatorDims);
  SmallVector<Conditions> regions;
  for (const Term &term : got.terms)
    regions.push_back(replaceDims(term.where, matching.codeDims));
  // Each point of the operator is in just one region, and no other point is.
  if (std::optional<Point> point = findUncovered(domain, regions, common))
    return point;
  for (const Conditions &region : regions)
    if (std::optional<Point> point = findUncovered(region, domain, common))
      return point;
  // Regions must be disjoint, pair by pair.
  for (size_t i = 0; i < regions.size(); ++i)
    for (size_t j = i + 1; j < regions.size(); ++j) {
      Conditions both = regions[i];
      if (!addConditions(both, regions[j], common))
        continue;
      if (std::optional<Point> point = findPoint(both, common))
        return point;
    }
  for (auto [term, region] : llvm::zip_equal(got.terms, regions))
    for (auto [left, right] : llvm::zip_equal(required.factors, term.factors))
      for (auto [first, second] : llvm::zip_equal(left.indices, right.indices))
        if (std::optional<Point> point =
                findUnequal(region, first.replaceDims(matching.operatorDims),
                            second.replaceDims(matching.codeDims), common))
          return point;
  return std::nullopt;
}

/// Of a maximum that begins at minus infinity: every output needs a point, or
/// the code gives minus infinity where the operator gives 0.
bool Comparison::hasEnoughPoints() {
  if (got.terms.front().isZeroWhereEmpty || required.where.empty())
    return true;
  // Some point of the reductions that each output has.
  SmallVector<AffineExpr> values;
  MLIRContext *context = op.getContext();
  for (unsigned dim = 0; dim < operatorDims.ranges.size(); ++dim)
    values.push_back(getAffineDimExpr(dim, context));
  Point point(required.loops.size(), 0);
  // Tries one point of the reductions after the other, for all outputs at once:
  // the middle of a window exists at each. Sufficient, not necessary.
  for (unsigned count = 0; count < maxCommonPoints; ++count) {
    for (auto [loop, value] : llvm::zip_equal(required.loops, point))
      values[loop.dim] = getAffineConstantExpr(value, context);
    Conditions region;
    bool isPossible = addConditions(region, replaceDims(required.where, values),
                                    operatorDims);
    if (isPossible && !findUncovered({}, region, operatorDims))
      return true;
    size_t loop = point.size();
    while (loop > 0 && ++point[loop - 1] == required.loops[loop - 1].extent)
      point[--loop] = 0;
    if (loop == 0)
      return false;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Outputs one by one
//===----------------------------------------------------------------------===//

/// How often each term occurs, times its scale.
using TermCounts = std::map<Elements, double>;

/// Adds the terms of `term` at the output that `point` begins with. False when
/// there are too many.
/// Goes through all points of the term's loops.
static bool count(const Term &term, ValueRange inputs,
                  SmallVector<int64_t> point, bool isMax, TermCounts &counts) {
  int64_t terms = 1;
  for (const Loop &loop : term.loops)
    if (terms *= loop.extent; terms > maxTerms)
      return false;
  while (true) {
    if (contains(term.where, point)) {
      double &times = counts[getElements(term, inputs, point)];
      // A maximum may take one element twice; a sum may not.
      times = isMax ? term.scale : times + term.scale;
    }
    size_t loop = term.loops.size();
    while (loop > 0 &&
           ++point[term.loops[loop - 1].dim] == term.loops[loop - 1].extent)
      point[term.loops[--loop].dim] = 0;
    if (loop == 0)
      return true;
  }
}

static std::string format(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// Nothing: the terms agree, or there are too many.
std::optional<LoweringResult>
Comparison::compareOutput(ArrayRef<int64_t> output) {
  auto isMaximum = [](const Loop &loop) {
    return loop.isMax && loop.extent > 1;
  };
  bool isMax = llvm::any_of(required.loops, isMaximum) ||
               llvm::any_of(got.terms.front().loops, isMaximum);
  Point point(operatorDims.ranges.size(), 0);
  llvm::copy(output.take_front(numOutputs), point.begin());
  TermCounts expected, actual;
  bool isComplete = count(required, inputs, point, isMax, expected);
  point.assign(dims.ranges.size(), 0);
  llvm::copy(output.take_front(numOutputs), point.begin());
  for (const Term &term : got.terms)
    isComplete &= count(term, inputs, point, isMax, actual);
  if (!isComplete)
    return std::nullopt;
  // Keys of both: terms that are missing and terms that are too many.
  TermCounts all = expected;
  all.insert(actual.begin(), actual.end());
  for (const auto &[elements, unused] : all) {
    double left = expected.count(elements) ? expected[elements] : 0;
    double right = actual.count(elements) ? actual[elements] : 0;
    if (!areClose(left, right))
      return differ("requires " + format(left) + " * " + describe(elements) +
                    describeOutput(output) + ", got " + format(right) +
                    " times that");
  }
  return std::nullopt;
}

/// Outputs of failed matchings, corners, and random ones. Never `Equal`.
LoweringResult Comparison::compareOutputs(const Twine &reason) {
  Random random(/*seed=*/0);
  for (unsigned sample = 0; sample < numSamples; ++sample) {
    Point output;
    for (unsigned dim = 0; dim < numOutputs; ++dim) {
      int64_t last = dims.ranges[dim].upper;
      output.push_back(sample == 0   ? 0
                       : sample == 1 ? last
                                     : int64_t(random.below(last + 1)));
    }
    outputs.push_back(output);
  }
  for (const Point &output : outputs)
    if (std::optional<LoweringResult> result = compareOutput(output))
      return *result;
  return {LoweringVerdict::Undecided, reason.str()};
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

/// Factors may be in another order in the code, and several orders fit where
/// one tensor occurs twice, so all permutations of the factors (few) are tried
/// too.
LoweringResult Comparison::matchReductions() {
  bool isScaled = false;
  auto visit = [&](const Matching &matching) {
    if (!agreeAtSamples(matching))
      return false;
    if (std::optional<Point> point = findDifference(matching)) {
      samples.push_back(*point);
      outputs.push_back(evaluateAll(matching.operatorDims, *point));
      return false;
    }
    isScaled = llvm::all_of(got.terms, [&](const Term &term) {
      return areClose(term.scale, required.scale * matching.factor);
    });
    return true;
  };
  SmallVector<unsigned> order(required.factors.size());
  std::iota(order.begin(), order.end(), 0);
  Terms original = got;
  bool isMatched = false;
  do {
    // `orderFactors` has changed it.
    got = original;
    isMatched = orderFactors(order) &&
                forEachMatching(op, operatorDims, required.loops, dims,
                                got.terms.front().loops, visit);
  } while (!isMatched && std::next_permutation(order.begin(), order.end()));
  if (!isMatched || !isScaled)
    return compareOutputs("no order of its loops was found to be that of the "
                          "reductions");
  if (!hasEnoughPoints())
    return {LoweringVerdict::Undecided,
            "a maximum may have no points for some outputs"};
  return {};
}

/// From cheap to expensive; each step may already have the answer.
LoweringResult Comparison::run() {
  if (std::optional<LoweringResult> result = checkDefined())
    return *result;
  if (std::optional<LoweringResult> result = checkTerms())
    return *result;
  if (std::optional<LoweringResult> result = checkFactors())
    return *result;
  return matchReductions();
}
