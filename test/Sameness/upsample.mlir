// More positions in the output than in the input, by expands and merges.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @upsample<N, C, H | s>
    [N, C unordered, H*s] from [N, C unordered, H]
    bindings [<N = 1, C = 5, H = 3, s = 2>, <N = 1, C = 4, H = 5, s = 3>]
    limits {depth = 5, weights = 1, reduce = 1, merge = 2, split = 2, shift = 1, expand = 1, chain = 100,
            occurrences.C = 2, occurrences.s = 2}

// CHECK: brute force: 10330 operators, 1001 classes, 12 of them within the limits
// CHECK-NEXT: search: 12 operators, 12 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 8 merge-of-shift
// CHECK-NEXT: outside: 36 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 12 merge-of-shift shift-of-split
// CHECK-NEXT: outside: 124 merge-of-view
// CHECK-NEXT: outside: 28 merge-of-view merge-of-shift
// CHECK-NEXT: outside: 12 merge-of-view merge-of-shift shift-of-channel
// CHECK-NEXT: outside: 6 no-weight weight-takes-none-or-all
// CHECK-NEXT: outside: 2 no-weight weight-takes-none-or-all merge-of-shift
// CHECK-NEXT: outside: 2 pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 10 pooling merge-of-view
// CHECK-NEXT: outside: 36 weight-over-time merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 36 weight-over-time merge-of-shift shift-of-split
// CHECK-NEXT: outside: 196 weight-over-time merge-of-view
// CHECK-NEXT: outside: 42 weight-over-time merge-of-view merge-of-shift
// CHECK-NEXT: outside: 24 weight-over-time merge-of-view merge-of-shift shift-of-channel
// CHECK-NEXT: outside: 5 weight-over-time pooling merge-of-view
// CHECK-NEXT: outside: 30 weight-takes-none-or-all
// CHECK-NEXT: outside: 2 weight-takes-none-or-all expand-of-view
// CHECK-NEXT: outside: 16 weight-takes-none-or-all merge-of-shift
// CHECK-NEXT: outside: 44 weight-takes-none-or-all merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 12 weight-takes-none-or-all merge-of-shift shift-of-split
// CHECK-NEXT: outside: 208 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 20 weight-takes-none-or-all merge-of-view merge-of-shift
// CHECK-NEXT: outside: 16 weight-takes-none-or-all merge-of-view merge-of-shift shift-of-channel
// CHECK-NEXT: outside: 4 weight-takes-none-or-all pooling merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 2 weight-takes-none-or-all pooling merge-of-shift shift-of-split
// CHECK-NEXT: outside: 46 weight-takes-none-or-all pooling merge-of-view
// CHECK-NEXT: outside: 10 weight-takes-none-or-all weight-over-time merge-of-view
