// Channels in three factors that become positions.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @channel_factors_ordered<N, D | g>
    [N, D unordered] from [N, D]
    bindings [<N = 1, D = 20, g = 2>, <N = 1, D = 18, g = 3>]
    limits {depth = 5, weights = 1, weight_takes = 0, reduce = 1, merge = 2, split = 2, shift = 1, unfold = 0, chain = 100,
            occurrences.D = 3, occurrences.g = 4}

// CHECK: brute force: 20956 operators, 204 classes, 36 of them within the limits
// CHECK-NEXT: search: 36 operators, 36 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 12 merge-of-view
// CHECK-NEXT: outside: 1 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 4 pooling
// CHECK-NEXT: outside: 10 pooling merge-of-view
// CHECK-NEXT: outside: 8 pooling merge-of-view shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 pooling shift-of-split
// CHECK-NEXT: outside: 36 shift-of-split
// CHECK-NEXT: outside: 22 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 23 weight-over-time merge-of-view
// CHECK-NEXT: outside: 8 weight-over-time pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 7 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 4 weight-takes-none-or-all
// CHECK-NEXT: outside: 5 weight-takes-none-or-all merge-of-shift shift-of-split
// CHECK-NEXT: outside: 5 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling shift-of-split
// CHECK-NEXT: outside: 4 weight-takes-none-or-all shift-of-split
