//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluators that are processes of their own, in any language.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_EXTERNALEVALUATOR_H
#define KAS_SEARCH_EVALUATORS_EXTERNALEVALUATOR_H

#include "kas/Search/Evaluators/Evaluators.h"

namespace kas::search {

/// Hands candidates to `settings.workers` processes of the shell command
/// `settings.command`, each of which reads one JSON object per line and answers
/// each with one line (docs/guide/searching.md has the protocol and an
/// example):
///   {"id": 7, "operator": "kas.operator @candidate...", "bindings":
///    [{"N": 1, ...}, ...], "multiplicities": [4, ...]}
///   {"id": 7, "metrics": {"loss": 0.5}}   or   {"id": 7, "error": "why"}
/// A kernel is called "kernel", and its bindings have its variables as well.
/// The first `reference_ms` of an answer, where there is one, is in all later
/// requests: workers that measure can agree on a scale.
/// An answer with an error, or with a metric that is no finite number, is a
/// failure of the candidate. A worker that ends, answers something else, or
/// needs more than `settings.timeLimit` seconds is killed and started again;
/// its candidate is handed to the next free worker, `settings.retries` times at
/// most, and has failed then. Lines that are no JSON objects are reported and
/// ignored. Any number of threads may call at once; they wait for a free
/// worker.
llvm::Expected<std::unique_ptr<Evaluator>>
makeExternalEvaluator(const EvaluatorSettings &settings);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_EXTERNALEVALUATOR_H
