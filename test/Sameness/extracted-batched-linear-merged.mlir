// The same as extracted-batched-linear.mlir with a merge.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_batched_linear_merged<N, L, Cin, Cout | g>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 1, L = 7, Cin = 6, Cout = 10, g = 2>, <N = 1, L = 4, Cin = 6, Cout = 15, g = 3>]
    limits {depth = 5, reduce = 2, split = 1, merge = 1, shift = 1, expand = 0, unfold = 0, stride = 0, weights = 2,
            occurrences.N = 0, occurrences.L = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.g = 2}

// CHECK: brute force: 8894 operators, 239 classes, 29 of them within the limits
// CHECK-NEXT: search: 29 operators, 29 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 11 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 35 merge-of-view
// CHECK-NEXT: outside: 2 pooling merge-of-view
// CHECK-NEXT: outside: 3 rank
// CHECK-NEXT: outside: 6 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 36 weight-over-time merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 31 weight-takes-none-or-all
// CHECK-NEXT: outside: 7 weight-takes-none-or-all merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-shift shift-of-split
// CHECK-NEXT: outside: 44 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 4 weight-takes-none-or-all weight-over-time merge-of-view
