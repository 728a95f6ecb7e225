//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact checks: draws integers for which every partial sum is exact, runs a
// program on them and compares bits (docs/internals/testing.md, "Exact
// checks").
// The designs (which magnitudes, which density) are chosen in ExactDesign.cpp.
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/ExactCheck.h"
#include "ExactDesign.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InterleavedRange.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::reference;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Drawing
//===----------------------------------------------------------------------===//

/// How many draws make the bound small enough.
static unsigned countDraws(const ExactProblem &problem,
                           const ExactOptions &options,
                           std::optional<double> missProbability) {
  if (options.draws)
    return options.draws;
  // Each value should be the largest one in some draw.
  if (!missProbability)
    return static_cast<unsigned>(
        std::min(ExactOptions::drawsPerValue * problem.maximumSize,
                 double(ExactOptions::maxDrawsOfMaxima)));
  // Draws are independent, so the bound of k draws is the k-th power.
  unsigned count = 1;
  for (double bound = *missProbability;
       bound > ExactOptions::enough && count < ExactOptions::maxDraws; ++count)
    bound *= *missProbability;
  return count;
}

Expected<ExactCheck> ExactCheck::create(const ExactProblem &problem,
                                        const ExactOptions &options) {
  if (options.draws > ExactOptions::mostDraws)
    return createStringError("an exact check requires at most " +
                             llvm::Twine(ExactOptions::mostDraws) +
                             " draws, got " + llvm::Twine(options.draws));
  ExactCheck check;
  check.inputs = problem.inputs;
  check.results = problem.results;
  check.degree = problem.getDegree();
  // Means over a number of elements that is no power of two round; all else is
  // exact, or the draw is given up.
  check.bitwise = !roundsQuotients(problem);
  // A wrong program may pass with each design that is tried.
  double missProbability = 0;
  std::string reason;
  /// Counts draws over all designs: no two designs see the same random numbers.
  uint64_t stream = 0;
  // Best bound first; the first design of which all draws are exact is taken.
  for (const ExactDesign &design : getDesigns(problem, options.format)) {
    std::optional<double> one = getMissBound(problem, design);
    // The bound is 1 or more: the degree is too high for these magnitudes.
    if (!one && problem.maximumSize == 1) {
      reason = "more different values than are exact";
      continue;
    }
    check.design = design;
    check.draws.clear();
    unsigned count = countDraws(problem, options, one);
    // Summed over the designs that were tried, also those given up: whether a
    // design is given up depends on what was drawn, so the last one alone is no
    // fair draw.
    missProbability += std::pow(one.value_or(0), count);
    bool isExact = true;
    while (isExact && check.draws.size() < count) {
      Draw &draw = check.draws.emplace_back();
      draw.inputs = drawInputs(problem, design, options.seed, stream++);
      draw.results.resize(problem.results.size());
      // The reference runs once per draw, here; programs are compared with what
      // is kept.
      if (Error error = problem.evaluate(draw.inputs, draw.results))
        return error;
      auto violation = findRounding(problem, design, options.format, draw);
      if (!violation)
        return violation.takeError();
      isExact = violation->empty();
      reason = *violation;
    }
    if (!isExact)
      continue;
    // A maximum is no polynomial: no bound by Schwartz and Zippel.
    if (problem.maximumSize == 1)
      check.missProbability = std::min(1.0, missProbability);
    return check;
  }
  return createStringError("an exact check does not apply: it requires " +
                           reason);
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// Counts all differing elements and keeps the first. NaN differs from
/// everything, also here, where `value == wanted` is false for it.
std::optional<ExactDifference>
ExactCheck::compare(unsigned draw, ArrayRef<ArrayRef<float>> actual) const {
  std::optional<ExactDifference> difference;
  for (auto [result, values] : llvm::enumerate(actual)) {
    ArrayRef<float> expected = draws[draw].results[result];
    assert(values.size() == expected.size() && "another result");
    double divisor = results[result].divisor;
    for (auto [position, pair] :
         llvm::enumerate(llvm::zip_equal(expected, values))) {
      auto [wanted, value] = pair;
      // Exact results are multiples of 1 / divisor, and rounding moves a value
      // by less than a quarter of that (`Limits::takesSum`), so half of it
      // decides.
      bool agrees =
          bitwise ? value == wanted
                  : std::fabs(double(value) - double(wanted)) * divisor < 0.5;
      if (agrees)
        continue;
      if (!difference)
        difference = {0, static_cast<unsigned>(result),
                      static_cast<int64_t>(position), wanted, value};
      ++difference->count;
    }
  }
  return difference;
}

/// Stops at the first draw that differs: one is proof enough.
Expected<std::optional<std::string>>
ExactCheck::findDifference(ProgramFn program) const {
  for (auto [number, draw] : llvm::enumerate(draws)) {
    // NaN shows an element that is never written.
    std::vector<TensorValues> actual;
    for (const TensorValues &expected : draw.results)
      actual.emplace_back(expected.size(),
                          std::numeric_limits<float>::quiet_NaN());
    if (Error error = program(draw, actual))
      return error;
    if (auto difference =
            compare(number, llvm::to_vector_of<ArrayRef<float>>(actual)))
      return describe(number, *difference);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

/// `-2..2` for all inputs, or `-170..170 (data), -2..2 (weight0)`.
static std::string getValues(const ExactDesign &design,
                             ArrayRef<ExactProblem::Input> inputs) {
  std::string text;
  bool isSame = llvm::all_equal(design.magnitudes);
  for (auto [magnitude, input] : llvm::zip_equal(design.magnitudes, inputs)) {
    std::string one = std::to_string(magnitude);
    text += (text.empty() ? "" : ", ") + ("-" + one) + ".." + one;
    if (isSame)
      break;
    text += " (" + input.name + ")";
  }
  return text;
}

/// Two digits, rounded up: it is a bound.
/// For example 3.05e-8 -> `3.1e-08`.
static std::string formatBound(double bound) {
  double unit = bound > 0 ? std::pow(10, std::floor(std::log10(bound)) - 1) : 1;
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("%.2g", std::min(1.0, std::ceil(bound / unit) * unit));
  return text;
}

std::string ExactCheck::describe() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "exact: degree " << degree;
  if (!inputs.empty())
    stream << ", values " << getValues(design, inputs);
  if (design.density < 1)
    stream << llvm::format(" with %.4g %% of them not zero",
                           100 * design.density);
  stream << ", " << draws.size() << (draws.size() == 1 ? " draw" : " draws");
  if (missProbability)
    stream << ", probability of missing a wrong kernel <= "
           << formatBound(*missProbability);
  else
    stream << ", no bound because of a maximum";
  if (!bitwise)
    stream << ", means compared after rounding";
  return text;
}

std::string ExactCheck::describe(unsigned draw,
                                 const ExactDifference &difference) const {
  const ExactProblem::Result &result = results[difference.result];
  llvm::SmallVector<int64_t> indices(result.shape.size());
  int64_t rest = difference.position;
  // Row-major position -> indices, innermost dimension first.
  for (size_t dim = result.shape.size(); dim-- > 0;) {
    indices[dim] = rest % result.shape[dim];
    rest /= result.shape[dim];
  }
  int64_t size = 0;
  for (const TensorValues &values : draws[draw].results)
    size += static_cast<int64_t>(values.size());
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << difference.count << " of " << size << " elements differ in draw "
         << draw << ", the first at [" << llvm::interleaved(indices, ", ")
         << "]";
  if (results.size() > 1)
    stream << " of result " << difference.result;
  stream << llvm::format(": expected %.9g, got %.9g",
                         double(difference.expected),
                         double(difference.actual));
  return text;
}

llvm::json::Object ExactCheck::toJSON() const {
  llvm::json::Object object{
      {"degree", static_cast<int64_t>(degree)},
      {"magnitudes", llvm::json::Array(design.magnitudes)},
      {"density", design.density},
      {"draws", static_cast<int64_t>(draws.size())},
      {"bitwise", bitwise},
      {"miss_probability", nullptr}};
  if (missProbability)
    object["miss_probability"] = *missProbability;
  return object;
}
