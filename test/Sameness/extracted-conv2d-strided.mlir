// The signature of a strided convolution, with a window along one axis.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_conv2d_strided<N, Cin, Cout, H, W | k, s>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 5, H = 14, W = 16, s = 2, k = 3>, <N = 1, Cin = 4, Cout = 7, H = 21, W = 18, k = 5, s = 3>]
    limits {depth = 7, reduce = 2, split = 0, merge = 0, shift = 0, expand = 0, unfold = 1, stride = 2, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.k = 2, occurrences.s = 1}

// CHECK: brute force: 112 operators, 24 classes, 5 of them within the limits
// CHECK-NEXT: search: 5 operators, 5 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 2 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 7 weight-takes-none-or-all
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-takes-view pooling unfold-of-reduction
// CHECK-NEXT: outside: 1 weight-takes-view pooling unfold-of-reduction
// CHECK-NEXT: outside: 4 window-without-weight
