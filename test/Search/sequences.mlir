// RUN: kas-opt %s -split-input-file -kas-search="evaluations=1000 algorithm=exhaustive objective=-params" -verify-diagnostics | FileCheck %s

// Depthwise windows, normalization, a rectifier and a full mixing are found, at the width of the data: 2 * (8 * 3 + 8 * 4) * 12
// operations and 3 * 8 * 12 between them; 24 + 32 weights, and 16 of the normalization.
// CHECK-LABEL: kas.sequence_space @sequences
// CHECK: kas.operator @[[A:sequences_0_0]]<N, C, W | k>(%[[N:.*]]: N, %[[C:.*]]: C unordered, %[[W:.*]]: W) from [N, C unordered, W]
// CHECK-NEXT: %[[CD:.*]], %[[CW:.*]] = kas.share %[[C]] : C
// CHECK-NEXT: %[[K:.*]] = kas.reduce sum : k
// CHECK-NEXT: %[[KD:.*]], %[[KW:.*]] = kas.share %[[K]] : k
// CHECK-NEXT: %[[X:.*]] = kas.unfold %[[W]], %[[KD]] : W, k
// CHECK-NEXT: kas.yield data(%[[N]], %[[CD]], %[[X]]) weight(%[[CW]], %[[KW]])
// CHECK: kas.operator @[[B:sequences_0_1]]<N, C, D, W>(%[[N:.*]]: N, %[[D:.*]]: D unordered, %[[W:.*]]: W) from [N, C unordered, W]
// CHECK-NEXT: %[[R:.*]] = kas.reduce sum : C
// CHECK-NEXT: %[[RD:.*]], %[[RW:.*]] = kas.share %[[R]] : C
// CHECK-NEXT: kas.yield data(%[[N]], %[[RD]], %[[W]]) weight(%[[D]], %[[RW]])
// CHECK: kas.sequence @{{.*}} [@[[A]], @[[B]]] between [normalize_relu]
// CHECK-SAME: kas.origin = "sequences", kas.score = {flops = 1632 : i64, params = 72 : i64}
kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3>]
    budget {flops = 1700, min_flops = 1600}
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3>]
    limits {depth = 5, weights = 1, weight_takes = 0, sees = ["k"], weights_by_position = 0, shift = 0}
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12>]
    limits {depth = 4, unfold = 0, reaches = 1, shift = 0}
kas.sequence_space @sequences of @layers [@windows, @mixings]
    between [normalize_relu, relu] widths {M = [C, 2*C]}

// -----

// Reductions have no numbers in denominators, so nothing makes C/2 channels of C.
kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3>]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3>]
    limits {depth = 5, weights = 1, sees = ["k"], weights_by_position = 0, shift = 0}
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12>]
    limits {depth = 4, unfold = 0, reaches = 1, shift = 0}
// expected-remark @below {{left out M = C/2: stage '@windows' has no operator}}
// expected-note @below {{no single limit is to blame}}
kas.sequence_space @halves of @layers [@windows, @mixings]
    between [relu] widths {M = [C, C/2]}

// -----

kas.space @layers<N, C, W | k>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12, k = 3>, <C = 8, N = 1, W = 4, k = 3>]
kas.space @windows<N, C, W | k>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12, k = 3>, <C = 8, N = 1, W = 4, k = 3>]
    limits {depth = 5, weights = 1, sees = ["k"], shift = 0}
// expected-warning @below {{found no sequence: the space has none}}
// expected-note @below {{stage '@windows' has no operator: limit 'sees' excludes every operator: without it there are some}}
// expected-note @below {{stage '@windows' has no operator: binding <N = 1, C = 8, W = 4, k = 3> excludes every operator: without it there are some}}
// expected-note @below {{stage '@windows' has no operator: an operator needs occurrences.W = 3, the limit is 0}}
kas.sequence_space @small of @layers [@windows] between []

// -----

kas.space @layers<N, C, W>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
    budget {flops = 100}
kas.space @mixings<N, C, W>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
    limits {depth = 4, reaches = 1, shift = 0}
// expected-warning @below {{found no sequence: the space has none}}
// expected-note @below {{the stages have operators, but the budget of '@layers' excludes every sequence of them}}
kas.sequence_space @costly of @layers [@mixings] between []
