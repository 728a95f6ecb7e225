// The signature of a convolution, with windows and shifts along both axes.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_conv2d<N, Cin, Cout, H, W | k>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 2, Cout = 4, H = 6, W = 7, k = 3>, <N = 1, Cin = 4, Cout = 3, H = 8, W = 7, k = 5>]
    limits {depth = 6, reduce = 3, split = 0, merge = 0, shift = 1, expand = 0, unfold = 2, stride = 0, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.k = 2}

// CHECK: brute force: 120 operators, 10 classes, 5 of them within the limits
// CHECK-NEXT: search: 5 operators, 5 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 5 weight-takes-none-or-all
