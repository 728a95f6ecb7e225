// Two windows on one circle: in any order they are one operator (U6), and together smaller than it (U7).
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @stacked_cyclic<N, C, W | k>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 2, W = 7, k = 3>, <N = 1, C = 4, W = 8, k = 3>]
    limits {depth = 7, weights = 2, reduce = 3, merge = 0, split = 1, shift = 1, unfold = 2, chain = 100,
            occurrences.C = 3, occurrences.k = 2, cyclic = 1}

// CHECK: brute force: 28208 operators, 174 classes, 15 of them within the limits
// CHECK-NEXT: search: 15 operators, 15 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 6 pooling window-without-weight
// CHECK-NEXT: outside: 12 rank
// CHECK-NEXT: outside: 3 rank window-without-weight
// CHECK-NEXT: outside: 3 weight-over-time weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 3 weight-over-time weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 67 weight-takes-none-or-all
// CHECK-NEXT: outside: 11 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-over-time weight-takes-view unfold-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-over-time weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 8 weight-takes-none-or-all weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-takes-view unfold-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-takes-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 19 weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 6 weight-takes-view pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 6 window-without-weight
