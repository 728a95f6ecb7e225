// Linear layers with three weights, two of which may have a rank. Without W18 a full matrix comes twice.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_three<N, Cin, Cout | b>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 1, Cin = 6, Cout = 10, b = 2>, <N = 1, Cin = 6, Cout = 15, b = 3>]
    limits {depth = 7, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 3,
            pooling = 1, occurrences.N = 0, occurrences.Cin = 3, occurrences.Cout = 3, occurrences.b = 4}

// CHECK: brute force: 63554 operators, 472 classes, 31 of them within the limits
// CHECK-NEXT: search: 31 operators, 31 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 9 pooling
// CHECK-NEXT: outside: 15 pooling merge-of-view
// CHECK-NEXT: outside: 3 rank
// CHECK-NEXT: outside: 1 rank pooling merge-of-view
// CHECK-NEXT: outside: 28 weight-over-time merge-of-view
// CHECK-NEXT: outside: 12 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 79 weight-takes-none-or-all
// CHECK-NEXT: outside: 60 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 14 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 59 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 7 weight-takes-none-or-all rank
// CHECK-NEXT: outside: 3 weight-takes-none-or-all rank merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all rank pooling merge-of-view
// CHECK-NEXT: outside: 129 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 20 weight-takes-none-or-all weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 1 weight-takes-none-or-all weight-over-time rank merge-of-view
