// Groups of channels with two weights.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @grouping_two_weights<N, C, D | g>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 6, D = 10, g = 2>, <N = 1, C = 6, D = 15, g = 3>]
    limits {depth = 6, weights = 2, reduce = 2, merge = 1, split = 2, shift = 0, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.g = 3}

// CHECK: brute force: 10437 operators, 233 classes, 34 of them within the limits
// CHECK-NEXT: search: 34 operators, 34 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 2 merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 25 merge-of-view
// CHECK-NEXT: outside: 4 pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 pooling merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 3 pooling merge-of-view
// CHECK-NEXT: outside: 1 pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 1 pooling window-without-weight
// CHECK-NEXT: outside: 4 weight-over-time merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 59 weight-over-time merge-of-view
// CHECK-NEXT: outside: 2 weight-over-time merge-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 25 weight-takes-none-or-all
// CHECK-NEXT: outside: 23 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 25 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 2 window-without-weight
