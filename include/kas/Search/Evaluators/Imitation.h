//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How well one operator can compute what another, or a layer, computed: its
// weights are fitted by least squares.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_IMITATION_H
#define KAS_SEARCH_EVALUATORS_IMITATION_H

#include "kas/Search/Operators/OperatorGraph.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace kas::search {

/// A linear operator at one binding, as the products that it sums up.
struct ProductList {
  size_t getNumPoints() const { return begins.size() - 1; }
  size_t getNumProducts() const { return data.size(); }

  /// The products of output point `i` (row-major) are `begins[i]` up to
  /// `begins[i + 1]`.
  std::vector<uint32_t> begins = {0};
  /// By product: the offset (row-major) into the data, and into each weight. An
  /// operator without a weight has one of one element: a factor.
  std::vector<uint32_t> data;
  llvm::SmallVector<std::vector<uint32_t>, 2> weights;
  llvm::SmallVector<uint32_t, 2> weightSizes;
  uint32_t dataSize = 1;
};

/// The most products of a list, and the most elements of a weight that is
/// fitted.
inline constexpr int64_t maxProducts = 1 << 24;
inline constexpr int64_t maxFittedElements = 4096;

/// The products of a concrete operator; means count as sums. Fails for one with
/// a `max`, and for one that is too large.
llvm::Expected<ProductList> getProducts(OperatorOp op);

/// The same of `graph`, a solution of `problem`, at `binding`.
llvm::Expected<ProductList> getProducts(const SearchProblem &problem,
                                        const OperatorGraph &graph,
                                        const Binding &binding);

/// Pairs of data and outputs, one after the other, each row-major.
struct ImitationSamples {
  /// What `products` computes of normal random data with normal random
  /// weights.
  static ImitationSamples getRandom(const ProductList &products, unsigned count,
                                    uint64_t seed, uint64_t weightSeed);

  unsigned count = 0;
  std::vector<float> data, outputs;
};

struct ImitationOptions {
  /// Weights are fitted one after the other with the others fixed, in so many
  /// rounds at most, from so many random starts; with one weight, one suffices.
  unsigned sweeps = 3, restarts = 2;
  /// Added to the diagonal of the normal equations, relative to its mean: keeps
  /// elements that nothing depends on at zero.
  double ridge = 1e-4;
  /// A start is left when its error on the fitted samples is at most this, or
  /// was less than this share smaller than before the last round.
  double tolerance = 0, progress = -1;
};

/// The share of the variance of the held outputs that `products` cannot
/// explain, 0 to 1, with weights that are fitted to other samples: alternating
/// least squares, of several starts the one that fits those best.
double getImitationError(const ProductList &products,
                         const ImitationSamples &fitted,
                         const ImitationSamples &held,
                         const ImitationOptions &options);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_IMITATION_H
