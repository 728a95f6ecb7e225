//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Other implementations of the operators that `kas-bench cpu` measures, in the
// same process and in turn.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_PEER_H
#define KAS_TOOLS_KASBENCH_PEER_H

#include "kas/ExecutionEngine/Tensor.h"
#include "llvm/ADT/ArrayRef.h"
#include <memory>
#include <vector>

namespace kas {

/// An operator as libraries know it: a matrix product of [M, K] and [K, N], or
/// a convolution of [N, C, H, W], padded so that without a stride the output
/// has the size of the input.
struct Layer {
  enum class Kind { Other, Matmul, Convolution };
  Kind kind = Kind::Other;
  int64_t groups = 1, stride = 1, dilation = 1;
  llvm::SmallVector<int64_t> input, weight, output;
};

/// One way in which a peer computes a layer.
class PeerLayer {
public:
  virtual ~PeerLayer();
  /// The name of the peer, and of the variant where there are several.
  virtual llvm::StringRef getName() const = 0;
  /// From the input, in its natural layout, to the output, likewise. Weights
  /// were packed before.
  virtual void run(execution::Tensor &output) = 0;
};

/// The names of the peers that this program was built with.
llvm::ArrayRef<llvm::StringLiteral> getPeerNames();

/// All variants of `layer` by oneDNN, which uses no wider instruction set than
/// `isa`; none for other kinds, or when kas-bench was built without it. All
/// calls must name one set. The tensors must live as long as the result.
std::vector<std::unique_ptr<PeerLayer>>
makeOneDNNLayers(const Layer &layer, const execution::Tensor &input,
                 const execution::Tensor &weight, unsigned threads,
                 llvm::StringRef isa);

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_PEER_H
