//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses magnitudes and densities of the integers of an exact check, and
// bounds the probability that a wrong program passes.
//
// A design is dense (density 1) while magnitudes of 1 or more keep every sum
// below 2^sumBits in the worst case. Else most elements are zero, and exactness
// is checked on what was drawn. The bound is that of Schwartz (J. ACM 27(4),
// 1980) and Zippel (EUROSAM 1979) per input, with the probability of the most
// frequent value in place of 1/|S|.
//
//===----------------------------------------------------------------------===//

#include "ExactDesign.h"
#include "kas/Support/Random.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::reference;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

/// Larger values would not make the bound better by much.
/// With 500, S has 1001 integers: degree 3 has a bound of 0.3 % per draw, and
/// three draws are below 1e-6.
static constexpr int64_t maxMagnitude = 500;
/// With fewer elements that are not zero a wrong kernel is hardly found.
static constexpr double minDensity = 1.0 / 256;
/// Sums over all subsets of the inputs are evaluated.
/// 2^6 - 1 runs of the slow reference per draw.
static constexpr size_t maxSparseInputs = 6;

/// A division by a power of two changes the exponent only.
bool kas::reference::roundsQuotients(const ExactProblem &problem) {
  return llvm::any_of(problem.results, [](const ExactProblem::Result &result) {
    return !llvm::isPowerOf2_64(static_cast<uint64_t>(result.divisor));
  });
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

namespace {
/// Limits of sums, times the divisor, so that they are integers.
class Limits {
public:
  Limits(const ExactProblem &problem, const ExactFormat &format)
      : problem(problem), format(format), rounds(roundsQuotients(problem)) {}

  /// Whether sums of at most `numTerms` products whose magnitudes add up to
  /// `sum` at most are exact in any order, or, if quotients round, are off by
  /// less than a quarter: by one unit in the last place of `sum` per addition
  /// and scaling.
  bool takesSum(double numTerms, double sum) const {
    // Of f32: 2^24.
    double limit = std::ldexp(1.0, format.sumBits);
    if (!rounds)
      return sum <= limit;
    // Each addition and scaling is off by at most sum / 2^sumBits.
    return sum * (numTerms + problem.numScalings) <= limit / 4;
  }

  /// The same for what may be kept between loop nests.
  /// Intermediates may be stored as f16 or bf16, or become factors of a tf32
  /// contraction. Where these are as wide as sums, `takesSum` says it all.
  bool takesIntermediate(double sum) const {
    double limit =
        std::ldexp(1.0, std::min(format.factorBits, format.elementBits));
    if (!problem.hasIntermediates || limit >= std::ldexp(1.0, format.sumBits))
      return true;
    return rounds ? sum * (problem.numScalings + problem.inputs.size()) <=
                        limit / 4
                  : sum <= limit;
  }

  /// What results must stay below, so that they are kept as they are. A wrong
  /// one beyond that is rounded, but to no smaller value.
  double getResultLimit() const {
    double limit = std::ldexp(1.0, format.elementBits);
    return rounds ? limit / 4 : limit;
  }

  /// Inputs themselves must be values of the types that they are stored and
  /// multiplied in: of bf16 up to 2^8.
  int64_t getMagnitudeLimit() const {
    return std::min(maxMagnitude, int64_t(1) << std::min(format.factorBits,
                                                         format.elementBits));
  }

private:
  const ExactProblem &problem;
  const ExactFormat &format;
  bool rounds;
};
} // namespace

//===----------------------------------------------------------------------===//
// Designs
//===----------------------------------------------------------------------===//

/// Whether no values of these magnitudes make a sum that rounds.
static bool isExact(const ExactProblem &problem, const Limits &limits,
                    ArrayRef<int64_t> magnitudes) {
  // The worst case: all terms are the largest product and have one sign.
  double sum = problem.numTerms;
  for (auto [magnitude, input] : llvm::zip_equal(magnitudes, problem.inputs))
    sum *= std::pow(static_cast<double>(magnitude), input.degree);
  return limits.takesSum(problem.numTerms, sum) &&
         limits.takesIntermediate(sum);
}

/// Whether results will most likely be kept as they are: terms are hardly ever
/// all of the same sign.
static bool isLikelyKept(const ExactProblem &problem, const Limits &limits,
                         ArrayRef<int64_t> magnitudes) {
  // The variance of a uniform integer of [-m, m] is m (m + 1) / 3, that of a
  // product of independent ones with mean zero the product, and that of the sum
  // the sum. Six standard deviations are practically never exceeded; if so,
  // `findRounding` gives the draw up.
  double variance = problem.numTerms;
  for (auto [magnitude, input] : llvm::zip_equal(magnitudes, problem.inputs)) {
    auto value = static_cast<double>(magnitude);
    variance *= std::pow(value * (value + 1) / 3, input.degree);
  }
  return 6 * std::sqrt(variance) < limits.getResultLimit();
}

/// The smallest magnitude first, one after the other, as far as it goes.
/// The miss probability depends on the smallest S most, so this balances them.
/// Ends after at most maxMagnitude steps per input.
static void growMagnitudes(const ExactProblem &problem, const Limits &limits,
                           llvm::SmallVectorImpl<int64_t> &magnitudes) {
  llvm::SmallVector<bool> isDone(magnitudes.size(), false);
  for (;;) {
    std::optional<size_t> smallest;
    for (size_t i = 0; i < magnitudes.size(); ++i)
      if (!isDone[i] && (!smallest || magnitudes[i] < magnitudes[*smallest]))
        smallest = i;
    if (!smallest)
      return;
    int64_t &magnitude = magnitudes[*smallest];
    ++magnitude;
    if (magnitude <= limits.getMagnitudeLimit() &&
        isExact(problem, limits, magnitudes) &&
        isLikelyKept(problem, limits, magnitudes))
      continue;
    --magnitude;
    isDone[*smallest] = true;
  }
}

std::vector<ExactDesign> kas::reference::getDesigns(const ExactProblem &problem,
                                                    const ExactFormat &format) {
  Limits limits(problem, format);
  std::vector<ExactDesign> designs;
  // -1, 0, 1 at least, whether or not they fit: the designs after are tried
  // then.
  llvm::SmallVector<int64_t> magnitudes(problem.inputs.size(), 1);
  growMagnitudes(problem, limits, magnitudes);
  designs.push_back({magnitudes, 1});
  // Results are rounded to less than sums where tensors are f16 or bf16;
  // smaller values may fit where larger ones have not by chance.
  while (llvm::any_of(magnitudes, [](int64_t value) { return value > 1; })) {
    for (int64_t &value : magnitudes)
      value = (value + 1) / 2;
    designs.push_back({magnitudes, 1});
  }
  // Sums too long for even -1, 0, 1: fewer terms that are not zero.
  for (double density = 0.5; density >= minDensity; density /= 2)
    designs.push_back({magnitudes, density});
  return designs;
}

std::optional<double> kas::reference::getMissBound(const ExactProblem &problem,
                                                   const ExactDesign &design) {
  if (problem.maximumSize > 1)
    return std::nullopt;
  double found = 1;
  for (auto [magnitude, input] :
       llvm::zip_equal(design.magnitudes, problem.inputs)) {
    // Of the polynomials of this degree, one with this many zeros has the
    // most; with unequal probabilities that is known of the first degree only.
    // The probability of the most frequent value of an element.
    double largest = 1.0 / (2.0 * static_cast<double>(magnitude) + 1);
    if (design.density < 1) {
      if (input.degree > 1)
        return std::nullopt;
      largest =
          std::max(1 - design.density,
                   design.density / (2.0 * static_cast<double>(magnitude)));
    }
    // Input after input: the leading coefficient in one is a polynomial of the
    // others.
    found *= std::max(0.0, 1 - input.degree * largest);
  }
  if (found == 0)
    return std::nullopt;
  return 1 - found;
}

std::vector<TensorValues>
kas::reference::drawInputs(const ExactProblem &problem,
                           const ExactDesign &design, uint64_t seed,
                           uint64_t stream) {
  // `mixBits` keeps streams of neighbouring seeds apart.
  Random random(mixBits(seed) + stream);
  // Densities are powers of two, so this is exact.
  auto rarity = static_cast<uint64_t>(1 / design.density);
  std::vector<TensorValues> inputs;
  for (auto [magnitude, input] :
       llvm::zip_equal(design.magnitudes, problem.inputs)) {
    int64_t size = 1;
    for (int64_t extent : input.shape)
      size *= extent;
    TensorValues &values = inputs.emplace_back(size, 0.0f);
    for (float &value : values) {
      if (rarity == 1) {
        value = static_cast<float>(
            static_cast<int64_t>(random.below(2 * magnitude + 1)) - magnitude);
      } else if (random.below(rarity) == 0) {
        auto drawn = static_cast<float>(random.below(magnitude) + 1);
        value = random.below(2) ? drawn : -drawn;
      }
    }
  }
  return inputs;
}

//===----------------------------------------------------------------------===//
// Draws
//===----------------------------------------------------------------------===//

/// The largest magnitude of a result times its divisor: of an integer.
static double getLargest(const ExactProblem &problem,
                         ArrayRef<TensorValues> results) {
  double largest = 0;
  for (auto [values, result] : llvm::zip_equal(results, problem.results))
    for (float value : values)
      largest = std::max(largest, std::fabs(double(value)) * result.divisor);
  return largest;
}

/// The largest sum of the magnitudes of the terms of a result, with ones in
/// place of the inputs that are not in `subset`. What is kept between loop
/// nests is such a sum for some subset, or less.
static Expected<double> getLargestSum(const ExactProblem &problem,
                                      ArrayRef<TensorValues> inputs,
                                      unsigned subset) {
  std::vector<TensorValues> magnitudes(inputs.begin(), inputs.end());
  for (auto [index, values] : llvm::enumerate(magnitudes))
    for (float &value : values)
      value = (subset >> index) & 1 ? std::fabs(value) : 1.0f;
  std::vector<TensorValues> results(problem.results.size());
  if (Error error = problem.evaluate(magnitudes, results))
    return error;
  return getLargest(problem, results);
}

/// `what at most 256 in magnitude, got 300`.
static std::string formatLimit(llvm::StringRef what, double limit,
                               double value) {
  std::string text = what.str();
  llvm::raw_string_ostream(text)
      << llvm::format(" at most %.0f in magnitude, got %.0f", limit, value);
  return text;
}

/// What would have to hold for the sums of this draw to be exact; empty: they
/// are. Evaluates all subsets of the inputs, 2^n of them.
static Expected<std::string> findRoundingSum(const ExactProblem &problem,
                                             const Limits &limits,
                                             const ExactFormat &format,
                                             ArrayRef<TensorValues> inputs) {
  if (inputs.size() > maxSparseInputs)
    return formatLimit("the sum of all terms to be",
                       std::ldexp(1.0, format.sumBits), problem.numTerms);
  unsigned all = (1u << inputs.size()) - 1;
  double largest = 0, sum = 0;
  for (unsigned subset = 1; subset <= all; ++subset) {
    // Without intermediates the last one is all that is summed up.
    if (subset != all && !problem.hasIntermediates)
      continue;
    auto one = getLargestSum(problem, inputs, subset);
    if (!one)
      return one.takeError();
    sum = *one;
    largest = std::max(largest, sum);
    if (!limits.takesIntermediate(largest))
      return formatLimit(
          "what is kept between stages to be",
          std::ldexp(1.0, std::min(format.factorBits, format.elementBits)),
          largest);
  }
  // Products with a zero add nothing, so no sum has more terms than `largest`.
  if (largest <= std::ldexp(1.0, format.sumBits) &&
      limits.takesSum(largest, sum))
    return "";
  return formatLimit("the sum of the magnitudes of all terms to be",
                     std::ldexp(1.0, format.sumBits), largest);
}

Expected<std::string> kas::reference::findRounding(
    const ExactProblem &problem, const ExactDesign &design,
    const ExactFormat &format, const ExactCheck::Draw &draw) {
  Limits limits(problem, format);
  // In a dense design that is exact in the worst case no sum needs a look.
  if (design.density < 1 || !isExact(problem, limits, design.magnitudes)) {
    auto reason = findRoundingSum(problem, limits, format, draw.inputs);
    if (!reason || !reason->empty())
      return reason;
  }
  double largest = getLargest(problem, draw.results);
  if (format.elementBits < format.sumBits && largest >= limits.getResultLimit())
    return formatLimit("results to be", limits.getResultLimit() - 1, largest);
  return "";
}
