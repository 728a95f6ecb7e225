// Dense layers: [M, K] to [M, D], seven steps.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @matmul_deep<N, M, K, D | g>
    [N, M, D unordered] from [N, M, K unordered]
    bindings [<N = 1, M = 2, K = 6, D = 10, g = 2>, <N = 1, M = 4, K = 15, D = 6, g = 3>]
    limits {depth = 7, weights = 1, reduce = 2, merge = 2, split = 2, shift = 0, chain = 100,
            occurrences.K = 2, occurrences.D = 1, occurrences.g = 2}

// CHECK: brute force: 99437 operators, 1477 classes, 6 of them within the limits
// CHECK: missing: 0, duplicates: 0, not found by brute force: 0
