// Linear layers of channels that come in groups of b.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_blocks<N, Cin, Cout | b>
    [N, Cout*b unordered] from [N, Cin*b unordered]
    bindings [<N = 1, Cin = 3, Cout = 5, b = 2>, <N = 1, Cin = 2, Cout = 5, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            pooling = 1, occurrences.N = 0, occurrences.Cin = 3, occurrences.Cout = 3, occurrences.b = 4}

// CHECK: brute force: 14810 operators, 178 classes, 25 of them within the limits
// CHECK-NEXT: search: 25 operators, 25 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 9 pooling
// CHECK-NEXT: outside: 15 pooling merge-of-view
// CHECK-NEXT: outside: 3 rank
// CHECK-NEXT: outside: 1 rank pooling merge-of-view
// CHECK-NEXT: outside: 28 weight-over-time merge-of-view
// CHECK-NEXT: outside: 12 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 15 weight-takes-none-or-all
// CHECK-NEXT: outside: 2 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 10 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 31 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 14 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 13 weight-takes-none-or-all weight-over-time pooling merge-of-view
