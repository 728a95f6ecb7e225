//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defaults of the interfaces of states and solutions.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/State.h"

using namespace kas;
using namespace kas::search;

// Surrogates of problems without features learn from moves alone.
void Solution::getFeatures(llvm::SmallVectorImpl<double> &features) const {}

State::~State() = default;

// O(moves): a problem that can list all moves faster overrides this.
void State::getMoves(llvm::SmallVectorImpl<Move> &moves) const {
  for (unsigned kind = 0; kind < getNumKinds(); ++kind)
    for (std::optional<Move> move = nextMove(kind); move;
         move = nextMove(kind, move))
      moves.push_back(*move);
}
