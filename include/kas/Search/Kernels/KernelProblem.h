//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search problem that a kernel of the tensor level states: kernels of its
// signature, for its layers, within its budget. Plain data.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_KERNELS_KERNELPROBLEM_H
#define KAS_SEARCH_KERNELS_KERNELPROBLEM_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include <bitset>

namespace kas::search {

/// The primitives of the sampler. Each is a kind of move: a rollout chooses the
/// kind first, so that the many pairs of operands of a merge do not make merges
/// more probable (Canvas, section 6.1).
enum class KernelStep : uint8_t {
  FC,
  Group,
  GroupAll,
  Shift,
  Unfold,
  Transpose,
  Shuffle,
  Reorder,
  InverseReorder,
  Scale,
  ReLU,
  GELU,
  Sigmoid,
  TanH,
  Abs,
  Exp,
  Neg,
  Sin,
  Sqrt,
  Sqr,
  FoldSum,
  FoldMean,
  FoldMax,
  Softmax,
  Add,
  Sub,
  Mul,
  Min,
  Max,
  MatMul,
  Norm,
  Mix,
  Input
};
constexpr unsigned numKernelSteps = static_cast<unsigned>(KernelStep::Input);
llvm::StringRef getName(KernelStep step);

/// What a kernel may be, beyond its signature.
struct KernelLimits {
  /// Primitives, input and output not counted.
  unsigned minSteps = 3, maxSteps = 12;
  /// Tensors that wait to be merged.
  unsigned width = 8;
  /// Fully-connected layers.
  unsigned minWeights = 1, maxWeights = 4;
  /// Free variables at a time.
  unsigned variables = 4;
  /// Dimensions of a tensor.
  unsigned rank = 7;
  /// Dilations of windows, from 1.
  unsigned dilation = 1;
  /// Shifts go from 1 to this amount, forwards and backwards.
  unsigned shift = 1;
  /// A tensor may have several fully-connected layers, or scales, of one kind.
  bool repeats = false;
  /// With as many windows as spatial dimensions, each has its own.
  bool pairedWindows = true;
  /// Along every spatial dimension some step reads neighbours.
  bool neighbours = true;
  /// The most elements of a tensor times `batch`, at every layer.
  int64_t batch = 1, maxElements = INT32_MAX;
  /// The primitives that are used: all but normalization, which models have
  /// folded into their layers, and learned maps along dimensions, which tie a
  /// kernel to the size of the image.
  std::bitset<numKernelSteps> steps =
      std::bitset<numKernelSteps>()
          .set()
          .reset(static_cast<unsigned>(KernelStep::Norm))
          .reset(static_cast<unsigned>(KernelStep::Mix));
};

struct KernelProblem {
  static constexpr unsigned maxSteps = 14, maxRank = 8, maxVariables = 4;

  /// Those of the kernel, then variables.
  SymbolSet symbols;
  unsigned numPrimaries = 0;
  /// Facts, bindings, variables.
  solver::SizeRules rules;
  llvm::SmallVector<int64_t> multiplicities;
  solver::TensorShape input, output;
  /// By spatial dimension of the input, the windows that unfold it.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 2> windows;
  /// Symbols that groups and shuffles are made by: divisors of facts.
  llvm::SmallVector<unsigned, 2> divisors;
  /// The divisor whose value is chosen, one for all layers, and its values.
  std::optional<unsigned> groups;
  llvm::SmallVector<int64_t> groupCandidates;
  /// On the sums over all layers.
  std::optional<int64_t> minFlops, maxFlops, minParams, maxParams;
  /// Theorem 1 of the Canvas paper holds.
  bool requiresTheorem = true;
  KernelLimits limits;

  /// The problem that `kernel` states: kernels of its signature and symbols,
  /// for its bindings, within its budget; under Theorem 1 when it is marked
  /// `canvas`. Symbols that divide others by a fact group channels; the other
  /// coefficients are windows, the i-th that of the i-th spatial dimension, or
  /// all of each when there are more or fewer or `pairedWindows` is off.
  /// `groups` names the divisor that gets one value for all layers, each common
  /// factor in turn; empty for none. Reports a kernel with other than one
  /// input, without bindings, with more symbols or dimensions than there is
  /// room for, and limits that make no sense.
  static llvm::FailureOr<KernelProblem>
  get(KernelOp kernel, const KernelLimits &limits, llvm::StringRef groups);

  bool isVariable(unsigned symbol) const {
    return symbol >= symbols.size() - rules.variables.size();
  }
};

/// Reads limits such as `steps=8` into `limits`: `steps-min`, `steps`, `width`,
/// `weights-min`, `weights`, `variables`, `rank`, `dilation`, `shift`,
/// `repeats`, `neighbours`, `paired-windows`, `batch`, `max-elements`, or the
/// name of a primitive with 0 or 1.
llvm::Error parseKernelLimit(llvm::StringRef text, KernelLimits &limits);

} // namespace kas::search

#endif // KAS_SEARCH_KERNELS_KERNELPROBLEM_H
