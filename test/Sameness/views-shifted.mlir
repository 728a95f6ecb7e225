// Views with all shifts: no approximate rule is left.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @views_shifted<N, H, W | s>
    [N, H, W] from [N, H, W]
    bindings [<N = 1, H = 6, W = 10, s = 2>, <N = 1, H = 15, W = 6, s = 3>]
    limits {depth = 5, weights = 0, reduce = 0, merge = 2, split = 2, shift = 2, chain = 100, shift_block = 1000}

// CHECK: brute force: 8213 operators, 2313 classes, 1097 of them within the limits
// CHECK-NEXT: search: 1097 operators, 1097 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1134 merge-of-view
// CHECK-NEXT: outside: 16 merge-of-view shift-of-shift
// CHECK-NEXT: outside: 66 shift-of-shift
