// Channels in three factors, two of which may have one size.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @channel_factors<N, C, D | g>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 6, D = 20, g = 2>, <N = 1, C = 15, D = 18, g = 3>]
    limits {depth = 5, weights = 2, reduce = 1, merge = 2, split = 1, shift = 0, unfold = 0, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.g = 4}

// CHECK: brute force: 7437 operators, 92 classes, 11 of them within the limits
// CHECK-NEXT: search: 11 operators, 11 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 merge-of-view
// CHECK-NEXT: outside: 12 pooling merge-of-view
// CHECK-NEXT: outside: 12 weight-over-time merge-of-view
// CHECK-NEXT: outside: 6 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 13 weight-takes-none-or-all
// CHECK-NEXT: outside: 16 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 5 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 11 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all weight-over-time merge-of-view
