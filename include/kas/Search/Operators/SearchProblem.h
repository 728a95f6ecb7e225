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

#ifndef KAS_SEARCH_OPERATORS_SEARCHPROBLEM_H
#define KAS_SEARCH_OPERATORS_SEARCHPROBLEM_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/SpaceAxes.h"

namespace kas::search {

/// One dimension of the output or of the input.
struct Dimension {
  Size size;
  /// Any permutation of it is as good.
  bool isUnordered = false;
};

/// What an operator may be, beyond its shapes: see the limits of `kas.space`.
/// The values here hold where a space says nothing.
struct SpaceLimits {
  /// Steps in all, and of each kind. A weight with all its coordinates is one.
  unsigned depth = 10;
  unsigned reduce = 4;
  unsigned split = 2;
  unsigned merge = 1;
  unsigned shift = 2;
  unsigned expand = 0;
  unsigned unfold = 2;
  unsigned stride = 0;
  unsigned weights = 2;
  /// Steps and shares in a row on one coordinate, counted from the output; a
  /// reduction counts as one.
  unsigned chain = 8;
  /// Different symbols in a size, and the sum of its exponents' absolute
  /// values.
  unsigned sizeSymbols = 3;
  unsigned sizePowers = 16;
  /// The product of the reductions that no weight indexes.
  int64_t pooling = 8;
  /// Points of all reductions per element of the input.
  double reduceRatio = 4;
  /// A reduction that only weights have.
  int64_t rankMin = 2, rankMax = 32;
  /// The weights that have it have fewer elements than the weight that they are
  /// together, under one binding at least.
  bool rankSaves = true;
  /// The fewest elements of a weight.
  int64_t weightElements = 1;
  /// The product of the output's coordinates that one weight takes from the
  /// data.
  int64_t mergeElements = INT32_MAX;
  /// The largest window of an unfold; points of its base per point of it, at
  /// least.
  int64_t window = 30;
  double unfoldRatio = 2;
  /// The largest coordinate with a stride in it.
  int64_t strideSize = 30;
  /// The largest block by which a coordinate may be merged above a shift or
  /// split below one: with larger ones the two nearly commute.
  int64_t shiftBlock = 2;
  /// Shifts by -1, beside those by 1.
  bool shiftBackward = true;
  /// Every weight takes a coordinate from the data; every weight shares one
  /// with it.
  bool weightTakes = true, weightShares = true;
  /// Weights may be indexed by what depends on an ordered output. Without them
  /// an operator does the same everywhere but at the border.
  bool weightsByPosition = true;
  /// Windows end at their base instead of lying around it.
  bool lookBack = false;
  /// Windows wrap around: what leaves the data at one end goes on at the other.
  bool cyclic = false;
  /// Equal ordered dimensions of the output count as interchangeable, and so do
  /// those of the input.
  bool swapAxes = false;

  // Properties: docs/reference/properties.md has the definitions.

  /// By axis (`getSpaceAxes`): the window that each output sees; nothing: all
  /// positions. Empty: any.
  llvm::SmallVector<std::optional<Size>, 2> sees;
  /// The layers after which each output channel depends on each input channel:
  /// 1 or 2; 0: none are required.
  unsigned reaches = 0;
  /// By axis: what translations of the input do to the output, at least.
  /// Empty: anything.
  llvm::SmallVector<Translations, 2> equivariant;
  /// No weight has a size with a symbol of an axis.
  bool anyGrid = false;
  /// An input and an output value are joined by one product of weights at most.
  bool oneProduct = false;
  /// No reduction that only weights have.
  bool linearPath = false;
  /// No output depends on a later position along an axis.
  bool causal = false;

  bool hasProperties() const {
    return !sees.empty() || reaches || !equivariant.empty() || oneProduct ||
           linearPath || causal;
  }

  /// How far before its base a window of `size` points begins.
  int64_t getReach(int64_t size) const {
    return lookBack ? size - 1 : size / 2;
  }
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
  SpaceLimits limits;
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
  /// The axes that output and input share, but for a batch.
  llvm::SmallVector<SpaceAxis> getAxes() const;
  /// The primary symbols of the axes.
  llvm::SmallVector<unsigned> getGridSymbols() const;
};

/// Why no operator can have the properties of `problem`: a sentence that names
/// a property and a limit. Nothing when there may be one.
std::optional<std::string> findImpossibleProperty(const SearchProblem &problem);

} // namespace kas::search

#endif // KAS_SEARCH_OPERATORS_SEARCHPROBLEM_H
