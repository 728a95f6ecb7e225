// Convolutions along a circle.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @conv1d_cyclic<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 2, D = 4, W = 7, k = 3>, <N = 1, C = 4, D = 2, W = 6, k = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 1, split = 1, shift = 1, unfold = 1, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.k = 2, cyclic = 1}

// CHECK: brute force: 4000 operators, 169 classes, 9 of them within the limits
// CHECK-NEXT: search: 9 operators, 9 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 11 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 35 merge-of-view
// CHECK-NEXT: outside: 2 pooling merge-of-view
// CHECK-NEXT: outside: 4 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 12 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 35 weight-over-time merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all
// CHECK-NEXT: outside: 6 weight-takes-none-or-all merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-shift shift-of-split
// CHECK-NEXT: outside: 23 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 3 window-without-weight
