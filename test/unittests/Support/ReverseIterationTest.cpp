//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hash containers go backwards where KAS_REVERSE_ITERATION is set in the
// environment, and forwards elsewhere. test/ReverseIteration sets it.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

using namespace llvm;

namespace {

bool isReversed() { return std::getenv("KAS_REVERSE_ITERATION") != nullptr; }

/// Elements of one array: in the direction of this process if their addresses
/// are.
template <typename RangeT>
void expectDirection(RangeT &&range, size_t count) {
  SmallVector<const void *> addresses;
  for (auto &element : range)
    addresses.push_back(&element);
  if (isReversed())
    std::reverse(addresses.begin(), addresses.end());
  EXPECT_EQ(addresses.size(), count);
  EXPECT_TRUE(is_sorted(addresses));
}

/// Gives access to the pointers in the order in which they are stored.
class OpenSet : public SmallPtrSet<int *, 4> {
public:
  std::vector<int *> getStored() const {
    std::vector<int *> stored;
    for (const void *const *at = CurArray; at != EndPointer(); ++at)
      if (*at != getEmptyMarker() && *at != getTombstoneMarker())
        stored.push_back(static_cast<int *>(const_cast<void *>(*at)));
    return stored;
  }
};

} // namespace

TEST(ReverseIteration, DenseMaps) {
  DenseMap<int, int> map;
  EXPECT_TRUE(map.begin() == map.end());
  for (int key : seq(0, 100))
    map[key] = 2 * key;
  expectDirection(map, 100);
  expectDirection(std::as_const(map), 100);
  for (int key : seq(0, 100)) {
    auto found = map.find(key);
    ASSERT_TRUE(found != map.end());
    EXPECT_EQ(found->first, key);
    EXPECT_EQ((*found).second, 2 * key);
  }
  EXPECT_TRUE(map.find(100) == map.end());
  // From an element that was found to the end.
  size_t count = 0;
  for (auto at = map.find(7); at != map.end(); ++at)
    ++count;
  EXPECT_GE(count, 1u);
  map.erase(map.find(7));
  expectDirection(map, 99);
  map.clear();
  EXPECT_TRUE(map.begin() == map.end());
}

TEST(ReverseIteration, SetsAndSmallMaps) {
  DenseSet<uint64_t> set;
  SmallDenseMap<int, int, 8> small;
  for (int key : seq(0, 6)) {
    set.insert(key);
    small.try_emplace(key, key);
  }
  expectDirection(set, 6);
  expectDirection(small, 6);
}

TEST(ReverseIteration, SmallPointerSets) {
  std::array<int, 64> numbers = {};
  OpenSet set;
  EXPECT_TRUE(set.begin() == set.end());
  // Some as a list, then as a table.
  for (int &number : numbers) {
    set.insert(&number);
    std::vector<int *> stored = set.getStored();
    if (isReversed())
      std::reverse(stored.begin(), stored.end());
    EXPECT_EQ(std::vector<int *>(set.begin(), set.end()), stored);
    auto found = set.find(&number);
    ASSERT_TRUE(found != set.end());
    EXPECT_EQ(*found, &number);
    EXPECT_TRUE(set.find(numbers.data() + numbers.size()) == set.end());
  }
}

/// These pass between our code and LLVM's, and are printed in another order.
TEST(ReverseIteration, NotObjectsOfJson) {
  json::Object object;
  for (int key : seq(0, 20))
    object[std::to_string(key)] = key;
  SmallVector<const void *> addresses;
  for (auto &entry : object)
    addresses.push_back(&entry);
  EXPECT_TRUE(is_sorted(addresses));
}

/// Iterators of LLVM's compiled code and of ours are alike in memory.
TEST(ReverseIteration, Layout) {
  using Map = DenseMap<int, int>;
  static_assert(sizeof(Map::iterator) == 2 * sizeof(void *));
  static_assert(std::is_trivially_copyable_v<Map::iterator>);
  static_assert(sizeof(SmallPtrSetIterator<int *>) == 2 * sizeof(void *));
  static_assert(std::is_trivially_copyable_v<SmallPtrSetIterator<int *>>);
}
