// All operators of one stage for fields on a torus: that see 3x3 points, move with every translation, fit any grid and
// reach all channels after two layers. No two are the same.
// REQUIRES: slow
// RUN: kas-prove-space -search-only %s | FileCheck %s

kas.space @torus_fields<N, C, D, H, W | k, g>
    [N, D unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 12, D = 12, H = 9, W = 8, k = 3, g = 2>, <N = 1, C = 9, D = 18, H = 8, W = 10, k = 3, g = 3>]
    limits {depth = 8, reduce = 3, weights = 2, unfold = 2, shift = 1, merge = 1, rank_max = 8, cyclic = 1,
            sees = ["k", "k"], equivariant = ["cyclic", "cyclic"], any_grid = 1, reaches = 2}

// CHECK: search: 261 operators, 261 classes
// CHECK-NEXT: missing: 0, duplicates: 0
