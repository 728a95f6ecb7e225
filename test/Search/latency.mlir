// RUN: rm -rf %t && mkdir %t
// RUN: for name in crash hang nonsense other fail record; do ln -s %S/Inputs/runner.sh %t/$name; done

// The kernel that was compiled is measured.
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=flops,params,latency threads=2" | FileCheck %s
// CHECK-COUNT-2: kas.score = {flops = {{[0-9]+}} : i64, latency_ms = {{[0-9.eE+-]+}} : f64, params = {{[0-9]+}} : i64}
// CHECK-NOT: kas.score

// One worker is handed all candidates, each with all bindings.
// RUN: env KAS_TEST_RECORD=%t/calls kas-opt %s -kas-search="evaluations=2 evaluators=latency runner=%t/record" | FileCheck %s --check-prefix=RECORD
// RUN: FileCheck %s --check-prefix=CALLS --input-file=%t/calls
// RECORD-COUNT-2: kas.score = {latency_ms = 6.000000e+00 : f64}
// CALLS: --worker --threads=1 --runs=7 {"id":0,"operator":"kas.operator @candidate<{{.*}}","bindings":[{"N":1,"Cin":8,"Cout":8,"W":12,"k":3},{"N":1,"Cin":16,"Cout":16,"W":8,"k":3}],"multiplicities":[1,3]}
// CALLS-NEXT: --worker --threads=1 --runs=7 {"id":1,{{.*$}}
// CALLS-NOT: {{.}}

// Whatever a candidate does, the search goes on, and says what happened.
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=flops,latency runner=%t/crash" 2>&1 | FileCheck %s --check-prefixes=NONE,CRASH
// RUN: kas-opt %s -kas-search="evaluations=2 threads=2 evaluators=flops,latency runner=%t/hang time-limit=0.3" 2>&1 | FileCheck %s --check-prefixes=NONE,HANG
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=latency,flops runner=%t/nonsense" 2>&1 | FileCheck %s --check-prefixes=NONE,NONSENSE
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=latency,flops runner=%t/other" 2>&1 | FileCheck %s --check-prefixes=NONE,OTHER
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=latency runner=%t/fail progress=true" 2>&1 | FileCheck %s --check-prefixes=PROGRESS,NONE,FAIL
// PROGRESS: {"event":"message","text":"worker 0 is started again: the worker ended with code 3"}
// PROGRESS: {"event":"candidate","id":0,"seconds":{{[0-9.e-]+}},"failure":"latency: the worker ended with code 3"}
// CRASH: warning: found no operator: all 2 candidates failed, the first because latency: the worker died: Segmentation fault
// HANG: warning: found no operator: all 2 candidates failed, the first because latency: the worker does not answer in time
// NONSENSE: warning: found no operator: all 2 candidates failed, the first because latency: metric 'latency_ms' requires a finite number
// OTHER: warning: found no operator: all 2 candidates failed, the first because latency: the runner reports no latency_ms
// FAIL: warning: found no operator: all 2 candidates failed, the first because latency: the worker ended with code 3
// NONE-NOT: kas.score

// On a device, by its own clock.
// RUN: env KAS_TEST_RECORD=%t/calls kas-opt %s -kas-search="evaluations=2 evaluators=latency runner=%t/record device=cuda:1" -o /dev/null
// RUN: FileCheck %s --check-prefix=ONDEVICE --input-file=%t/calls
// ONDEVICE: --worker --threads=1 --runs=7 --device=cuda:1 {"id":0,
// RUN: %if gpu %{ kas-opt %s -kas-search="evaluations=1 evaluators=latency device=vulkan" | FileCheck %s --check-prefix=VULKAN %}
// VULKAN: kas.score = {latency_ms = {{[0-9.eE+-]+}} : f64}
// RUN: %if gpu %{ env KAS_RT_LIBCUDA=none.so not kas-opt %s -kas-search="evaluations=1 evaluators=latency device=cuda" 2>&1 | FileCheck %s --check-prefix=NODEVICE %}
// RUN: %if gpu %{ env KAS_RT_LIBCUDA=none.so not kas-opt %s -kas-search="evaluations=1 final=1 device=cuda" 2>&1 | FileCheck %s --check-prefix=NODEVICE %}
// NODEVICE: error: requires the device 'cuda' for the evaluator 'latency': no CUDA driver: looked for the library none.so
// RUN: not kas-opt %s -kas-search="evaluations=1 evaluators=latency device=moon" 2>&1 | FileCheck %s --check-prefix=MOON
// MOON: error: expected the device 'cpu', 'cuda' or 'vulkan', got 'moon'

// A worker may have no more memory than it is given: here not enough to start
// (the run-time library of the thread sanitizer then crashes).
// RUN: not kas-opt %s -kas-search="evaluations=2 evaluators=latency memory-limit=20" 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: error: requires a command that waits for candidates, but of {{.*}}kas-run' --worker {{.*}} the worker {{(ended with code (127|1)|died: Segmentation fault)$}}

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 5}
