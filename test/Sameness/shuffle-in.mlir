// Positions to channels; the input's channels have an order.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @shuffle_in<N, C, H | s, g>
    [N, C unordered, H] from [N, C*s, H/s]
    bindings [<N = 1, C = 30, H = 6, s = 2, g = 5>, <N = 1, C = 42, H = 15, s = 3, g = 2>]
    limits {depth = 4, weights = 0, reduce = 0, merge = 2, split = 2, shift = 1, expand = 0, chain = 100}

// CHECK: brute force: 952 operators, 172 classes, 32 of them within the limits
// CHECK-NEXT: search: 32 operators, 32 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 8 merge-of-shift
// CHECK-NEXT: outside: 8 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 116 merge-of-view
// CHECK-NEXT: outside: 8 shift-of-split
