// Halves of a merge that are put together again, shifted and merged by the same block, a weight having one of them: they are halves
// of a shift of what was merged (S8), not of a sum with a carry (M9).
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @shifted_halves<N, H | s>
    [N, H] from [N, H]
    bindings [<N = 1, H = 6, s = 2>, <N = 1, H = 15, s = 3>]
    limits {depth = 6, weights = 1, reduce = 0, merge = 2, split = 2, shift = 1, unfold = 0, expand = 0, chain = 100,
            weight_takes = 0, weight_shares = 0, occurrences.H = 2, occurrences.s = 2, shift_block = 1000, pooling = 100}

// CHECK: brute force: 3267 operators, 695 classes, 157 of them within the limits
// CHECK-NEXT: search: 157 operators, 157 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
