//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluator that asks whether a candidate computes the same as a given
// operator.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_IMITATIONEVALUATOR_H
#define KAS_SEARCH_EVALUATORS_IMITATIONEVALUATOR_H

#include "kas/Search/Evaluators/Evaluators.h"

namespace kas::search {

/// Compares candidates with `settings.imitated` as sets of functions, on random
/// data. Metrics, each the largest over the bindings and from 0 to 1:
///  - `imitation_missing`: the share of the variance of what the given operator
///    computes, with random weights, that the candidate cannot explain with the
///    best weights (`getImitationError`);
///  - `imitation_excess`: the same the other way round: what the candidate
///    computes beyond the given operator;
///  - `imitation_error`: the mean of the two. 0 (up to rounding, below 1e-6)
///    when each computes whatever the other does, up to a constant factor where
///    there is no weight: the two are then the same operator. Larger by how
///    much of one is not in the other, so that a search has a slope.
///
/// The bindings should be small: time is the number of products times the
/// samples, three for each parameter per output point, times the sweeps, plus
/// the third power of the largest weight. The operator's symbols must be among
/// those of the problem, by name, and its shapes those of the problem. An
/// operator with `max` has no such comparison: an error.
llvm::Expected<std::unique_ptr<Evaluator>>
makeImitationEvaluator(const EvaluatorSettings &settings);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_IMITATIONEVALUATOR_H
