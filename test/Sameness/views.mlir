// Views of two ordered axes.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @views<N, H, W | s>
    [N, H, W] from [N, H, W]
    bindings [<N = 1, H = 6, W = 10, s = 2>, <N = 1, H = 15, W = 6, s = 3>]
    limits {depth = 6, weights = 0, reduce = 0, merge = 2, split = 2, shift = 2, chain = 100}

// CHECK: brute force: 70421 operators, 19663 classes, 1065 of them within the limits
// CHECK-NEXT: search: 1065 operators, 1065 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1010 merge-of-shift
// CHECK-NEXT: outside: 88 merge-of-shift shift-of-shift
// CHECK-NEXT: outside: 296 merge-of-shift shift-of-shift shift-of-split
// CHECK-NEXT: outside: 5380 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 5874 merge-of-view
// CHECK-NEXT: outside: 1112 merge-of-view merge-of-shift
// CHECK-NEXT: outside: 80 merge-of-view merge-of-shift shift-of-shift
// CHECK-NEXT: outside: 80 merge-of-view merge-of-shift shift-of-shift shift-of-split
// CHECK-NEXT: outside: 1414 merge-of-view merge-of-shift shift-of-split
// CHECK-NEXT: outside: 820 merge-of-view shift-of-shift
// CHECK-NEXT: outside: 80 merge-of-view shift-of-shift shift-of-split
// CHECK-NEXT: outside: 1072 merge-of-view shift-of-split
// CHECK-NEXT: outside: 236 shift-of-shift
// CHECK-NEXT: outside: 88 shift-of-shift shift-of-split
// CHECK-NEXT: outside: 968 shift-of-split
