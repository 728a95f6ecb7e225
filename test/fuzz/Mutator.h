//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random changes of texts, by bytes, tokens and lines, for the fuzz test.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_FUZZ_MUTATOR_H
#define KAS_TEST_FUZZ_MUTATOR_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kas::fuzz {

/// Makes new texts out of a corpus. The sequence is a function of the corpus
/// and of the seed, on every machine.
class Mutator {
public:
  Mutator(std::vector<std::string> corpus, uint64_t seed);

  /// One text of the corpus after one to eight changes, at most `maxLength`
  /// bytes long.
  std::string next();

  /// One text of the corpus with up to three other numbers.
  std::string nextWithOtherNumbers();

  static constexpr size_t maxLength = 1 << 15;

private:
  size_t below(size_t bound) { return bound ? generator() % bound : 0; }
  const std::string &anyText() { return corpus[below(corpus.size())]; }
  std::string anyToken();

  void changeByte(std::string &text);
  void changeToken(std::string &text);
  void changeNumber(std::string &text);
  void changeLine(std::string &text);
  void changeRange(std::string &text);

  std::vector<std::string> corpus;
  /// Every token that occurs in the corpus, once.
  std::vector<std::string> tokens;
  std::mt19937_64 generator;
};

} // namespace kas::fuzz

#endif // KAS_TEST_FUZZ_MUTATOR_H
