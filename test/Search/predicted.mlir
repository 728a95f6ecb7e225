// RUN: rm -rf %t && mkdir -p %t/cache && ln -s %S/Inputs/runner.sh %t/some-fail

// Without a machine model the times are those of a usual machine, which is said.
// RUN: env XDG_CACHE_HOME=%t/cache kas-opt %s -kas-search="evaluations=30 evaluators=predicted_ms objective=predicted_ms progress=true" -o %t/1.mlir 2>%t/log
// RUN: FileCheck %s --input-file=%t/1.mlir
// RUN: FileCheck %s --check-prefix=USUAL --input-file=%t/log
// CHECK: kas.score = {predicted_least_ms = {{[0-9.e-]+}} : f64, predicted_ms = {{[0-9.e-]+}} : f64}
// USUAL: predicted_ms is that of a usual machine: there is no machine model in '{{.*}}machine-{{.*}}.json'; 'kas-bench calibrate' makes one

// The same file and the same operator: the same prediction.
// RUN: env XDG_CACHE_HOME=%t/cache kas-opt %s -kas-search="evaluations=30 evaluators=predicted_ms objective=predicted_ms" | diff - %t/1.mlir

// With one for this machine nothing is said.
// RUN: %python %S/Inputs/machine-model.py %t/log 2
// RUN: env XDG_CACHE_HOME=%t/cache kas-opt %s -kas-search="evaluations=30 evaluators=predicted_ms objective=predicted_ms progress=true" 2>&1 -o /dev/null | FileCheck %s --check-prefix=QUIET
// QUIET-NOT: usual machine

// What cannot be as fast as the fastest that was measured is not measured. All that run take 1.5 ms here, and are predicted to take
// more, at all bindings together 4 * 8 ms.
// RUN: env XDG_CACHE_HOME=%t/cache kas-opt %s -kas-search="evaluations=20 evaluators=predicted_ms objective=predicted_ms final=20 runner=%t/some-fail " -o %t/2.mlir
// RUN: grep -c 'latency_ms = 1.5' %t/2.mlir | FileCheck %s --check-prefix=ONE
// ONE: {{^}}1{{$}}

// RUN: %python %S/Inputs/machine-model.py %t/log 0.5
// RUN: not env XDG_CACHE_HOME=%t/cache kas-opt %s -kas-search="evaluators=predicted_ms" 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: machine model '{{.*}}': requires a number from 1 on as 'margin'; 'kas-bench calibrate' makes a new one

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 7}
