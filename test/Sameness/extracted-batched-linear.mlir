// The signature of a linear layer of tokens, as attention has four: two weights, with ranks.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @extracted_batched_linear<N, L, Cin, Cout | g>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 1, L = 7, Cin = 6, Cout = 10, g = 2>, <N = 1, L = 4, Cin = 6, Cout = 15, g = 3>]
    limits {depth = 5, reduce = 2, split = 1, merge = 0, shift = 1, expand = 0, unfold = 0, stride = 0, weights = 2,
            occurrences.N = 0, occurrences.L = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.g = 2}

// CHECK: brute force: 919 operators, 27 classes, 12 of them within the limits
// CHECK-NEXT: search: 12 operators, 12 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 rank
// CHECK-NEXT: outside: 12 weight-takes-none-or-all
