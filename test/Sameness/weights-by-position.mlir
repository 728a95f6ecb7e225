// Weights that are indexed by positions.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @weights_by_position<N, C, H | s>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 5, H = 6, s = 2>, <N = 1, C = 4, H = 15, s = 3>]
    limits {depth = 5, weights = 1, reduce = 1, merge = 1, split = 2, shift = 1, unfold = 0, chain = 100,
            weight_takes = 0, weight_shares = 0, occurrences.C = 3, occurrences.H = 2, occurrences.s = 2}

// CHECK: brute force: 30963 operators, 1644 classes, 451 of them within the limits
// CHECK-NEXT: search: 451 operators, 451 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 148 merge-of-shift
// CHECK-NEXT: outside: 96 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 16 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 217 merge-of-view
// CHECK-NEXT: outside: 21 no-weight
// CHECK-NEXT: outside: 4 no-weight merge-of-shift
// CHECK-NEXT: outside: 8 no-weight merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 10 no-weight merge-of-view
// CHECK-NEXT: outside: 4 no-weight shift-of-split
// CHECK-NEXT: outside: 2 pooling
// CHECK-NEXT: outside: 36 pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 12 pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 172 pooling merge-of-view
// CHECK-NEXT: outside: 4 pooling merge-of-view shift-of-channel shift-of-split
// CHECK-NEXT: outside: 148 shift-of-split
// CHECK-NEXT: outside: 44 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 24 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 133 weight-over-time merge-of-view
// CHECK-NEXT: outside: 14 weight-over-time pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 weight-over-time pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 76 weight-over-time pooling merge-of-view
