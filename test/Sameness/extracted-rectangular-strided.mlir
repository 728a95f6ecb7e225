// The signature of a convolution with a stride of its own along each axis.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_rectangular_strided<N, Cin, Cout, H, W | kh, kw, sh, sw>
    [N, Cout unordered, H/sh, W/sw] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 4, Cout = 8, H = 10, W = 21, kh = 5, kw = 7, sh = 2, sw = 3>, <N = 1, Cin = 6, Cout = 11, H = 21, W = 16, kh = 5, kw = 9, sh = 3, sw = 2>]
    limits {depth = 5, reduce = 1, split = 1, merge = 0, shift = 1, expand = 0, unfold = 0, stride = 2, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.kh = 1, occurrences.kw = 1, occurrences.sh = 1, occurrences.sw = 1}

// CHECK: brute force: 30 operators, 18 classes, 5 of them within the limits
// CHECK-NEXT: search: 5 operators, 5 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 4 stride-outside-window
// CHECK-NEXT: outside: 5 weight-takes-none-or-all
// CHECK-NEXT: outside: 4 weight-takes-none-or-all stride-outside-window
