// resnet18_cifar with an eighth of the channels, for images of 16x16: fast enough for the reference evaluator.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @forward(%arg0: tensor<1x3x16x16xf32> {kas.name = "input"}, %arg1: tensor<8x3x3x3xf32> {kas.name = "conv1.weight"}, %arg2: tensor<8xf32> {kas.name = "conv1.bias"}, %arg3: tensor<8x8x3x3xf32> {kas.name = "layer1.0.conv1.weight"}, %arg4: tensor<8xf32> {kas.name = "layer1.0.conv1.bias"}, %arg5: tensor<8x8x3x3xf32> {kas.name = "layer1.0.conv2.weight"}, %arg6: tensor<8xf32> {kas.name = "layer1.0.conv2.bias"}, %arg7: tensor<8x8x3x3xf32> {kas.name = "layer1.1.conv1.weight"}, %arg8: tensor<8xf32> {kas.name = "layer1.1.conv1.bias"}, %arg9: tensor<8x8x3x3xf32> {kas.name = "layer1.1.conv2.weight"}, %arg10: tensor<8xf32> {kas.name = "layer1.1.conv2.bias"}, %arg11: tensor<16x8x3x3xf32> {kas.name = "layer2.0.conv1.weight"}, %arg12: tensor<16xf32> {kas.name = "layer2.0.conv1.bias"}, %arg13: tensor<16x16x3x3xf32> {kas.name = "layer2.0.conv2.weight"}, %arg14: tensor<16xf32> {kas.name = "layer2.0.conv2.bias"}, %arg15: tensor<16x8x1x1xf32> {kas.name = "layer2.0.downsample.0.weight"}, %arg16: tensor<16xf32> {kas.name = "layer2.0.downsample.0.bias"}, %arg17: tensor<16x16x3x3xf32> {kas.name = "layer2.1.conv1.weight"}, %arg18: tensor<16xf32> {kas.name = "layer2.1.conv1.bias"}, %arg19: tensor<16x16x3x3xf32> {kas.name = "layer2.1.conv2.weight"}, %arg20: tensor<16xf32> {kas.name = "layer2.1.conv2.bias"}, %arg21: tensor<32x16x3x3xf32> {kas.name = "layer3.0.conv1.weight"}, %arg22: tensor<32xf32> {kas.name = "layer3.0.conv1.bias"}, %arg23: tensor<32x32x3x3xf32> {kas.name = "layer3.0.conv2.weight"}, %arg24: tensor<32xf32> {kas.name = "layer3.0.conv2.bias"}, %arg25: tensor<32x16x1x1xf32> {kas.name = "layer3.0.downsample.0.weight"}, %arg26: tensor<32xf32> {kas.name = "layer3.0.downsample.0.bias"}, %arg27: tensor<32x32x3x3xf32> {kas.name = "layer3.1.conv1.weight"}, %arg28: tensor<32xf32> {kas.name = "layer3.1.conv1.bias"}, %arg29: tensor<32x32x3x3xf32> {kas.name = "layer3.1.conv2.weight"}, %arg30: tensor<32xf32> {kas.name = "layer3.1.conv2.bias"}, %arg31: tensor<64x32x3x3xf32> {kas.name = "layer4.0.conv1.weight"}, %arg32: tensor<64xf32> {kas.name = "layer4.0.conv1.bias"}, %arg33: tensor<64x64x3x3xf32> {kas.name = "layer4.0.conv2.weight"}, %arg34: tensor<64xf32> {kas.name = "layer4.0.conv2.bias"}, %arg35: tensor<64x32x1x1xf32> {kas.name = "layer4.0.downsample.0.weight"}, %arg36: tensor<64xf32> {kas.name = "layer4.0.downsample.0.bias"}, %arg37: tensor<64x64x3x3xf32> {kas.name = "layer4.1.conv1.weight"}, %arg38: tensor<64xf32> {kas.name = "layer4.1.conv1.bias"}, %arg39: tensor<64x64x3x3xf32> {kas.name = "layer4.1.conv2.weight"}, %arg40: tensor<64xf32> {kas.name = "layer4.1.conv2.bias"}, %arg41: tensor<10x64xf32> {kas.name = "fc.weight"}, %arg42: tensor<10xf32> {kas.name = "fc.bias"}) -> tensor<1x10xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 4.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x3x16x16xf32> to tensor<1x3x18x18xf32>
    %0 = tensor.empty() : tensor<1x8x16x16xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<8xf32>) outs(%0 : tensor<1x8x16x16xf32>) dimensions = [0, 2, 3] 
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<1x3x18x18xf32>, tensor<8x3x3x3xf32>) outs(%broadcasted : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x8x16x16xf32>
    %padded_1 = tensor.pad %2 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x8x16x16xf32> to tensor<1x8x18x18xf32>
    %broadcasted_2 = linalg.broadcast ins(%arg4 : tensor<8xf32>) outs(%0 : tensor<1x8x16x16xf32>) dimensions = [0, 2, 3] 
    %3 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_1, %arg3 : tensor<1x8x18x18xf32>, tensor<8x8x3x3xf32>) outs(%broadcasted_2 : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x8x16x16xf32>
    %padded_3 = tensor.pad %4 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x8x16x16xf32> to tensor<1x8x18x18xf32>
    %broadcasted_4 = linalg.broadcast ins(%arg6 : tensor<8xf32>) outs(%0 : tensor<1x8x16x16xf32>) dimensions = [0, 2, 3] 
    %5 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_3, %arg5 : tensor<1x8x18x18xf32>, tensor<8x8x3x3xf32>) outs(%broadcasted_4 : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %2 : tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x8x16x16xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x8x16x16xf32>
    %padded_5 = tensor.pad %7 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x8x16x16xf32> to tensor<1x8x18x18xf32>
    %broadcasted_6 = linalg.broadcast ins(%arg8 : tensor<8xf32>) outs(%0 : tensor<1x8x16x16xf32>) dimensions = [0, 2, 3] 
    %8 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_5, %arg7 : tensor<1x8x18x18xf32>, tensor<8x8x3x3xf32>) outs(%broadcasted_6 : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x8x16x16xf32>
    %padded_7 = tensor.pad %9 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x8x16x16xf32> to tensor<1x8x18x18xf32>
    %broadcasted_8 = linalg.broadcast ins(%arg10 : tensor<8xf32>) outs(%0 : tensor<1x8x16x16xf32>) dimensions = [0, 2, 3] 
    %10 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_7, %arg9 : tensor<1x8x18x18xf32>, tensor<8x8x3x3xf32>) outs(%broadcasted_8 : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %7 : tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x8x16x16xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<1x8x16x16xf32>) outs(%0 : tensor<1x8x16x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x8x16x16xf32>
    %padded_9 = tensor.pad %12 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x8x16x16xf32> to tensor<1x8x18x18xf32>
    %13 = tensor.empty() : tensor<1x16x8x8xf32>
    %broadcasted_10 = linalg.broadcast ins(%arg12 : tensor<16xf32>) outs(%13 : tensor<1x16x8x8xf32>) dimensions = [0, 2, 3] 
    %14 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_9, %arg11 : tensor<1x8x18x18xf32>, tensor<16x8x3x3xf32>) outs(%broadcasted_10 : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<1x16x8x8xf32>) outs(%13 : tensor<1x16x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x16x8x8xf32>
    %padded_11 = tensor.pad %15 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x16x8x8xf32> to tensor<1x16x10x10xf32>
    %broadcasted_12 = linalg.broadcast ins(%arg14 : tensor<16xf32>) outs(%13 : tensor<1x16x8x8xf32>) dimensions = [0, 2, 3] 
    %16 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_11, %arg13 : tensor<1x16x10x10xf32>, tensor<16x16x3x3xf32>) outs(%broadcasted_12 : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %broadcasted_13 = linalg.broadcast ins(%arg16 : tensor<16xf32>) outs(%13 : tensor<1x16x8x8xf32>) dimensions = [0, 2, 3] 
    %17 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%12, %arg15 : tensor<1x8x16x16xf32>, tensor<16x8x1x1xf32>) outs(%broadcasted_13 : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %17 : tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) outs(%13 : tensor<1x16x8x8xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x16x8x8xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<1x16x8x8xf32>) outs(%13 : tensor<1x16x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x16x8x8xf32>
    %padded_14 = tensor.pad %19 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x16x8x8xf32> to tensor<1x16x10x10xf32>
    %broadcasted_15 = linalg.broadcast ins(%arg18 : tensor<16xf32>) outs(%13 : tensor<1x16x8x8xf32>) dimensions = [0, 2, 3] 
    %20 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_14, %arg17 : tensor<1x16x10x10xf32>, tensor<16x16x3x3xf32>) outs(%broadcasted_15 : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20 : tensor<1x16x8x8xf32>) outs(%13 : tensor<1x16x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x16x8x8xf32>
    %padded_16 = tensor.pad %21 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x16x8x8xf32> to tensor<1x16x10x10xf32>
    %broadcasted_17 = linalg.broadcast ins(%arg20 : tensor<16xf32>) outs(%13 : tensor<1x16x8x8xf32>) dimensions = [0, 2, 3] 
    %22 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_16, %arg19 : tensor<1x16x10x10xf32>, tensor<16x16x3x3xf32>) outs(%broadcasted_17 : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %19 : tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) outs(%13 : tensor<1x16x8x8xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x16x8x8xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<1x16x8x8xf32>) outs(%13 : tensor<1x16x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x16x8x8xf32>
    %padded_18 = tensor.pad %24 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x16x8x8xf32> to tensor<1x16x10x10xf32>
    %25 = tensor.empty() : tensor<1x32x4x4xf32>
    %broadcasted_19 = linalg.broadcast ins(%arg22 : tensor<32xf32>) outs(%25 : tensor<1x32x4x4xf32>) dimensions = [0, 2, 3] 
    %26 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_18, %arg21 : tensor<1x16x10x10xf32>, tensor<32x16x3x3xf32>) outs(%broadcasted_19 : tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<1x32x4x4xf32>) outs(%25 : tensor<1x32x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x32x4x4xf32>
    %padded_20 = tensor.pad %27 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x32x4x4xf32> to tensor<1x32x6x6xf32>
    %broadcasted_21 = linalg.broadcast ins(%arg24 : tensor<32xf32>) outs(%25 : tensor<1x32x4x4xf32>) dimensions = [0, 2, 3] 
    %28 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_20, %arg23 : tensor<1x32x6x6xf32>, tensor<32x32x3x3xf32>) outs(%broadcasted_21 : tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32>
    %broadcasted_22 = linalg.broadcast ins(%arg26 : tensor<32xf32>) outs(%25 : tensor<1x32x4x4xf32>) dimensions = [0, 2, 3] 
    %29 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%24, %arg25 : tensor<1x16x8x8xf32>, tensor<32x16x1x1xf32>) outs(%broadcasted_22 : tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32>
    %30 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %29 : tensor<1x32x4x4xf32>, tensor<1x32x4x4xf32>) outs(%25 : tensor<1x32x4x4xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x32x4x4xf32>
    %31 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<1x32x4x4xf32>) outs(%25 : tensor<1x32x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x32x4x4xf32>
    %padded_23 = tensor.pad %31 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x32x4x4xf32> to tensor<1x32x6x6xf32>
    %broadcasted_24 = linalg.broadcast ins(%arg28 : tensor<32xf32>) outs(%25 : tensor<1x32x4x4xf32>) dimensions = [0, 2, 3] 
    %32 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_23, %arg27 : tensor<1x32x6x6xf32>, tensor<32x32x3x3xf32>) outs(%broadcasted_24 : tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32>
    %33 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<1x32x4x4xf32>) outs(%25 : tensor<1x32x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x32x4x4xf32>
    %padded_25 = tensor.pad %33 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x32x4x4xf32> to tensor<1x32x6x6xf32>
    %broadcasted_26 = linalg.broadcast ins(%arg30 : tensor<32xf32>) outs(%25 : tensor<1x32x4x4xf32>) dimensions = [0, 2, 3] 
    %34 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_25, %arg29 : tensor<1x32x6x6xf32>, tensor<32x32x3x3xf32>) outs(%broadcasted_26 : tensor<1x32x4x4xf32>) -> tensor<1x32x4x4xf32>
    %35 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34, %31 : tensor<1x32x4x4xf32>, tensor<1x32x4x4xf32>) outs(%25 : tensor<1x32x4x4xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x32x4x4xf32>
    %36 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35 : tensor<1x32x4x4xf32>) outs(%25 : tensor<1x32x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x32x4x4xf32>
    %padded_27 = tensor.pad %36 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x32x4x4xf32> to tensor<1x32x6x6xf32>
    %37 = tensor.empty() : tensor<1x64x2x2xf32>
    %broadcasted_28 = linalg.broadcast ins(%arg32 : tensor<64xf32>) outs(%37 : tensor<1x64x2x2xf32>) dimensions = [0, 2, 3] 
    %38 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_27, %arg31 : tensor<1x32x6x6xf32>, tensor<64x32x3x3xf32>) outs(%broadcasted_28 : tensor<1x64x2x2xf32>) -> tensor<1x64x2x2xf32>
    %39 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<1x64x2x2xf32>) outs(%37 : tensor<1x64x2x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x64x2x2xf32>
    %padded_29 = tensor.pad %39 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x64x2x2xf32> to tensor<1x64x4x4xf32>
    %broadcasted_30 = linalg.broadcast ins(%arg34 : tensor<64xf32>) outs(%37 : tensor<1x64x2x2xf32>) dimensions = [0, 2, 3] 
    %40 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_29, %arg33 : tensor<1x64x4x4xf32>, tensor<64x64x3x3xf32>) outs(%broadcasted_30 : tensor<1x64x2x2xf32>) -> tensor<1x64x2x2xf32>
    %broadcasted_31 = linalg.broadcast ins(%arg36 : tensor<64xf32>) outs(%37 : tensor<1x64x2x2xf32>) dimensions = [0, 2, 3] 
    %41 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%36, %arg35 : tensor<1x32x4x4xf32>, tensor<64x32x1x1xf32>) outs(%broadcasted_31 : tensor<1x64x2x2xf32>) -> tensor<1x64x2x2xf32>
    %42 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %41 : tensor<1x64x2x2xf32>, tensor<1x64x2x2xf32>) outs(%37 : tensor<1x64x2x2xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x64x2x2xf32>
    %43 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%42 : tensor<1x64x2x2xf32>) outs(%37 : tensor<1x64x2x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x64x2x2xf32>
    %padded_32 = tensor.pad %43 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x64x2x2xf32> to tensor<1x64x4x4xf32>
    %broadcasted_33 = linalg.broadcast ins(%arg38 : tensor<64xf32>) outs(%37 : tensor<1x64x2x2xf32>) dimensions = [0, 2, 3] 
    %44 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_32, %arg37 : tensor<1x64x4x4xf32>, tensor<64x64x3x3xf32>) outs(%broadcasted_33 : tensor<1x64x2x2xf32>) -> tensor<1x64x2x2xf32>
    %45 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%44 : tensor<1x64x2x2xf32>) outs(%37 : tensor<1x64x2x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x64x2x2xf32>
    %padded_34 = tensor.pad %45 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg43: index, %arg44: index, %arg45: index, %arg46: index):
      tensor.yield %cst : f32
    } : tensor<1x64x2x2xf32> to tensor<1x64x4x4xf32>
    %broadcasted_35 = linalg.broadcast ins(%arg40 : tensor<64xf32>) outs(%37 : tensor<1x64x2x2xf32>) dimensions = [0, 2, 3] 
    %46 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_34, %arg39 : tensor<1x64x4x4xf32>, tensor<64x64x3x3xf32>) outs(%broadcasted_35 : tensor<1x64x2x2xf32>) -> tensor<1x64x2x2xf32>
    %47 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%46, %43 : tensor<1x64x2x2xf32>, tensor<1x64x2x2xf32>) outs(%37 : tensor<1x64x2x2xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x64x2x2xf32>
    %48 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<1x64x2x2xf32>) outs(%37 : tensor<1x64x2x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.cmpf ugt, %in, %cst : f32
      %59 = arith.select %58, %in, %cst : f32
      linalg.yield %59 : f32
    } -> tensor<1x64x2x2xf32>
    %49 = tensor.empty() : tensor<1x64x1x1xf32>
    %50 = linalg.fill ins(%cst : f32) outs(%49 : tensor<1x64x1x1xf32>) -> tensor<1x64x1x1xf32>
    %51 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%48 : tensor<1x64x2x2xf32>) outs(%50 : tensor<1x64x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.addf %in, %out : f32
      linalg.yield %58 : f32
    } -> tensor<1x64x1x1xf32>
    %52 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%51 : tensor<1x64x1x1xf32>) outs(%49 : tensor<1x64x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %58 = arith.divf %in, %cst_0 : f32
      linalg.yield %58 : f32
    } -> tensor<1x64x1x1xf32>
    %collapsed = tensor.collapse_shape %52 [[0], [1, 2, 3]] : tensor<1x64x1x1xf32> into tensor<1x64xf32>
    %53 = tensor.empty() : tensor<64x10xf32>
    %transposed = linalg.transpose ins(%arg41 : tensor<10x64xf32>) outs(%53 : tensor<64x10xf32>) permutation = [1, 0] 
    %54 = tensor.empty() : tensor<1x10xf32>
    %55 = linalg.fill ins(%cst : f32) outs(%54 : tensor<1x10xf32>) -> tensor<1x10xf32>
    %56 = linalg.matmul ins(%collapsed, %transposed : tensor<1x64xf32>, tensor<64x10xf32>) outs(%55 : tensor<1x10xf32>) -> tensor<1x10xf32>
    %57 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel"]} ins(%56, %arg42 : tensor<1x10xf32>, tensor<10xf32>) outs(%54 : tensor<1x10xf32>) {
    ^bb0(%in: f32, %in_36: f32, %out: f32):
      %58 = arith.addf %in, %in_36 : f32
      linalg.yield %58 : f32
    } -> tensor<1x10xf32>
    return %57 : tensor<1x10xf32>
  }
}
