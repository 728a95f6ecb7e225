//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Candidates that consist of parts, each a candidate of a problem of its own:
// the moves of the first part, then those of the second, and so on.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_SEQUENCESTATE_H
#define KAS_SEARCH_CORE_SEQUENCESTATE_H

#include "kas/Search/Core/State.h"
#include "llvm/ADT/ArrayRef.h"
#include <functional>
#include <string>
#include <vector>

namespace kas::search {

/// The root of a problem whose candidates are the numbers below `count`.
/// `name` is that of its only kind of moves. Its solutions are `Choice`s.
std::unique_ptr<State> makeChoiceState(std::string name, uint32_t count);

struct Choice final : Solution {
  explicit Choice(uint32_t number) : number(number) {}

  uint64_t key() const override { return mixBits(number + 1); }
  void getFeatures(llvm::SmallVectorImpl<double> &features) const override {
    features.push_back(number);
  }

  uint32_t number;
};

using Parts = llvm::ArrayRef<std::shared_ptr<const Solution>>;

/// A candidate with all its parts.
struct SequenceSolution final : Solution {
  uint32_t variant = 0;
  std::vector<std::shared_ptr<const Solution>> parts;
  uint64_t hash = 0;

  uint64_t key() const override { return hash; }
  /// The variant, then the features of the parts.
  void getFeatures(llvm::SmallVectorImpl<double> &features) const override;
};

struct SequenceOptions {
  /// The name of the kind of moves that choose the variant.
  std::string variantName = "variant";
  /// Whether some candidate that begins with these parts of a variant, the last
  /// of them just completed, is allowed; all parts: whether the candidate is.
  /// May say yes where there is none. A function of its arguments, called from
  /// the thread of the state. Empty: all are.
  std::function<bool(uint32_t variant, Parts parts)> isAllowed;
};

/// The roots of the parts of one variant; all variants have as many.
using SequenceVariant = std::vector<std::unique_ptr<State>>;

/// The root of the problem whose candidates are, for each variant, all
/// combinations of candidates of its parts. The first move chooses the variant
/// where there are several. Candidates of different variants are different; two
/// of one variant are the same when all their parts are. What `isAllowed`
/// excludes ends in a dead end.
std::unique_ptr<State> makeSequenceState(std::vector<SequenceVariant> variants,
                                         SequenceOptions options = {});

} // namespace kas::search

#endif // KAS_SEARCH_CORE_SEQUENCESTATE_H
