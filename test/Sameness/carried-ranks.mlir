// Weights that are joined by a carry are one (W16): 8 operators of 5 classes without the rule.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @carried_ranks<N, C, D | s>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 5, D = 4, s = 2>, <N = 1, C = 3, D = 7, s = 2>]
    limits {depth = 7, weights = 2, reduce = 2, merge = 1, split = 1, shift = 1, expand = 0, unfold = 0, chain = 100,
            weight_takes = 0, weight_shares = 0, shift_backward = 0, rank_saves = 0,
            pooling = 100, reduce_ratio = 100, occurrences.C = 2, occurrences.D = 2, occurrences.s = 2}

// CHECK: brute force: 124350 operators, 150 classes, 5 of them within the limits
// CHECK-NEXT: search: 5 operators, 5 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 4 merge-of-shift
// CHECK-NEXT: outside: 1 merge-of-shift shift-of-channel
// CHECK-NEXT: outside: 21 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 3 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 36 merge-of-view
// CHECK-NEXT: outside: 1 shift-of-split
// CHECK-NEXT: outside: 2 weight-over-time merge-of-shift
// CHECK-NEXT: outside: 17 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 6 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 47 weight-over-time merge-of-view
// CHECK-NEXT: outside: 7 weight-over-time shift-of-split
