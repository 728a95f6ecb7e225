// Coordinates that are dropped after a shift: a quotient that something is carried into goes with what is below (M9), and the
// remainder is the same whether a weight takes the quotient or it is dropped (H6, W8).
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @dropped_remainders<N, D, H | s>
    [N, D, H] from [N, D]
    bindings [<N = 1, D = 5, H = 6, s = 2>, <N = 1, D = 8, H = 15, s = 3>]
    limits {depth = 5, weights = 1, reduce = 0, merge = 1, split = 1, shift = 1, unfold = 0, expand = 1, chain = 100,
            weight_takes = 0, weight_shares = 0, occurrences.D = 2, occurrences.H = 2, occurrences.s = 2, shift_block = 1000, pooling = 100}

// CHECK: brute force: 2069 operators, 171 classes, 71 of them within the limits
// CHECK-NEXT: search: 71 operators, 71 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
