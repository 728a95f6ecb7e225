// Two axes of the same size that may change places.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @same_axes<N, C, H>
    [N, C unordered, H, H] from [N, C unordered, H, H]
    bindings [<N = 1, C = 3, H = 6>, <N = 1, C = 7, H = 5>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 0, split = 1, shift = 2, unfold = 0, chain = 100, occurrences.C = 3}

// CHECK: brute force: 526 operators, 104 classes, 18 of them within the limits
// CHECK-NEXT: search: 18 operators, 18 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 18 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 8 no-weight weight-takes-none-or-all shift-of-shift
// CHECK-NEXT: outside: 8 shift-of-shift
// CHECK-NEXT: outside: 36 weight-takes-none-or-all
// CHECK-NEXT: outside: 16 weight-takes-none-or-all shift-of-shift
