//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search problem of a `kas.space`, as plain data.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GRAPHSEARCH_SEARCHPROBLEM_H
#define KAS_GRAPHSEARCH_SEARCHPROBLEM_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas {

/// One dimension of the output or of the input.
struct Dimension {
  Size size;
  /// Any permutation of it is as good.
  bool isUnordered = false;
};

/// How many steps of each kind an operator may have. The values here hold where
/// a space says nothing.
struct StepLimits {
  unsigned depth = 10;
  unsigned reduce = 4;
  unsigned split = 2;
  unsigned merge = 1;
  unsigned shift = 2;
  unsigned expand = 0;
  unsigned unfold = 2;
  unsigned stride = 0;
  unsigned weights = 2;
};

/// Bounds on sums over all bindings, each times its multiplicity; absent means
/// unlimited. FLOPs are two per multiply-add.
struct SearchBudget {
  std::optional<double> minFlops, maxFlops, maxParams, maxLatencyMs;
};

/// What to search for. See `kas.space` for the meaning of each part.
struct SearchProblem {
  SymbolSet symbols;
  llvm::SmallVector<Binding> bindings;
  llvm::SmallVector<int64_t> multiplicities;
  llvm::SmallVector<Dimension> outputs, inputs;
  StepLimits limits;
  SearchBudget budget;
  /// By symbol: how often it may occur in reductions and weights, the sum of
  /// its exponents' absolute values.
  llvm::SmallVector<unsigned> occurrences;

  /// The problem that `space` states. Where it gives no `occurrences`, a symbol
  /// may occur 6 times when it is a coefficient, 4 times when it is part of an
  /// unordered dimension or of only one side (channels), else never (positions:
  /// weights are then shared over them).
  static SearchProblem get(SpaceOp space);

  /// The output and input dimension that no primitive touches: the first of
  /// both, when they are the same symbol and it occurs nowhere else (a batch).
  bool hasBatch() const;
};

} // namespace kas

#endif // KAS_GRAPHSEARCH_SEARCHPROBLEM_H
