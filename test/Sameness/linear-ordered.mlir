// Linear layers of ordered dimensions: a Monarch matrix and its transpose are two operators.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_ordered<N, Cin, Cout | b>
    [N, Cout] from [N, Cin]
    bindings [<N = 1, Cin = 6, Cout = 10, b = 2>, <N = 1, Cin = 6, Cout = 15, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            pooling = 1, occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.b = 4}

// CHECK: brute force: 6889 operators, 256 classes, 66 of them within the limits
// CHECK-NEXT: search: 66 operators, 66 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 28 pooling
// CHECK-NEXT: outside: 15 pooling merge-of-view
// CHECK-NEXT: outside: 12 rank
// CHECK-NEXT: outside: 1 rank pooling merge-of-view
// CHECK-NEXT: outside: 21 weight-over-time merge-of-view
// CHECK-NEXT: outside: 9 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 37 weight-takes-none-or-all
// CHECK-NEXT: outside: 2 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 31 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 17 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 8 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 9 weight-takes-none-or-all weight-over-time pooling merge-of-view
