// A dense layer along ordered axes.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @dense_ordered<N, C, D | g>
    [N, D] from [N, C]
    bindings [<N = 1, C = 6, D = 10, g = 2>, <N = 1, C = 6, D = 15, g = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 1, split = 2, shift = 1, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.g = 3}

// CHECK: brute force: 3294 operators, 160 classes, 41 of them within the limits
// CHECK-NEXT: search: 41 operators, 41 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 16 merge-of-shift
// CHECK-NEXT: outside: 4 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 5 merge-of-view
// CHECK-NEXT: outside: 4 shift-of-channel shift-of-split
// CHECK-NEXT: outside: 16 shift-of-split
// CHECK-NEXT: outside: 14 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 12 weight-over-time merge-of-view
// CHECK-NEXT: outside: 2 weight-over-time pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 13 weight-takes-none-or-all
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-shift
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-shift shift-of-split
// CHECK-NEXT: outside: 10 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 4 weight-takes-none-or-all shift-of-split
