// RUN: kas-opt %s -split-input-file -kas-search="evaluations=1000" -verify-diagnostics | FileCheck %s

// A matrix product is all there is: its space is enumerated to the end.
// CHECK-LABEL: kas.space @linear
kas.space @linear<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 40, N = 60>, <M = 16, K = 50, N = 70> x 2]
    limits {depth = 4}
// 2 * (8 * 60 * 40 + 2 * 16 * 70 * 50), 40 * 60 + 2 * 50 * 70
// CHECK: kas.operator @linear_0<M, K, N>(%[[M:.*]]: M, %[[N:.*]]: N unordered) from [M, K unordered]
// CHECK-SAME: kas.score = {flops = 262400 : i64, params = 9400 : i64}
// CHECK-NEXT: %[[R:.*]] = kas.reduce sum : K
// CHECK-NEXT: %[[D:.*]], %[[W:.*]] = kas.share %[[R]] : K
// CHECK-NEXT: kas.yield data(%[[M]], %[[D]]) weight(%[[N]], %[[W]])
// CHECK-NEXT: }
// CHECK-NOT: kas.operator

// -----

// The budget is one FLOP less than the product needs.
// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{the budget of 383 FLOP excludes every operator: without it the smallest that was found has 384 FLOP}}
kas.space @linear<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>]
    limits {depth = 4}
    budget {flops = 383}

// -----

// CHECK-LABEL: kas.space @exact
kas.space @exact<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>]
    limits {depth = 4}
    budget {flops = 384, params = 24}
// CHECK: kas.operator @exact_0

// -----

// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{the budget of 23 parameters excludes every operator: without it the smallest that was found has 24 parameters}}
kas.space @params<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>]
    limits {depth = 4}
    budget {params = 23}

// -----

// Two steps are needed: a reduction and a weight.
// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{an operator needs 2 steps, depth allows 1}}
kas.space @depth<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>]
    limits {depth = 1}

// -----

// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{an operator needs occurrences.K = 2, the limit is 1}}
kas.space @occurrences<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>]
    limits {depth = 4, occurrences.K = 1}

// -----

// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{the budget of at least 400 FLOP excludes every operator: without it the largest that was found has 384 FLOP}}
kas.space @least<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>]
    limits {depth = 4}
    budget {min_flops_ratio = 1.0, baseline_flops = 400}

// -----

// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{no single bound of the budget excludes every operator, but all of them together do}}
kas.space @together<M, K, N> [M, N unordered] from [M, K unordered]
    bindings [<M = 8, K = 4, N = 6>]
    limits {depth = 4}
    budget {flops = 383, params = 23}

// -----

// The second layer is too small for windows of the usual ratio.
// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{limit 'sees' excludes every operator: without it there are some}}
// expected-note @below {{binding <N = 1, C = 8, W = 4, k = 3> excludes every operator: without it there are some}}
// expected-note @below {{an operator needs occurrences.W = 3, the limit is 0}}
kas.space @layers<N, C, W | k>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12, k = 3>, <C = 8, N = 1, W = 4, k = 3>]
    limits {depth = 5, weights = 1, sees = ["k"], shift = 0}
