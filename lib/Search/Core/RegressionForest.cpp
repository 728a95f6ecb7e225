//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random forests for regression (Breiman, "Random Forests", Machine Learning
// 45, 2001) with the spread of the trees as uncertainty (Hutter et al., LION 5,
// 2011).
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/RegressionForest.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <numbers>

using namespace kas;
using namespace kas::search;

/// The data and the generator of one call of `fit`, so that `grow` has few
/// parameters. `features` is a permutation of all features, shuffled as splits
/// need it.
struct RegressionForest::Fit {
  llvm::ArrayRef<std::vector<float>> rows;
  llvm::ArrayRef<double> targets;
  const Options &options;
  Random &random;
  std::vector<uint32_t> features;
};

namespace {
/// The best split found so far; the gain is the fall of the squared error.
struct Split {
  uint32_t feature = 0;
  float threshold = 0;
  double gain = 0;
};
} // namespace

/// Tries all thresholds of `feature`; `samples` are left in its order. The gain
/// of a split of n samples into n1 and n2 with sums of targets s1 and s2 (s in
/// all) is
///   s1^2 / n1 + s2^2 / n2 - s^2 / n
/// which is the fall of the sum of squared errors around the means: the sums of
/// squares cancel. One pass over the sorted samples tries all thresholds.
/// `best` is updated when a split gains more.
static void trySplits(llvm::ArrayRef<std::vector<float>> rows,
                      llvm::ArrayRef<double> targets, uint32_t feature,
                      unsigned minLeaf, llvm::MutableArrayRef<uint32_t> samples,
                      Split &best) {
  // The number of the sample breaks ties, so the order does not depend on the
  // one before.
  llvm::sort(samples, [&](uint32_t a, uint32_t b) {
    return std::pair(rows[a][feature], a) < std::pair(rows[b][feature], b);
  });
  double total = 0, sum = 0;
  for (uint32_t sample : samples)
    total += targets[sample];
  double size = samples.size();
  double base = total * total / size;
  for (size_t count = 1; count < samples.size(); ++count) {
    sum += targets[samples[count - 1]];
    float low = rows[samples[count - 1]][feature];
    float high = rows[samples[count]][feature];
    // No threshold separates equal values, and a leaf needs `minLeaf` samples.
    if (low == high || count < minLeaf || samples.size() - count < minLeaf)
      continue;
    double part = count, rest = total - sum;
    double gain = sum * sum / part + rest * rest / (size - part) - base;
    if (gain > best.gain)
      // In the middle of the gap: values in between may come up in predictions.
      best = {feature, low + (high - low) / 2, gain};
  }
}

/// Makes node `at` the root of a tree for `samples`, depth first. The mean is
/// stored in inner nodes too, which costs nothing.
void RegressionForest::grow(Fit &fit, uint32_t at,
                            llvm::MutableArrayRef<uint32_t> samples) {
  double sum = 0;
  for (uint32_t sample : samples)
    sum += fit.targets[sample];
  nodes[at].value = sum / static_cast<double>(samples.size());
  // Less cannot be divided into two leaves.
  if (samples.size() < 2 * fit.options.minLeaf)
    return;
  // A share of the features, but one at least.
  size_t numTried = std::max<size_t>(
      1, static_cast<size_t>(fit.options.featureShare *
                             static_cast<double>(fit.features.size())));
  Split best;
  // A partial Fisher-Yates shuffle: each step draws one more feature without
  // replacement.
  for (size_t index = 0; index < fit.features.size(); ++index) {
    // Go on beyond the share while nothing was found.
    if (index >= numTried && best.gain > 0)
      break;
    size_t other = index + fit.random.below(fit.features.size() - index);
    std::swap(fit.features[index], fit.features[other]);
    trySplits(fit.rows, fit.targets, fit.features[index], fit.options.minLeaf,
              samples, best);
  }
  // Less is rounding. The gain is a difference of large terms; relative to them
  // it is noise below 1e-12.
  if (best.gain <= 1e-12 * std::max(1.0, sum * sum))
    return;
  auto *middle = llvm::partition(samples, [&](uint32_t sample) {
    return fit.rows[sample][best.feature] <= best.threshold;
  });
  // Both children are next to each other: one index is enough. `nodes` may move
  // while it grows, so references to nodes are not kept.
  uint32_t left = nodes.size();
  nodes[at].feature = best.feature;
  nodes[at].threshold = best.threshold;
  nodes[at].left = left;
  nodes.resize(left + 2);
  size_t count = middle - samples.begin();
  grow(fit, left, samples.take_front(count));
  grow(fit, left + 1, samples.drop_front(count));
}

/// Grows `trees` trees, each on a bootstrap sample: as many draws with
/// replacement as there are rows, at most `maxSamples`. O(trees * features * n
/// log n) per level of the trees.
void RegressionForest::fit(llvm::ArrayRef<std::vector<float>> rows,
                           llvm::ArrayRef<double> targets,
                           const Options &options, Random &random) {
  // The old model is replaced, not refined.
  nodes.clear();
  roots.clear();
  if (rows.empty())
    return;
  Fit fit{rows, targets, options, random, {}};
  for (uint32_t feature = 0; feature < rows.front().size(); ++feature)
    fit.features.push_back(feature);
  size_t size = std::min<size_t>(rows.size(), options.maxSamples);
  for (unsigned tree = 0; tree < options.trees; ++tree) {
    // With replacement: a tree sees about 63 % of the rows.
    std::vector<uint32_t> samples;
    for (size_t index = 0; index < size; ++index)
      samples.push_back(random.below(rows.size()));
    roots.push_back(nodes.size());
    nodes.emplace_back();
    grow(fit, roots.back(), samples);
  }
}

/// Mean and variance over the trees. The variance between trees is small where
/// the data agree and large where they are few.
RegressionForest::Prediction
RegressionForest::predict(llvm::ArrayRef<float> row) const {
  double sum = 0, squares = 0;
  for (uint32_t at : roots) {
    // A value above the threshold goes to the child on the right, the next
    // node.
    while (nodes[at].left)
      at = nodes[at].left + (row[nodes[at].feature] > nodes[at].threshold);
    sum += nodes[at].value;
    squares += nodes[at].value * nodes[at].value;
  }
  double count = std::max<double>(roots.size(), 1);
  // Rounding can make the difference negative.
  double mean = sum / count;
  return {mean, std::max(0.0, squares / count - mean * mean)};
}

/// With z = (mean - best) / deviation, Phi and phi of the normal distribution:
/// (mean - best) * Phi(z) + deviation * phi(z).
double kas::search::getExpectedImprovement(double mean, double variance,
                                           double best) {
  double deviation = std::sqrt(variance);
  // Also for NaN. Without uncertainty the improvement is known.
  if (!(deviation > 0))
    return std::max(0.0, mean - best);
  double z = (mean - best) / deviation;
  double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  // Phi(z) by the complementary error function, which is exact in the far
  // negative range.
  double share = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return (mean - best) * share + deviation * density;
}
