// Ranks of weights that share a group, or a part of one.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @ranks_in_groups<N, C | g, t>
    [N, C unordered] from [N, C unordered]
    bindings [<N = 1, C = 6, g = 2, t = 3>, <N = 1, C = 6, g = 3, t = 4>]
    limits {depth = 6, weights = 2, reduce = 2, merge = 1, split = 1, shift = 0, chain = 100, rank_saves = 0,
            reduce_ratio = 100, occurrences.C = 3, occurrences.g = 3, occurrences.t = 2}

// CHECK: missing: 0, duplicates: 0, not found by brute force: 0
