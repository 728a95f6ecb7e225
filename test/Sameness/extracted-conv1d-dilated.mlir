// The signature of a dilated convolution.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_conv1d_dilated<N, Cin, Cout, L | k, d, p>
    [N, Cout unordered, L] from [N, Cin unordered, L]
    bindings [<N = 1, Cin = 4, Cout = 5, L = 10, k = 3, d = 2, p = 6>, <N = 1, Cin = 6, Cout = 4, L = 17, k = 5, d = 3, p = 2>]
    limits {depth = 5, reduce = 2, split = 0, merge = 0, shift = 0, expand = 0, unfold = 1, stride = 1, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.L = 0, occurrences.k = 2,
            occurrences.d = 0, occurrences.p = 0}

// CHECK: brute force: 226 operators, 10 classes, 3 of them within the limits
// CHECK-NEXT: search: 3 operators, 3 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 weight-takes-none-or-all
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling window-without-weight
// CHECK-NEXT: outside: 2 weight-takes-none-or-all weight-takes-view pooling window-without-weight stride-outside-window
// CHECK-NEXT: outside: 2 weight-takes-view window-without-weight stride-outside-window
// CHECK-NEXT: outside: 1 window-without-weight
