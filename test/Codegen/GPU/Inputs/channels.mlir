// Convolutions around a concatenation and a pooling; one image is flattened and one returned.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @forward(%arg0: tensor<2x3x16x16xf32> {kas.name = "input"}, %arg1: tensor<8x3x3x3xf32> {kas.name = "a.weight"}, %arg2: tensor<8xf32> {kas.name = "a.bias"}, %arg3: tensor<8x11x3x3xf32> {kas.name = "b.weight"}, %arg4: tensor<8xf32> {kas.name = "b.bias"}, %arg5: tensor<4x8x3x3xf32> {kas.name = "c.weight"}, %arg6: tensor<4xf32> {kas.name = "c.bias"}) -> (tensor<2x64xf32>, tensor<2x8x4x4xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 4.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst : f32
    } : tensor<2x3x16x16xf32> to tensor<2x3x18x18xf32>
    %0 = tensor.empty() : tensor<2x8x16x16xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<8xf32>) outs(%0 : tensor<2x8x16x16xf32>) dimensions = [0, 2, 3] 
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<2x3x18x18xf32>, tensor<8x3x3x3xf32>) outs(%broadcasted : tensor<2x8x16x16xf32>) -> tensor<2x8x16x16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x8x16x16xf32>) outs(%0 : tensor<2x8x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.cmpf ugt, %in, %cst : f32
      %13 = arith.select %12, %in, %cst : f32
      linalg.yield %13 : f32
    } -> tensor<2x8x16x16xf32>
    %concat = tensor.concat dim(1) %arg0, %2 : (tensor<2x3x16x16xf32>, tensor<2x8x16x16xf32>) -> tensor<2x11x16x16xf32>
    %padded_1 = tensor.pad %concat low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst : f32
    } : tensor<2x11x16x16xf32> to tensor<2x11x18x18xf32>
    %3 = tensor.empty() : tensor<2x8x8x8xf32>
    %broadcasted_2 = linalg.broadcast ins(%arg4 : tensor<8xf32>) outs(%3 : tensor<2x8x8x8xf32>) dimensions = [0, 2, 3] 
    %4 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_1, %arg3 : tensor<2x11x18x18xf32>, tensor<8x11x3x3xf32>) outs(%broadcasted_2 : tensor<2x8x8x8xf32>) -> tensor<2x8x8x8xf32>
    %5 = tensor.empty() : tensor<2x8x4x4xf32>
    %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
    %7 = tensor.empty() : tensor<2x2xf32>
    %8 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%4, %7 : tensor<2x8x8x8xf32>, tensor<2x2xf32>) outs(%6 : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<2x8x4x4xf32>) outs(%5 : tensor<2x8x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.divf %in, %cst_0 : f32
      linalg.yield %12 : f32
    } -> tensor<2x8x4x4xf32>
    %padded_3 = tensor.pad %9 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst : f32
    } : tensor<2x8x4x4xf32> to tensor<2x8x6x6xf32>
    %10 = tensor.empty() : tensor<2x4x4x4xf32>
    %broadcasted_4 = linalg.broadcast ins(%arg6 : tensor<4xf32>) outs(%10 : tensor<2x4x4x4xf32>) dimensions = [0, 2, 3] 
    %11 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_3, %arg5 : tensor<2x8x6x6xf32>, tensor<4x8x3x3xf32>) outs(%broadcasted_4 : tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
    %collapsed = tensor.collapse_shape %11 [[0], [1, 2, 3]] : tensor<2x4x4x4xf32> into tensor<2x64xf32>
    return %collapsed, %9 : tensor<2x64xf32>, tensor<2x8x4x4xf32>
  }
}
