//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluators of operators by name; some take kernels, too.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_EVALUATORS_H
#define KAS_SEARCH_EVALUATORS_EVALUATORS_H

#include "kas/Search/Core/Evaluator.h"
#include "kas/Search/Operators/OperatorGraph.h"
#include <functional>

namespace kas::search {

/// What evaluators are made from.
struct EvaluatorSettings {
  /// The problem that the candidates, `OperatorGraph`s, are solutions of. Null
  /// when they are no operators: then there is `describe`.
  std::shared_ptr<const SearchProblem> problem;
  /// For `external` and `latency`, from any thread: the text of a candidate, or
  /// why it has none. Empty: that of a solution of `problem`.
  std::function<llvm::Expected<CandidateText>(const Solution &)> describe;
  /// The program that runs a candidate; empty: `kas-run` beside the running
  /// executable, else on the path.
  std::string runner;
  /// For `latency`: what candidates run on, `cpu`, `cuda` or `vulkan` with or
  /// without `:` and a number; empty: the CPU.
  std::string device;
  /// Seconds that a worker may take for a candidate; 0: 30, for `training` as
  /// many as it needs.
  double timeLimit = 0;
  /// MiB of address space that a process which evaluates may have; 0: no limit.
  uint64_t memoryLimit = 0;
  /// For `external`: the shell command of a worker, how many of them run, and
  /// how often a candidate is tried again after a worker was lost over it.
  std::string command;
  unsigned workers = 1;
  unsigned retries = 2;
  /// For `external`: seconds in which a worker that cannot work ends, before
  /// the first candidate.
  double probeSeconds = 0.1;
  /// For `training`: options of kas-train, and the epochs after which only the
  /// best candidates are trained on.
  std::string training;
  std::vector<int64_t> rungs;
  /// For evaluators that run the network around the problem: its space. Null
  /// when candidates are no operators; need not outlive `makeEvaluator`.
  SpaceOp space;
  /// For `imitation`: what to imitate. Need not outlive `makeEvaluator`.
  OperatorOp imitated;
  /// Takes what is worth knowing but no result, such as a worker that is
  /// started anew. One call at a time for each evaluator; may be empty.
  std::function<void(const std::string &)> report;
};

/// What `graph` moves in f32 when data, weights and output are each moved once,
/// summed over the bindings times their multiplicities, as `getCost` of
/// kas/Dialect/Kas/Analysis/Cost.h; nothing when it does not fit 63 bits.
std::optional<uint64_t> getBytes(const SearchProblem &problem,
                                 const OperatorGraph &graph);

/// What makes the text of solutions of `problem`, from any thread.
std::function<llvm::Expected<CandidateText>(const Solution &)>
makeOperatorDescription(std::shared_ptr<const SearchProblem> problem);

using EvaluatorFactory =
    std::function<llvm::Expected<std::unique_ptr<Evaluator>>(
        const EvaluatorSettings &)>;

/// Adds an evaluator, or replaces the one of that name. Programs that link kas
/// call this before they run passes; not safe against concurrent calls of
/// `makeEvaluator`.
void registerEvaluator(llvm::StringRef name, EvaluatorFactory factory);

/// Makes the evaluator `name`. Built in: `flops`, `params`, `bytes` (the
/// formulas of `GraphCost`), `imitation` (see ImitationEvaluator.h), `latency`
/// (see LatencyEvaluator.h), `predicted_ms` (see PredictedTimeEvaluator.h),
/// `training` (see TrainingEvaluator.h), `external` (see ExternalEvaluator.h),
/// `flops_unprepared` and `training_flops`. An
/// unknown name is an error that lists those that are known.
llvm::Expected<std::unique_ptr<Evaluator>>
makeEvaluator(llvm::StringRef name, const EvaluatorSettings &settings);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_EVALUATORS_H
