// The signature of a convolution along one axis.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_conv1d<N, Cin, Cout, L | k, g>
    [N, Cout unordered, L] from [N, Cin unordered, L]
    bindings [<N = 1, Cin = 8, Cout = 6, L = 7, k = 3, g = 2>, <N = 1, Cin = 6, Cout = 12, L = 7, k = 5, g = 3>]
    limits {depth = 5, reduce = 2, split = 1, merge = 0, shift = 1, expand = 0, unfold = 1, stride = 0, weights = 1,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.L = 0, occurrences.k = 2,
            occurrences.g = 1}

// CHECK: brute force: 922 operators, 12 classes, 3 of them within the limits
// CHECK-NEXT: search: 3 operators, 3 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 weight-takes-none-or-all
// CHECK-NEXT: outside: 3 weight-takes-none-or-all weight-takes-view pooling window-without-weight
// CHECK-NEXT: outside: 3 weight-takes-view window-without-weight
