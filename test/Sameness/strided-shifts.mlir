// The halves of shifted strides: (s*i + 1)/s is i, the remainder is 1.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @strided_shifts<H, W | s>
    [H, W] from [s*H, s*W]
    bindings [<H = 5, W = 7, s = 2>, <H = 9, W = 6, s = 2>]
    limits {depth = 5, reduce = 0, split = 1, merge = 1, shift = 1, expand = 0, stride = 2, unfold = 0, weights = 0}

// CHECK: missing: 0, duplicates: 0, not found by brute force: 0
