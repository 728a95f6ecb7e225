//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys of states as elements of llvm::DenseSet.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_CORE_KEYMARK_H
#define LIB_SEARCH_CORE_KEYMARK_H

#include "kas/Support/Random.h"

namespace kas::search {

/// DenseSet reserves the two largest values; keys need not be mixed otherwise.
/// The two values mark empty and deleted buckets.
constexpr uint64_t getMark(uint64_t key) {
  // The two reserved keys collide with the marks of two others, which is as
  // unlikely as any collision of 64 bits.
  constexpr uint64_t reserved = ~uint64_t(1);
  return key < reserved ? key : mixBits(key) >> 1;
}

} // namespace kas::search

#endif // LIB_SEARCH_CORE_KEYMARK_H
