// Pooling, without weights.
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @pooling<N, C, H | s>
    [N, C unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 5, H = 6, s = 2>, <N = 1, C = 4, H = 15, s = 3>]
    limits {depth = 4, weights = 0, reduce = 2, merge = 1, split = 2, shift = 1, stride = 1, chain = 100,
            occurrences.C = 1, occurrences.s = 2}

// CHECK: brute force: 385 operators, 120 classes, 9 of them within the limits
// CHECK-NEXT: search: 9 operators, 9 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 3 merge-of-shift
// CHECK-NEXT: outside: 10 merge-of-shift shift-of-channel shift-of-split
// CHECK-NEXT: outside: 2 merge-of-shift shift-of-channel stride-of-view stride-outside-window
// CHECK-NEXT: outside: 3 merge-of-shift split-of-stride shift-of-channel shift-of-split stride-outside-window
// CHECK-NEXT: outside: 49 merge-of-view
// CHECK-NEXT: outside: 4 merge-of-view shift-of-channel shift-of-split stride-outside-window
// CHECK-NEXT: outside: 3 merge-of-view shift-of-channel stride-outside-window
// CHECK-NEXT: outside: 4 merge-of-view shift-of-split
// CHECK-NEXT: outside: 4 merge-of-view shift-of-split stride-outside-window
// CHECK-NEXT: outside: 9 merge-of-view split-of-stride stride-outside-window
// CHECK-NEXT: outside: 16 merge-of-view stride-outside-window
// CHECK-NEXT: outside: 2 shift-of-split
// CHECK-NEXT: outside: 2 stride-outside-window
