// The signature of a depthwise convolution: its channels are ordered.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_depthwise<N, C, H, W | k>
    [N, C, H, W] from [N, C, H, W]
    bindings [<N = 1, C = 4, H = 7, W = 9, k = 3>, <N = 1, C = 6, H = 8, W = 7, k = 5>]
    limits {depth = 6, reduce = 2, split = 0, merge = 0, shift = 1, expand = 0, unfold = 2, stride = 0, weights = 1, weight_takes = 0,
            occurrences.N = 0, occurrences.C = 2, occurrences.H = 0, occurrences.W = 0, occurrences.k = 2}

// CHECK: brute force: 208 operators, 19 classes, 7 of them within the limits
// CHECK-NEXT: search: 7 operators, 7 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 7 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 5 weight-takes-none-or-all
