// Convolutions along one axis, eight steps.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @conv1d_deep<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 2, D = 4, W = 7, k = 3>, <N = 1, C = 4, D = 2, W = 6, k = 3>]
    limits {depth = 8, weights = 1, reduce = 2, merge = 1, split = 2, shift = 1, unfold = 1, chain = 100,
            occurrences.C = 2, occurrences.D = 1, occurrences.k = 2}

// CHECK: brute force: 52996 operators, 1883 classes, 9 of them within the limits
// CHECK-NEXT: search: 9 operators, 9 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 46 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 16 merge-of-shift shift-of-channel shift-of-split window-without-weight
// CHECK-NEXT: outside: 16 merge-of-shift shift-of-channel unfold-of-view
// CHECK-NEXT: outside: 8 merge-of-shift shift-of-channel unfold-of-view window-without-weight
// CHECK-NEXT: outside: 70 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 16 merge-of-shift shift-of-split window-without-weight
// CHECK-NEXT: outside: 8 merge-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 merge-of-unfold shift-of-channel shift-of-split unfold-of-view
// CHECK-NEXT: outside: 4 merge-of-unfold shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 4 merge-of-unfold shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 20 merge-of-unfold unfold-of-view
// CHECK-NEXT: outside: 20 merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 222 merge-of-view
// CHECK-NEXT: outside: 6 merge-of-view shift-of-channel
// CHECK-NEXT: outside: 16 merge-of-view shift-of-split
// CHECK-NEXT: outside: 62 merge-of-view unfold-of-view
// CHECK-NEXT: outside: 16 merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 40 merge-of-view window-without-weight
// CHECK-NEXT: outside: 1 pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 5 pooling merge-of-shift shift-of-channel shift-of-split window-without-weight
// CHECK-NEXT: outside: 12 pooling merge-of-shift shift-of-channel unfold-of-view window-without-weight
// CHECK-NEXT: outside: 20 pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 3 pooling merge-of-unfold shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 16 pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 36 pooling merge-of-view
// CHECK-NEXT: outside: 10 pooling merge-of-view shift-of-split
// CHECK-NEXT: outside: 4 pooling merge-of-view unfold-of-view
// CHECK-NEXT: outside: 10 pooling merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 23 pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 5 pooling shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 25 pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 shift-of-channel shift-of-split unfold-of-view
// CHECK-NEXT: outside: 4 shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 4 shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 24 unfold-of-view
// CHECK-NEXT: outside: 22 unfold-of-view window-without-weight
// CHECK-NEXT: outside: 15 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 2 weight-over-time merge-of-shift shift-of-channel shift-of-split window-without-weight
// CHECK-NEXT: outside: 1 weight-over-time merge-of-shift shift-of-channel unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 12 weight-over-time merge-of-shift shift-of-channel unfold-of-view
// CHECK-NEXT: outside: 5 weight-over-time merge-of-shift shift-of-channel unfold-of-view window-without-weight
// CHECK-NEXT: outside: 80 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 16 weight-over-time merge-of-shift unfold-of-view
// CHECK-NEXT: outside: 2 weight-over-time merge-of-unfold shift-of-channel shift-of-split unfold-of-view
// CHECK-NEXT: outside: 1 weight-over-time merge-of-unfold shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 8 weight-over-time merge-of-unfold shift-of-split unfold-of-view
// CHECK-NEXT: outside: 30 weight-over-time merge-of-unfold unfold-of-view
// CHECK-NEXT: outside: 192 weight-over-time merge-of-view
// CHECK-NEXT: outside: 6 weight-over-time merge-of-view shift-of-channel
// CHECK-NEXT: outside: 3 weight-over-time merge-of-view shift-of-channel shift-of-split
// CHECK-NEXT: outside: 55 weight-over-time merge-of-view shift-of-split
// CHECK-NEXT: outside: 36 weight-over-time merge-of-view unfold-of-view
// CHECK-NEXT: outside: 2 weight-over-time merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-over-time merge-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-over-time pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 weight-over-time pooling merge-of-shift shift-of-channel shift-of-split unfold-of-reduction
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-shift shift-of-channel unfold-of-reduction
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-shift shift-of-channel unfold-of-view
// CHECK-NEXT: outside: 6 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view shift-of-channel shift-of-split
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view shift-of-channel unfold-of-reduction
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view shift-of-split
// CHECK-NEXT: outside: 1 weight-over-time pooling shift-of-channel shift-of-split unfold-of-view
// CHECK-NEXT: outside: 3 weight-over-time pooling unfold-of-reduction
// CHECK-NEXT: outside: 4 weight-over-time shift-of-channel shift-of-split unfold-of-view
// CHECK-NEXT: outside: 4 weight-over-time shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 8 weight-over-time shift-of-split unfold-of-view
// CHECK-NEXT: outside: 45 weight-over-time unfold-of-view
// CHECK-NEXT: outside: 12 weight-over-time unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-over-time weight-takes-view merge-of-shift shift-of-channel shift-of-split window-without-weight
// CHECK-NEXT: outside: 6 weight-over-time weight-takes-view merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time weight-takes-view merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-over-time weight-takes-view merge-of-view window-without-weight
// CHECK-NEXT: outside: 1 weight-over-time weight-takes-view pooling merge-of-view shift-of-split unfold-of-view
// CHECK-NEXT: outside: 3 weight-over-time weight-takes-view pooling merge-of-view unfold-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all
// CHECK-NEXT: outside: 6 weight-takes-none-or-all merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-shift shift-of-split
// CHECK-NEXT: outside: 23 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 11 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling merge-of-shift shift-of-channel unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 15 weight-takes-none-or-all pooling merge-of-shift shift-of-channel unfold-of-view window-without-weight
// CHECK-NEXT: outside: 40 weight-takes-none-or-all pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 16 weight-takes-none-or-all pooling merge-of-shift shift-of-split window-without-weight
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling merge-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling merge-of-unfold shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-unfold shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 26 weight-takes-none-or-all pooling merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 88 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-view shift-of-channel unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 26 weight-takes-none-or-all pooling merge-of-view shift-of-split
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling merge-of-view unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling merge-of-view unfold-of-view
// CHECK-NEXT: outside: 18 weight-takes-none-or-all pooling merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 43 weight-takes-none-or-all pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 5 weight-takes-none-or-all pooling shift-of-channel shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling shift-of-split unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling unfold-of-reduction window-without-weight
// CHECK-NEXT: outside: 40 weight-takes-none-or-all pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-takes-view pooling merge-of-shift shift-of-channel shift-of-split window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-takes-view pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 14 weight-takes-none-or-all weight-takes-view pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-takes-view pooling merge-of-view unfold-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-takes-view pooling merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-takes-none-or-all weight-takes-view pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-view pooling merge-of-shift shift-of-channel shift-of-split window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-view pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 14 weight-takes-view pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-view pooling merge-of-view unfold-of-view
// CHECK-NEXT: outside: 1 weight-takes-view pooling merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 weight-takes-view pooling merge-of-view window-without-weight
// CHECK-NEXT: outside: 3 window-without-weight
