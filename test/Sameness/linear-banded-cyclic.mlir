// Bands of matrices around a circle.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_banded_cyclic<N, C | k, b>
    [N, C] from [N, C]
    bindings [<N = 1, C = 14, k = 3, b = 2>, <N = 1, C = 33, k = 5, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 1, stride = 0, weights = 1,
            weight_takes = 0,
            pooling = 1, occurrences.N = 0, occurrences.C = 2, occurrences.k = 3, occurrences.b = 4, cyclic = 1}

// CHECK: brute force: 12610 operators, 961 classes, 47 of them within the limits
// CHECK-NEXT: search: 47 operators, 47 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 5 merge-of-unfold
// CHECK-NEXT: outside: 4 merge-of-view
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 1 no-weight weight-takes-none-or-all pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all pooling merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 2 no-weight weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all pooling unfold-of-view
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 7 no-weight weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 2 no-weight weight-takes-none-or-all weight-takes-view pooling merge-of-view unfold-of-reduction
// CHECK-NEXT: outside: 18 pooling
// CHECK-NEXT: outside: 17 pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 40 pooling merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 36 pooling merge-of-view
// CHECK-NEXT: outside: 3 pooling merge-of-view unfold-of-reduction
// CHECK-NEXT: outside: 35 pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 2 pooling unfold-of-reduction
// CHECK-NEXT: outside: 8 pooling unfold-of-reduction unfold-of-view
// CHECK-NEXT: outside: 28 pooling unfold-of-view
// CHECK-NEXT: outside: 45 pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 56 pooling window-without-weight
// CHECK-NEXT: outside: 2 unfold-of-reduction
// CHECK-NEXT: outside: 30 unfold-of-view
// CHECK-NEXT: outside: 3 weight-over-time
// CHECK-NEXT: outside: 16 weight-over-time merge-of-unfold
// CHECK-NEXT: outside: 20 weight-over-time merge-of-unfold unfold-of-view
// CHECK-NEXT: outside: 39 weight-over-time merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time merge-of-view unfold-of-reduction
// CHECK-NEXT: outside: 2 weight-over-time pooling
// CHECK-NEXT: outside: 14 weight-over-time pooling merge-of-unfold
// CHECK-NEXT: outside: 33 weight-over-time pooling merge-of-unfold unfold-of-view
// CHECK-NEXT: outside: 79 weight-over-time pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 20 weight-over-time pooling merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 71 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 3 weight-over-time pooling merge-of-view unfold-of-reduction
// CHECK-NEXT: outside: 6 weight-over-time pooling merge-of-view unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 75 weight-over-time pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-over-time pooling unfold-of-reduction unfold-of-view
// CHECK-NEXT: outside: 5 weight-over-time pooling unfold-of-view
// CHECK-NEXT: outside: 35 weight-over-time pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-over-time pooling window-without-weight
// CHECK-NEXT: outside: 3 weight-over-time unfold-of-view
// CHECK-NEXT: outside: 5 weight-over-time weight-takes-view pooling merge-of-view unfold-of-reduction
// CHECK-NEXT: outside: 10 weight-over-time weight-takes-view pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 9 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 17 weight-takes-none-or-all pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 10 weight-takes-none-or-all pooling merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 14 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-view unfold-of-reduction
// CHECK-NEXT: outside: 23 weight-takes-none-or-all pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling unfold-of-reduction
// CHECK-NEXT: outside: 11 weight-takes-none-or-all pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 4 weight-takes-none-or-all weight-takes-view pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-takes-none-or-all weight-takes-view pooling window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-view pooling merge-of-view unfold-of-reduction
// CHECK-NEXT: outside: 4 weight-takes-view pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-takes-view pooling window-without-weight
