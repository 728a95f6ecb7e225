//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 against known answers: those that come with the authors'
// Random123.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Philox.h"
#include "gtest/gtest.h"

using namespace kas;

TEST(PhiloxTest, KnownAnswers) {
  struct Case {
    Philox4x32::Counter counter;
    Philox4x32::Key key;
    Philox4x32::Counter expected;
  };
  for (const Case &known :
       {Case{{0, 0, 0, 0},
             {0, 0},
             {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        Case{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
             {0xffffffff, 0xffffffff},
             {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        Case{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
             {0xa4093822, 0x299f31d0},
             {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}})
    EXPECT_EQ(Philox4x32::draw(known.counter, known.key), known.expected);
}
