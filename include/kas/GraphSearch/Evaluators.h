//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluators of operators by name.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GRAPHSEARCH_EVALUATORS_H
#define KAS_GRAPHSEARCH_EVALUATORS_H

#include "kas/GraphSearch/OperatorGraph.h"
#include "kas/Search/Evaluator.h"
#include <functional>

namespace kas {

/// What evaluators are made from.
struct EvaluatorSettings {
  /// The problem that the candidates, `OperatorGraph`s, are solutions of.
  std::shared_ptr<const SearchProblem> problem;
  /// The program that runs a candidate; empty: `kas-run` beside the running
  /// executable, else on the path.
  std::string runner;
  /// Seconds that one run of a candidate may take.
  double timeLimit = 30;
};

using EvaluatorFactory =
    std::function<llvm::Expected<std::unique_ptr<Evaluator>>(
        const EvaluatorSettings &)>;

/// Adds an evaluator, or replaces the one of that name. Programs that link kas
/// call this before they run passes; not safe against concurrent calls of
/// `makeEvaluator`.
void registerEvaluator(llvm::StringRef name, EvaluatorFactory factory);

/// Makes the evaluator `name`. Built in: `flops`, `params` (the formulas of
/// `GraphCost`) and `latency` (see LatencyEvaluator.h). An unknown name is an
/// error that lists those that are known.
llvm::Expected<std::unique_ptr<Evaluator>>
makeEvaluator(llvm::StringRef name, const EvaluatorSettings &settings);

} // namespace kas

#endif // KAS_GRAPHSEARCH_EVALUATORS_H
