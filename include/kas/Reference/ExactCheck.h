//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact comparisons of compiled sums of products with the reference: inputs are
// random integers so small that no partial sum rounds, in any order, so that
// all correct programs give the same bits. A wrong one computes another
// polynomial, and that agrees at random points with a probability that has a
// bound (Schwartz, "Fast Probabilistic Algorithms for Verification of
// Polynomial Identities", J. ACM 27(4), 1980; Zippel, EUROSAM 1979).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_REFERENCE_EXACTCHECK_H
#define KAS_REFERENCE_EXACTCHECK_H

#include "kas/Reference/ExactProblem.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace kas::reference {

/// What a program computes in. All integers up to 2^N in magnitude are values
/// of a type whose significand has N bits: f32 24, tf32 and f16 11, bf16 8.
struct ExactFormat {
  /// Of sums.
  unsigned sumBits = 24;
  /// Of what the factors of products are rounded to.
  unsigned factorBits = 24;
  /// Of what tensors are kept in: inputs, results, and what is between.
  unsigned elementBits = 24;
};

struct ExactOptions {
  ExactFormat format = {};
  uint64_t seed = 0;
  /// How many times inputs are drawn; 0: until the bound is 1e-6, but
  /// `maxDraws` at most; where maxima are taken, `drawsPerValue` times for each
  /// value of one, but `maxDrawsOfMaxima` at most.
  /// All draws are kept, so there may be `mostDraws`.
  unsigned draws = 0;

  static constexpr unsigned maxDraws = 32, drawsPerValue = 4,
                            maxDrawsOfMaxima = 64, mostDraws = 1000;
  static constexpr double enough = 1e-6;
};

/// How the elements of inputs are drawn, independently: zero with probability
/// 1 - density, else uniform from the integers of magnitude 1 to
/// `magnitudes[i]` for input i; with a density of 1 also zero, like the others.
struct ExactDesign {
  llvm::SmallVector<int64_t> magnitudes;
  double density = 1;
};

/// Where a program differs from the reference.
struct ExactDifference {
  /// How many elements of the results do, in one draw.
  int64_t count = 0;
  /// The first one: of which result, where in it, and its values.
  unsigned result = 0;
  int64_t position = 0;
  float expected = 0, actual = 0;
};

/// Inputs for a program, and what it must compute from them.
class ExactCheck {
public:
  struct Draw {
    std::vector<TensorValues> inputs, results;
  };

  /// Chooses the values with the best bound for which nothing rounds, draws
  /// inputs and evaluates them. Where results are divided by an integer that is
  /// no power of two (means), quotients do round; values are so small then that
  /// their errors cannot reach half of the distance between two results.
  /// Error: there are no such values, and why; too many draws.
  static llvm::Expected<ExactCheck> create(const ExactProblem &problem,
                                           const ExactOptions &options = {});

  llvm::ArrayRef<Draw> getDraws() const { return draws; }
  const ExactDesign &getDesign() const { return design; }
  unsigned getDegree() const { return degree; }
  /// Whether results must have the same bits as the reference's (both zeros are
  /// the same), and not just be nearest to it.
  bool isBitwise() const { return bitwise; }
  /// An upper bound of the probability that a program passes whose results are
  /// other polynomials than the reference's, with the same degrees in each
  /// input. Nothing where maxima are taken.
  std::optional<double> getMissProbability() const { return missProbability; }

  /// Compares the results that a program has for draw number `draw`.
  std::optional<ExactDifference>
  compare(unsigned draw, llvm::ArrayRef<llvm::ArrayRef<float>> results) const;

  using ProgramFn = llvm::function_ref<llvm::Error(
      const Draw &draw, llvm::MutableArrayRef<TensorValues> results)>;
  /// Calls `program` for each draw, with results full of NaN that it is to
  /// fill, until one differs, and returns the line about it.
  llvm::Expected<std::optional<std::string>>
  findDifference(ProgramFn program) const;

  /// One line: degree, values, draws and the bound.
  std::string describe() const;
  /// One line about a difference in draw number `draw`.
  std::string describe(unsigned draw, const ExactDifference &difference) const;
  /// The same as `describe()`: `degree`, `magnitudes`, `density`, `draws`,
  /// `bitwise`, `miss_probability` (null without a bound).
  llvm::json::Object toJSON() const;

private:
  std::vector<Draw> draws;
  ExactDesign design;
  llvm::SmallVector<ExactProblem::Input> inputs;
  llvm::SmallVector<ExactProblem::Result> results;
  unsigned degree = 0;
  bool bitwise = true;
  std::optional<double> missProbability;
};

} // namespace kas::reference

#endif // KAS_REFERENCE_EXACTCHECK_H
