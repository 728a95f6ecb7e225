// Convolutions along one axis with two weights.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @conv1d_two_weights<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 2, D = 4, W = 7, k = 3>, <N = 1, C = 4, D = 2, W = 6, k = 3>]
    limits {depth = 6, weights = 2, reduce = 3, merge = 0, split = 1, shift = 0, unfold = 1, chain = 100,
            occurrences.C = 3, occurrences.D = 3, occurrences.k = 2}

// CHECK: brute force: 2246 operators, 24 classes, 3 of them within the limits
// CHECK-NEXT: search: 3 operators, 3 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 2 rank
// CHECK-NEXT: outside: 1 weight-over-time weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-over-time weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 9 weight-takes-none-or-all
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 3 weight-takes-none-or-all weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 window-without-weight
