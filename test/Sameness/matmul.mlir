// Dense layers: [M, K] to [M, D].
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @matmul<N, M, K, D | g>
    [N, M, D unordered] from [N, M, K unordered]
    bindings [<N = 1, M = 3, K = 6, D = 10, g = 2>, <N = 1, M = 4, K = 15, D = 6, g = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 1, split = 1, shift = 1, chain = 100,
            occurrences.K = 2, occurrences.D = 2, occurrences.g = 4}

// CHECK: brute force: 6385 operators, 184 classes, 18 of them within the limits
// CHECK-NEXT: search: 18 operators, 18 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 8 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 25 merge-of-view
// CHECK-NEXT: outside: 3 pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 10 pooling merge-of-view
// CHECK-NEXT: outside: 5 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 27 weight-over-time merge-of-view
// CHECK-NEXT: outside: 3 weight-over-time pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 weight-over-time pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 14 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all
// CHECK-NEXT: outside: 1 weight-takes-none-or-all merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 6 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 7 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-unfold unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 22 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling unfold-of-reduction window-without-weight
