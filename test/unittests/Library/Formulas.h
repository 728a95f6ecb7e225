//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loop nests written by hand from the formulas of the named operators, with
// their own arrays and their own indexing: nothing of kas is used here, so that
// a mistake in the dialect's meaning cannot hide in both.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_LIBRARY_FORMULAS_H
#define TEST_UNITTESTS_LIBRARY_FORMULAS_H

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace formulas {

/// Ends the program with `message` unless `condition` holds: a mistake in a
/// formula, in every kind of build.
void require(bool condition, const char *message);

/// A dense row-major array of numbers.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;

  explicit Array(std::vector<int64_t> shape);

  /// The element at an index that must lie inside.
  template <typename... Index>
  double &operator()(Index... index) {
    return values[offset({int64_t(index)...})];
  }
  template <typename... Index>
  double operator()(Index... index) const {
    return values[offset({int64_t(index)...})];
  }
  /// The element at an index, or zero when that lies outside.
  template <typename... Index>
  double orZero(Index... index) const {
    return contains({int64_t(index)...}) ? (*this)(index...) : 0.0;
  }
  bool contains(const std::vector<int64_t> &index) const;

private:
  int64_t offset(const std::vector<int64_t> &index) const;
};

/// The values of all symbols that the library uses; those that an operator does
/// not declare stay zero.
struct Sizes {
  // NOLINTBEGIN(readability-identifier-naming)
  int64_t N = 0, B = 0, L = 0, M = 0, K = 0, C = 0, Cin = 0, Cout = 0, H = 0,
          W = 0, k = 0, s = 0, d = 0, p = 0, g = 0, r = 0, t = 0, b = 0;
  // NOLINTEND(readability-identifier-naming)
};

/// The names of the symbols and their places in `Sizes`.
extern const std::vector<std::pair<std::string, int64_t Sizes::*>> symbols;

/// Runs `body` for every index below `extents`, the last one fastest.
template <size_t rank, typename Body>
void nest(const int64_t (&extents)[rank], Body body) {
  std::array<int64_t, rank> index = {};
  for (int64_t extent : extents)
    require(extent >= 1, "a loop without iterations");
  while (true) {
    std::apply(body, index);
    size_t axis = rank;
    while (axis > 0 && ++index[axis - 1] == extents[axis - 1])
      index[--axis] = 0;
    if (axis == 0)
      return;
  }
}

using Weights = std::vector<Array>;

/// One operator: shapes and computation as functions of the sizes. `compute`
/// finds zeros in `y`.
struct Formula {
  std::string name;
  std::vector<Sizes> bindings;
  std::function<std::vector<int64_t>(const Sizes &)> outputShape;
  std::function<std::vector<int64_t>(const Sizes &)> dataShape;
  std::function<std::vector<std::vector<int64_t>>(const Sizes &)> weightShapes;
  std::function<void(const Sizes &, const Array &x, const Weights &w, Array &y)>
      compute;
};

std::vector<Formula> getDenseFormulas();
std::vector<Formula> getConvolutionFormulas();
std::vector<Formula> getRearrangementFormulas();
std::vector<Formula> getStructuredFormulas();
std::vector<Formula> getSynthesizedFormulas();
std::vector<Formula> getTransformationFormulas();

/// All of the above.
std::vector<Formula> getFormulas();

} // namespace formulas

#endif // TEST_UNITTESTS_LIBRARY_FORMULAS_H
