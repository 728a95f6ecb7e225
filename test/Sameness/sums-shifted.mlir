// Sums, under shifts by any block: M8, H3, H5, H7 and H8. The quotient of a shift of split(shift h, r) is unfolded, so the inner shift
// cannot be on top of it (M8).
// REQUIRES: slow
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @sums_shifted<N, C, H | s>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 5, H = 6, s = 2>, <N = 1, C = 4, H = 15, s = 3>]
    limits {depth = 6, weights = 0, reduce = 1, merge = 1, split = 2, shift = 2, chain = 100,
            occurrences.C = 1, occurrences.H = 1, occurrences.s = 2, shift_block = 1000, pooling = 100}

// CHECK: brute force: 4698 operators, 1184 classes, 149 of them within the limits
// CHECK-NEXT: search: 159 operators, 159 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 2 listed in spite of shift-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 listed in spite of unfold-of-view
// CHECK-NEXT: outside: 6 listed in spite of unfold-of-view window-without-weight
// CHECK-NEXT: outside: 1 listed in spite of window-without-weight
// CHECK-NEXT: outside: 4 merge-of-unfold shift-of-channel shift-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 20 merge-of-unfold shift-of-channel unfold-of-view window-without-weight
// CHECK-NEXT: outside: 10 merge-of-unfold shift-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 10 merge-of-unfold shift-of-shift window-without-weight
// CHECK-NEXT: outside: 40 merge-of-unfold unfold-of-view window-without-weight
// CHECK-NEXT: outside: 31 merge-of-unfold window-without-weight
// CHECK-NEXT: outside: 36 merge-of-view
// CHECK-NEXT: outside: 14 merge-of-view shift-of-shift
// CHECK-NEXT: outside: 4 merge-of-view shift-of-shift unfold-of-view
// CHECK-NEXT: outside: 8 merge-of-view shift-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 16 merge-of-view shift-of-shift window-without-weight
// CHECK-NEXT: outside: 20 merge-of-view unfold-of-view
// CHECK-NEXT: outside: 40 merge-of-view unfold-of-view window-without-weight
// CHECK-NEXT: outside: 36 merge-of-view window-without-weight
// CHECK-NEXT: outside: 44 shift-of-channel
// CHECK-NEXT: outside: 10 shift-of-channel shift-of-shift
// CHECK-NEXT: outside: 12 shift-of-channel shift-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 16 shift-of-channel shift-of-shift window-without-weight
// CHECK-NEXT: outside: 4 shift-of-channel unfold-of-view
// CHECK-NEXT: outside: 102 shift-of-channel unfold-of-view window-without-weight
// CHECK-NEXT: outside: 74 shift-of-channel window-without-weight
// CHECK-NEXT: outside: 28 shift-of-shift
// CHECK-NEXT: outside: 26 shift-of-shift unfold-of-view
// CHECK-NEXT: outside: 24 shift-of-shift unfold-of-view window-without-weight
// CHECK-NEXT: outside: 14 shift-of-shift window-without-weight
// CHECK-NEXT: outside: 156 unfold-of-view
// CHECK-NEXT: outside: 149 unfold-of-view window-without-weight
// CHECK-NEXT: outside: 77 window-without-weight
