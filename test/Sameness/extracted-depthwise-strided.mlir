// The signature of a strided depthwise convolution: its channels are ordered.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_depthwise_strided<N, C, H, W | k, s>
    [N, C, H/s, W/s] from [N, C, H, W]
    bindings [<N = 1, C = 4, H = 14, W = 18, k = 3, s = 2>, <N = 1, C = 6, H = 21, W = 15, k = 5, s = 3>]
    limits {depth = 7, reduce = 2, split = 0, merge = 0, shift = 0, expand = 0, unfold = 2, stride = 2, weights = 1, weight_takes = 0,
            occurrences.N = 0, occurrences.C = 2, occurrences.H = 0, occurrences.W = 0, occurrences.k = 2,
            occurrences.s = 1}

// CHECK: brute force: 173 operators, 36 classes, 13 of them within the limits
// CHECK-NEXT: search: 13 operators, 13 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 2 no-weight weight-takes-none-or-all window-without-weight
// CHECK-NEXT: outside: 3 pooling window-without-weight
// CHECK-NEXT: outside: 1 weight-takes-none-or-all
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 14 window-without-weight
