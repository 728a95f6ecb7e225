// RUN: rm -rf %t && mkdir %t && ln -s %S/Inputs/runner.sh %t/slow
// RUN: kas-opt %s -kas-search="evaluations=3 evaluators=latency runner=%t/slow" -verify-diagnostics

// 3.5 ms are too much.
// expected-warning @below {{found no operator: all 3 candidates failed, the first because latency: over the latency budget}}
kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 5}
    budget {latency_ms = 3.4}
