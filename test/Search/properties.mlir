// Properties as limits: docs/reference/properties.md.
// RUN: kas-opt %s -split-input-file -kas-search="evaluations=1000" -verify-diagnostics | FileCheck %s

// Of all operators on a row of pixels, only those with a window of 3 over the row.
// CHECK-LABEL: kas.space @sees
// CHECK: limits {{.*}}sees = ["k"]
kas.space @sees<N, C, W | k>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 4, W = 8, k = 3>]
    limits {depth = 4, reduce = 2, weights = 1, shift = 0, merge = 0, split = 0, sees = ["k"]}
// CHECK: kas.operator @sees_0
// CHECK: kas.unfold
// CHECK: kas.operator @sees_1
// CHECK: kas.unfold
// CHECK-NOT: kas.operator

// -----

// Causal windows of 3 over a sequence, which end at their base.
// CHECK-LABEL: kas.space @looks_back
kas.space @looks_back<N, C, T | k>
    [N, C unordered, T] from [N, C unordered, T]
    bindings [<N = 1, C = 4, T = 8, k = 3>]
    limits {depth = 4, reduce = 2, weights = 1, merge = 0, split = 0, causal = 1, sees = ["k"]}
// CHECK: kas.operator @looks_back_0
// CHECK-NOT: kas.shift
// CHECK: kas.unfold {{.*}} causal
// CHECK-NOT: kas.shift

// -----

// Each position reads all others, with a weight for each pair of them.
// CHECK-LABEL: kas.space @sees_all
kas.space @sees_all<N, C, H>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 4, H = 8>]
    limits {depth = 2, reduce = 1, weights = 1, occurrences.H = 3, occurrences.C = 0, sees = ["*"]}
// CHECK: kas.operator @sees_all_0
// CHECK: kas.reduce sum : H
// CHECK-NOT: kas.operator

// -----

// Around a torus a shift of the whole axis moves everything; clipped windows do not.
// CHECK-LABEL: kas.space @torus
kas.space @torus<N, C, H | k>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 4, H = 8, k = 3>]
    limits {depth = 4, reduce = 2, weights = 1, merge = 0, split = 0, shift_backward = 0, equivariant = ["cyclic"]}
// CHECK-NOT: kas.unfold
// CHECK: kas.shift
// CHECK-NOT: kas.unfold

// -----

// Windows that wrap around are: each is an unfold in the second of three copies of its base.
// CHECK-LABEL: kas.space @windows_around
kas.space @windows_around<N, C, H | k>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 4, H = 8, k = 3>]
    limits {depth = 4, reduce = 2, weights = 1, merge = 0, split = 0, shift = 0, cyclic = 1, sees = ["k"],
            equivariant = ["cyclic"]}
// CHECK: kas.operator @windows_around_0
// CHECK: %[[ZERO:.*]] = kas.reduce sum : 1
// CHECK: %[[FIRST:.*]] = kas.stride %[[ZERO]] by 3 : 1
// CHECK: %[[SECOND:.*]] = kas.shift %[[FIRST]] by 1 : 3
// CHECK: %[[BASE:.*]] = kas.split %[[SECOND]], %{{.*}} : 3, H
// CHECK: %[[ALL:.*]] = kas.unfold %[[BASE]], %{{.*}} : 3*H, k
// CHECK: %[[COPY:.*]], %[[AROUND:.*]] = kas.merge %[[ALL]] by H : 3*H
// CHECK: kas.expand %[[COPY]] : 3
// CHECK: kas.yield data({{.*}}%[[AROUND]]) weight

// -----

// A product in groups reaches an eighth of the channels: too few for two layers of 16 channels.
// CHECK-LABEL: kas.space @dense
kas.space @dense<N, C, D | g>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 4, C = 16, D = 16, g = 8>]
    limits {depth = 4, reduce = 1, merge = 1, weights = 1, occurrences.g = 1, reaches = 2}
// CHECK: kas.operator
// CHECK-NOT: kas.merge
// CHECK: kas.yield

// -----

// expected-error @below {{'kas.space' op requires limit 'unfold' or 'merge' >= 1 for limit 'sees' = [3, 3], got 0}}
kas.space @no_windows<N, C, D, H, W>
    [N, D unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, D = 4, H = 8, W = 8>]
    limits {unfold = 0, merge = 0, sees = [3, 3]}

// -----

// expected-error @below {{'kas.space' op requires limit 'reduce' >= 1 for limit 'sees' = [k, k], got 0}}
kas.space @no_reductions<N, C, H, W | k>
    [N, C unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, H = 8, W = 8, k = 3>]
    limits {reduce = 0, weight_takes = 0, sees = ["k", "k"]}

// -----

// expected-error @below {{'kas.space' op requires limit 'depth' >= 2 for limit 'sees' = [3, 3], got 1}}
kas.space @no_steps<N, C, H, W>
    [N, C unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, H = 8, W = 8>]
    limits {depth = 1, sees = [3, 3]}

// -----

// expected-error @below {{'kas.space' op requires limit 'reduce' or 'split' >= 1 for limit 'reaches' = 1, got 0}}
kas.space @no_mixing<N, C>
    [N, C unordered] from [N, C unordered]
    bindings [<N = 1, C = 4>]
    limits {reduce = 0, split = 0, weight_takes = 0, reaches = 1}

// -----

// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{limit 'sees' excludes every operator: without it there are some}}
// expected-note @below {{limit 'causal' excludes every operator: without it there are some}}
kas.space @around<N, C, T | k>
    [N, C unordered, T] from [N, C unordered, T]
    bindings [<N = 1, C = 4, T = 8, k = 3>]
    limits {depth = 4, reduce = 2, weights = 1, merge = 0, split = 0, causal = 1, look_back = 0, sees = ["k"]}

// -----

// Each property could be met, but not within these limits.
// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{limit 'sees' excludes every operator: without it there are some}}
// expected-note @below {{an operator needs 4 steps, depth allows 3}}
// expected-note @below {{an operator needs occurrences.W = 2, the limit is 0}}
kas.space @few_steps<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 4, D = 4, W = 8, k = 3>]
    limits {depth = 3, reduce = 2, weights = 1, shift = 0, merge = 0, split = 0, reaches = 1, sees = ["k"]}

// -----

// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{limit 'sees' excludes every operator: without it there are some}}
// expected-note @below {{limit 'any_grid' excludes every operator: without it there are some}}
kas.space @mixes_anywhere<N, C, H>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 4, H = 8>]
    limits {depth = 2, reduce = 1, weights = 1, occurrences.H = 3, occurrences.C = 1, pooling = 1, weight_takes = 0,
            sees = ["*"], any_grid = 1}

// -----

// expected-warning @below {{found no operator: the space has none}}
// expected-note @below {{limit 'equivariant' excludes every operator: without it there are some}}
// expected-note @below {{limit 'sees' excludes every operator: without it there are some}}
kas.space @windows_of_a_torus<N, C, H | k>
    [N, C unordered, H] from [N, C unordered, H]
    bindings [<N = 1, C = 4, H = 8, k = 3>]
    limits {depth = 4, reduce = 2, weights = 1, merge = 0, split = 0, sees = ["k"], equivariant = ["cyclic"]}
