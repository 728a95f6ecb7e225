//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small problem whose candidates are known.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_CORE_WORDSTATE_H
#define TEST_UNITTESTS_SEARCH_CORE_WORDSTATE_H

#include "kas/Search/Core/Searcher.h"

namespace kas {

/// A set of letters.
struct Word final : search::Solution {
  explicit Word(uint64_t letters) : letters(letters) {}
  uint64_t key() const override { return letters; }
  uint64_t letters;
};

/// Letters are added one by one, in any order; a set of `length` letters out of
/// `alphabet` is a candidate unless it holds letter 0 but not letter 1. So
/// every candidate is reached by many paths, and some states are dead ends.
class WordState final : public search::State {
public:
  WordState(unsigned alphabet, unsigned length)
      : alphabet(alphabet), length(length) {}

  std::unique_ptr<search::State> clone() const override {
    return std::make_unique<WordState>(*this);
  }
  void assign(const search::State &other) override {
    *this = static_cast<const WordState &>(other);
  }
  /// Even letters and odd ones.
  unsigned getNumKinds() const override { return 2; }
  llvm::StringRef getKindName(unsigned kind) const override {
    return kind ? "odd" : "even";
  }
  std::optional<search::Move>
  nextMove(unsigned kind, std::optional<search::Move> previous) const override {
    if (count == length)
      return std::nullopt;
    bool isLast = count + 1 == length;
    for (uint32_t code = previous ? previous->code + 1 : 0;
         2 * code + kind < alphabet; ++code) {
      uint64_t next = letters | uint64_t(1) << (2 * code + kind);
      if (next != letters && !(isLast && (next & 1) && (next & 7) != 7))
        return search::Move{kind, code};
    }
    return std::nullopt;
  }
  void apply(search::Move move) override {
    letters |= uint64_t(1) << (2 * move.code + move.kind);
    ++count;
  }
  bool isTerminal() const override { return count == length; }
  std::shared_ptr<const search::Solution> getSolution() const override {
    return std::make_shared<Word>(letters);
  }
  uint64_t key() const override { return letters; }

  /// How many candidates there are: sets without 0, and those with 0, 1 and 2.
  uint64_t getNumCandidates() const {
    return choose(alphabet - 1, length) + choose(alphabet - 3, length - 3);
  }

private:
  static uint64_t choose(unsigned n, unsigned k) {
    uint64_t result = 1;
    for (unsigned i = 1; i <= k; ++i)
      result = result * (n - k + i) / i;
    return result;
  }

  unsigned alphabet, length, count = 0;
  uint64_t letters = 0;
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_CORE_WORDSTATE_H
