//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Algorithms by name, and their constants by name.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_MAKESEARCHER_H
#define KAS_SEARCH_CORE_MAKESEARCHER_H

#include "kas/Search/Core/SpaceSearcher.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kas::search {

/// What an algorithm is given beside its constants.
struct SearcherSettings {
  uint64_t seed = 0;
  /// Makes one number of the metrics of a candidate; less is better. None: the
  /// negative of `getDefaultReward`.
  std::function<double(const Metrics &)> objective;
  /// What `exhaustive` orders candidates by; none: canonical order.
  std::function<double(const Solution &)> cost;
  CandidateSpace::Options space;
  /// The complete tree of the root, if it is known; then none is built.
  std::shared_ptr<const LivingTree> tree;
};

/// A constant of an algorithm.
struct SearcherParameter {
  llvm::StringRef name, description;
  double defaultValue = 0, least = 0, most = 0;
  bool isInteger = false;
};

/// `random`, `uniform`, `exhaustive`, `evolution`, `mcts`, `surrogate`.
llvm::ArrayRef<llvm::StringLiteral> getSearcherNames();

/// The constants of an algorithm; all have those of the space as well.
std::vector<SearcherParameter> getSearcherParameters(llvm::StringRef algorithm);

/// Makes the algorithm `name` on the space of `root`. `parameters` are of the
/// form `name=value`; a later one counts. Errors: an algorithm or a parameter
/// that there is not, a value that is no number or out of range.
llvm::Expected<std::unique_ptr<Searcher>>
makeSearcher(llvm::StringRef name, std::unique_ptr<State> root,
             const SearcherSettings &settings = {},
             llvm::ArrayRef<std::string> parameters = {});

} // namespace kas::search

#endif // KAS_SEARCH_CORE_MAKESEARCHER_H
