// The signature of patches.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_patches<N, Cin, Cout, H, W | k, s, d>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 3, Cout = 5, H = 8, W = 12, k = 7, s = 2, d = 11>, <N = 1, Cin = 5, Cout = 8, H = 18, W = 12, k = 7, s = 3, d = 11>]
    limits {depth = 6, reduce = 3, split = 2, merge = 0, shift = 0, expand = 0, unfold = 0, stride = 1, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.k = 0, occurrences.s = 2, occurrences.d = 0}

// CHECK: brute force: 112 operators, 48 classes, 28 of them within the limits
// CHECK-NEXT: search: 28 operators, 28 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 12 pooling
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling
