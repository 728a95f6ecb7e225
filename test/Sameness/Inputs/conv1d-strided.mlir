func.func @layer(%x: tensor<1x8x16xf32>, %w: tensor<4x8x3xf32>) -> tensor<1x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x8x16xf32> to tensor<1x8x18xf32>
  %empty = tensor.empty() : tensor<1x4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  %y = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>}
    ins(%pad, %w : tensor<1x8x18xf32>, tensor<4x8x3xf32>) outs(%init : tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  return %y : tensor<1x4x8xf32>
}
