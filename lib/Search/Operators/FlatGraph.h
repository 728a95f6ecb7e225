//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The expressions below some coordinates as one list.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_OPERATORS_FLATGRAPH_H
#define LIB_SEARCH_OPERATORS_FLATGRAPH_H

#include "GraphStateImpl.h"

namespace kas::search {

/// The expressions of a state, each once, operands first. Made of a finished
/// state, or of any state for its cost.
struct FlatGraph {
  /// A leaf has no operands; unary kinds have `first` only.
  struct Node {
    ExprId expr = 0;
    unsigned first = 0, second = 0;
  };
  llvm::SmallVector<Node, 24> nodes;
  /// Indices of nodes.
  llvm::SmallVector<unsigned, 8> data;
  llvm::SmallVector<llvm::SmallVector<unsigned, 8>, 4> weights;
  llvm::SmallVector<unsigned, 4> expanded;

  FlatGraph(const GraphSpace &space, const GraphStateData &state);

private:
  unsigned add(const GraphSpace &space, ExprId id);
};

} // namespace kas::search

#endif // LIB_SEARCH_OPERATORS_FLATGRAPH_H
