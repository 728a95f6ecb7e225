// The signature of a 1x1 convolution.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_conv1x1<N, Cin, Cout, H, W | g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 8, Cout = 6, H = 5, W = 7, g = 2>, <N = 1, Cin = 6, Cout = 12, H = 7, W = 5, g = 3>]
    limits {depth = 4, reduce = 1, split = 1, merge = 1, shift = 1, expand = 0, unfold = 0, stride = 0, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.g = 1}

// CHECK: brute force: 476 operators, 56 classes, 5 of them within the limits
// CHECK-NEXT: search: 5 operators, 5 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 19 merge-of-view
// CHECK-NEXT: outside: 14 weight-over-time merge-of-view
// CHECK-NEXT: outside: 5 weight-takes-none-or-all
// CHECK-NEXT: outside: 13 weight-takes-none-or-all merge-of-view
