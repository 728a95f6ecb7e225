// Windows of each channel around a circle.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @depthwise_cyclic<N, C, H | k>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 5, H = 7, k = 3>, <N = 1, C = 4, H = 6, k = 3>]
    limits {depth = 5, weights = 2, reduce = 2, merge = 0, split = 1, shift = 1, unfold = 1, chain = 100,
            weight_takes = 0, occurrences.C = 3, occurrences.k = 2, cyclic = 1}

// CHECK: brute force: 2418 operators, 51 classes, 24 of them within the limits
// CHECK-NEXT: search: 24 operators, 24 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 3 no-weight weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 3 rank
// CHECK-NEXT: outside: 8 weight-takes-none-or-all
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 6 window-without-weight
