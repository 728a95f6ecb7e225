// RUN: rm -rf %t && mkdir %t
// RUN: ln -s %S/Inputs/runner.sh %t/record && ln -s %S/Inputs/runner.sh %t/some-fail
// DEFINE: %{search} = space=@conv1d seed=7 algorithm=random evaluations=3 top=2 evaluators=flops,params,latency runner=%t/record

// The layers as they are, and what is named, are evaluated once, as candidates are, and never found.
// RUN: env KAS_TEST_RECORD=%t/calls kas-opt %s -kas-search="%{search} database=%t/a.db progress=true baselines=@window,pair,kas.conv1d" -o %t/a.mlir 2>&1 | FileCheck %s --check-prefix=PROGRESS
// PROGRESS: {"event":"baseline","name":"network itself","metrics":{"flops":41472,"latency_ms":6,"params":2496}}
// PROGRESS-NEXT: {"event":"baseline","name":"window","metrics":{"flops":{{[0-9]+}},"latency_ms":6,"params":168}}
// PROGRESS-NEXT: {"event":"baseline","name":"pair",
// PROGRESS-NEXT: {"event":"baseline","name":"kas.conv1d","metrics":{"flops":41472,"latency_ms":6,"params":2496}}
// PROGRESS-COUNT-3: "candidate"
// PROGRESS-NOT: "candidate"
// RUN: FileCheck %s --check-prefix=CALLS --input-file=%t/calls
// CALLS: {"id":0,"operator":"kas.operator @candidate<{{.*}}","bindings":[{"N":1,"Cin":8,"Cout":8,"L":12,"k":3},{"N":1,"Cin":16,"Cout":16,"L":8,"k":3}],"multiplicities":[1,3]}
// CALLS-NEXT: {"id":1,"operator":
// CALLS-NEXT: {"id":2,"sequence":"{{.*}}kas.sequence @candidate [@candidate_0, @candidate_1] between [relu]
// RUN: FileCheck %s --input-file=%t/a.mlir
// CHECK-COUNT-2: kas.origin = "conv1d"
// CHECK-NOT: kas.origin
// RUN: %python %S/Inputs/baselines.py %t/a.db > %t/first && FileCheck %s --check-prefix=KEPT --input-file=%t/first
// KEPT: -1 network itself (flops,params,latency) flops=41472 latency_ms=6 params=2496
// KEPT-NEXT: -2 window (flops,params,latency) flops={{[0-9]+}} latency_ms=6 params=168
// KEPT-NEXT: -3 pair (flops,params,latency) flops=[[PAIR:[0-9]+]] latency_ms=6 params=1000
// KEPT-NEXT: -4 kas.conv1d
// KEPT-NOT: {{^-}}

// They are not among the candidates, which are the same without them.
// RUN: env KAS_TEST_RECORD=%t/more kas-opt %s -kas-search="%{search} database=%t/b.db" -o %t/b.mlir
// RUN: diff %t/a.mlir %t/b.mlir

// A search that goes on evaluates what is new: a baseline, or an evaluator of the final round.
// RUN: env KAS_TEST_RECORD=%t/more kas-opt %s -kas-search="%{search} database=%t/a.db" -o /dev/null && %python %S/Inputs/baselines.py %t/a.db | diff - %t/first
// RUN: env KAS_TEST_RECORD=%t/more kas-opt %s -kas-search="%{search} database=%t/b.db progress=true baselines=window final=1 final-evaluators=bytes" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: {"event":"baseline","name":"network itself","metrics":{"bytes":{{[0-9]+}}}}
// MORE-NEXT: {"event":"baseline","name":"window","metrics":{"bytes":{{[0-9]+}},"flops":{{[0-9]+}},"latency_ms":6,"params":168}}
// RUN: %python %S/Inputs/baselines.py %t/b.db | FileCheck %s --check-prefix=BYTES
// BYTES: -1 network itself (flops,params,latency,bytes) bytes=

// Costs of candidates, predicted times and programs of one's own; these do not get the network, as they need not know it.
// RUN: env KAS_TEST_RECORD=%t/more kas-opt %s -kas-search="space=@conv1d evaluations=1 evaluators=predicted_ms,training_flops,external external='exec %t/record' baselines=window database=%t/c.db" -o /dev/null
// RUN: %python %S/Inputs/baselines.py %t/c.db | FileCheck %s --check-prefix=COSTS
// COSTS: -1 network itself (predicted_ms,training_flops,external) predicted_least_ms={{.*}} predicted_ms={{.*}} training_flops=124416
// COSTS-NEXT: -2 window (predicted_ms,training_flops,external) latency_ms=6 predicted_least_ms={{.*}} predicted_ms={{.*}} training_flops=

// A space that no library operator is known for has none of itself.
// RUN: env KAS_TEST_RECORD=%t/more kas-opt %s -kas-search="space=@other evaluations=1 database=%t/d.db progress=true" 2>&1 -o /dev/null | FileCheck %s --check-prefix=NOTHING
// NOTHING-NOT: "baseline"
// NOTHING: "candidate"

// RUN: not kas-opt %s -kas-search="space=@conv1d baselines=window" 2>&1 | FileCheck %s --check-prefix=DATABASE
// DATABASE: error: requires the option 'database' for the option 'baselines'
// RUN: not kas-opt %s -kas-search="space=@conv1d database=%t/e.db baselines=none" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: requires a kas.operator or a kas.sequence @none in the module, or kas.NAME of the library, as a baseline, got none of that name
// RUN: not kas-opt %s -kas-search="space=@conv1d database=%t/e.db baselines=kas.none" 2>&1 | FileCheck %s --check-prefix=LIBRARY
// LIBRARY: error: requires a kas.operator or a kas.sequence @kas.none in the module, or kas.NAME of the library, as a baseline, got none of that name
// RUN: not kas-opt %s -kas-search="space=@conv1d database=%t/e.db baselines=window,@window" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: requires different baselines, got 'window' twice
// RUN: not kas-opt %s -kas-search="space=@conv1d database=%t/e.db baselines=kas.conv2d" 2>&1 | FileCheck %s --check-prefix=FIT
// FIT: error: the baseline 'kas.conv2d' does not fit the layers: requires the symbol 'H' of @conv2d in the space, got none of that name
// RUN: not kas-opt %s -kas-search="space=@conv1d database=%t/e.db evaluators=latency runner=%t/some-fail baselines=window" 2>&1 | FileCheck %s --check-prefix=FAIL
// FAIL: error: the baseline 'network itself' cannot be evaluated: latency: the worker ended with code 4
// RUN: not kas-opt %s -kas-search="kernel=@kernel database=%t/e.db baselines=window" 2>&1 | FileCheck %s --check-prefix=KERNEL
// KERNEL: error: requires a search for operators for the option 'baselines', got one for kernels

kas.space @conv1d<N, Cin, Cout, L | k>
    [N, Cout unordered, L] from [N, Cin unordered, L]
    bindings [<N = 1, Cin = 8, Cout = 8, L = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, L = 8, k = 3> x 3]
    limits {depth = 7} attributes {kas.named_operator = "kas.conv1d"}
kas.space @other<N, Cin, Cout, L | k>
    [N, Cout unordered, L] from [N, Cin unordered, L]
    bindings [<N = 1, Cin = 8, Cout = 8, L = 12, k = 3>]
    limits {depth = 7}
kas.operator @window<N, Cin, L | k>(%n: N, %c: Cin, %l: L) from [N, Cin, L] {
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %l, %i_d : L, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @mixing<N, Cin, Cout, L>(%n: N, %o: Cout, %l: L) from [N, Cin, L] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %l) weight(%o, %c_w)
}
kas.sequence @pair [@window, @mixing] between [relu]
kas.kernel canvas @kernel<C, H, W | G, k> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 8, G = 2, H = 6, W = 6, k = 3>]
    budget {flops = 1000000, params = 8000} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
