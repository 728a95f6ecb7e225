// Two windows on one axis.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @stacked<N, C, W | k>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 2, W = 7, k = 3>, <N = 1, C = 4, W = 8, k = 3>]
    limits {depth = 7, weights = 2, reduce = 3, merge = 0, split = 1, shift = 1, unfold = 2, chain = 100,
            occurrences.C = 3, occurrences.k = 2}

// CHECK: brute force: 28208 operators, 427 classes, 36 of them within the limits
// CHECK-NEXT: search: 36 operators, 36 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 4 no-weight weight-takes-none-or-all pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 2 no-weight weight-takes-none-or-all unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 12 pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 9 pooling window-without-weight
// CHECK-NEXT: outside: 22 unfold-of-view
// CHECK-NEXT: outside: 12 unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-over-time weight-takes-view pooling shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-over-time weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-over-time weight-takes-view shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-over-time weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 84 weight-takes-none-or-all
// CHECK-NEXT: outside: 10 weight-takes-none-or-all pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 12 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 54 weight-takes-none-or-all unfold-of-view
// CHECK-NEXT: outside: 28 weight-takes-none-or-all unfold-of-view window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-over-time weight-takes-view pooling unfold-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all weight-over-time weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 8 weight-takes-none-or-all weight-over-time weight-takes-view unfold-of-reduction unfold-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all weight-over-time weight-takes-view unfold-of-reduction unfold-of-view window-without-weight
// CHECK-NEXT: outside: 7 weight-takes-none-or-all weight-over-time weight-takes-view unfold-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-over-time weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-takes-view pooling shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-takes-none-or-all weight-takes-view pooling unfold-of-reduction
// CHECK-NEXT: outside: 5 weight-takes-none-or-all weight-takes-view pooling unfold-of-reduction unfold-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-takes-none-or-all weight-takes-view pooling unfold-of-view
// CHECK-NEXT: outside: 12 weight-takes-none-or-all weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-takes-none-or-all weight-takes-view unfold-of-reduction unfold-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all weight-takes-view unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 10 weight-takes-none-or-all weight-takes-view unfold-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 32 weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-view pooling shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 12 window-without-weight
