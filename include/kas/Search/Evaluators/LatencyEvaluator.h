//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The latency of operators and kernels, measured in child processes.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_LATENCYEVALUATOR_H
#define KAS_SEARCH_EVALUATORS_LATENCYEVALUATOR_H

#include "kas/Search/Evaluators/Evaluators.h"

namespace kas::search {

/// The metric `latency_ms`: the median time of the compiled candidate on the
/// CPU over 7 runs after 2 for warming up, one thread, summed over the bindings
/// times their multiplicities. The runs are in turn with a reference kernel, so
/// that changes of the machine's speed cancel (kas/Runtime/ReferenceTiming.h);
/// all workers use the scale of the first. Candidates are compiled and run in
/// worker processes (`kas-run --worker`, see ExternalEvaluator.h) with at most
/// `settings.timeLimit` seconds for one and `settings.memoryLimit` MiB of
/// address space (8192 where there is none): one that crashes, hangs or does
/// not compile is a failure and no more. So is more than the problem's latency
/// budget.
llvm::Expected<std::unique_ptr<Evaluator>>
makeLatencyEvaluator(const EvaluatorSettings &settings);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_LATENCYEVALUATOR_H
