// Windows and shifts of a torus.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @conv2d_shifted_cyclic<N, C, D, H, W | k>
    [N, D unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, D = 2, H = 6, W = 7, k = 3>, <N = 1, C = 2, D = 5, H = 7, W = 6, k = 3>]
    limits {depth = 7, weights = 1, reduce = 3, merge = 0, split = 1, shift = 1, unfold = 2, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.k = 2, cyclic = 1}

// CHECK: brute force: 6016 operators, 180 classes, 55 of them within the limits
// CHECK-NEXT: search: 55 operators, 55 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 35 pooling window-without-weight
// CHECK-NEXT: outside: 5 weight-over-time weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 5 weight-over-time weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 5 weight-takes-none-or-all
// CHECK-NEXT: outside: 25 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 10 weight-takes-none-or-all weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 10 weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 30 window-without-weight
