//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small problem whose tree is known: words of digits.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_CORE_DIGITSTATE_H
#define TEST_UNITTESTS_SEARCH_CORE_DIGITSTATE_H

#include "kas/Search/Core/Searcher.h"
#include "kas/Support/Random.h"
#include <vector>

namespace kas {

/// A word of digits is appended to from left to right, so there is one path to
/// each; one that is full is a candidate when the sum of its digits is a
/// multiple of `divisor`, which is seen only at the end, else a dead end.
class DigitState final : public search::State {
public:
  struct Problem {
    unsigned base = 4, length = 5, divisor = 1;
    /// So many of the last digits do not tell candidates apart.
    unsigned numIgnored = 0;
  };
  struct Word final : search::Solution {
    uint64_t key() const override { return value; }
    uint64_t value = 0;
    std::vector<unsigned> digits;
  };

  explicit DigitState(const Problem &problem) : problem(problem) {}

  std::unique_ptr<search::State> clone() const override {
    return std::make_unique<DigitState>(*this);
  }
  void assign(const search::State &other) override {
    *this = static_cast<const DigitState &>(other);
  }
  /// Small digits and large ones.
  unsigned getNumKinds() const override { return 2; }
  llvm::StringRef getKindName(unsigned kind) const override {
    return kind ? "large" : "small";
  }
  std::optional<search::Move>
  nextMove(unsigned kind, std::optional<search::Move> previous) const override {
    uint32_t half = problem.base / 2;
    uint32_t code = previous ? previous->code + 1 : 0;
    uint32_t end = kind ? problem.base - half : half;
    if (digits.size() == problem.length || code >= end)
      return std::nullopt;
    return search::Move{kind, code};
  }
  void apply(search::Move move) override {
    digits.push_back(move.code + (move.kind ? problem.base / 2 : 0));
  }
  bool isTerminal() const override {
    unsigned sum = 0;
    for (unsigned digit : digits)
      sum += digit;
    return digits.size() == problem.length && sum % problem.divisor == 0;
  }
  std::shared_ptr<const search::Solution> getSolution() const override {
    auto word = std::make_shared<Word>();
    word->value = key();
    word->digits = digits;
    return word;
  }
  uint64_t key() const override {
    size_t end =
        isTerminal() ? digits.size() - problem.numIgnored : digits.size();
    uint64_t key = isTerminal();
    for (size_t index = 0; index < end; ++index)
      key = key * problem.base + digits[index];
    // A prefix is not the word that it begins, nor a longer prefix.
    return isTerminal() ? key : mixBits(key * 64 + digits.size());
  }

private:
  Problem problem;
  std::vector<unsigned> digits;
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_CORE_DIGITSTATE_H
