// Linear layers of three digits with two weights.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_digits<N, Cin, Cout | b>
    [N, Cout, b, b] from [N, Cin, b, b]
    bindings [<N = 1, Cin = 5, Cout = 7, b = 2>, <N = 1, Cin = 4, Cout = 5, b = 3>]
    limits {depth = 5, reduce = 3, split = 0, merge = 0, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            pooling = 1, occurrences.N = 0, occurrences.Cin = 3, occurrences.Cout = 3, occurrences.b = 6}

// CHECK: brute force: 17536 operators, 2156 classes, 1015 of them within the limits
// CHECK-NEXT: search: 1015 operators, 1015 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 618 pooling
// CHECK-NEXT: outside: 56 rank
// CHECK-NEXT: outside: 24 rank pooling
// CHECK-NEXT: outside: 253 weight-takes-none-or-all
// CHECK-NEXT: outside: 190 weight-takes-none-or-all pooling
