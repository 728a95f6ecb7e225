// The signature of a strided layer. The size s is 1 at the second binding: no reduction and no half of a merge is 1 at all
// of them.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @strided_images<N, Cin, Cout, H, W | s>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 2, Cout = 3, H = 4, W = 6, s = 2>, <N = 1, Cin = 3, Cout = 5, H = 5, W = 7, s = 1>]
    limits {depth = 7, reduce = 1, split = 1, merge = 0, shift = 1, expand = 0, stride = 2, unfold = 0, weights = 1}

// CHECK: missing: 0, duplicates: 0, not found by brute force: 0
