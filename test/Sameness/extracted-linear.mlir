// The signature of a linear layer: two weights, with ranks.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_linear<N, Cin, Cout | g>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 1, Cin = 6, Cout = 10, g = 2>, <N = 1, Cin = 6, Cout = 15, g = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.g = 2}

// CHECK: brute force: 5177 operators, 83 classes, 11 of them within the limits
// CHECK-NEXT: search: 11 operators, 11 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 10 merge-of-view
// CHECK-NEXT: outside: 1 rank merge-of-view
// CHECK-NEXT: outside: 18 weight-over-time merge-of-view
// CHECK-NEXT: outside: 19 weight-takes-none-or-all
// CHECK-NEXT: outside: 12 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 10 weight-takes-none-or-all weight-over-time merge-of-view
