// The signature of a convolution with a window of its own along each axis.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_rectangular<N, Cin, Cout, H, W | kh, kw>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 6, H = 7, W = 11, kh = 3, kw = 5>, <N = 1, Cin = 6, Cout = 4, H = 11, W = 7, kh = 5, kw = 3>]
    limits {depth = 6, reduce = 3, split = 0, merge = 0, shift = 0, expand = 0, unfold = 2, stride = 0, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.kh = 1, occurrences.kw = 1}

// CHECK: brute force: 34 operators, 18 classes, 7 of them within the limits
// CHECK-NEXT: search: 7 operators, 7 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 pooling window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 4 window-without-weight
