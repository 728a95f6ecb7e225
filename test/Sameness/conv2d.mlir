// Convolutions along two axes with one weight.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @conv2d<N, C, D, H, W | k>
    [N, D unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, D = 2, H = 6, W = 7, k = 3>, <N = 1, C = 2, D = 5, H = 7, W = 6, k = 3>]
    limits {depth = 6, weights = 1, reduce = 3, merge = 0, split = 0, shift = 0, unfold = 2, chain = 100,
            occurrences.C = 2, occurrences.D = 2, occurrences.k = 2}

// CHECK: brute force: 80 operators, 34 classes, 11 of them within the limits
// CHECK-NEXT: search: 11 operators, 11 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 9 pooling window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all
// CHECK-NEXT: outside: 5 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 8 window-without-weight
