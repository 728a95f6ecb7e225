// Weights that take or share as they like.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @any_weights<N, C, D | g>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 6, D = 10, g = 2>, <N = 1, C = 6, D = 15, g = 3>]
    limits {depth = 5, weights = 2, reduce = 2, merge = 1, split = 1, shift = 0, chain = 100,
            weight_takes = 0, weight_shares = 0, occurrences.C = 2, occurrences.D = 2, occurrences.g = 2}

// CHECK: brute force: 1341 operators, 43 classes, 30 of them within the limits
// CHECK-NEXT: search: 30 operators, 30 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 9 merge-of-view
// CHECK-NEXT: outside: 4 weight-over-time merge-of-view
