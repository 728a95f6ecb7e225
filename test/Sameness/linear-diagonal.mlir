// Linear layers with weights that need not take or share a coordinate: diagonal factors, outer products.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_diagonal<N, Cin, Cout | b>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 1, Cin = 6, Cout = 10, b = 2>, <N = 1, Cin = 6, Cout = 15, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            weight_takes = 0, weight_shares = 0, pooling = 1, occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.b = 4}

// CHECK: brute force: 6889 operators, 132 classes, 33 of them within the limits
// CHECK-NEXT: search: 33 operators, 33 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 2 merge-of-view
// CHECK-NEXT: outside: 18 pooling
// CHECK-NEXT: outside: 28 pooling merge-of-view
// CHECK-NEXT: outside: 3 rank
// CHECK-NEXT: outside: 1 rank pooling merge-of-view
// CHECK-NEXT: outside: 29 weight-over-time merge-of-view
// CHECK-NEXT: outside: 18 weight-over-time pooling merge-of-view
