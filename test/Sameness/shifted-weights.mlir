// Weights by positions, under shifts by any block: W8 and W9; and expands: H6.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @shifted_weights<N, C, H | s>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 5, H = 6, s = 2>, <N = 1, C = 4, H = 15, s = 3>]
    limits {depth = 4, weights = 1, reduce = 1, merge = 1, split = 1, shift = 1, unfold = 0, expand = 1, chain = 100,
            weight_takes = 0, weight_shares = 0, occurrences.C = 2, occurrences.H = 2, occurrences.s = 2, shift_block = 1000, pooling = 100}

// CHECK: brute force: 4363 operators, 547 classes, 315 of them within the limits
// CHECK-NEXT: search: 315 operators, 315 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 119 merge-of-view
// CHECK-NEXT: outside: 5 no-weight
// CHECK-NEXT: outside: 4 no-weight merge-of-view
// CHECK-NEXT: outside: 1 pooling merge-of-view
// CHECK-NEXT: outside: 36 shift-of-channel
// CHECK-NEXT: outside: 54 weight-over-time merge-of-view
// CHECK-NEXT: outside: 1 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 12 weight-over-time shift-of-channel
