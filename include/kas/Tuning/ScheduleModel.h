//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model of how long a schedule takes, learned from measurements.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_SCHEDULEMODEL_H
#define KAS_TUNING_SCHEDULEMODEL_H

#include "kas/Search/Core/RegressionForest.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace kas::tuning {

/// Sums of weighted features with a penalty for large weights (Hoerl and
/// Kennard: "Ridge Regression", Technometrics 12, 1970); the features are made
/// to have mean 0 and variance 1 before.
class RidgeRegression {
public:
  void fit(llvm::ArrayRef<std::vector<float>> rows,
           llvm::ArrayRef<double> targets, double penalty = 1);
  double predict(llvm::ArrayRef<float> row) const;

private:
  std::vector<double> means, scales, weights;
  double base = 0;
};

/// Ridge regression or a regression forest, whichever predicts better what it
/// was not shown.
class ScheduleModel {
public:
  /// Learns `targets` from `rows`. Every fifth sample is held out to choose the
  /// kind of model; that one learns from all.
  void fit(llvm::ArrayRef<std::vector<float>> rows,
           llvm::ArrayRef<double> targets, Random &random);
  double predict(llvm::ArrayRef<float> row) const;

  /// Less samples than this make no model.
  static constexpr size_t minSamples = 10;
  bool isTrained() const { return trained; }
  llvm::StringRef getKind() const { return isRidge ? "ridge" : "forest"; }
  /// Root mean square errors for the samples held out.
  double getRidgeError() const { return ridgeError; }
  double getForestError() const { return forestError; }

private:
  bool trained = false, isRidge = true;
  double ridgeError = 0, forestError = 0;
  RidgeRegression ridge;
  search::RegressionForest forest;
};

} // namespace kas::tuning

#endif // KAS_TUNING_SCHEDULEMODEL_H
