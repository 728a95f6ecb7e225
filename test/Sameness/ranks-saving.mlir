// Ranks that save elements under one binding at least.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @ranks_saving<N, C, D | t>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 4, D = 6, t = 3>, <N = 1, C = 7, D = 5, t = 2>]
    limits {depth = 5, weights = 2, reduce = 3, merge = 0, split = 1, shift = 0, chain = 100,
            reduce_ratio = 100, occurrences.C = 4, occurrences.D = 4, occurrences.t = 4}

// CHECK: missing: 0, duplicates: 0, not found by brute force: 0
