// RUN: kas-opt %s --split-input-file -kas-extract -kas-substitute="operator=@other" | FileCheck %s

// The padding belongs to the layer; it goes, with the old weight and the start of the accumulator. The bias is added
// afterwards. A single weight of the old shape takes the old name.
// CHECK-LABEL: func.func @dense(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x6x5xf32> {kas.name = "input"},
// CHECK-SAME: %[[W:.*]]: tensor<4x8x3x3xf32> {kas.init = "kaiming(72)", kas.name = "conv.weight"},
// CHECK-SAME: %[[B:.*]]: tensor<4xf32> {kas.name = "conv.bias"})
// CHECK-NEXT: %[[Y:.*]] = kas.apply @other<k = 3>(%[[X]], %[[W]]) : (tensor<1x8x6x5xf32>, tensor<4x8x3x3xf32>) -> tensor<1x4x6x5xf32>
// CHECK-NEXT: %[[E:.*]] = tensor.empty
// CHECK-NEXT: %[[S:.*]] = linalg.generic
// CHECK-SAME: ins(%[[Y]], %[[B]] : tensor<1x4x6x5xf32>, tensor<4xf32>) outs(%[[E]]
// CHECK:        arith.addf
// CHECK:      return %[[S]]
kas.operator @other<N, A, B, H, W | k>(%n: N, %b: B, %h: H, %w: W) from [N, A, H, W] {
  %a = kas.reduce sum : A
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %a_d, %a_w = kas.share %a : A
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %a_d, %y, %x) weight(%b, %a_w, %i_w, %j_w)
}
func.func @dense(%x: tensor<1x8x6x5xf32> {kas.name = "input"},
                 %w: tensor<4x8x3x3xf32> {kas.name = "conv.weight"},
                 %b: tensor<4xf32> {kas.name = "conv.bias"}) -> tensor<1x4x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x6x5xf32> to tensor<1x8x8x7xf32>
  %empty = tensor.empty() : tensor<1x4x6x5xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%empty : tensor<1x4x6x5xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x8x8x7xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  return %y : tensor<1x4x6x5xf32>
}

// -----

// Two weights, numbered; `g` comes from the space. No bias: nothing is added. What others use stays: the padding, the
// old weight, and its name.
// CHECK-LABEL: func.func @shared_operands(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x6x5xf32> {kas.name = "input"},
// CHECK-SAME: %[[W:.*]]: tensor<4x8x3x3xf32> {kas.name = "conv.weight"},
// CHECK-SAME: %[[W0:.*]]: tensor<4x2xf32> {kas.init = "kaiming(4)", kas.name = "conv.weight.0"},
// CHECK-SAME: %[[W1:.*]]: tensor<2x4xf32> {kas.init = "kaiming(4)", kas.name = "conv.weight.1"})
// CHECK: %[[PAD:.*]] = tensor.pad
// CHECK: %[[Y:.*]] = kas.apply @other<g = 4>(%[[X]], %[[W0]], %[[W1]]) : (tensor<1x8x6x5xf32>, tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<1x4x6x5xf32>
// CHECK: return %[[Y]], %[[PAD]], %[[W]]
kas.operator @other<N, A, B, H, W | g>(%n: N, %b: B, %h: H, %w: W) from [N, A, H, W] {
  %i = kas.reduce sum : A/g
  %j = kas.reduce sum : g
  %i_1, %i_v = kas.share %i : A/g
  %i_d, %i_w = kas.share %i_1 : A/g
  %j_d, %j_w = kas.share %j : g
  %a = kas.split %i_d, %j_d : A/g, g
  kas.yield data(%n, %a, %h, %w) weight(%j_w, %i_v) weight(%i_w, %b)
}
func.func @shared_operands(%x: tensor<1x8x6x5xf32> {kas.name = "input"},
                           %w: tensor<4x8x3x3xf32> {kas.name = "conv.weight"})
    -> (tensor<1x4x6x5xf32>, tensor<1x8x8x7xf32>, tensor<4x8x3x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x6x5xf32> to tensor<1x8x8x7xf32>
  %empty = tensor.empty() : tensor<1x4x6x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x8x8x7xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  return %y, %pad, %w : tensor<1x4x6x5xf32>, tensor<1x8x8x7xf32>, tensor<4x8x3x3xf32>
}

// -----

// Tied weights stay tied where the new ones have one shape; names stay distinct. Weights without a name get one from
// the space. A residual as the start of the accumulator is added.
// CHECK-LABEL: func.func @tied(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32> {kas.name = "input"},
// CHECK-SAME: %[[T:.*]]: tensor<4x4xf32> {kas.init = "kaiming(4)", kas.name = "fc.weight"},
// CHECK-SAME: %[[U:.*]]: tensor<4x4xf32> {kas.init = "kaiming(4)", kas.name = "linear.unnamed0.weight.0"},
// CHECK-SAME: %[[V:.*]]: tensor<4x4xf32> {kas.init = "kaiming(4)", kas.name = "linear.unnamed1.weight.0"})
// CHECK-NEXT: %[[Y0:.*]] = kas.apply @other(%[[X]], %[[T]])
// CHECK: %[[S0:.*]] = linalg.generic
// CHECK-SAME: ins(%[[Y0]], %[[X]] :
// CHECK: %[[Y1:.*]] = kas.apply @other(%[[S0]], %[[T]])
// CHECK: kas.apply @other(%{{.*}}, %[[U]])
// CHECK: kas.apply @other(%{{.*}}, %[[V]])
kas.operator @other<N, A, B>(%n: N, %b: B) from [N, A] {
  %a = kas.reduce sum : A
  %a_d, %a_w = kas.share %a : A
  kas.yield data(%n, %a_d) weight(%b, %a_w)
}
func.func @tied(%x: tensor<2x4xf32> {kas.name = "input"}, %w: tensor<4x4xf32> {kas.name = "fc.weight"}, %u: tensor<8x2xf32>) -> tensor<2x4xf32> {
  %c = arith.constant dense<1.0> : tensor<4x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = linalg.matmul ins(%y, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%y : tensor<2x4xf32>) -> tensor<2x4xf32>
  %u_flat = tensor.collapse_shape %u [[0, 1]] : tensor<8x2xf32> into tensor<16xf32>
  %u_square = tensor.expand_shape %u_flat [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %a = linalg.matmul ins(%z, %u_square : tensor<2x4xf32>, tensor<4x4xf32>) outs(%z : tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = linalg.matmul ins(%a, %c : tensor<2x4xf32>, tensor<4x4xf32>) outs(%a : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %b : tensor<2x4xf32>
}

// -----

// An operator without weights: only the old weight goes.
// CHECK-LABEL: func.func @no_weights(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x6x5xf32>, %[[I:.*]]: tensor<1x8x6x5xf32>)
// CHECK: kas.apply @other<k = 3>(%[[X]]) : (tensor<1x8x6x5xf32>) -> tensor<1x8x6x5xf32>
kas.operator @other<N, C, H, W | k>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce mean : k
  %y = kas.unfold %h, %i : H, k
  kas.yield data(%n, %c, %y, %w)
}
func.func @no_weights(%x: tensor<1x8x6x5xf32>, %w: tensor<8x1x3x3xf32>, %init: tensor<1x8x6x5xf32>) -> tensor<1x8x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x6x5xf32> to tensor<1x8x8x7xf32>
  %wc = tensor.collapse_shape %w [[0, 1], [2], [3]] : tensor<8x1x3x3xf32> into tensor<8x3x3xf32>
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%pad, %wc : tensor<1x8x8x7xf32>, tensor<8x3x3xf32>) outs(%init : tensor<1x8x6x5xf32>) -> tensor<1x8x6x5xf32>
  return %y : tensor<1x8x6x5xf32>
}

// -----

// How large weights are: 8 products, each with a sum of 3 neighbours, count 8 * 3**2; each with a mean of 3, 8; the
// largest of 3 counts as one.
// CHECK-LABEL: func.func @neighbours(
// CHECK-SAME: kas.init = "kaiming(72)"
kas.operator @other<N, A, B, L>(%n: N, %b: B, %l: L) from [N, A, L] {
  %a = kas.reduce sum : A
  %i = kas.reduce sum : 3
  %a_d, %a_w = kas.share %a : A
  %x = kas.unfold %l, %i : L, 3
  kas.yield data(%n, %a_d, %x) weight(%b, %a_w)
}
func.func @neighbours(%x: tensor<1x8x9xf32>, %w: tensor<4x8x1xf32>, %init: tensor<1x4x9xf32>) -> tensor<1x4x9xf32> {
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<1x8x9xf32>, tensor<4x8x1xf32>) outs(%init : tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  return %y : tensor<1x4x9xf32>
}

// -----

// CHECK-LABEL: func.func @mean_of_neighbours(
// CHECK-SAME: kas.init = "kaiming(8)"
kas.operator @other<N, A, B, L>(%n: N, %b: B, %l: L) from [N, A, L] {
  %a = kas.reduce sum : A
  %i = kas.reduce mean : 3
  %a_d, %a_w = kas.share %a : A
  %x = kas.unfold %l, %i : L, 3
  kas.yield data(%n, %a_d, %x) weight(%b, %a_w)
}
func.func @mean_of_neighbours(%x: tensor<1x8x9xf32>, %w: tensor<4x8x1xf32>, %init: tensor<1x4x9xf32>) -> tensor<1x4x9xf32> {
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<1x8x9xf32>, tensor<4x8x1xf32>) outs(%init : tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  return %y : tensor<1x4x9xf32>
}

// -----

// CHECK-LABEL: func.func @largest_of_neighbours(
// CHECK-SAME: kas.init = "kaiming(8)"
kas.operator @other<N, A, B, L>(%n: N, %b: B, %l: L) from [N, A, L] {
  %a = kas.reduce sum : A
  %i = kas.reduce max : 3
  %a_d, %a_w = kas.share %a : A
  %x = kas.unfold %l, %i : L, 3
  kas.yield data(%n, %a_d, %x) weight(%b, %a_w)
}
func.func @largest_of_neighbours(%x: tensor<1x8x9xf32>, %w: tensor<4x8x1xf32>, %init: tensor<1x4x9xf32>) -> tensor<1x4x9xf32> {
  %y = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<1x8x9xf32>, tensor<4x8x1xf32>) outs(%init : tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  return %y : tensor<1x4x9xf32>
}

// -----

// With the layer go the reshapes of data, weight, accumulator and result, and the old weight that they read.
// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x8x8xf32>, %[[W:.*]]: tensor<4x8xf32> {kas.init = "kaiming(8)", kas.name = "conv.weight.0"}, %[[B:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[Y:.*]] = kas.apply @other(%[[X]], %[[W]])
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: %[[S:.*]] = linalg.generic
// CHECK-SAME: ins(%[[Y]], %[[B]]
// CHECK: return %[[S]]
kas.operator @other<N, A, B, H, W>(%n: N, %b: B, %h: H, %w: W) from [N, A, H, W] {
  %a = kas.reduce sum : A
  %a_d, %a_w = kas.share %a : A
  kas.yield data(%n, %a_d, %h, %w) weight(%b, %a_w)
}
func.func @grouped(%x: tensor<1x8x8x8xf32>, %w: tensor<4x4x3x3xf32> {kas.name = "conv.weight"}, %b: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
  %empty = tensor.empty() : tensor<1x4x8x8xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%empty : tensor<1x4x8x8xf32>) dimensions = [0, 2, 3]
  %xg = tensor.expand_shape %pad [[0], [1, 2], [3], [4]] output_shape [1, 2, 4, 10, 10] : tensor<1x8x10x10xf32> into tensor<1x2x4x10x10xf32>
  %wg = tensor.expand_shape %w [[0, 1], [2], [3], [4]] output_shape [2, 2, 4, 3, 3] : tensor<4x4x3x3xf32> into tensor<2x2x4x3x3xf32>
  %ig = tensor.expand_shape %init [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 8, 8] : tensor<1x4x8x8xf32> into tensor<1x2x2x8x8xf32>
  %yg = linalg.conv_2d_ngchw_gfchw ins(%xg, %wg : tensor<1x2x4x10x10xf32>, tensor<2x2x4x3x3xf32>) outs(%ig : tensor<1x2x2x8x8xf32>) -> tensor<1x2x2x8x8xf32>
  %y = tensor.collapse_shape %yg [[0], [1, 2], [3], [4]] : tensor<1x2x2x8x8xf32> into tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}
