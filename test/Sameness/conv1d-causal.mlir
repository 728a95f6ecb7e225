// Convolutions along one axis whose windows look back only: the search lists as many as with windows around their base.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @conv1d_causal<N, C, D, T | k>
    [N, D unordered, T] from [N, C unordered, T]
    bindings [<N = 1, C = 2, D = 4, T = 7, k = 3>, <N = 1, C = 4, D = 2, T = 6, k = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 1, split = 1, shift = 1, unfold = 1, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.k = 2, look_back = 1}

// CHECK: brute force: 4000 operators, 181 classes, 9 of them within the limits
// CHECK-NEXT: search: 9 operators, 9 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 11 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 35 merge-of-view
// CHECK-NEXT: outside: 2 pooling merge-of-view
// CHECK-NEXT: outside: 4 unfold-of-view
// CHECK-NEXT: outside: 2 unfold-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 12 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 35 weight-over-time merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-unfold unfold-of-reduction
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time pooling unfold-of-reduction
// CHECK-NEXT: outside: 3 weight-takes-none-or-all
// CHECK-NEXT: outside: 6 weight-takes-none-or-all merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-shift shift-of-split
// CHECK-NEXT: outside: 23 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-unfold unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 3 window-without-weight
