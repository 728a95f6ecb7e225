// An operator whose rank is full at some of the bindings says at which: 3*3 = 9 points are as many as 4 of C at the first, 2*2 = 4 are
// fewer than 7 of C and 5 of D at the second.
// RUN: kas-opt %s -kas-search="algorithm=exhaustive evaluations=1000" | FileCheck %s

kas.space @ranks<N, C, D | t>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 4, D = 6, t = 3>, <N = 1, C = 7, D = 5, t = 2>]
    limits {depth = 5, weights = 2, reduce = 3, merge = 0, split = 1, shift = 0, chain = 100, rank_saves = 0,
            reduce_ratio = 100, occurrences.C = 4, occurrences.D = 4, occurrences.t = 4}

// CHECK: kas.operator @ranks_0<
// CHECK-NOT: full_rank_at
// CHECK-SAME: kas.score = {flops = 96 : i64, params = 54 : i64}
// CHECK: kas.reduce sum : t
// CHECK: kas.operator @ranks_1<
// CHECK-NOT: full_rank_at
// CHECK: kas.operator @ranks_2<
// CHECK-SAME: kas.full_rank_at = array<i64: 0>
// CHECK-NEXT: kas.reduce sum : t**2
