// Groups of channels.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @grouping<N, C, D | g>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 6, D = 10, g = 2>, <N = 1, C = 6, D = 15, g = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 1, split = 2, shift = 0, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.g = 3}

// CHECK: brute force: 690 operators, 16 classes, 6 of them within the limits
// CHECK-NEXT: search: 6 operators, 6 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 merge-of-view
// CHECK-NEXT: outside: 4 weight-over-time merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all
// CHECK-NEXT: outside: 2 weight-takes-none-or-all merge-of-view
