// Channels in three factors, some of which are dropped or become positions.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @channel_factors_dropped<N, D | g>
    [N, D unordered] from [N, D/g]
    bindings [<N = 1, D = 20, g = 2>, <N = 1, D = 18, g = 3>]
    limits {depth = 6, weights = 1, weight_takes = 0, reduce = 1, merge = 2, split = 2, shift = 0, unfold = 0, expand = 2, chain = 100,
            occurrences.D = 3, occurrences.g = 4}

// CHECK: brute force: 85113 operators, 485 classes, 58 of them within the limits
// CHECK-NEXT: search: 58 operators, 58 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 67 merge-of-view
// CHECK-NEXT: outside: 1 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 7 no-weight weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 75 pooling merge-of-view
// CHECK-NEXT: outside: 148 weight-over-time merge-of-view
// CHECK-NEXT: outside: 67 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 11 weight-takes-none-or-all
// CHECK-NEXT: outside: 22 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 5 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 24 weight-takes-none-or-all pooling merge-of-view
