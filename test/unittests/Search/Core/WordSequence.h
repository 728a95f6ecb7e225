//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Words, a choice and other words: a sequence whose candidates can be counted.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_CORE_WORDSEQUENCE_H
#define TEST_UNITTESTS_SEARCH_CORE_WORDSEQUENCE_H

#include "WordState.h"
#include "kas/Search/Core/SequenceState.h"

namespace kas {

inline search::SequenceVariant makeWordParts(unsigned first, unsigned choices,
                                             unsigned second) {
  search::SequenceVariant parts;
  parts.push_back(std::make_unique<WordState>(first, 3));
  parts.push_back(search::makeChoiceState("between", choices));
  parts.push_back(std::make_unique<WordState>(second, 3));
  return parts;
}

/// 5 * 2 * 11 candidates of the first variant, 11 * 2 * 5 of the second.
inline std::unique_ptr<search::State>
makeWordSequence(search::SequenceOptions options = {}) {
  std::vector<search::SequenceVariant> variants;
  variants.push_back(makeWordParts(5, 2, 6));
  variants.push_back(makeWordParts(6, 2, 5));
  return search::makeSequenceState(std::move(variants), std::move(options));
}

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_CORE_WORDSEQUENCE_H
