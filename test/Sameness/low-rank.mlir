// Two weights with a rank between them.
// RUN: kas-prove-space -all-weights %s | FileCheck --check-prefix=ALL %s
// RUN: kas-prove-space %s > %t
// RUN: FileCheck %s < %t
// RUN: tail -n 1 %t > %t.row
// RUN: grep -Fx -f %t.row %kas_src_root/docs/internals/search-space-counts.md

kas.space @low_rank<N, C, D | t>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 4, D = 5, t = 3>, <N = 1, C = 5, D = 3, t = 2>]
    limits {depth = 5, weights = 2, reduce = 3, merge = 1, split = 1, shift = 0, chain = 100,
            occurrences.C = 3, occurrences.D = 3, occurrences.t = 2}

// CHECK: brute force: 1084 operators, 51 classes, 1 of them within the limits
// CHECK-NEXT: search: 1 operators, 1 classes
// CHECK-NEXT: missing: 0, duplicates: 0, not found by brute force: 0
// CHECK-NEXT: outside: 1 merge-of-view
// CHECK-NEXT: outside: 2 pooling unfold-of-reduction
// CHECK-NEXT: outside: 1 rank
// CHECK-NEXT: outside: 6 weight-over-time merge-of-view
// CHECK-NEXT: outside: 2 weight-over-time pooling unfold-of-reduction
// CHECK-NEXT: outside: 1 weight-over-time unfold-of-reduction
// CHECK-NEXT: outside: 2 weight-takes-none-or-all
// CHECK-NEXT: outside: 8 weight-takes-none-or-all merge-of-view
// CHECK-NEXT: outside: 8 weight-takes-none-or-all pooling unfold-of-reduction
// CHECK-NEXT: outside: 3 weight-takes-none-or-all unfold-of-reduction
// CHECK-NEXT: outside: 6 weight-takes-none-or-all weight-over-time merge-of-view
// CHECK-NEXT: outside: 4 weight-takes-none-or-all weight-over-time pooling unfold-of-reduction
// CHECK-NEXT: outside: 6 weight-takes-none-or-all weight-over-time unfold-of-reduction

// ALL: 51 classes, 1 of them within the limits
// ALL: missing: 0, duplicates: 0, not found by brute force: 0
