//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The final round of a search: a closer look at the best.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_CORE_FINALROUND_H
#define KAS_SEARCH_CORE_FINALROUND_H

#include "kas/Search/Core/Driver.h"

namespace kas::search {

/// Evaluates `results`, all evaluated before, by `evaluators` on `threads`
/// threads, the first first. `known` has outcomes by identifier that an earlier
/// run found. `record` is called with each new outcome and its seconds, by one
/// thread at a time; its error ends the round. Afterwards each result has the
/// metrics of both, or is the failure; but one whose `predicted_least_ms` is
/// more than the least `latency_ms` so far is left as it is.
llvm::Error runFinalRound(
    llvm::MutableArrayRef<SearchResult> results,
    llvm::ArrayRef<Evaluator *> evaluators, unsigned threads,
    const std::map<uint64_t, Outcome> &known,
    llvm::function_ref<llvm::Error(const SearchResult &, double)> record);

} // namespace kas::search

#endif // KAS_SEARCH_CORE_FINALROUND_H
