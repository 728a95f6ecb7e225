// Linear layers with two ranks and three weights.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_ranks<N, Cin, Cout, R>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 1, Cin = 6, Cout = 5, R = 2>, <N = 1, Cin = 5, Cout = 7, R = 3>]
    limits {depth = 6, reduce = 3, split = 1, merge = 0, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 3,
            pooling = 1, reduce_ratio = 100, occurrences.N = 0, occurrences.Cin = 4, occurrences.Cout = 4, occurrences.R = 6}

// CHECK: brute force: 6084 operators, 7 classes, 3 of them within the limits
// CHECK-NEXT: search: 3 operators, 3 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 rank
// CHECK-NEXT: outside: 2 weight-takes-none-or-all
// CHECK-NEXT: outside: 1 weight-takes-none-or-all pooling
