// Linear layers with as many inputs as outputs.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @linear_square<N, C | b>
    [N, C unordered] from [N, C unordered]
    bindings [<N = 1, C = 10, b = 2>, <N = 1, C = 21, b = 3>]
    limits {depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 2,
            pooling = 1, occurrences.N = 0, occurrences.C = 4, occurrences.b = 4}

// CHECK: brute force: 38056 operators, 214 classes, 29 of them within the limits
// CHECK-NEXT: search: 29 operators, 29 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 2 merge-of-view
// CHECK-NEXT: outside: 1 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 10 pooling
// CHECK-NEXT: outside: 13 pooling merge-of-view
// CHECK-NEXT: outside: 4 rank
// CHECK-NEXT: outside: 2 rank merge-of-view
// CHECK-NEXT: outside: 2 rank pooling merge-of-view
// CHECK-NEXT: outside: 38 weight-over-time merge-of-view
// CHECK-NEXT: outside: 12 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 26 weight-takes-none-or-all
// CHECK-NEXT: outside: 2 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 12 weight-takes-none-or-all pooling
// CHECK-NEXT: outside: 19 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 28 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 14 weight-takes-none-or-all weight-over-time pooling merge-of-view
