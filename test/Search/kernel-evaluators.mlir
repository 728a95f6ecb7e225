// Kernels, evaluated by processes of their own, as operators are.
// DEFINE: %{search} = kernel=@layer groups=G algorithm=random kernel-limits=steps=5
// RUN: rm -rf %t && mkdir %t
// RUN: for name in crash hang nonsense fail record some-fail; do ln -s %S/Inputs/runner.sh %t/$name; done

// The kernel that was compiled is measured.
// RUN: kas-opt %s -kas-search="%{search} evaluations=2 evaluators=flops,params,latency threads=2" | FileCheck %s
// CHECK-COUNT-2: kas.score = {flops = {{[0-9]+}} : i64, latency_ms = {{[0-9.eE+-]+}} : f64, params = {{[0-9]+}} : i64}
// CHECK-NOT: kas.score

// A worker is handed the solved kernel with all bindings, variables and the number of groups among them.
// RUN: env KAS_TEST_RECORD=%t/calls kas-opt %s -kas-search="%{search} evaluations=2 evaluators=latency runner=%t/record" | FileCheck %s --check-prefix=RECORD
// RUN: FileCheck %s --check-prefix=CALLS --input-file=%t/calls
// RECORD-COUNT-2: kas.score = {latency_ms = 6.000000e+00 : f64}
// CALLS: --worker --threads=1 --runs=7 {"id":0,"kernel":"kas.kernel canvas @candidate<C, H, W | G, k{{.*}}solution {flops = {{.*}}","bindings":[{"C":8,{{("G":[0-9]+,)?}}"H":6,"W":6,{{("G":[0-9]+,)?}}"k":3{{(,"x[0-9]":[0-9]+)*}}},{"C":16,{{.*}}}],"multiplicities":[2,1]}
// CALLS-NEXT: --worker --threads=1 --runs=7 {"id":1,{{.*$}}
// CALLS-NOT: {{.}}

// Whatever a candidate does, the search goes on, and says what happened.
// RUN: kas-opt %s -kas-search="%{search} evaluations=2 evaluators=flops,latency runner=%t/crash" 2>&1 | FileCheck %s --check-prefixes=NONE,CRASH
// RUN: kas-opt %s -kas-search="%{search} evaluations=2 threads=2 evaluators=flops,latency runner=%t/hang time-limit=0.3" 2>&1 | FileCheck %s --check-prefixes=NONE,HANG
// RUN: kas-opt %s -kas-search="%{search} evaluations=2 evaluators=latency,flops runner=%t/nonsense" 2>&1 | FileCheck %s --check-prefixes=NONE,NONSENSE
// RUN: kas-opt %s -kas-search="%{search} evaluations=2 evaluators=latency runner=%t/fail progress=true" 2>&1 | FileCheck %s --check-prefixes=PROGRESS,NONE,FAIL
// PROGRESS: {"event":"message","text":"worker 0 is started again: the worker ended with code 3"}
// PROGRESS: {"event":"candidate","id":0,"seconds":{{[0-9.e-]+}},"failure":"latency: the worker ended with code 3"}
// CRASH: warning: found no kernel: all 2 candidates failed, the first because latency: the worker died: Segmentation fault
// HANG: warning: found no kernel: all 2 candidates failed, the first because latency: the worker does not answer in time
// NONSENSE: warning: found no kernel: all 2 candidates failed, the first because latency: metric 'latency_ms' requires a finite number
// FAIL: warning: found no kernel: all 2 candidates failed, the first because latency: the worker ended with code 3
// NONE-NOT: kas.score

// Programs of one's own; the objective is one of their metrics.
// RUN: kas-opt %s -kas-search="%{search} evaluations=20 evaluators=flops,external external='exec %python %S/Inputs/worker.py good' objective=loss top=1" | FileCheck %s --check-prefix=EXTERNAL
// EXTERNAL: kas.score = {flops = {{[0-9]+}} : i64, loss = {{[^ ]+}} : f64}
// RUN: not kas-opt %s -kas-search="%{search} evaluators=external" 2>&1 | FileCheck %s --check-prefix=COMMAND
// COMMAND: error: requires the option 'external' for the evaluator 'external'

// A database has what failed and why, and goes on where it stopped: what is there is not evaluated again.
// RUN: kas-opt %s -kas-search="%{search} evaluations=20 evaluators=flops,latency runner=%t/some-fail database=%t/found.db" -o %t/first.mlir
// RUN: kas-search-db list %t/found.db | FileCheck %s --check-prefix=LIST
// RUN: env KAS_TEST_RECORD=%t/again kas-opt %s -kas-search="%{search} evaluations=20 evaluators=flops,latency runner=%t/record database=%t/found.db" -o %t/second.mlir
// RUN: diff %t/first.mlir %t/second.mlir
// RUN: not test -e %t/again
// LIST: latency: the worker ended with code 4

kas.kernel canvas @layer<C, H, W | G, k> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 8, G = 2, H = 6, W = 6, k = 3> x 2, <C = 16, G = 2, H = 5, W = 5, k = 1>]
    budget {flops = 1000000, params = 8000} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
