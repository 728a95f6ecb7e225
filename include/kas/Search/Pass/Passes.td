//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that searches for operators.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_PASS_PASSES_TD
#define KAS_SEARCH_PASS_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasSearchPass : Pass<"kas-search", "::mlir::ModuleOp"> {
  let summary = "Search a space for operators";
  let description = [{
    Looks for operators that solve the problem of a `kas.space` and appends them
    to the module as `kas.operator`s, the best first. Each has its metrics in
    the attribute `kas.score`, summed over the bindings times their
    multiplicities, and its space in `kas.origin`. A space without an operator
    gives a warning.

    `objective` says what is best: the least weighted sum of metrics, or a front
    of several (`pareto(flops,params)`), whose members come first and have the
    attribute `kas.front`. Without it: the least `latency_ms` where it was
    measured, then `flops`, then `params`, then the order of proposal.

    With `final=N` the best N are then evaluated by `final-evaluators`, which
    may be expensive; the objective orders them again.

    No candidate comes twice, and a small space is searched to its end. With
    evaluators that are deterministic (`flops`, `params`, `bytes`) and no limit
    of time, one seed gives one result, on any machine and, for the algorithms
    that do not learn (`random`, `uniform`, `exhaustive`), with any number of
    threads. `latency` compiles and
    runs a candidate in a worker process (`kas-run --worker`) under each
    binding; it is a failure of that candidate when the process crashes or is
    too slow.
    `external` hands candidates to processes in any language, as JSON lines.
    `imitation` compares candidates with the operator that `imitate` names, as
    sets of functions on random data: `imitation_error` is 0, or below 1e-6, for
    an operator that computes the same.

    With `database` all of it is kept in one SQLite file: the same command goes
    on where a killed one stopped (each operator then has its number there in
    the attribute `kas.candidate`). The layers themselves, and what `baselines`
    names, are evaluated once and kept beside the candidates. See
    docs/guide/searching.md.

    With `kernel=@k` the search is for kernels of the tensor level: those with
    the signature, symbols, bindings and budget of `@k`, under Theorem 1 of the
    Canvas paper when it is marked `canvas`. They are appended as `kas.kernel`s
    with values for their free variables, which use as much of the budget as can
    be, and the certificate of that (see `kas-solve-budget`). Evaluators are
    `flops` and `params`. See docs/internals/tensor-level.md.

    With `network=@f` the search is for sequences of transformations of the
    convolutions of `@f`: neural ones (`transform.kas`), which change what is
    computed, mixed with splits and strategies of the CPU, which do not, as in Turner
    et al., "Neural Architecture Search as Program Transformation Exploration".
    What is appended are transformed functions, with the transformations in the
    attribute `kas.programs`; the database keeps the candidates as scripts of the
    transform dialect. Evaluators are `flops`, `params`, `fisher` (the Fisher
    Potential, also over that of `@f`, as `fisher_ratio`), `layer_latency` (the
    sum of the times of the transformed layers, of which each program is timed
    once, alone: `layer_latency_ms`, and over that of `@f`
    `layer_latency_ratio`), `latency` and `external`. See docs/guide/network-search.md.

    The space's limits and budgets hold exactly. Where it says nothing the
    limits are `depth = 10`, `reduce = 4`, `split = 2`, `merge = 1`,
    `shift = 2`, `expand = 0`, `unfold = 2`, `stride = 0`, `weights = 2`;
    coefficients occur at most 6 times in reductions and weights, symbols of
    channels (in an unordered dimension, or of one side only) 4 times, other
    primary symbols never.

    ```mlir
    // kas-opt -kas-search="space=@layers seed=7 evaluations=64 top=1"
    kas.space @layers<N, Cin, Cout, W | k>
        [N, Cout unordered, W] from [N, Cin unordered, W]
        bindings [<N = 1, Cin = 16, Cout = 16, W = 32, k = 3>]
        budget {flops = 20000}
    // adds
    kas.operator @layers_0<N, Cin, Cout, W | k>(...) from [...]
        attributes {kas.origin = "layers",
                    kas.score = {flops = 16384, params = 256}} { ... }
    ```
  }];
  let options = [
    Option<"space", "space", "std::string", /*default=*/"\"\"",
           "The space to search (default: the only one)">,
    Option<"kernel", "kernel", "std::string", /*default=*/"\"\"",
           "Search for kernels of the tensor level instead, like this one">,
    ListOption<"kernelLimits", "kernel-limits", "std::string",
               "Limits of such kernels, name=integer: steps, steps-min, width, "
               "weights, weights-min, variables, rank, dilation, shift, repeats, "
               "neighbours, paired-windows, batch, max-elements, or a primitive "
               "with 0 or 1">,
    Option<"groups", "groups", "std::string", /*default=*/"\"\"",
           "The coefficient of such kernels that is the number of groups, one of "
           "the common factors of what it divides (default: as in the bindings)">,
    Option<"network", "network", "std::string", /*default=*/"\"\"",
           "Search for transformations of the convolutions of this function "
           "instead">,
    Option<"scoredNetwork", "scored-network", "std::string", /*default=*/"\"\"",
           "The same network for several samples, of which the evaluator "
           "'fisher' takes the scores (default: that of 'network')">,
    ListOption<"networkLimits", "network-limits", "std::string",
               "Limits of such transformations, name=integer: at most so many "
               "steps of a layer (3), groups (16), slabs (4), factor of a "
               "bottleneck (4); kernel, the least rows of a layer (2); schedules, "
               "normalize (0 or 1)">,
    Option<"algorithm", "algorithm", "std::string",
           /*default=*/"\"surrogate\"",
           "How candidates are chosen: random (rollouts, without a list of the "
           "space), uniform (each candidate as likely, if the space can be "
           "listed), exhaustive (all, by their cost), evolution (variations of "
           "the best), mcts (Monte Carlo tree search), surrogate (the best by a "
           "model of outcomes)">,
    ListOption<"parameters", "parameters", "std::string",
               "Constants of the algorithm, name=value">,
    Option<"seed", "seed", "uint64_t", /*default=*/"0",
           "Seed of the algorithm">,
    Option<"evaluations", "evaluations", "uint64_t", /*default=*/"64",
           "The most candidates to evaluate">,
    Option<"seconds", "seconds", "double", /*default=*/"0",
           "Start no evaluation after so many seconds (0: no limit)">,
    ListOption<"evaluators", "evaluators", "std::string",
               "Metrics of each candidate: flops, params, bytes, "
               "predicted_ms, latency, layer_latency (networks), training, "
               "external, imitation, fisher, proxy=NAME, or what a program that "
               "links kas registers (default: flops, params)">,
    ListOption<"limits", "limits", "std::string",
               "Bounds on metrics, such as flops<=1e9; what is beyond fails and "
               "is not evaluated further">,
    Option<"objective", "objective", "std::string", /*default=*/"\"\"",
           "What is to be small: a weighted sum of metrics such as "
           "2*loss+latency_ms, or a front such as pareto(flops,params) "
           "(default: latency_ms, then predicted_ms, then flops, then params)">,
    Option<"finalCount", "final", "uint64_t", /*default=*/"0",
           "Look closer at so many of the best once the search is over">,
    ListOption<"finalEvaluators", "final-evaluators", "std::string",
               "Metrics of those (default: latency)">,
    Option<"threads", "threads", "unsigned", /*default=*/"1",
           "Candidates that are evaluated at once">,
    Option<"top", "top", "uint64_t", /*default=*/"0",
           "The most operators to keep (0: all)">,
    Option<"runner", "runner", "std::string", /*default=*/"\"\"",
           "The program that runs candidates (default: kas-run beside this one, "
           "else on the path)">,
    Option<"device", "device", "std::string", /*default=*/"\"cpu\"",
           "What the evaluator 'latency' runs candidates on: cpu, cuda or "
           "vulkan, the last two also with a number as in cuda:1">,
    Option<"external", "external", "std::string", /*default=*/"\"\"",
           "The shell command of the workers of the evaluator 'external'">,
    Option<"training", "training", "std::string", /*default=*/"\"\"",
           "Options of kas-train for the evaluator 'training', with --data and "
           "--validation at least">,
    ListOption<"rungs", "rungs", "int64_t",
               "Epochs after which it trains only the best third of the "
               "candidates on, ascending (default: 1, 3, 6)">,
    Option<"imitate", "imitate", "std::string", /*default=*/"\"\"",
           "The operator in the module that the evaluator 'imitation' compares "
           "candidates with, at each binding of the space">,
    ListOption<"baselines", "baselines", "std::string",
               "What the candidates are compared with beside the network itself: "
               "operators and sequences of the module, kas.NAME of the library; "
               "evaluated once and kept in the database">,
    Option<"workers", "workers", "unsigned", /*default=*/"0",
           "Processes of the evaluators 'latency' and 'external', each (0: as "
           "many as threads)">,
    Option<"retries", "retries", "unsigned", /*default=*/"2",
           "How often a candidate is tried again when a worker was lost over "
           "it">,
    Option<"timeLimit", "time-limit", "double", /*default=*/"0",
           "Seconds that a worker may take for a candidate (0: 30, for training "
           "as many as it needs)">,
    Option<"memoryLimit", "memory-limit", "uint64_t", /*default=*/"0",
           "MiB of address space that a worker may have (0: 8192 for latency, "
           "no limit for external)">,
    Option<"database", "database", "std::string", /*default=*/"\"\"",
           "The SQLite file that keeps the search; go on when it exists">,
    Option<"progress", "progress", "bool", /*default=*/"false",
           "Report progress on the standard error stream: a line on a "
           "terminal, else JSON lines">
  ];
  let statistics = [
    Statistic<"numAsked", "candidates", "Candidates found">,
    Statistic<"numReplayed", "replayed",
              "Candidates whose outcome the database had">,
    Statistic<"numFailed", "failed", "Candidates whose evaluation failed">,
    Statistic<"numFront", "front", "Candidates that no other dominates">,
    Statistic<"numExpanded", "expanded", "States expanded">,
    Statistic<"numDeadEnds", "dead-ends", "Rollouts that had to step back">,
    Statistic<"numDuplicates", "duplicates", "Candidates found again">
  ];
  let dependentDialects = ["::kas::KasDialect"];
}

#endif // KAS_SEARCH_PASS_PASSES_TD
