// Linear layers of three digits with three weights: factors of a butterfly matrix in every order, and all else that has no rank.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_butterfly<N, A, B, C>
    [N, A, B, C] from [N, A, B, C]
    bindings [<N = 1, A = 2, B = 3, C = 4>, <N = 1, A = 4, B = 2, C = 3>]
    limits {depth = 6, reduce = 3, split = 0, merge = 0, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 3,
            pooling = 1, rank_min = 50, rank_max = 60, occurrences.N = 0, occurrences.A = 4, occurrences.B = 4, occurrences.C = 4}

// CHECK: brute force: 61020 operators, 8819 classes, 1237 of them within the limits
// CHECK-NEXT: search: 1237 operators, 1237 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 no-weight weight-takes-none-or-all rank
// CHECK-NEXT: outside: 888 pooling
// CHECK-NEXT: outside: 1405 rank
// CHECK-NEXT: outside: 349 rank pooling
// CHECK-NEXT: outside: 2482 weight-takes-none-or-all
// CHECK-NEXT: outside: 993 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 1265 weight-takes-none-or-all rank
// CHECK-NEXT: outside: 199 weight-takes-none-or-all rank pooling
