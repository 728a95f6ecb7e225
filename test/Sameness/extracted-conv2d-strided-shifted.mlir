// The same as extracted-conv2d-strided.mlir with a shift.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_conv2d_strided_shifted<N, Cin, Cout, H, W | k, s>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 5, H = 14, W = 16, s = 2, k = 3>, <N = 1, Cin = 4, Cout = 7, H = 21, W = 18, k = 5, s = 3>]
    limits {depth = 7, reduce = 2, split = 0, merge = 0, shift = 1, expand = 0, unfold = 1, stride = 2, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.k = 2, occurrences.s = 1}

// CHECK: brute force: 2016 operators, 256 classes, 25 of them within the limits
// CHECK-NEXT: search: 25 operators, 25 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 10 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 8 no-weight weight-takes-none-or-all stride-outside-window
// CHECK-NEXT: outside: 4 no-weight weight-takes-none-or-all unfold-of-view
// CHECK-NEXT: outside: 20 stride-outside-window
// CHECK-NEXT: outside: 8 unfold-of-view
// CHECK-NEXT: outside: 8 unfold-of-view window-without-weight
// CHECK-NEXT: outside: 35 weight-takes-none-or-all
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling unfold-of-view window-without-weight
// CHECK-NEXT: outside: 20 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 16 weight-takes-none-or-all pooling window-without-weight stride-outside-window
// CHECK-NEXT: outside: 28 weight-takes-none-or-all stride-outside-window
// CHECK-NEXT: outside: 12 weight-takes-none-or-all unfold-of-view
// CHECK-NEXT: outside: 5 weight-takes-none-or-all weight-takes-view pooling unfold-of-reduction
// CHECK-NEXT: outside: 4 weight-takes-none-or-all weight-takes-view pooling unfold-of-reduction stride-outside-window
// CHECK-NEXT: outside: 5 weight-takes-view pooling unfold-of-reduction
// CHECK-NEXT: outside: 4 weight-takes-view pooling unfold-of-reduction stride-outside-window
// CHECK-NEXT: outside: 20 window-without-weight
// CHECK-NEXT: outside: 16 window-without-weight stride-outside-window
