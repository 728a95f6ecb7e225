// The signature of a convolution in groups: its channels are ordered.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_grouped<N, Cin, Cout, H, W | k, g>
    [N, Cout, H, W] from [N, Cin, H, W]
    bindings [<N = 1, Cin = 8, Cout = 6, H = 5, W = 7, k = 9, g = 2>, <N = 1, Cin = 6, Cout = 12, H = 5, W = 7, k = 11, g = 3>]
    limits {depth = 4, reduce = 1, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.k = 2, occurrences.g = 2}

// CHECK: brute force: 578 operators, 62 classes, 13 of them within the limits
// CHECK-NEXT: search: 13 operators, 13 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 20 merge-of-view
// CHECK-NEXT: outside: 12 weight-over-time merge-of-view
// CHECK-NEXT: outside: 5 weight-takes-none-or-all
// CHECK-NEXT: outside: 12 weight-takes-none-or-all merge-of-view
