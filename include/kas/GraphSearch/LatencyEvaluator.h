//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The latency of operators, measured in child processes.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GRAPHSEARCH_LATENCYEVALUATOR_H
#define KAS_GRAPHSEARCH_LATENCYEVALUATOR_H

#include "kas/GraphSearch/Evaluators.h"

namespace kas {

/// The metric `latency_ms`: the median time of the compiled operator on the
/// CPU over 7 runs after 2 for warming up, one thread, summed over the bindings
/// times their multiplicities. Each binding is a process of its own (`kas-run
/// --operator=... --time --json`), so a candidate that crashes, hangs or does
/// not compile is a failure and no more. More than the problem's latency budget
/// is a failure as well.
llvm::Expected<std::unique_ptr<Evaluator>>
makeLatencyEvaluator(const EvaluatorSettings &settings);

} // namespace kas

#endif // KAS_GRAPHSEARCH_LATENCYEVALUATOR_H
