// The signature of products of matrices, as of experts: all is ordered.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_batch_matmul<B, M, N, K | g>
    [B, M, N] from [B, M, K]
    bindings [<B = 2, M = 5, N = 6, K = 8, g = 2>, <B = 3, M = 7, N = 12, K = 6, g = 3>]
    limits {depth = 4, reduce = 1, split = 1, merge = 1, shift = 1, expand = 0, unfold = 0, stride = 0, weights = 1,
            occurrences.B = 0, occurrences.M = 1, occurrences.N = 2, occurrences.K = 2, occurrences.g = 1}

// CHECK: brute force: 844 operators, 76 classes, 9 of them within the limits
// CHECK-NEXT: search: 9 operators, 9 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 36 merge-of-view
// CHECK-NEXT: outside: 20 weight-over-time merge-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-view
