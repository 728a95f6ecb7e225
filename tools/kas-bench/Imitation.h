//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reward of the tabulated search space: how well an operator can imitate a
// layer.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_IMITATION_H
#define KAS_TOOLS_KASBENCH_IMITATION_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include <vector>

namespace kas {

/// A dense convolution of 3 x 3 on seeded activations: box-blurred and mixed
/// between channels, without their negative values, as those of real layers
/// are; its weights fall off from the middle and over the channels' singular
/// values. Two disjoint sets of samples.
class ImitatedLayer {
public:
  ImitatedLayer(int64_t channels, int64_t extent, unsigned samples,
                uint64_t seed);

  /// The share of the variance of the layer's outputs that the concrete
  /// operator `op`, of the same shapes, explains on samples that its weights
  /// were not fitted to; 0 at least. The weights are fitted by least squares,
  /// one after the other with the others fixed, in `sweeps` rounds, from
  /// seeded values; the best of `restarts`.
  double getExplainedShare(OperatorOp op, unsigned sweeps = 3,
                           unsigned restarts = 2) const;

private:
  struct Samples {
    std::vector<float> data, outputs;
  };
  Samples makeSamples(uint64_t seed) const;

  int64_t channels, extent;
  unsigned numSamples;
  std::vector<float> kernel;
  Samples fitted, held;
};

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_IMITATION_H
