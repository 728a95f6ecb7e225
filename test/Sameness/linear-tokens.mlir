// Linear layers of tokens.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_tokens<N, L, Cin, Cout | b>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 1, L = 5, Cin = 6, Cout = 10, b = 2>, <N = 1, L = 7, Cin = 6, Cout = 15, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            pooling = 1, occurrences.N = 0, occurrences.L = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.b = 4}

// CHECK: brute force: 22014 operators, 352 classes, 20 of them within the limits
// CHECK-NEXT: search: 20 operators, 20 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 28 merge-of-view
// CHECK-NEXT: outside: 8 pooling
// CHECK-NEXT: outside: 36 pooling merge-of-view
// CHECK-NEXT: outside: 6 rank
// CHECK-NEXT: outside: 4 rank merge-of-view
// CHECK-NEXT: outside: 3 rank pooling merge-of-view
// CHECK-NEXT: outside: 74 weight-over-time merge-of-view
// CHECK-NEXT: outside: 26 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 13 weight-takes-none-or-all
// CHECK-NEXT: outside: 22 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 10 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 59 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 28 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 15 weight-takes-none-or-all weight-over-time pooling merge-of-view
