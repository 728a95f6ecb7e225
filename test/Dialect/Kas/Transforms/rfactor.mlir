// RUN: kas-opt %s -kas-specialize -kas-rfactor -split-input-file | FileCheck %s
// RUN: kas-opt %s -kas-specialize -kas-rfactor='max-intermediate-bytes=64' -split-input-file | FileCheck %s --check-prefix=LIMIT
// RUN: kas-opt %s -kas-specialize -kas-rfactor='cost=prepared' -split-input-file | FileCheck %s --check-prefix=PREPARED

// Y[i] = sum over j < 3 and t < s of X[s*(i + j - 1) + t]: the inner sum is the
// same for all windows that touch a block, so it is computed once.
//
// CHECK: kas.operator private @window_of_blocks_0_stage0(%[[I:.*]]: 12) from [48] {
// CHECK:   %[[T:.*]] = kas.reduce sum : 4
// CHECK:   %[[X:.*]] = kas.split %[[I]], %[[T]] : 12, 4
// CHECK:   kas.yield data(%[[X]])
// CHECK: kas.operator private @window_of_blocks_0_stage1(%[[I:.*]]: 12) from [12] {
// CHECK:   %[[J:.*]] = kas.reduce sum : 3
// CHECK:   %[[U:.*]] = kas.unfold %[[I]], %[[J]] : 12, 3
// CHECK:   kas.yield data(%[[U]])
// CHECK-LABEL: func.func @apply_window_of_blocks
// CHECK:   %[[Z:.*]] = kas.apply @window_of_blocks_0_stage0(%{{.*}}) : (tensor<48xf32>) -> tensor<12xf32>
// CHECK:   %[[Y:.*]] = kas.apply @window_of_blocks_0_stage1(%[[Z]]) : (tensor<12xf32>) -> tensor<12xf32>
// CHECK:   return %[[Y]]
// LIMIT-LABEL: func.func @apply_window_of_blocks
// LIMIT:         kas.apply @window_of_blocks_0_stage0
kas.operator @window_of_blocks<N | s>(%i: N) from [N*s] {
  %j = kas.reduce sum : 3
  %t = kas.reduce sum : s
  %u = kas.unfold %i, %j : N, 3
  %x = kas.split %u, %t : N, s
  kas.yield data(%x)
}
func.func @apply_window_of_blocks(%x: tensor<48xf32>) -> tensor<12xf32> {
  %y = kas.apply @window_of_blocks<N = 12, s = 4>(%x) : (tensor<48xf32>) -> tensor<12xf32>
  return %y : tensor<12xf32>
}

// -----

// Two weights, low rank: the second one does not see the input channels.
//
// CHECK: kas.operator private @low_rank_0_stage0(%{{.*}}: 64, %{{.*}}: 2) from [64, 32] {
// CHECK:   kas.reduce sum : 32
// CHECK:   kas.yield data(%{{.*}}, %{{.*}}) weight(%{{.*}}, %{{.*}})
// CHECK: kas.operator private @low_rank_0_stage1(%{{.*}}: 64, %{{.*}}: 48) from [64, 2] {
// CHECK:   kas.reduce mean : 2
// CHECK-LABEL: func.func @apply_low_rank
// CHECK:   %[[Z:.*]] = kas.apply @low_rank_0_stage0(%{{.*}}, %[[A:.*]]) : (tensor<64x32xf32>, tensor<32x2xf32>) -> tensor<64x2xf32>
// CHECK:   kas.apply @low_rank_0_stage1(%[[Z]], %[[B:.*]]) : (tensor<64x2xf32>, tensor<48x2xf32>) -> tensor<64x48xf32>
// LIMIT-LABEL: func.func @apply_low_rank
// LIMIT-NOT:     stage
// LIMIT:         return
kas.operator @low_rank<N, Cin, Cout | r>(%n: N, %o: Cout) from [N, Cin] {
  %c = kas.reduce sum : Cin
  %t = kas.reduce mean : r
  %c_d, %c_w = kas.share %c : Cin
  %t_d, %t_w = kas.share %t : r
  kas.yield data(%n, %c_d) weight(%o, %t_d) weight(%c_w, %t_w)
}
func.func @apply_low_rank(%x: tensor<64x32xf32>, %b: tensor<48x2xf32>, %a: tensor<32x2xf32>) -> tensor<64x48xf32> {
  %y = kas.apply @low_rank<r = 2>(%x, %b, %a) : (tensor<64x32xf32>, tensor<48x2xf32>, tensor<32x2xf32>) -> tensor<64x48xf32>
  return %y : tensor<64x48xf32>
}

// -----

// Only a copy is left for the repeated dimension.
//
// CHECK: @repeated_0_stage0(%{{.*}}: 8) from [8, 16]
// CHECK: @repeated_0_stage1(%{{.*}}: 8, %{{.*}}: 100) from [8] {
// CHECK-NOT: reduce
// CHECK: func.func
kas.operator @repeated<N, C, M>(%n: N, %m: M) from [N, C] {
  %c = kas.reduce sum : C
  kas.expand %m : M
  kas.yield data(%n, %c)
}
func.func @apply_repeated(%x: tensor<8x16xf32>) -> tensor<8x100xf32> {
  %y = kas.apply @repeated(%x) : (tensor<8x16xf32>) -> tensor<8x100xf32>
  return %y : tensor<8x100xf32>
}

// -----

// A dense convolution is best as one loop nest; a max does not commute.
//
// CHECK-LABEL: func.func @do_nothing
// CHECK:         kas.apply @conv1d_0(
// CHECK:         kas.apply @max_of_sum_0(
// CHECK-NOT:     stage
kas.operator @conv1d<C, O, W | k>(%o: O, %w: W) from [C, W] {
  %c = kas.reduce sum : C
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%c_d, %x) weight(%o, %c_w, %j_w)
}
kas.operator @max_of_sum<N | s>(%i: N) from [N*s] {
  %j = kas.reduce max : 3
  %t = kas.reduce sum : s
  %u = kas.unfold %i, %j : N, 3
  %x = kas.split %u, %t : N, s
  kas.yield data(%x)
}
func.func @do_nothing(%x: tensor<8x12xf32>, %w: tensor<6x8x3xf32>, %z: tensor<48xf32>) {
  %0 = kas.apply @conv1d<k = 3>(%x, %w) : (tensor<8x12xf32>, tensor<6x8x3xf32>) -> tensor<6x12xf32>
  %1 = kas.apply @max_of_sum<N = 12, s = 4>(%z) : (tensor<48xf32>) -> tensor<12xf32>
  return
}

// -----

// What only the weights see, of the output (4) or of a reduction (3), comes
// before the image, so that both stages step along its lines.
//
// CHECK: @weights_only_0_stage0(%{{.*}}: 3, %{{.*}}: 4, %{{.*}}: 14, %{{.*}}: 28) from [64, 14, 28] {
// CHECK: @weights_only_0_stage1(%{{.*}}: 32, %{{.*}}: 14, %{{.*}}: 28) from [3, 4, 14, 28] {
// CHECK: func.func
kas.operator @weights_only<C, O, H, W | g>(%o: O, %h: H, %w: W) from [C, H, W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  %r = kas.reduce sum : 3
  %r_d, %r_w = kas.share %r : 3
  %q, %m = kas.merge %o by O/g : O
  kas.yield data(%c_d, %h, %w) weight(%q, %c_w, %r_d) weight(%m, %r_w)
}
func.func @apply_weights_only(%x: tensor<64x14x28xf32>, %a: tensor<4x64x3xf32>, %b: tensor<8x3xf32>) -> tensor<32x14x28xf32> {
  %y = kas.apply @weights_only<g = 4>(%x, %a, %b) : (tensor<64x14x28xf32>, tensor<4x64x3xf32>, tensor<8x3xf32>) -> tensor<32x14x28xf32>
  return %y : tensor<32x14x28xf32>
}

// -----

// Syno's Operator 1: the stages of the paper. The intermediate has the groups in
// the place of the channels, then the window and the rank; the window of the
// width stays open, because the second weight sees it, too.
//
// CHECK: kas.operator private @syno_operator1_0_stage0(%{{.*}}: 1, %{{.*}}: 32, %{{.*}}: 3, %{{.*}}: 1, %{{.*}}: 28, %{{.*}}: 56) from [1, 64, 28, 56] {
// CHECK-NEXT: kas.share
// CHECK-NEXT: kas.reduce sum : 2
// CHECK-NEXT: kas.split
// CHECK-NEXT: kas.share
// CHECK-NEXT: kas.unfold %{{.*}}, %{{.*}} : 56, 3
// CHECK-NEXT: kas.yield
// CHECK: kas.operator private @syno_operator1_0_stage1(%{{.*}}: 1, %{{.*}}: 64, %{{.*}}: 28, %{{.*}}: 56) from [1, 32, 3, 1, 28, 56] {
// CHECK: kas.unfold %{{.*}}, %{{.*}} : 28, 3
kas.operator @syno_operator1<N, Cin, Cout, H, W | k, g, s>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %G = kas.reduce sum : g
  %c = kas.reduce sum : Cin/g
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %t = kas.reduce sum : Cout/(g*s)
  %G_d, %G_w2 = kas.share %G : g
  %gc = kas.split %G_d, %c : g, Cin/g
  %gc_d, %gc_w1 = kas.share %gc : Cin
  %i_d, %i_w2 = kas.share %i : k
  %j_1, %j_w2 = kas.share %j : k
  %j_d, %j_w1 = kas.share %j_1 : k
  %t_w1, %t_w2 = kas.share %t : Cout/(g*s)
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %gc_d, %y, %x) weight(%gc_w1, %j_w1, %t_w1) weight(%G_w2, %i_w2, %j_w2, %o, %t_w2)
}
func.func @apply_operator1(%x: tensor<1x64x28x56xf32>, %a: tensor<64x3x1xf32>, %b: tensor<32x3x3x64x1xf32>) -> tensor<1x64x28x56xf32> {
  %y = kas.apply @syno_operator1<k = 3, g = 32, s = 2>(%x, %a, %b) : (tensor<1x64x28x56xf32>, tensor<64x3x1xf32>, tensor<32x3x3x64x1xf32>) -> tensor<1x64x28x56xf32>
  return %y : tensor<1x64x28x56xf32>
}

// -----

// A reduction that only weights have: they are multiplied with one another
// before the data comes. Prepared, that costs nothing, and neither does a scale
// of a weight.
//
// CHECK: kas.operator private @rank_0_stage0(%[[O:.*]]: 48, %[[C:.*]]: 32) from [48, 40] {
// CHECK:   %[[R:.*]] = kas.reduce sum : 40
// CHECK:   %[[D:.*]], %[[W:.*]] = kas.share %[[R]] : 40
// CHECK:   kas.yield data(%[[O]], %[[D]]) weight(%[[C]], %[[W]])
// CHECK: kas.operator private @rank_0_stage1(%[[N:.*]]: 64, %[[O:.*]]: 48) from [64, 32] {
// CHECK:   %[[C:.*]] = kas.reduce sum : 32
// CHECK:   %[[D:.*]], %[[W:.*]] = kas.share %[[C]] : 32
// CHECK:   kas.yield data(%[[N]], %[[D]]) weight(%[[O]], %[[W]])
// CHECK: func.func @apply_rank(%[[X:.*]]: tensor<64x32xf32>, %[[A:.*]]: tensor<48x40xf32>, %[[B:.*]]: tensor<32x40xf32>)
// CHECK:   %[[AB:.*]] = kas.apply @rank_0_stage0(%[[A]], %[[B]]) : (tensor<48x40xf32>, tensor<32x40xf32>) -> tensor<48x32xf32>
// CHECK:   kas.apply @rank_0_stage1(%[[X]], %[[AB]]) : (tensor<64x32xf32>, tensor<48x32xf32>) -> tensor<64x48xf32>
// PREPARED-LABEL: func.func @apply_rank(
// PREPARED:   kas.apply @rank_0_stage0(%{{.*}}) : (tensor<48x40xf32>, tensor<32x40xf32>) -> tensor<48x32xf32>
kas.operator @rank<N, Cin, Cout | r>(%n: N, %o: Cout) from [N, Cin] {
  %c = kas.reduce sum : Cin
  %t = kas.reduce sum : r
  %c_d, %c_w = kas.share %c : Cin
  %t_d, %t_w = kas.share %t : r
  kas.yield data(%n, %c_d) weight(%o, %t_d) weight(%c_w, %t_w)
}
func.func @apply_rank(%x: tensor<64x32xf32>, %a: tensor<48x40xf32>, %b: tensor<32x40xf32>) -> tensor<64x48xf32> {
  %y = kas.apply @rank<r = 40>(%x, %a, %b) : (tensor<64x32xf32>, tensor<48x40xf32>, tensor<32x40xf32>) -> tensor<64x48xf32>
  return %y : tensor<64x48xf32>
}

// -----

// With few rows, a full matrix is too much work for one call, and none when it
// is prepared.
//
// CHECK-LABEL: func.func @apply_scaled
// CHECK:         kas.apply @scaled_0_stage0(%{{.*}}, %{{.*}}) : (tensor<2x32xf32>, tensor<32xf32>) -> tensor<2x32xf32>
// CHECK:         kas.apply @scaled_0_stage1(%{{.*}}, %{{.*}}) : (tensor<2x32xf32>, tensor<48x32xf32>) -> tensor<2x48xf32>
// PREPARED: kas.operator private @scaled_0_stage0(%{{.*}}: 48, %{{.*}}: 32) from [48, 32] {
// PREPARED:   kas.yield data(%{{.*}}, %{{.*}}) weight(%{{.*}})
// PREPARED-LABEL: func.func @apply_scaled
// PREPARED:   kas.apply @scaled_0_stage0(%{{.*}}, %{{.*}}) : (tensor<48x32xf32>, tensor<32xf32>) -> tensor<48x32xf32>
// PREPARED:   kas.apply @scaled_0_stage1(%{{.*}}, %{{.*}}) : (tensor<2x32xf32>, tensor<48x32xf32>) -> tensor<2x48xf32>
kas.operator @scaled<N, Cin, Cout>(%n: N, %o: Cout) from [N, Cin] {
  %c = kas.reduce sum : Cin
  %c_1, %c_w = kas.share %c : Cin
  %c_d, %c_v = kas.share %c_1 : Cin
  kas.yield data(%n, %c_d) weight(%o, %c_w) weight(%c_v)
}
func.func @apply_scaled(%x: tensor<2x32xf32>, %a: tensor<48x32xf32>, %b: tensor<32xf32>) -> tensor<2x48xf32> {
  %y = kas.apply @scaled(%x, %a, %b) : (tensor<2x32xf32>, tensor<48x32xf32>, tensor<32xf32>) -> tensor<2x48xf32>
  return %y : tensor<2x48xf32>
}
