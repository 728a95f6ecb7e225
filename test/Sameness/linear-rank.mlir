// Linear layers with a rank that is a symbol of its own, and one level of factors.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_rank<N, Cin, Cout, R | b>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 1, Cin = 10, Cout = 14, R = 3, b = 2>, <N = 1, Cin = 15, Cout = 21, R = 2, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            pooling = 1, occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.R = 3, occurrences.b = 4}

// CHECK: brute force: 12167 operators, 301 classes, 33 of them within the limits
// CHECK-NEXT: search: 33 operators, 33 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 9 pooling
// CHECK-NEXT: outside: 30 pooling merge-of-view
// CHECK-NEXT: outside: 4 rank
// CHECK-NEXT: outside: 1 rank pooling merge-of-view
// CHECK-NEXT: outside: 62 weight-over-time merge-of-view
// CHECK-NEXT: outside: 23 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 13 weight-takes-none-or-all
// CHECK-NEXT: outside: 2 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 11 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 45 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all rank
// CHECK-NEXT: outside: 30 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 37 weight-takes-none-or-all weight-over-time pooling merge-of-view
