// The signature of a strided 1x1 convolution.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_conv1x1_strided<N, Cin, Cout, H, W | s, g>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 12, Cout = 15, H = 14, W = 18, s = 2, g = 3>, <N = 1, Cin = 10, Cout = 20, H = 18, W = 21, s = 3, g = 5>]
    limits {depth = 5, reduce = 1, split = 1, merge = 1, shift = 1, expand = 0, unfold = 0, stride = 2, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.s = 1, occurrences.g = 1}

// CHECK: brute force: 184 operators, 78 classes, 5 of them within the limits
// CHECK-NEXT: search: 5 operators, 5 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 8 merge-of-view
// CHECK-NEXT: outside: 4 merge-of-view split-of-stride stride-outside-window
// CHECK-NEXT: outside: 12 merge-of-view stride-outside-window
// CHECK-NEXT: outside: 12 pooling merge-of-view
// CHECK-NEXT: outside: 4 pooling merge-of-view stride-outside-window
// CHECK-NEXT: outside: 4 stride-outside-window
// CHECK-NEXT: outside: 5 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-view split-of-stride stride-outside-window
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling merge-of-view stride-outside-window
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling stride-outside-window
