// RUN: rm -rf %t && mkdir %t && for name in record some-fail; do ln -s %S/Inputs/runner.sh %t/$name; done

// The best by the first evaluators are looked at again; what fails then is out.
// RUN: kas-opt %s -kas-search="evaluations=20 final=6 runner=%t/some-fail database=%t/a.db progress=true threads=2" -o %t/1.mlir 2>%t/log
// RUN: FileCheck %s --input-file=%t/1.mlir
// CHECK: kas.score = {flops = {{[0-9]+}} : i64, latency_ms = 1.500000e+00 : f64, params = {{[0-9]+}} : i64}
// CHECK: kas.score = {flops = {{[0-9]+}} : i64, params =
// RUN: grep -c '"event":"final"' %t/log | FileCheck %s --check-prefix=COUNT
// COUNT: 6

// It is kept: the same command again looks at nothing, a larger round only at the rest.
// RUN: kas-opt %s -kas-search="evaluations=20 final=6 runner=%t/some-fail database=%t/a.db progress=true" 2>%t/log | diff - %t/1.mlir
// RUN: FileCheck %s --check-prefix=AGAIN --input-file=%t/log
// AGAIN-NOT: "final"
// RUN: kas-opt %s -kas-search="evaluations=20 final=9 runner=%t/some-fail database=%t/a.db progress=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MORE
// MORE-COUNT-3: {"event":"final","id":
// MORE-NOT: "final"
// A terminal gets a table.
// RUN: %python %S/Inputs/terminal.py kas-opt %s -kas-search="evaluations=20 final=6 runner=%t/some-fail progress=true" | FileCheck %s --check-prefix=TABLE
// TABLE: final round of {{[1-6]}}, the least latency_ms:
// TABLE-NEXT: {{^ +candidate +flops +latency_ms +params}}
// TABLE-NEXT: {{^ +[0-9]+ +[0-9.e+]+ +1.5 +[0-9]+}}
// RUN: kas-search-db check %t/a.db
// RUN: kas-search-db list %t/a.db | FileCheck %s --check-prefix=LIST
// LIST: id state flops latency_ms params
// LIST: evaluated {{[0-9.e+]+ +1.5 +[0-9]}}

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 7}
