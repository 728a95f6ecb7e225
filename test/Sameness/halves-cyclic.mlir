// Halves of cyclic windows that weights alone have (M6).
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @halves_cyclic<N, C, W | k, g>
    [N, C unordered, W] from [N, C unordered]
    bindings [<N = 1, C = 2, W = 6, k = 3, g = 3>, <N = 1, C = 3, W = 8, k = 3, g = 4>]
    limits {depth = 6, weights = 2, reduce = 1, merge = 1, split = 0, shift = 0, unfold = 1, expand = 1, chain = 100,
            occurrences.k = 2, occurrences.g = 2, occurrences.C = 0, occurrences.W = 4, weight_takes = 0,
            weight_shares = 0, pooling = 8, cyclic = 1}

// CHECK: brute force: 2362 operators, 22 classes, 8 of them within the limits
// CHECK-NEXT: search: 8 operators, 8 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 merge-of-unfold
// CHECK-NEXT: outside: 3 merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 1 no-weight
// CHECK-NEXT: outside: 1 no-weight merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 2 weight-over-time
// CHECK-NEXT: outside: 3 weight-over-time merge-of-unfold
// CHECK-NEXT: outside: 1 weight-takes-view window-without-weight
// CHECK-NEXT: outside: 2 window-without-weight
