// Every kind of layer by the named operator that computes the same, with the old weights.
// RUN: kas-opt %s --split-input-file -kas-extract -kas-substitute=same-weights | FileCheck %s

// CHECK-LABEL: func.func @grouped(
// CHECK-SAME: %[[X:.*]]: tensor<1x8x8x8xf32>, %[[W:.*]]: tensor<4x4x3x3xf32> {kas.name = "conv.weight"}, %[[B:.*]]: tensor<4xf32>)
// CHECK-NOT: tensor.expand_shape %[[X]]
// CHECK: %[[WG:.*]] = tensor.expand_shape %[[W]]
// CHECK-NEXT: %[[Y:.*]] = kas.apply @kas.conv2d_grouped<g = 2, k = 3>(%[[X]], %[[WG]]) : (tensor<1x8x8x8xf32>, tensor<2x2x4x3x3xf32>) -> tensor<1x4x8x8xf32>
// CHECK: %[[S:.*]] = linalg.generic
// CHECK-SAME: ins(%[[Y]], %[[B]]
// CHECK-NOT: tensor.collapse_shape
// CHECK: return %[[S]] : tensor<1x4x8x8xf32>
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

// -----

// A model that works on split channels; the weight has the groups second.
// CHECK-LABEL: func.func @split_channels(
// CHECK-SAME: %[[X:.*]]: tensor<1x2x4x8x8xf32>, %[[W:.*]]: tensor<3x2x4x1x1xf32>, %[[I:.*]]: tensor<1x2x3x8x8xf32>)
// CHECK: %[[WT:.*]] = linalg.transpose ins(%[[W]] : tensor<3x2x4x1x1xf32>) outs(%{{.*}} : tensor<2x3x4x1x1xf32>) permutation = [1, 0, 2, 3, 4]
// CHECK: %[[XC:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0], [1, 2], [3], [4]]
// CHECK: %[[Y:.*]] = kas.apply @kas.conv2d_grouped<g = 2, k = 1>(%[[XC]], %[[WT]])
// CHECK: %[[IC:.*]] = tensor.collapse_shape %[[I]]
// CHECK: %[[S:.*]] = linalg.generic
// CHECK-SAME: ins(%[[Y]], %[[IC]]
// CHECK: tensor.expand_shape
func.func @split_channels(%x: tensor<1x2x4x8x8xf32>, %w: tensor<3x2x4x1x1xf32>, %init: tensor<1x2x3x8x8xf32>) -> tensor<1x2x3x8x8xf32> {
  %y = linalg.conv_2d_ngchw_fgchw ins(%x, %w : tensor<1x2x4x8x8xf32>, tensor<3x2x4x1x1xf32>) outs(%init : tensor<1x2x3x8x8xf32>) -> tensor<1x2x3x8x8xf32>
  return %y : tensor<1x2x3x8x8xf32>
}

// -----

// CHECK-LABEL: func.func @depthwise(
// CHECK: %[[W:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2], [3]]
// CHECK-NEXT: kas.apply @kas.conv2d_depthwise_strided<k = 3, s = 2>(%{{.*}}, %[[W]]) : (tensor<1x8x8x8xf32>, tensor<8x3x3xf32>) -> tensor<1x8x4x4xf32>
func.func @depthwise(%x: tensor<1x8x8x8xf32>, %w: tensor<8x1x3x3xf32>, %init: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
  %wc = tensor.collapse_shape %w [[0, 1], [2], [3]] : tensor<8x1x3x3xf32> into tensor<8x3x3xf32>
  %y = linalg.depthwise_conv_2d_nchw_chw {strides = dense<2> : vector<2xi64>} ins(%pad, %wc : tensor<1x8x10x10xf32>, tensor<8x3x3xf32>) outs(%init : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %y : tensor<1x8x4x4xf32>
}

// -----

// The kernel's dimensions of size 1 are none of the operator's.
// CHECK-LABEL: func.func @pointwise(
// CHECK: %[[W:.*]] = tensor.collapse_shape %{{.*}} : tensor<8x8x1x1xf32> into tensor<8x8xf32>
// CHECK-NEXT: kas.apply @kas.conv1x1_strided<s = 2>(%{{.*}}, %[[W]]) : (tensor<1x8x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x4x4xf32>
func.func @pointwise(%x: tensor<1x8x8x8xf32>, %w: tensor<8x8x1x1xf32>, %init: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x8x8x8xf32>, tensor<8x8x1x1xf32>) outs(%init : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %y : tensor<1x8x4x4xf32>
}

// -----

// Square weights: which dimension is which follows from the index maps, not from sizes. A transposed one is the
// argument itself, a plain one is transposed.
// CHECK-LABEL: func.func @square(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4x4xf32>)
// CHECK: kas.apply @kas.linear(%[[X]], %[[W]])
// CHECK: %[[WT:.*]] = linalg.transpose ins(%[[W]] : tensor<4x4xf32>) outs(%{{.*}} : tensor<4x4xf32>) permutation = [1, 0]
// CHECK-NEXT: kas.apply @kas.linear(%{{.*}}, %[[WT]])
func.func @square(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %wt = linalg.transpose ins(%w : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %wt : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = linalg.matmul ins(%y, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%y : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: func.func @batch_matmul(
// CHECK: kas.apply @kas.batch_matmul(%{{.*}}, %{{.*}}) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
func.func @batch_matmul(%x: tensor<2x3x4xf32>, %w: tensor<2x4x5xf32>, %init: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %z = linalg.batch_matmul ins(%x, %w : tensor<2x3x4xf32>, tensor<2x4x5xf32>) outs(%init : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %z : tensor<2x3x5xf32>
}

// -----

// Kinds that the library does not have get an operator that is written for them.
// CHECK: kas.operator @conv2d_grouped_strided_dilated_rectangular_layer<N, Cin, Cout, H, W | kh, kw, s, d, p, g>
// CHECK-SAME: (%[[N:.*]]: N, %[[O:.*]]: Cout, %[[X0:.*]]: H/s, %[[X1:.*]]: W/s) from [N, Cin, H, W] {
// CHECK: %[[C:.*]] = kas.reduce sum : Cin/g
// CHECK: kas.merge %[[O]] by Cout/g : Cout
// CHECK: kas.stride %[[X0]] by s : H/s
// CHECK: kas.unfold %{{.*}}, %{{.*}} low p : H, d*kh
// CHECK: kas.unfold %{{.*}}, %{{.*}} low p : W, d*kw
// CHECK-LABEL: func.func @not_in_the_library(
// CHECK: kas.apply @conv2d_grouped_strided_dilated_rectangular_layer<d = 1, g = 2, kh = 2, kw = 4, p = 1, s = 2>
func.func @not_in_the_library(%x: tensor<1x4x4x6xf32>, %w: tensor<2x3x2x2x4xf32>, %init: tensor<1x2x3x2x3xf32>) -> tensor<1x2x3x2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x4x4x6xf32> to tensor<1x4x5x8xf32>
  %xg = tensor.expand_shape %pad [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 5, 8] : tensor<1x4x5x8xf32> into tensor<1x2x2x5x8xf32>
  %y = linalg.conv_2d_ngchw_gfchw {strides = dense<2> : vector<2xi64>} ins(%xg, %w : tensor<1x2x2x5x8xf32>, tensor<2x3x2x2x4xf32>) outs(%init : tensor<1x2x3x2x3xf32>) -> tensor<1x2x3x2x3xf32>
  return %y : tensor<1x2x3x2x3xf32>
}

// -----

// A transposition of a kernel's two equal dimensions is part of the weight.
// CHECK-LABEL: func.func @turned_kernel(
// CHECK: %[[T:.*]] = linalg.transpose
// CHECK: kas.apply @kas.conv2d<k = 3>(%{{.*}}, %[[T]])
func.func @turned_kernel(%x: tensor<1x8x4x4xf32>, %w: tensor<4x8x3x3xf32>, %init: tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x4x4xf32> to tensor<1x8x6x6xf32>
  %e = tensor.empty() : tensor<4x8x3x3xf32>
  %t = linalg.transpose ins(%w : tensor<4x8x3x3xf32>) outs(%e : tensor<4x8x3x3xf32>) permutation = [0, 1, 3, 2]
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %t : tensor<1x8x6x6xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}
