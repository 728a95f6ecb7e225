// RUN: not kas-opt %s -kas-search="space=@none" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-search="space=@layr" 2>&1 | FileCheck %s --check-prefix=NEAR-SPACE
// RUN: not kas-opt %s -kas-search 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not kas-opt %s -kas-search="space=@a evaluations=0" 2>&1 | FileCheck %s --check-prefix=EVALUATIONS
// RUN: not kas-opt %s -kas-search="space=@a threads=0" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not kas-opt %s -kas-search="space=@a seconds=-1" 2>&1 | FileCheck %s --check-prefix=SECONDS
// RUN: not kas-opt %s -kas-search="space=@a seconds=nan" 2>&1 | FileCheck %s --check-prefix=SECONDS-NAN
// RUN: not kas-opt %s -kas-search="space=@a time-limit=-1" 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not kas-opt %s -kas-search="space=@a evaluators=flops,beauty" 2>&1 | FileCheck %s --check-prefix=EVALUATOR
// RUN: not kas-opt %s -kas-search="space=@a evaluators=latency runner=%t.none/kas-run" 2>&1 | FileCheck %s --check-prefix=RUNNER
// RUN: not kas-opt %s -kas-search="space=@a evaluators=flop" 2>&1 | FileCheck %s --check-prefix=NEAR-EVALUATOR
// RUN: not kas-opt %s -kas-search="space=@a algorithm=montecarlo" 2>&1 | FileCheck %s --check-prefix=ALGORITHM
// RUN: not kas-opt %s -kas-search="space=@a algorithm=evoluton" 2>&1 | FileCheck %s --check-prefix=NEAR-ALGORITHM
// RUN: not kas-opt %s -kas-search="space=@a algorithm=mcts parameters=rolouts=3" 2>&1 | FileCheck %s --check-prefix=NEAR-PARAMETER
// RUN: not kas-opt %s -kas-search="space=@a seed=x" 2>&1 | FileCheck %s --check-prefix=SEED

// NONE: error: requires a kas.space @none in the module, got none of that name
// NEAR-SPACE: error: requires a kas.space @layr in the module, got none of that name (did you mean 'layer'?)
// TWO: error: requires one kas.space in the module, or the option 'space', got 3
// EVALUATIONS: error: requires evaluations >= 1, got 0
// THREADS: error: requires 1 <= threads <= 1024, got 0
// SECONDS: error: requires 0 <= seconds <= 1e9, got -1
// SECONDS-NAN: error: requires 0 <= seconds <= 1e9, got nan
// LIMIT: error: requires 0 <= time-limit <= 1e6, got -1
// EVALUATOR: error: requires an evaluator among bytes, external, fisher, flops, flops_unprepared, imitation, latency, params, predicted_ms, proxy=ensemble, proxy=fisher, proxy=flops, proxy=grad-norm, proxy=naswot, proxy=params, proxy=snip, proxy=synflow, training, training_flops, got 'beauty'
// NEAR-EVALUATOR: error: requires an evaluator among {{.*}}, got 'flop' (did you mean 'flops'?)
// ALGORITHM-NOT: {{unknown|:0:0:}}
// ALGORITHM: options.mlir:{{[1-9][0-9]*}}:1: error: expected an algorithm (random, uniform, exhaustive, evolution, mcts, surrogate), got 'montecarlo'
// ALGORITHM-NOT: {{unknown|:0:0:}}
// NEAR-ALGORITHM: got 'evoluton' (did you mean 'evolution'?)
// NEAR-PARAMETER: error: expected a parameter of 'mcts' ({{.*}}), got 'rolouts' (did you mean 'rollouts'?)
// RUNNER: error: requires a program that runs candidates, found no executable '{{.*}}none/kas-run'
// SEED: 'x' value invalid for {{.*}} argument
kas.space @a<M, K, N> [M, N] from [M, K] bindings [<M = 8, K = 4, N = 6>]
kas.space @b<M, K, N> [M, N] from [M, K] bindings [<M = 8, K = 4, N = 6>]
kas.space @layer<M, K, N> [M, N] from [M, K] bindings [<M = 8, K = 4, N = 6>]
