// Identity, for each kind of layer that has a named operator: with the same weights the values are the same. All
// layers are in one function; sizes are odd where the kind allows it.
// RUN: kas-opt %s -kas-extract -kas-substitute=same-weights -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: kas-run %t --function=layers --args=3 --check=%s | FileCheck %s --check-prefix=VALUES
//
// The same weights by their names, not by the option: operators with one weight of the old shape.
// RUN: kas-opt %s -kas-extract -kas-substitute="operator=kas.conv2d space=@conv2d" -o %t2
// RUN: FileCheck %s --input-file=%t2 --check-prefix=NAMES
// RUN: kas-run %t2 --function=layers --args=3 --check=%s | FileCheck %s --check-prefix=VALUES

// CHECK-LABEL: func.func @layers
// CHECK-COUNT-24: kas.apply @kas.
// CHECK-NOT: kas.site
// NAMES: tensor<4x8x3x3xf32> {kas.init = "kaiming(72)", kas.name = "a.weight"}
// NAMES: kas.apply @kas.conv2d<k = 3>(
// VALUES: max relative error {{[0-9.]+e-0[6-9]|0}}
// VALUES: ok
func.func @layers(
    %a0: tensor<2x8x7x5xf32>,
    %a1: tensor<4x8x3x3xf32> {kas.name = "a.weight"},
    %a2: tensor<2x4x7x5xf32>,
    %a3: tensor<1x8x8x6xf32>,
    %a4: tensor<4x8x5x5xf32>,
    %a5: tensor<1x4x4x3xf32>,
    %a6: tensor<1x8x7x9xf32>,
    %a7: tensor<4x8x3x3xf32>,
    %a8: tensor<1x4x7x9xf32>,
    %a9: tensor<1x8x7x9xf32>,
    %a10: tensor<4x8x4x4xf32>,
    %a11: tensor<1x4x7x9xf32>,
    %a12: tensor<1x8x8x6xf32>,
    %a13: tensor<4x8x3x3xf32>,
    %a14: tensor<1x4x4x3xf32>,
    %a15: tensor<1x8x8x12xf32>,
    %a16: tensor<4x8x4x4xf32>,
    %a17: tensor<1x4x2x3xf32>,
    %a18: tensor<1x8x7x5xf32>,
    %a19: tensor<8x8x1x1xf32>,
    %a20: tensor<1x8x7x5xf32>,
    %a21: tensor<1x8x8x6xf32>,
    %a22: tensor<8x8x1x1xf32>,
    %a23: tensor<1x8x4x3xf32>,
    %a24: tensor<1x3x8x6xf32>,
    %a25: tensor<4x3x3x3xf32>,
    %a26: tensor<1x4x8x6xf32>,
    %a27: tensor<1x8x9xf32>,
    %a28: tensor<4x8x3xf32>,
    %a29: tensor<1x4x9xf32>,
    %a30: tensor<1x8x9xf32>,
    %a31: tensor<4x8x5xf32>,
    %a32: tensor<1x4x3xf32>,
    %a33: tensor<1x8x9xf32>,
    %a34: tensor<4x8x3xf32>,
    %a35: tensor<1x4x9xf32>,
    %a36: tensor<1x8x8x6xf32>,
    %a37: tensor<4x4x3x3xf32>,
    %a38: tensor<4xf32>,
    %a39: tensor<1x8x8x6xf32>,
    %a40: tensor<4x4x3x3xf32>,
    %a41: tensor<4xf32>,
    %a42: tensor<1x2x4x7x5xf32>,
    %a43: tensor<3x2x4x1x1xf32>,
    %a44: tensor<1x2x3x7x5xf32>,
    %a45: tensor<1x8x8x6xf32>,
    %a46: tensor<8x1x3x3xf32>,
    %a47: tensor<1x8x8x6xf32>,
    %a48: tensor<1x8x4x3xf32>,
    %a49: tensor<1x8x8x6xf32>,
    %a50: tensor<1x8x9xf32>,
    %a51: tensor<8x3xf32>,
    %a52: tensor<1x8x9xf32>,
    %a53: tensor<3x8xf32>,
    %a54: tensor<8x8xf32>,
    %a55: tensor<3x8xf32>,
    %a56: tensor<2x3x8xf32>,
    %a57: tensor<4x8xf32>,
    %a58: tensor<2x3x4xf32>,
    %a59: tensor<2x3x4xf32>,
    %a60: tensor<2x4x5xf32>,
    %a61: tensor<2x3x5xf32>)
    -> (tensor<2x4x7x5xf32>, tensor<1x4x4x3xf32>, tensor<1x4x7x9xf32>, tensor<1x4x7x9xf32>, tensor<1x4x4x3xf32>, tensor<1x4x2x3xf32>, tensor<1x8x7x5xf32>, tensor<1x8x4x3xf32>, tensor<1x4x8x6xf32>, tensor<1x4x9xf32>, tensor<1x4x3xf32>, tensor<1x4x9xf32>, tensor<1x4x8x6xf32>, tensor<1x4x4x3xf32>, tensor<1x2x3x7x5xf32>, tensor<1x8x8x6xf32>, tensor<1x8x4x3xf32>, tensor<1x8x8x6xf32>, tensor<1x8x9xf32>, tensor<3x8xf32>, tensor<3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<3x4xf32>
  %constant = arith.constant dense<0.5> : tensor<4x8xf32>
  %p1 = tensor.pad %a0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x8x7x5xf32> to tensor<2x8x9x7xf32>
  // conv2d, odd sizes
  %y2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p1, %a1 : tensor<2x8x9x7xf32>, tensor<4x8x3x3xf32>) outs(%a2 : tensor<2x4x7x5xf32>) -> tensor<2x4x7x5xf32>
  %p3 = tensor.pad %a3 low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x6xf32> to tensor<1x8x12x10xf32>
  // conv2d_strided
  %y4 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%p3, %a4 : tensor<1x8x12x10xf32>, tensor<4x8x5x5xf32>) outs(%a5 : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  %p5 = tensor.pad %a6 low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x7x9xf32> to tensor<1x8x11x13xf32>
  // conv2d_dilated
  %y6 = linalg.conv_2d_nchw_fchw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p5, %a7 : tensor<1x8x11x13xf32>, tensor<4x8x3x3xf32>) outs(%a8 : tensor<1x4x7x9xf32>) -> tensor<1x4x7x9xf32>
  %p7 = tensor.pad %a9 low[0, 0, 1, 1] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x7x9xf32> to tensor<1x8x10x12xf32>
  // conv2d_dilated: an even kernel
  %y8 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p7, %a10 : tensor<1x8x10x12xf32>, tensor<4x8x4x4xf32>) outs(%a11 : tensor<1x4x7x9xf32>) -> tensor<1x4x7x9xf32>
  %p9 = tensor.pad %a12 low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x6xf32> to tensor<1x8x12x10xf32>
  // conv2d_strided_dilated
  %y10 = linalg.conv_2d_nchw_fchw {dilations = dense<2> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%p9, %a13 : tensor<1x8x12x10xf32>, tensor<4x8x3x3xf32>) outs(%a14 : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  // conv2d_strided_unpadded: patches
  %y11 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<4> : vector<2xi64>} ins(%a15, %a16 : tensor<1x8x8x12xf32>, tensor<4x8x4x4xf32>) outs(%a17 : tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  // conv1x1
  %y12 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%a18, %a19 : tensor<1x8x7x5xf32>, tensor<8x8x1x1xf32>) outs(%a20 : tensor<1x8x7x5xf32>) -> tensor<1x8x7x5xf32>
  // conv1x1_strided
  %y13 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%a21, %a22 : tensor<1x8x8x6xf32>, tensor<8x8x1x1xf32>) outs(%a23 : tensor<1x8x4x3xf32>) -> tensor<1x8x4x3xf32>
  %p14 = tensor.pad %a24 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x3x8x6xf32> to tensor<1x3x10x8xf32>
  // conv2d_stem
  %y15 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p14, %a25 : tensor<1x3x10x8xf32>, tensor<4x3x3x3xf32>) outs(%a26 : tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32>
  %p16 = tensor.pad %a27 low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x8x9xf32> to tensor<1x8x11xf32>
  // conv1d
  %y17 = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p16, %a28 : tensor<1x8x11xf32>, tensor<4x8x3xf32>) outs(%a29 : tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  %p18 = tensor.pad %a30 low[0, 0, 2] high[0, 0, 2] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x8x9xf32> to tensor<1x8x13xf32>
  // conv1d_strided
  %y19 = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<3> : vector<1xi64>} ins(%p18, %a31 : tensor<1x8x13xf32>, tensor<4x8x5xf32>) outs(%a32 : tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %p20 = tensor.pad %a33 low[0, 0, 4] high[0, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x8x9xf32> to tensor<1x8x13xf32>
  // conv1d_dilated: causal
  %y21 = linalg.conv_1d_ncw_fcw {dilations = dense<2> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p20, %a34 : tensor<1x8x13xf32>, tensor<4x8x3xf32>) outs(%a35 : tensor<1x4x9xf32>) -> tensor<1x4x9xf32>
  %p22 = tensor.pad %a36 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x6xf32> to tensor<1x8x10x8xf32>
  // conv2d_grouped, with bias
  %e23 = tensor.empty() : tensor<1x4x8x6xf32>
  %init23 = linalg.broadcast ins(%a38 : tensor<4xf32>) outs(%e23 : tensor<1x4x8x6xf32>) dimensions = [0, 2, 3]
  %xg23 = tensor.expand_shape %p22 [[0], [1, 2], [3], [4]] output_shape [1, 2, 4, 10, 8] : tensor<1x8x10x8xf32> into tensor<1x2x4x10x8xf32>
  %wg23 = tensor.expand_shape %a37 [[0, 1], [2], [3], [4]] output_shape [2, 2, 4, 3, 3] : tensor<4x4x3x3xf32> into tensor<2x2x4x3x3xf32>
  %ig23 = tensor.expand_shape %init23 [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 8, 6] : tensor<1x4x8x6xf32> into tensor<1x2x2x8x6xf32>
  %yg23 = linalg.conv_2d_ngchw_gfchw {strides = dense<1> : vector<2xi64>} ins(%xg23, %wg23 : tensor<1x2x4x10x8xf32>, tensor<2x2x4x3x3xf32>) outs(%ig23 : tensor<1x2x2x8x6xf32>) -> tensor<1x2x2x8x6xf32>
  %y23 = tensor.collapse_shape %yg23 [[0], [1, 2], [3], [4]] : tensor<1x2x2x8x6xf32> into tensor<1x4x8x6xf32>
  %p24 = tensor.pad %a39 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x6xf32> to tensor<1x8x10x8xf32>
  // conv2d_grouped_strided, with bias
  %e25 = tensor.empty() : tensor<1x4x4x3xf32>
  %init25 = linalg.broadcast ins(%a41 : tensor<4xf32>) outs(%e25 : tensor<1x4x4x3xf32>) dimensions = [0, 2, 3]
  %xg25 = tensor.expand_shape %p24 [[0], [1, 2], [3], [4]] output_shape [1, 2, 4, 10, 8] : tensor<1x8x10x8xf32> into tensor<1x2x4x10x8xf32>
  %wg25 = tensor.expand_shape %a40 [[0, 1], [2], [3], [4]] output_shape [2, 2, 4, 3, 3] : tensor<4x4x3x3xf32> into tensor<2x2x4x3x3xf32>
  %ig25 = tensor.expand_shape %init25 [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 4, 3] : tensor<1x4x4x3xf32> into tensor<1x2x2x4x3xf32>
  %yg25 = linalg.conv_2d_ngchw_gfchw {strides = dense<2> : vector<2xi64>} ins(%xg25, %wg25 : tensor<1x2x4x10x8xf32>, tensor<2x2x4x3x3xf32>) outs(%ig25 : tensor<1x2x2x4x3xf32>) -> tensor<1x2x2x4x3xf32>
  %y25 = tensor.collapse_shape %yg25 [[0], [1, 2], [3], [4]] : tensor<1x2x2x4x3xf32> into tensor<1x4x4x3xf32>
  // conv2d_grouped on split channels, the groups second in the weight
  %y26 = linalg.conv_2d_ngchw_fgchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%a42, %a43 : tensor<1x2x4x7x5xf32>, tensor<3x2x4x1x1xf32>) outs(%a44 : tensor<1x2x3x7x5xf32>) -> tensor<1x2x3x7x5xf32>
  %p27 = tensor.pad %a45 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x6xf32> to tensor<1x8x10x8xf32>
  %wc = tensor.collapse_shape %a46 [[0, 1], [2], [3]] : tensor<8x1x3x3xf32> into tensor<8x3x3xf32>
  // conv2d_depthwise
  %y28 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p27, %wc : tensor<1x8x10x8xf32>, tensor<8x3x3xf32>) outs(%a47 : tensor<1x8x8x6xf32>) -> tensor<1x8x8x6xf32>
  // conv2d_depthwise_strided, the same weight and padding
  %y29 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%p27, %wc : tensor<1x8x10x8xf32>, tensor<8x3x3xf32>) outs(%a48 : tensor<1x8x4x3xf32>) -> tensor<1x8x4x3xf32>
  %p30 = tensor.pad %a45 low[0, 0, 2, 2] high[0, 0, 2, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x6xf32> to tensor<1x8x12x10xf32>
  // conv2d_depthwise_dilated
  %y31 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p30, %wc : tensor<1x8x12x10xf32>, tensor<8x3x3xf32>) outs(%a49 : tensor<1x8x8x6xf32>) -> tensor<1x8x8x6xf32>
  %p32 = tensor.pad %a50 low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x8x9xf32> to tensor<1x8x11xf32>
  // conv1d_depthwise
  %y33 = linalg.depthwise_conv_1d_ncw_cw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%p32, %a51 : tensor<1x8x11xf32>, tensor<8x3xf32>) outs(%a52 : tensor<1x8x9xf32>) -> tensor<1x8x9xf32>
  // linear: a square weight, transposed, as it is, and first; a residual as the start
  %t = tensor.empty() : tensor<8x8xf32>
  %wt = linalg.transpose ins(%a54 : tensor<8x8xf32>) outs(%t : tensor<8x8xf32>) permutation = [1, 0]
  %l0 = linalg.matmul ins(%a53, %wt : tensor<3x8xf32>, tensor<8x8xf32>) outs(%a55 : tensor<3x8xf32>) -> tensor<3x8xf32>
  %l1 = linalg.matmul ins(%a53, %a54 : tensor<3x8xf32>, tensor<8x8xf32>) outs(%l0 : tensor<3x8xf32>) -> tensor<3x8xf32>
  %l2 = linalg.generic {
      indexing_maps = [affine_map<(n, o, i) -> (o, i)>, affine_map<(n, o, i) -> (n, i)>, affine_map<(n, o, i) -> (n, o)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%constant, %l1 : tensor<4x8xf32>, tensor<3x8xf32>) outs(%zeros : tensor<3x4xf32>) {
    ^bb0(%i: f32, %j: f32, %k: f32):
      %m = arith.mulf %i, %j : f32
      %s = arith.addf %k, %m : f32
      linalg.yield %s : f32
  } -> tensor<3x4xf32>
  // batched_linear
  %l3 = linalg.generic {
      indexing_maps = [affine_map<(n, t, o, i) -> (n, t, i)>, affine_map<(n, t, o, i) -> (o, i)>, affine_map<(n, t, o, i) -> (n, t, o)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a56, %a57 : tensor<2x3x8xf32>, tensor<4x8xf32>) outs(%a58 : tensor<2x3x4xf32>) {
    ^bb0(%i: f32, %j: f32, %k: f32):
      %m = arith.mulf %i, %j : f32
      %s = arith.addf %k, %m : f32
      linalg.yield %s : f32
  } -> tensor<2x3x4xf32>
  // batch_matmul
  %l4 = linalg.batch_matmul ins(%a59, %a60 : tensor<2x3x4xf32>, tensor<2x4x5xf32>) outs(%a61 : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y2, %y4, %y6, %y8, %y10, %y11, %y12, %y13, %y15, %y17, %y19, %y21, %y23, %y25, %y26, %y28, %y29, %y31, %y33, %l1, %l2, %l3, %l4
      : tensor<2x4x7x5xf32>, tensor<1x4x4x3xf32>, tensor<1x4x7x9xf32>, tensor<1x4x7x9xf32>, tensor<1x4x4x3xf32>, tensor<1x4x2x3xf32>, tensor<1x8x7x5xf32>, tensor<1x8x4x3xf32>, tensor<1x4x8x6xf32>, tensor<1x4x9xf32>, tensor<1x4x3xf32>, tensor<1x4x9xf32>, tensor<1x4x8x6xf32>, tensor<1x4x4x3xf32>, tensor<1x2x3x7x5xf32>, tensor<1x8x8x6xf32>, tensor<1x8x4x3xf32>, tensor<1x8x8x6xf32>, tensor<1x8x9xf32>, tensor<3x8xf32>, tensor<3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x5xf32>
}
