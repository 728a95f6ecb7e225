// Patches, and reductions of several positions.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @patch<N, C, D, H | s>
    [N, D unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 5, D = 4, H = 6, s = 2>, <N = 1, C = 4, D = 7, H = 15, s = 3>]
    limits {depth = 5, weights = 1, reduce = 3, merge = 1, split = 2, shift = 1, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.s = 2}

// CHECK: brute force: 696 operators, 84 classes, 18 of them within the limits
// CHECK-NEXT: search: 18 operators, 18 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 6 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 10 merge-of-view
// CHECK-NEXT: outside: 4 pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 10 pooling merge-of-view
// CHECK-NEXT: outside: 10 shift-of-split
// CHECK-NEXT: outside: 4 weight-over-time merge-of-view
// CHECK-NEXT: outside: 6 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 10 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling shift-of-split
