// Strided windows around a circle.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @strided_cyclic<N, C, D, H | k, s>
    [N, D unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 5, D = 3, H = 14, k = 3, s = 2>, <N = 1, C = 2, D = 4, H = 15, k = 5, s = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 0, split = 1, shift = 1, unfold = 1, stride = 1, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.k = 2, occurrences.s = 2, cyclic = 1}

// CHECK: brute force: 470 operators, 50 classes, 23 of them within the limits
// CHECK-NEXT: search: 23 operators, 23 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 10 shift-of-split
// CHECK-NEXT: outside: 2 stride-outside-window
// CHECK-NEXT: outside: 3 weight-takes-none-or-all
// CHECK-NEXT: outside: 6 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling shift-of-split
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all stride-outside-window
// CHECK-NEXT: outside: 1 window-without-weight
