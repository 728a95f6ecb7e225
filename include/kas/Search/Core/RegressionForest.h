//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small regression forest, the model of the surrogate.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_REGRESSIONFOREST_H
#define KAS_SEARCH_CORE_REGRESSIONFOREST_H

#include "kas/Support/Random.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace kas::search {

/// Regression trees on bootstrap samples, each split chosen among some random
/// features for the least sum of squared errors (Breiman: "Random Forests",
/// Machine Learning 45, 2001). The spread of the trees' predictions serves as
/// the uncertainty (Hutter, Hoos, Leyton-Brown: "Sequential Model-Based
/// Optimization for General Algorithm Configuration", LION 5, 2011, section 4).
/// Deterministic: a function of the data and of the generator.
class RegressionForest {
public:
  struct Options {
    unsigned trees = 30;
    /// A split leaves at least so many samples on both sides.
    unsigned minLeaf = 2;
    /// The share of the features that is tried at each split (Breiman: 1/3).
    double featureShare = 0.34;
    /// Larger samples are reduced to so many for each tree.
    unsigned maxSamples = 2000;
  };
  struct Prediction {
    double mean = 0, variance = 0;
  };

  /// Learns `targets` from `rows`, all of one length.
  void fit(llvm::ArrayRef<std::vector<float>> rows,
           llvm::ArrayRef<double> targets, const Options &options,
           Random &random);
  Prediction predict(llvm::ArrayRef<float> row) const;

private:
  /// A leaf when `left` is 0.
  struct Node {
    uint32_t feature = 0;
    float threshold = 0;
    /// The child for values up to the threshold; the other is the next one.
    uint32_t left = 0;
    double value = 0;
  };
  struct Fit;
  void grow(Fit &fit, uint32_t at, llvm::MutableArrayRef<uint32_t> samples);

  std::vector<Node> nodes;
  std::vector<uint32_t> roots;
};

/// How much more than `best` a normally distributed reward is expected to be
/// (Jones, Schonlau, Welch: "Efficient Global Optimization of Expensive
/// Black-Box Functions", 1998, equation 15).
double getExpectedImprovement(double mean, double variance, double best);

} // namespace kas::search

#endif // KAS_SEARCH_CORE_REGRESSIONFOREST_H
