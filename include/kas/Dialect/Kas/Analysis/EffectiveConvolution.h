//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators as one zero-padded convolution whose weight is made of theirs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_EFFECTIVECONVOLUTION_H
#define KAS_DIALECT_KAS_ANALYSIS_EFFECTIVECONVOLUTION_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include <vector>

namespace kas {

/// A dimension of the data and the dimension of the output that moves a window
/// over it: element x at output h reads the data at
/// `stride * h + dilation * x + first`, and zero where there is none.
struct EffectiveWindow {
  unsigned data;
  unsigned output;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t size = 1;
  int64_t first = 0;
};

/// For all data and weights, of an operator that is linear in its data:
///   Y[b, o, h...] = sum over c, x... of X[b, c, place(h, x)...] * E[o, c,
///   x...]
/// where X is the data, rolled (see below), c goes over the input channels of
/// o's group, and the effective weight
/// E is a sum of products of elements of the operator's weights, one of each:
///   E[e] = sum over t of the product over i of W_i[elements[i][t, e]] /
///   divisor
struct EffectiveConvolution {
  /// By dimension of the data, which is rolled by so much before:
  /// X[u] = data[(u + roll) mod size]. A cyclic shift is no window.
  llvm::SmallVector<int64_t> rolls;
  /// Dimensions of the data and of the output that are the same: b.
  llvm::SmallVector<std::pair<unsigned, unsigned>> batch;
  /// The dimensions that make c and o, the first one outermost.
  llvm::SmallVector<unsigned> dataChannels;
  llvm::SmallVector<unsigned> outputChannels;
  llvm::SmallVector<EffectiveWindow> windows;
  int64_t numInputs = 1;
  int64_t numOutputs = 1;
  /// Output o reads the inputs c with the same block: c / (numInputs / groups)
  /// is o / (numOutputs / groups).
  int64_t groups = 1;
  /// How many products an element of E is made of, at most.
  int64_t numTerms = 1;
  double divisor = 1;
  /// Whether a product is there: [numTerms, numOutputs, numInputs / groups,
  /// window sizes...], row-major.
  std::vector<uint8_t> exists;
  /// By weight, in the same shape: the row-major index of its element; 0 where
  /// the product is not there.
  llvm::SmallVector<std::vector<int64_t>> elements;

  /// The elements of E.
  int64_t getNumElements() const;
};

/// The form of the concrete operator `op`, exact at borders, too. Windows,
/// strides, dilations and groups are kept where they are; a dimension of the
/// output that moves no window becomes a channel.
///
/// Fails with a diagnostic of `emitError` for an operator that takes a maximum,
/// for one in which a term is missing although the data that it reads is there
/// (a window on a clipped window), and where more than `limit` points of
/// channels and reductions, or elements of products, would have to be listed.
llvm::FailureOr<EffectiveConvolution>
getEffectiveConvolution(OperatorOp op, int64_t limit, EmitErrorFn emitError);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_EFFECTIVECONVOLUTION_H
