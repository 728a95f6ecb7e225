//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluators of sequences of operators: sums over their parts, or what runs the
// whole sequence.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_SEQUENCEEVALUATORS_H
#define KAS_SEARCH_EVALUATORS_SEQUENCEEVALUATORS_H

#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Search/Operators/SequenceProblem.h"

namespace kas::search {

/// Makes the evaluator `name` of solutions of `problem`. `flops`, `params`,
/// `flops_unprepared`, `training_flops`, `bytes` and `predicted_ms` are sums
/// over the operators and the steps between them (`getStepCost`; three times
/// its operations in `training_flops`, its weights in `bytes`, a pass over the
/// elements for `relu` in `predicted_ms`). `latency`, `training` and `external`
/// take the sequence as it is. Others are an error that lists these.
llvm::Expected<std::unique_ptr<Evaluator>>
makeSequenceEvaluator(llvm::StringRef name, const EvaluatorSettings &settings,
                      std::shared_ptr<const SequenceProblem> problem);

/// Prints solutions of `problem`, from any thread: `kas.sequence @candidate`
/// after its operators, a whole file.
std::function<std::string(const Solution &)>
makeSequencePrinter(std::shared_ptr<const SequenceProblem> problem);

/// The same with the bindings of the layers, as workers get it.
std::function<llvm::Expected<CandidateText>(const Solution &)>
makeSequenceDescription(std::shared_ptr<const SequenceProblem> problem);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_SEQUENCEEVALUATORS_H
