//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A flat hash table for keys that are hashes already: the tables of a search
// are queried millions of times a second.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_FLATMAP_H
#define KAS_SUPPORT_FLATMAP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kas {

/// From well mixed keys of 64 bits to small values, by open addressing. Its
/// order is never visible.
template <typename Value>
class FlatMap {
public:
  explicit FlatMap(size_t capacity = 1024) : entries(capacity) {}

  const Value *find(uint64_t key) const {
    for (size_t index = key;; ++index) {
      const Entry &entry = entries[index & (entries.size() - 1)];
      if (!entry.isUsed)
        return nullptr;
      if (entry.key == key)
        return &entry.value;
    }
  }

  /// The value of `key`, made when there is none. Valid until the next call.
  Value &operator[](uint64_t key) {
    if (isFull())
      grow();
    Entry &entry = locate(key);
    if (!entry.isUsed) {
      entry.key = key;
      entry.isUsed = true;
      ++count;
    }
    return entry.value;
  }

  size_t size() const { return count; }
  /// One more key makes it twice as large.
  bool isFull() const { return 2 * (count + 1) > entries.size(); }
  size_t getMemorySize() const { return entries.size() * sizeof(Entry); }

private:
  struct Entry {
    uint64_t key = 0;
    Value value = {};
    bool isUsed = false;
  };

  Entry &locate(uint64_t key) {
    size_t index = key;
    while (entries[index & (entries.size() - 1)].isUsed &&
           entries[index & (entries.size() - 1)].key != key)
      ++index;
    return entries[index & (entries.size() - 1)];
  }

  void grow() {
    std::vector<Entry> old(2 * entries.size());
    old.swap(entries);
    for (const Entry &entry : old)
      if (entry.isUsed)
        locate(entry.key) = entry;
  }

  std::vector<Entry> entries;
  size_t count = 0;
};

} // namespace kas

#endif // KAS_SUPPORT_FLATMAP_H
