// RUN: kas-opt %s -kas-search="evaluators=flops,params,bytes" | FileCheck %s

// Data, weights and output in f32: 4 * (8 * 4 + 4 * 6 + 8 * 6) and 3 times 4 * (2 * 4 + 4 * 5 + 2 * 5).
// CHECK: kas.score = {bytes = 872 : i64, flops = {{[0-9]+}} : i64, params = 84 : i64}
kas.space @linear<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>, <M = 2, K = 4, N = 5> x 3]
    limits {depth = 4}
