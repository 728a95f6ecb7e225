// Factors of channels and positions that are dropped: E2.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @factors_dropped<N, C, D, H | s>
    [N, D unordered, H] from [N, s]
    bindings [<N = 1, C = 5, D = 6, H = 30, s = 2>, <N = 1, C = 4, D = 30, H = 45, s = 3>]
    limits {depth = 6, weights = 0, reduce = 0, merge = 2, split = 1, shift = 0, unfold = 0, expand = 4, chain = 100}

// CHECK: brute force: 240 operators, 15 classes, 3 of them within the limits
// CHECK-NEXT: search: 3 operators, 3 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 12 merge-of-view
