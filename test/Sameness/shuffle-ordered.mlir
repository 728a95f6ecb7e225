// Positions to channels; the output's channels have an order.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @shuffle_ordered<N, C, H | s, g>
    [N, C, H] from [N, C*s unordered, H/s]
    bindings [<N = 1, C = 30, H = 6, s = 2, g = 5>, <N = 1, C = 42, H = 15, s = 3, g = 2>]
    limits {depth = 5, weights = 0, reduce = 0, merge = 2, split = 3, shift = 1, expand = 0, chain = 100}

// CHECK: brute force: 14776 operators, 1490 classes, 6 of them within the limits
// CHECK-NEXT: search: 6 operators, 6 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 4 merge-of-shift
// CHECK-NEXT: outside: 184 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 30 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 636 merge-of-view
// CHECK-NEXT: outside: 16 merge-of-view merge-of-shift
// CHECK-NEXT: outside: 48 merge-of-view merge-of-shift shift-of-channel
// CHECK-NEXT: outside: 152 merge-of-view merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 328 merge-of-view shift-of-channel
// CHECK-NEXT: outside: 56 merge-of-view shift-of-channel shift-of-split
// CHECK-NEXT: outside: 30 merge-of-view shift-of-split
