//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Learns times of schedules: ridge regression (Hoerl and Kennard, Technometrics
// 12, 1970) or a regression forest, whichever predicts better.
// There are tens of samples and 22 features (docs/guide/tuning.md): a linear
// model with a penalty is good early and where the space is smooth, a forest
// where it is not. A held-out fifth decides at every fit.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/ScheduleModel.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::search;
using namespace kas::tuning;

/// Solves `matrix * x = right` for a symmetric, positive matrix by Cholesky's
/// decomposition, in place.
static void solve(std::vector<std::vector<double>> &matrix,
                  std::vector<double> &right) {
  size_t size = right.size();
  // matrix = L * transpose(L), L in the lower triangle.
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (size_t k = 0; k < j; ++k)
        sum -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = i == j ? std::sqrt(sum) : sum / matrix[j][j];
    }
  // L * y = right, then transpose(L) * x = y below. The penalty on the diagonal
  // keeps the pivots positive.
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < i; ++k)
      right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  for (size_t i = size; i-- > 0;) {
    for (size_t k = i + 1; k < size; ++k)
      right[i] -= matrix[k][i] * right[k];
    right[i] /= matrix[i][i];
  }
}

/// `rows[i]` are the features of sample i, `targets[i]` its logarithm of time.
/// Features are centred and scaled to variance 1, so that one penalty suits
/// all.
void RidgeRegression::fit(llvm::ArrayRef<std::vector<float>> rows,
                          llvm::ArrayRef<double> targets, double penalty) {
  assert(!rows.empty() && rows.size() == targets.size());
  size_t width = rows.front().size();
  auto count = static_cast<double>(rows.size());
  means.assign(width, 0);
  scales.assign(width, 1);
  base = 0;
  for (double target : targets)
    base += target / count;
  for (size_t i = 0; i < width; ++i) {
    double square = 0;
    for (const std::vector<float> &row : rows) {
      means[i] += row[i] / count;
      square += static_cast<double>(row[i]) * row[i] / count;
    }
    double variance = square - means[i] * means[i];
    // A feature that never varies says nothing; 0 drops it instead of dividing
    // by rounding errors.
    scales[i] = variance > 1e-9 ? 1 / std::sqrt(variance) : 0;
  }
  std::vector<std::vector<double>> matrix(width, std::vector<double>(width, 0));
  weights.assign(width, 0);
  std::vector<double> scaled(width);
  for (auto [row, target] : llvm::zip_equal(rows, targets)) {
    for (size_t i = 0; i < width; ++i)
      scaled[i] = (row[i] - means[i]) * scales[i];
    for (size_t i = 0; i < width; ++i) {
      weights[i] += scaled[i] * (target - base);
      // The lower triangle is all that `solve` reads.
      for (size_t j = 0; j <= i; ++j)
        matrix[i][j] += scaled[i] * scaled[j];
    }
  }
  for (size_t i = 0; i < width; ++i)
    matrix[i][i] += penalty;
  solve(matrix, weights);
}

double RidgeRegression::predict(llvm::ArrayRef<float> row) const {
  double value = base;
  for (size_t i = 0; i < row.size(); ++i)
    value += weights[i] * (row[i] - means[i]) * scales[i];
  return value;
}

void ScheduleModel::fit(llvm::ArrayRef<std::vector<float>> rows,
                        llvm::ArrayRef<double> targets, Random &random) {
  // Too few samples would leave a fifth that decides by chance.
  trained = rows.size() >= minSamples;
  if (!trained)
    return;
  RegressionForest::Options options;
  std::vector<std::vector<float>> shown;
  std::vector<double> shownTargets;
  for (size_t i = 0; i < rows.size(); ++i)
    // Every fifth sample, not a random fifth: the same samples give the same
    // choice.
    if (i % 5 != 4) {
      shown.push_back(rows[i]);
      shownTargets.push_back(targets[i]);
    }
  ridge.fit(shown, shownTargets);
  forest.fit(shown, shownTargets, options, random);
  double ridgeSum = 0, forestSum = 0;
  size_t held = 0;
  for (size_t i = 4; i < rows.size(); i += 5, ++held) {
    ridgeSum += std::pow(ridge.predict(rows[i]) - targets[i], 2);
    forestSum += std::pow(forest.predict(rows[i]).mean - targets[i], 2);
  }
  ridgeError = std::sqrt(ridgeSum / static_cast<double>(held));
  forestError = std::sqrt(forestSum / static_cast<double>(held));
  isRidge = ridgeError <= forestError;
  // The winner then learns from all samples.
  if (isRidge)
    ridge.fit(rows, targets);
  else
    forest.fit(rows, targets, options, random);
}

double ScheduleModel::predict(llvm::ArrayRef<float> row) const {
  assert(trained);
  return isRidge ? ridge.predict(row) : forest.predict(row).mean;
}
