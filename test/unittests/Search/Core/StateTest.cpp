//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WordState.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::search;

TEST(State, ListsTheMovesThatItGivesOneByOne) {
  WordState state(9, 4);
  llvm::SmallVector<Move, 8> moves;
  state.getMoves(moves);
  ASSERT_EQ(moves.size(), 9u);
  EXPECT_TRUE(llvm::is_sorted(moves));
  // Appends.
  state.apply(moves.front());
  state.getMoves(moves);
  EXPECT_EQ(moves.size(), 9u + 8u);
  for (Move move : llvm::ArrayRef(moves).drop_front(9))
    EXPECT_NE(move, moves.front());
}

TEST(State, BecomesACopy) {
  WordState state(9, 4), other(9, 4);
  state.apply(Move{0, 2});
  other.assign(state);
  EXPECT_EQ(other.key(), state.key());
  other.apply(Move{1, 2});
  EXPECT_NE(other.key(), state.key());
}
