// Linear layers of an ordered dimension, with windows: banded Toeplitz matrices, alone, in blocks and per position.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_banded<N, C | k, b>
    [N, C] from [N, C]
    bindings [<N = 1, C = 14, k = 3, b = 2>, <N = 1, C = 33, k = 5, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 1, stride = 0, weights = 1, weight_takes = 0,
            pooling = 1, occurrences.N = 0, occurrences.C = 2, occurrences.k = 3, occurrences.b = 4}

// CHECK: brute force: 12610 operators, 1072 classes, 47 of them within the limits
// CHECK-NEXT: search: 47 operators, 47 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
