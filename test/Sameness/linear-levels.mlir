// Linear layers with two levels of factors.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_levels<N, Cin, Cout | b>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 1, Cin = 12, Cout = 20, b = 2>, <N = 1, Cin = 18, Cout = 45, b = 3>]
    limits {depth = 5, reduce = 1, split = 1, merge = 2, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 1,
            pooling = 1, occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.b = 4}

// CHECK: brute force: 5544 operators, 38 classes, 5 of them within the limits
// CHECK-NEXT: search: 5 operators, 5 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 2 pooling
// CHECK-NEXT: outside: 7 pooling merge-of-view
// CHECK-NEXT: outside: 6 weight-over-time merge-of-view
// CHECK-NEXT: outside: 8 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 3 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 7 weight-takes-none-or-all pooling merge-of-view
