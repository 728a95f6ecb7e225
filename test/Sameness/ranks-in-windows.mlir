// Weights that meet in stacked windows are one where their sums take all values (W17): 134 operators of 122 classes without the rule.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @ranks_in_windows<N, C, D | k>
    [N, C unordered, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 11, D = 2, k = 3>, <N = 1, C = 8, D = 5, k = 3>]
    limits {depth = 8, reduce = 3, split = 0, merge = 0, shift = 0, expand = 0, unfold = 3, stride = 0, weights = 2,
            weight_takes = 0, weight_shares = 0, window = 3, unfold_ratio = 2, reduce_ratio = 1000, rank_max = 1,
            chain = 100, occurrences.C = 1, occurrences.D = 1, occurrences.k = 8}

// CHECK: brute force: 13079 operators, 488 classes, 122 of them within the limits
// CHECK-NEXT: search: 122 operators, 122 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 64 pooling window-without-weight
// CHECK-NEXT: outside: 25 rank
// CHECK-NEXT: outside: 4 rank pooling window-without-weight
// CHECK-NEXT: outside: 42 rank window-without-weight
// CHECK-NEXT: outside: 26 weight-over-time
// CHECK-NEXT: outside: 9 weight-over-time pooling window-without-weight
// CHECK-NEXT: outside: 2 weight-over-time rank
// CHECK-NEXT: outside: 4 weight-over-time rank window-without-weight
// CHECK-NEXT: outside: 2 weight-over-time weight-takes-view pooling unfold-of-reduction
// CHECK-NEXT: outside: 37 weight-over-time window-without-weight
// CHECK-NEXT: outside: 5 weight-takes-view pooling unfold-of-reduction
// CHECK-NEXT: outside: 6 weight-takes-view pooling unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 140 window-without-weight
