// RUN: rm -rf %t && mkdir %t
// RUN: for name in crash hang nonsense fail record slow-binding; do ln -s %S/Inputs/runner.sh %t/$name; done

// The kernel that was compiled is measured.
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=flops,params,latency threads=2" | FileCheck %s
// CHECK-COUNT-2: kas.score = {flops = {{[0-9]+}} : i64, latency_ms = {{[0-9.eE+-]+}} : f64, params = {{[0-9]+}} : i64}
// CHECK-NOT: kas.score

// The runner is called once for each binding; times count as often as layers occur.
// RUN: env KAS_TEST_RECORD=%t/calls kas-opt %s -kas-search="evaluations=1 evaluators=latency runner=%t/record" | FileCheck %s --check-prefix=RECORD
// RUN: FileCheck %s --check-prefix=CALLS --input-file=%t/calls
// RECORD: kas.score = {latency_ms = 6.000000e+00 : f64}
// CALLS: .mlir --operator=candidate --bind=N=1,Cin=8,Cout=8,W=12,k=3 --time --runs=7 --json --threads=1
// CALLS-NEXT: .mlir --operator=candidate --bind=N=1,Cin=16,Cout=16,W=8,k=3 --time
// CALLS-NOT: candidate
// RUN: kas-opt %s -kas-search="evaluations=1 evaluators=latency runner=%t/slow-binding" | FileCheck %s --check-prefix=SUM
// SUM: kas.score = {latency_ms = 3.500000e+00 : f64}

// Whatever a candidate does, the search goes on, and says what happened.
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=flops,latency runner=%t/crash" 2>&1 | FileCheck %s --check-prefixes=NONE,CRASH
// RUN: kas-opt %s -kas-search="evaluations=2 threads=2 evaluators=flops,latency runner=%t/hang time-limit=0.3" 2>&1 | FileCheck %s --check-prefixes=NONE,HANG
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=latency,flops runner=%t/nonsense" 2>&1 | FileCheck %s --check-prefixes=NONE,NONSENSE
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=latency runner=%t/fail progress=true" 2>&1 | FileCheck %s --check-prefixes=PROGRESS,NONE,FAIL
// PROGRESS: {"event":"candidate","id":0,"seconds":{{[0-9.e-]+}},"failure":"latency: the runner ends with code 3: error: no such device"}
// CRASH: warning: found no operator: all 2 candidates failed, the first because latency: the runner crashed: Segmentation fault
// HANG: warning: found no operator: all 2 candidates failed, the first because latency: the runner takes more than 0.30 s
// NONSENSE: warning: found no operator: all 2 candidates failed, the first because latency: the runner reports no median_ms
// FAIL: warning: found no operator: all 2 candidates failed, the first because latency: the runner ends with code 3: error: no such device
// NONE-NOT: kas.score

// Nothing is left in the directory for temporary files.
// RUN: mkdir %t/tmp
// RUN: env TMPDIR=%t/tmp kas-opt %s -kas-search="evaluations=1 evaluators=latency runner=%t/crash" -o /dev/null
// RUN: ls %t/tmp | count 0

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 5}
