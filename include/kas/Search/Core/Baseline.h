//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the candidates of a search are compared with: the network whose layers
// they replace, and what people made by hand for the same place.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_BASELINE_H
#define KAS_SEARCH_CORE_BASELINE_H

#include "kas/Search/Core/State.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <functional>
#include <memory>
#include <string>

namespace kas::search {

class Evaluator;
class SearchReport;
class SearchStore;
struct StoredBaseline;

/// A candidate, or a baseline, as a worker process gets it.
struct CandidateText {
  /// `operator`, `sequence`, `kernel`, or `function`, which has no bindings, or
  /// `network`, which is what the worker has already.
  llvm::StringRef noun;
  /// The IR, a whole file.
  std::string text;
  /// A value for each symbol, by binding; how often each binding counts.
  std::vector<std::vector<std::pair<std::string, int64_t>>> bindings;
  std::vector<int64_t> multiplicities;
  /// What else a request for it says.
  llvm::json::Object more = {};
};

/// Evaluated by the evaluators of the candidates, but never one of them: a
/// search neither proposes nor finds it.
struct Baseline {
  /// `kas.x` of the library, `x` of the module; that of the network itself is
  /// `networkName`.
  std::string name;
  /// The layers as they are.
  bool isNetwork = false;
  CandidateText text;
  /// Its graph, as the evaluators of `makeEvaluator` take it; null where only
  /// workers know what it is.
  std::shared_ptr<const Solution> solution;
  /// An evaluator of its own: it need not be a solution of the problem that is
  /// searched. From any thread.
  std::function<llvm::Expected<std::unique_ptr<Evaluator>>(llvm::StringRef)>
      makeEvaluator;

  static constexpr llvm::StringLiteral networkName = "network itself";
};

/// The baseline of this name, or null.
const StoredBaseline *findBaseline(llvm::StringRef name,
                                   llvm::ArrayRef<StoredBaseline> known);
/// The number of a new baseline. Numbers are negative and count downwards from
/// that of the network, so that they share the column `candidate` of the table
/// of curves with candidates; whatever names were in use before.
int64_t numberBaseline(llvm::ArrayRef<StoredBaseline> known);

/// Evaluates `baselines` on `threads` threads by those of `evaluators` that
/// `store` does not have them by yet, and keeps what they give in it, as of
/// `seed`. Reports each. An error names the baseline that cannot be evaluated.
llvm::Error evaluateBaselines(llvm::ArrayRef<Baseline> baselines,
                              llvm::ArrayRef<Evaluator *> evaluators,
                              unsigned threads, uint64_t seed,
                              SearchStore &store, SearchReport &report);

} // namespace kas::search

#endif // KAS_SEARCH_CORE_BASELINE_H
