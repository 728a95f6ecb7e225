// A weighted sum: more parameters first.
// RUN: kas-opt %s -kas-search="evaluations=20 objective=flops-1e9*params top=2 progress=true" -o %t.1 2>%t.log
// RUN: FileCheck %s --check-prefix=SUM --input-file=%t.1
// SUM-COUNT-2: kas.score = {flops = {{[0-9]+}} : i64, params = {{[0-9]+[0-9][0-9][0-9]}} : i64}
// RUN: FileCheck %s --check-prefix=LOG --input-file=%t.log
// LOG-COUNT-20: {"event":"candidate","id":{{[0-9]+}},"seconds":{{[0-9.e-]+}},"metrics":{"flops":{{[0-9.e+]+}},"params":{{[0-9.e+]+}}}}
// LOG-NEXT: {"event":"front","hypervolume":{{[0-9.e-]+}},"axes":["flops-1e9*params"],"members":[{"id":{{[0-9]+}},"point":[-{{[0-9.]+}}]}
// LOG-NEXT: {"event":"end","seconds":{{[0-9.e-]+}},"exhausted":false,"evaluated":20,"failed":0,"replayed":0,"asked":20,"expansions":{{[0-9]+}},"rollouts":{{[0-9]+}},"dead_ends":{{[0-9]+}},"duplicates":{{[0-9]+}}}
// LOG-NOT: {{.}}

// A front: its members come first and say so.
// RUN: kas-opt %s -kas-search="evaluations=20 evaluators=flops,params,bytes objective=pareto(flops,params)" | FileCheck %s --check-prefix=FRONT
// FRONT: attributes {kas.front, kas.origin = "conv1d", kas.score = {bytes = {{[0-9]+}} : i64, flops = {{[0-9]+}} : i64, params = {{[0-9]+}} : i64}}
// FRONT: attributes {kas.origin
// FRONT-NOT: kas.front

// Limits come first: what is beyond one has failed.
// RUN: kas-opt %s -kas-search="evaluations=20 limits=flops<=20000,params>=1 progress=true" 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: "failure":"flops: the limit is flops <= 20000, got {{[0-9.e+]+}}"}
// LIMIT: kas.score = {flops = 13824 : i64
// RUN: kas-opt %s -kas-search="evaluations=9 limits=flops<=1" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: warning: found no operator: all 9 candidates failed, the first because flops: the limit is flops <= 1, got

// Where several limits leave nothing, each has its share.
// RUN: kas-opt %s -kas-search="evaluations=9 limits=flops>=20000,params<=30" 2>&1 | FileCheck %s --check-prefix=SHARES
// SHARES: objective.mlir:{{[1-9][0-9]*}}:1: warning: found no operator: all 9 candidates failed, the first because
// SHARES-NOT: see current operation
// SHARES: note: {{[5-8]}} of 9: {{flops|params}}: the limit is {{flops >= 20000|params <= 30$}}
// SHARES: note: {{[1-4]}} of 9: {{flops|params}}: the limit is {{flops >= 20000|params <= 30$}}
// RUN: kas-opt %s -kas-search="evaluations=9 seconds=1e-9" 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: warning: found no operator: no candidate was proposed within seconds=1e-09

// On a terminal one line says how it goes, and the front comes at the end.
// RUN: %python %S/Inputs/terminal.py kas-opt %s -kas-search="evaluations=20 evaluators=flops,params,bytes progress=true" | FileCheck %s --check-prefix=LINE
// LINE: 1/20 evaluated, 1 distinct, 100 % valid, best bytes {{[0-9.e+]+}} flops {{[0-9.e+]+}} params {{[0-9.e+]+}}, front 1, {{[0-9]+}} s
// LINE: 20 evaluated and 0 failed in {{[0-9.]+}} s; front of {{[0-9]+}}, hypervolume {{[01]\.[0-9]+}}:
// LINE-NEXT: candidate bytes flops params
// LINE-NEXT: {{^ +}}{{[0-9]+ +[0-9.e+]+ +[0-9.e+]+ +[0-9.e+]+$}}

// RUN: not kas-opt %s -kas-search="objective=2*" 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: error: requires a sum of metrics such as '2*loss-accuracy', got '2*' as the option 'objective'
// RUN: not kas-opt %s -kas-search="limits=flops" 2>&1 | FileCheck %s --check-prefix=BOUND
// BOUND: error: requires a limit such as 'flops<=1e9' or 'accuracy>=0.7', got 'flops'

// A metric that no evaluator gives would order nothing.
// RUN: not kas-opt %s -kas-search="objective=flpos" 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: not kas-opt %s -kas-search="objective=flops+beauty" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not kas-opt %s -kas-search="objective=pareto(flops,latency_ms)" 2>&1 | FileCheck %s --check-prefix=EVALUATOR
// RUN: not kas-opt %s -kas-search="objective=latncy_ms" 2>&1 | FileCheck %s --check-prefix=NEAR-EVALUATOR
// RUN: not kas-opt %s -kas-search="objective=-accuracy_3" 2>&1 | FileCheck %s --check-prefix=TRAINING
// RUN: not kas-opt %s -kas-search="limits=byte<=100" 2>&1 | FileCheck %s --check-prefix=LIMITED
// RUN: not kas-opt %s -kas-search="objective=-proxy_snip" 2>&1 | FileCheck %s --check-prefix=PROXY
// NEAR: error: requires metrics that the evaluators give for the option 'objective', of flops, params, got 'flpos' (did you mean 'flops'?)
// UNKNOWN: error: requires metrics that the evaluators give for the option 'objective', of flops, params, got 'beauty'{{$}}
// EVALUATOR: error: {{.*}} got 'latency_ms', which requires 'latency' among the evaluators
// NEAR-EVALUATOR: error: {{.*}} got 'latncy_ms' (did you mean 'latency_ms', which requires 'latency' among the evaluators?)
// TRAINING: error: {{.*}} got 'accuracy_3', which requires 'training' among the evaluators
// LIMITED: error: requires metrics that the evaluators give for the option 'limits', of flops, params, got 'byte' (did you mean 'bytes', which requires 'bytes' among the evaluators?)
// PROXY: error: {{.*}} got 'proxy_snip', which requires 'proxy=snip' among the evaluators

// The final round gives metrics, too, and those of an external program are not known.
// RUN: kas-opt %s -kas-search="evaluations=4 objective=flops+bytes final=4 final-evaluators=bytes" | FileCheck %s --check-prefix=GIVEN
// RUN: kas-opt %s -kas-search="evaluations=2 evaluators=flops,external external='exec %python %S/Inputs/worker.py good' objective=beauty" | FileCheck %s --check-prefix=GIVEN
// Each metric is given by the evaluator whose name a message has.
// RUN: kas-opt %s -kas-search="evaluations=1 evaluators=flops,params,bytes,flops_unprepared,training_flops,predicted_ms,latency objective=flops+params+bytes+flops_unprepared+training_flops+predicted_ms+predicted_least_ms+latency_ms" \
// RUN:   | FileCheck %s --check-prefix=ALL
// GIVEN: kas.score = {
// ALL: kas.score = {bytes = {{.*}}, flops = {{.*}}, flops_unprepared = {{.*}}, latency_ms = {{.*}}, params = {{.*}}, predicted_least_ms = {{.*}}, predicted_ms = {{.*}}, training_flops = {{.*}}}

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 7}
